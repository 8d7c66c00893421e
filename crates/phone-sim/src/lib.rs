//! phone-sim
