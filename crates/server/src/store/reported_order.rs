//! Table `reported_orders`: an order number belongs to one task (D10).

use cmautobuy_protocol::{RemoteTaskId, WireTime};
use rusqlite::OptionalExtension;

use super::{StoreError, Tx, parsed};

/// Remembers the order for this task; answers the other task that reported it first.
pub(crate) fn reported_order_note(
    tx: &Tx<'_>,
    order_no: &str,
    task: RemoteTaskId,
    now: WireTime,
) -> Result<Option<RemoteTaskId>, StoreError> {
    let mut read = tx.0.prepare_cached("SELECT task_id FROM reported_orders WHERE order_no = ?1")?;
    let owner: Option<RemoteTaskId> = read.query_row([order_no], |row| parsed(row, "task_id")).optional()?;
    match owner {
        Some(owner) => Ok((owner != task).then_some(owner)),
        None => {
            tx.run(
                "INSERT INTO reported_orders (order_no, task_id, reported_at) VALUES (?1, ?2, ?3)",
                (order_no, task.to_string(), now.to_string()),
            )?;
            Ok(None)
        }
    }
}
