//! The administrator's side (D13, D19): users, devices, tasks. The same code serves the HTTP routes, the command line and the demo that embeds
//! the server. It never sees a claim token or its hash.

mod devices;
mod images;
mod import;
mod tasks;
mod users;

use cmautobuy_protocol::account::AuditEntry;
use cmautobuy_protocol::{ErrorCode, EventId};
use serde_json::Value;

use crate::house::{Call, House};
use crate::refusal::{CallError, Refusal};
use crate::store::audit::audit_insert;
use crate::work::Actor;

pub use images::MAX_IMAGE_BYTES;
pub use import::{MAX_LIST_BYTES, list_template};
pub use tasks::{CloseTask, ReleaseHold, TaskQuery};
pub use users::UserQuery;

/// Longest name of a user or a device.
pub(crate) const MAX_NAME_CHARS: usize = 64;
/// Rows on one page when the caller does not say.
pub const DEFAULT_PAGE: u32 = 50;
/// Most rows on one page.
pub const MAX_PAGE: u32 = 200;

/// What an administrator may do. Every call is one transaction on the calling thread and blocks for it: from async code, call it on a
/// blocking thread.
#[derive(Debug, Clone, Copy)]
pub struct Admin<'a> {
    house: &'a House,
    actor: Actor,
}

impl<'a> Admin<'a> {
    pub(crate) fn new(house: &'a House, actor: Actor) -> Self {
        Self { house, actor }
    }
}

/// Writes down a change to an account, in the change's own transaction.
fn noted(call: Call<'_>, actor: Actor, action: &str, target: &str, detail: Option<Value>) -> Result<(), CallError> {
    let entry = AuditEntry {
        entry_id: EventId::from_uuid(call.new_id()),
        at: call.now,
        actor: actor.to_string(),
        action: action.to_owned(),
        target: target.to_owned(),
        detail,
    };
    audit_insert(call.tx, &entry)?;
    tracing::info!(%actor, action, target, "account changed");
    Ok(())
}

/// Runs a decoder on bytes a stranger made. Some of them panic on a damaged file; that is the file's fault and must not look like the server's.
fn decoding<T>(what: &str, decode: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(decode));
    outcome.unwrap_or_else(|_| Err(Refusal::malformed(format!("the {what} is damaged; save it anew"))))
}

fn no_such(what: &str) -> Refusal {
    Refusal::new(ErrorCode::NotFound, format!("no such {what}"))
}

fn checked_limit(limit: Option<u32>) -> Result<u32, Refusal> {
    let limit = limit.unwrap_or(DEFAULT_PAGE);
    if (1..=MAX_PAGE).contains(&limit) { Ok(limit) } else { Err(Refusal::malformed(format!("limit must be 1 to {MAX_PAGE}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoder_that_panics_has_met_a_damaged_file() {
        let decoded: Result<(), Refusal> = decoding("picture", || panic!("a length that is no length"));
        let refusal = decoded.expect_err("a panic is no picture");
        assert_eq!(refusal.code, ErrorCode::Malformed, "the caller can mend the file, so it is told of it");
        assert_eq!(refusal.message, "the picture is damaged; save it anew", "and what to do");
    }
}
