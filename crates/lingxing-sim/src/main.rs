//! `lingxing-sim`: see the library.

fn main() {}
