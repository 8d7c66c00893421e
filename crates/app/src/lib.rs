//! The house: builds the rooms, owns the loops, answers the interface. Knows no Tauri.

pub mod problem;
pub mod view;
