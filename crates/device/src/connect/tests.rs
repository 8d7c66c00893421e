//! Connections against the stock adb, the simulated phone, and servers that misbehave.

mod stock;
mod watching;
