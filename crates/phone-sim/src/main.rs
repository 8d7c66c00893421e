//! The simulated phone as a program, for `adb connect` by hand. It never starts anything but the library.

fn main() {}
