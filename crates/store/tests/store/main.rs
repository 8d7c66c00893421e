//! The store as its callers see it, on a real database file.

mod atomic;
mod call;
mod claim;
mod crash;
mod list;
mod open;
mod outbox;
mod phone;
mod schema;
mod settle;
mod support;
