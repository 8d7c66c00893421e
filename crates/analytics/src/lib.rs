//! Self-operated analytics, the server's side: collects from Lingxing, keeps facts, publishes immutable versions and answers queries from them.
//!
//! `R7` in a comment means the rule of that number in the project's analytics rules, `SELFOP` the requirement they rule on. Nothing here reads
//! the clock, and no transaction is held over a call to Lingxing.

pub mod names;
pub mod quantity;
pub mod store;
