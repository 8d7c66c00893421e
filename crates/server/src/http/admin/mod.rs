//! What an administrator calls.

pub(crate) mod devices;
pub(crate) mod tasks;
pub(crate) mod users;
