//! The phone: what is on its screen, and the one guarded way to touch it.
//!
//! Other rooms see [`Phone`], [`UiTree`], [`Capture`] and [`guard::check`]. Sockets, shell commands and
//! input never leave this crate, so no room can go around the guard (D10). It knows no page of Pinduoduo
//! beyond the words that mean money; recognising pages is the work of `pdd`.

mod adb;
mod capture;
mod clock;
pub mod connect;
pub mod doctor;
mod error;
pub mod fake;
pub mod guard;
mod phone;
mod settle;
mod tree;

pub use adb::{AdbError, AdbKey, BadKey, ListedDevice, ListedState, connect_direct, connect_server, list_devices, server_version};
pub use capture::{Capture, CaptureId, CaptureWant, Foreground, Screenshot, Verdict};
pub use error::PhoneError;
pub use fake::FakePhone;
pub use guard::{
    Action, BadGoodsId, ExtraPatterns, GoodsId, Key, OrderList, Quantity, Refused, RefusedReason, Screen, Ticket, check, check_after_order,
};
pub use phone::{AgentFile, Measured, PDD_PACKAGE, PDD_PACKAGE_HOS, Phone, PhoneFacts, Reader, ReadersAllowed, ScreenSize};
pub use settle::{Agreement, Patience, Settled, settle};
pub use tree::{Bounds, MAX_DEPTH, MAX_DUMP_BYTES, MAX_NODES, Node, NodeId, Point, Query, Says, TreeError, UiTree};
