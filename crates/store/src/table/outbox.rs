//! `outbox_events` (03 §5): results on their way to the server. Key and payload are written once and never change (D8).

use std::time::Duration;

use cmautobuy_protocol::result::EventType;
use cmautobuy_protocol::{AttemptId, DeviceId, IdempotencyKey, RemoteTaskId, UserId, WireTime};
use rusqlite::{Connection, Row, named_params, params};

use crate::codec::{OutboxStatus, Text, number, parsed, parsed_opt, text};
use crate::{LocalTaskId, OutboxId, Reader, StoreError, Tx};

/// One event with the exact text to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutboxRow {
    pub id: OutboxId,
    pub task_id: LocalTaskId,
    pub remote_task_id: RemoteTaskId,
    pub event_type: EventType,
    pub key: IdempotencyKey,
    /// Sent byte for byte, also on the hundredth try.
    pub payload: String,
    pub status: OutboxStatus,
    pub attempt_count: u32,
    pub next_retry_at: Option<WireTime>,
    pub last_error: Option<String>,
    pub user_id: UserId,
    pub device_id: DeviceId,
    pub attempt_id: AttemptId,
    pub created_at: WireTime,
    /// First acknowledgement; stays when a person has the row sent again.
    pub sent_at: Option<WireTime>,
    /// The server refused it for good (D8).
    pub refused_at: Option<WireTime>,
    /// A person settled it without the server (D2).
    pub abandoned_at: Option<WireTime>,
}

/// One line of the outbox page: everything but the payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutboxListRow {
    pub id: OutboxId,
    pub task_id: LocalTaskId,
    pub remote_task_id: RemoteTaskId,
    pub title: Option<String>,
    pub event_type: EventType,
    pub status: OutboxStatus,
    pub attempt_count: u32,
    pub next_retry_at: Option<WireTime>,
    pub last_error: Option<String>,
    pub payload_bytes: u64,
    pub user_id: UserId,
    pub created_at: WireTime,
    pub sent_at: Option<WireTime>,
    pub refused_at: Option<WireTime>,
    pub abandoned_at: Option<WireTime>,
}

/// How many events stand where. `failed` leaves out abandoned ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OutboxCounts {
    pub pending: u64,
    pub sending: u64,
    pub sent: u64,
    pub failed: u64,
    pub abandoned: u64,
}

impl OutboxCounts {
    /// What a logout must warn about (D8).
    pub const fn unsent(&self) -> u64 {
        self.pending + self.sending + self.failed
    }
}

const COLUMNS: &str = "o.id, o.task_id, t.remote_task_id, o.event_type, o.idempotency_key, o.payload_json, o.status, o.attempt_count, \
     o.next_retry_at, o.last_error, o.user_id, o.device_id, o.attempt_id, o.created_at, o.sent_at, o.refused_at, o.abandoned_at";

/// Times are texts of one form, so their order is time order. One further away than the longest back-off is due: the clock was set back
/// (the same rule as `task::is_due`). An event waits for the earlier ones of its task (03 §5.3 rule 1).
const DUE: &str = "o.status = 'pending' AND o.user_id = :user AND o.device_id = :device \
     AND (o.next_retry_at IS NULL OR o.next_retry_at <= :now OR o.next_retry_at > :believed) \
     AND NOT EXISTS (SELECT 1 FROM outbox_events e WHERE e.task_id = o.task_id AND e.id < o.id \
                     AND e.status IN ('pending', 'sending') AND e.user_id = o.user_id AND e.device_id = o.device_id) \
     ORDER BY o.id LIMIT 1";

impl OutboxRow {
    fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            task_id: row.get("task_id")?,
            remote_task_id: parsed(row, "remote_task_id")?,
            event_type: text(row, "event_type")?,
            key: parsed(row, "idempotency_key")?,
            payload: row.get("payload_json")?,
            status: text(row, "status")?,
            attempt_count: number(row, "attempt_count")?,
            next_retry_at: parsed_opt(row, "next_retry_at")?,
            last_error: row.get("last_error")?,
            user_id: parsed(row, "user_id")?,
            device_id: parsed(row, "device_id")?,
            attempt_id: parsed(row, "attempt_id")?,
            created_at: parsed(row, "created_at")?,
            sent_at: parsed_opt(row, "sent_at")?,
            refused_at: parsed_opt(row, "refused_at")?,
            abandoned_at: parsed_opt(row, "abandoned_at")?,
        })
    }
}

impl OutboxListRow {
    fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            task_id: row.get("task_id")?,
            remote_task_id: parsed(row, "remote_task_id")?,
            title: row.get("title")?,
            event_type: text(row, "event_type")?,
            status: text(row, "status")?,
            attempt_count: number(row, "attempt_count")?,
            next_retry_at: parsed_opt(row, "next_retry_at")?,
            last_error: row.get("last_error")?,
            payload_bytes: number(row, "payload_bytes")?,
            user_id: parsed(row, "user_id")?,
            created_at: parsed(row, "created_at")?,
            sent_at: parsed_opt(row, "sent_at")?,
            refused_at: parsed_opt(row, "refused_at")?,
            abandoned_at: parsed_opt(row, "abandoned_at")?,
        })
    }
}

impl Reader<'_> {
    pub fn outbox_get(&self, id: OutboxId) -> Result<Option<OutboxRow>, StoreError> {
        one(self.conn, "o.id = ?1", params![id])
    }

    pub(crate) fn outbox_must(&self, id: OutboxId) -> Result<OutboxRow, StoreError> {
        self.outbox_get(id)?.ok_or_else(|| StoreError::NoSuch { what: "outbox row", id: id.to_string() })
    }

    /// The earliest event this login may send now; `longest` is the longest back-off in use.
    pub fn outbox_due(&self, user: UserId, device: DeviceId, now: WireTime, longest: Duration) -> Result<Option<OutboxRow>, StoreError> {
        let believed = now.plus_ms(i64::try_from(longest.as_millis()).unwrap_or(i64::MAX));
        let sql = format!("SELECT {COLUMNS} FROM outbox_events o JOIN pdd_tasks t ON t.id = o.task_id WHERE {DUE}");
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut rows = statement.query_and_then(
            named_params! {
                ":user": user.to_string(), ":device": device.to_string(), ":now": now.to_string(), ":believed": believed.to_string(),
            },
            OutboxRow::read,
        )?;
        rows.next().transpose()
    }

    /// When the next waiting event of this login comes due; `None` without one. For the timer of the drain.
    pub fn outbox_next_at(&self, user: UserId, device: DeviceId) -> Result<Option<WireTime>, StoreError> {
        let mut statement = self.conn.prepare_cached(
            "SELECT min(next_retry_at) AS at FROM outbox_events WHERE status = 'pending' AND user_id = ?1 AND device_id = ?2",
        )?;
        let mut rows = statement.query_and_then(params![user.to_string(), device.to_string()], |row| parsed_opt(row, "at"))?;
        rows.next().unwrap_or(Ok(None))
    }

    /// All events of one task, oldest first, with their payloads.
    pub fn outbox_of_task(&self, task: LocalTaskId) -> Result<Vec<OutboxRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM outbox_events o JOIN pdd_tasks t ON t.id = o.task_id WHERE o.task_id = ?1 ORDER BY o.id");
        let mut statement = self.conn.prepare_cached(&sql)?;
        let rows = statement.query_and_then(params![task], OutboxRow::read)?;
        rows.collect()
    }

    /// The newest `limit` events, unsent ones first.
    pub fn outbox_list(&self, limit: u32) -> Result<Vec<OutboxListRow>, StoreError> {
        let mut statement = self.conn.prepare_cached(
            "SELECT o.id, o.task_id, t.remote_task_id, t.title, o.event_type, o.status, o.attempt_count, o.next_retry_at, o.last_error, \
             length(CAST(o.payload_json AS BLOB)) AS payload_bytes, o.user_id, o.created_at, o.sent_at, o.refused_at, o.abandoned_at \
             FROM outbox_events o JOIN pdd_tasks t ON t.id = o.task_id \
             ORDER BY (o.status = 'sent' OR o.abandoned_at IS NOT NULL), o.id DESC LIMIT ?1",
        )?;
        let rows = statement.query_and_then(params![limit], OutboxListRow::read)?;
        rows.collect()
    }

    pub fn outbox_counts(&self) -> Result<OutboxCounts, StoreError> {
        let mut counts = OutboxCounts::default();
        let mut statement = self
            .conn
            .prepare_cached("SELECT status, abandoned_at IS NOT NULL AS abandoned, count(*) AS n FROM outbox_events GROUP BY 1, 2")?;
        let rows = statement.query_and_then([], |row| {
            Ok::<_, StoreError>((text::<OutboxStatus>(row, "status")?, row.get::<_, bool>("abandoned")?, number::<u64>(row, "n")?))
        })?;
        for row in rows {
            let (status, is_abandoned, n) = row?;
            match status {
                OutboxStatus::Pending => counts.pending += n,
                OutboxStatus::Sending => counts.sending += n,
                OutboxStatus::Sent => counts.sent += n,
                OutboxStatus::Failed if is_abandoned => counts.abandoned += n,
                OutboxStatus::Failed => counts.failed += n,
            }
        }
        Ok(counts)
    }

    /// Whether the task has an event that is neither acknowledged nor abandoned.
    pub(crate) fn outbox_unsent(&self, task: LocalTaskId) -> Result<bool, StoreError> {
        let mut statement = self.conn.prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM outbox_events WHERE task_id = ?1 AND status <> 'sent' AND abandoned_at IS NULL)",
        )?;
        Ok(statement.query_row(params![task], |row| row.get(0))?)
    }
}

impl Tx<'_> {
    /// Takes a due event for sending; commit before the request leaves.
    ///
    /// # Errors
    /// [`StoreError::NotOpen`] when it is not `pending` any more.
    pub fn outbox_sending(&mut self, id: OutboxId, now: WireTime) -> Result<(), StoreError> {
        let taken = self
            .conn
            .prepare_cached("UPDATE outbox_events SET status = 'sending', updated_at = ?2 WHERE id = ?1 AND status = 'pending'")?
            .execute(params![id, now.to_string()])?;
        settled(taken, id)
    }

    /// The server could not be asked or could not answer: the same bytes again at `at` (D8: outage is not refusal).
    ///
    /// # Errors
    /// [`StoreError::NotOpen`] when it is settled already.
    pub fn outbox_later(&mut self, id: OutboxId, at: WireTime, error: &str, now: WireTime) -> Result<(), StoreError> {
        let put = self
            .conn
            .prepare_cached(
                "UPDATE outbox_events SET status = 'pending', attempt_count = attempt_count + 1, next_retry_at = ?2, last_error = ?3, \
                 updated_at = ?4 WHERE id = ?1 AND status IN ('pending', 'sending')",
            )?
            .execute(params![id, at.to_string(), error, now.to_string()])?;
        settled(put, id)
    }

    /// Lets every waiting event of this login try now: the network or the login came back.
    pub fn outbox_hurry(&mut self, user: UserId, device: DeviceId, now: WireTime) -> Result<usize, StoreError> {
        Ok(self
            .conn
            .prepare_cached(
                "UPDATE outbox_events SET next_retry_at = NULL, updated_at = ?3 \
                 WHERE status = 'pending' AND next_retry_at IS NOT NULL AND user_id = ?1 AND device_id = ?2",
            )?
            .execute(params![user.to_string(), device.to_string(), now.to_string()])?)
    }

    /// A person settles a refused event without the server (D2); it then counts as settled.
    ///
    /// # Errors
    /// [`StoreError::NotOpen`] when it is not a refused one.
    pub fn outbox_abandon(&mut self, id: OutboxId, note: &str, now: WireTime) -> Result<(), StoreError> {
        let left = self
            .conn
            .prepare_cached(
                "UPDATE outbox_events SET abandoned_at = ?3, last_error = coalesce(last_error || '; ', '') || ?2, updated_at = ?3 \
                 WHERE id = ?1 AND status = 'failed' AND abandoned_at IS NULL",
            )?
            .execute(params![id, note, now.to_string()])?;
        settled(left, id)
    }
}

pub(crate) struct NewEvent<'a> {
    pub(crate) task: LocalTaskId,
    pub(crate) event_type: EventType,
    pub(crate) key: &'a IdempotencyKey,
    pub(crate) payload: &'a str,
    pub(crate) user: UserId,
    pub(crate) device: DeviceId,
    pub(crate) attempt: AttemptId,
}

pub(crate) fn insert(conn: &Connection, event: &NewEvent<'_>, now: WireTime) -> Result<OutboxId, StoreError> {
    conn.prepare_cached(
        "INSERT INTO outbox_events (task_id, event_type, idempotency_key, payload_json, status, created_at, updated_at, user_id, \
         device_id, attempt_id) VALUES (:task, :type, :key, :payload, :status, :now, :now, :user, :device, :attempt)",
    )?
    .execute(named_params! {
        ":task": event.task,
        ":type": event.event_type.text(),
        ":key": event.key.as_str(),
        ":payload": event.payload,
        ":status": OutboxStatus::Pending.text(),
        ":now": now.to_string(),
        ":user": event.user.to_string(),
        ":device": event.device.to_string(),
        ":attempt": event.attempt.to_string(),
    })?;
    Ok(OutboxId(conn.last_insert_rowid()))
}

pub(crate) fn mark_sent(conn: &Connection, id: OutboxId, now: WireTime) -> Result<(), StoreError> {
    conn.prepare_cached(
        "UPDATE outbox_events SET status = 'sent', sent_at = coalesce(sent_at, ?2), next_retry_at = NULL, last_error = NULL, \
         refused_at = NULL, abandoned_at = NULL, updated_at = ?2 WHERE id = ?1",
    )?
    .execute(params![id, now.to_string()])?;
    Ok(())
}

/// `false` when it is settled already.
pub(crate) fn mark_refused(conn: &Connection, id: OutboxId, error: &str, now: WireTime) -> Result<bool, StoreError> {
    let refused = conn
        .prepare_cached(
            "UPDATE outbox_events SET status = 'failed', attempt_count = attempt_count + 1, next_retry_at = NULL, last_error = ?2, \
             refused_at = ?3, updated_at = ?3 WHERE id = ?1 AND status IN ('pending', 'sending')",
        )?
        .execute(params![id, error, now.to_string()])?;
    Ok(refused == 1)
}

/// Puts one event back in line as it is: same key, same payload (03 §5.3 rule 2).
pub(crate) fn requeue(conn: &Connection, id: OutboxId, now: WireTime) -> Result<(), StoreError> {
    conn.prepare_cached(
        "UPDATE outbox_events SET status = 'pending', next_retry_at = NULL, abandoned_at = NULL, updated_at = ?2 \
         WHERE id = ?1 AND status <> 'sending'",
    )?
    .execute(params![id, now.to_string()])?;
    Ok(())
}

/// 03 §7.3, last row: nobody is sending after a start.
pub(crate) fn sending_to_pending(conn: &Connection, now: WireTime) -> Result<usize, StoreError> {
    Ok(conn
        .prepare_cached("UPDATE outbox_events SET status = 'pending', next_retry_at = NULL, updated_at = ?1 WHERE status = 'sending'")?
        .execute(params![now.to_string()])?)
}

fn one(conn: &Connection, filter: &'static str, params: &[&dyn rusqlite::ToSql]) -> Result<Option<OutboxRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM outbox_events o JOIN pdd_tasks t ON t.id = o.task_id WHERE {filter}");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query_and_then(params, OutboxRow::read)?;
    rows.next().transpose()
}

fn settled(changed: usize, id: OutboxId) -> Result<(), StoreError> {
    if changed == 1 { Ok(()) } else { Err(StoreError::NotOpen { what: "outbox row", id: id.to_string() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drain_reads_its_index() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let conn = crate::open::open_writer(&dir.path().join("client.db")).expect("a fresh database");
        let sql = format!("EXPLAIN QUERY PLAN SELECT {COLUMNS} FROM outbox_events o JOIN pdd_tasks t ON t.id = o.task_id WHERE {DUE}");
        let plan: Vec<String> = conn
            .prepare(&sql)
            .expect("the statement the drain uses")
            .query_map(named_params! { ":user": "u", ":device": "d", ":now": "n", ":believed": "b" }, |row| row.get("detail"))
            .expect("a plan")
            .collect::<Result<_, _>>()
            .expect("plan rows");
        let plan = plan.join("\n");
        assert!(plan.contains("SEARCH o USING INDEX idx_outbox_pending (status=?"), "a year of sent rows must not be scanned:\n{plan}");
        assert!(plan.contains("SEARCH e USING INDEX idx_outbox_task (task_id=?"), "earlier rows of a task are found by index:\n{plan}");
    }
}
