//! The simulated phone as real ADB clients meet it: the stock `adb` of Debian, the one PyPI's `adbutils` carries, and the crate
//! `adb_client`. Every server is private and killed at the end. `scripts/setup` installs `adb`.

mod agent;
mod clients;
mod faults;
mod stock;
mod support;
