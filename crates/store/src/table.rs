//! One file a table: its row, its reads, its single-table writes. SQL is written here and nowhere else.

pub(crate) mod artifact;
pub(crate) mod claim_attempt;
pub(crate) mod identity;
pub(crate) mod outbox;
pub(crate) mod remembered_phone;
pub(crate) mod run;
pub(crate) mod secret;
pub(crate) mod server_call;
pub(crate) mod setting;
pub(crate) mod task;
