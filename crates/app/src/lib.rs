//! The house: builds the rooms, owns the loops, answers the interface. Knows no Tauri.

mod clock;
mod demo;
mod doctor;
mod folder;
mod house;
mod logging;
pub mod options;
mod phone;
mod phone_list;
pub mod problem;
mod read;
mod secrets;
mod settings;
mod start;
pub mod view;

pub use demo::{Report, ReportTask};
pub use doctor::{Check, Finding};
pub use house::App;
pub use options::{CommonArgs, DemoOptions, StartOptions};
pub use phone_list::{ListedPhone, PhoneList};
pub use problem::Problem;
