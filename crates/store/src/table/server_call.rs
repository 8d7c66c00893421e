//! `server_calls` (D5): start, resume, release and cancel-ack as the engine intended them, until the server answers definitely.

use std::time::Duration;

use cmautobuy_protocol::{AttemptId, ClaimToken, DeviceId, ExecutionId, IdempotencyKey, RemoteTaskId, UserId, WireTime};
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};

use crate::codec::{CallKind, CallState, Text, number, number_opt, parsed, parsed_opt, text, text_opt};
use crate::{CallId, LocalTaskId, Reader, StoreError, Tx};

/// A call as it is recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallRecord {
    pub id: CallId,
    pub task: LocalTaskId,
    pub kind: CallKind,
    pub key: IdempotencyKey,
    /// Sent as it is, also when replayed.
    pub body_json: String,
    /// With start and resume: the attempt sent in the body (D3).
    pub attempt: Option<(AttemptId, u32)>,
    pub state: CallState,
    /// The definite answer, once there is one.
    pub answer_json: Option<String>,
    pub attempt_count: u32,
    pub next_retry_at: Option<WireTime>,
    /// Of a refusal: its code and message.
    pub last_error: Option<String>,
    pub created_at: WireTime,
}

/// A call to perform now, with everything its request needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallRow {
    pub id: CallId,
    pub task: LocalTaskId,
    pub remote_task_id: RemoteTaskId,
    pub kind: CallKind,
    pub key: IdempotencyKey,
    pub body_json: String,
    pub attempt: Option<(AttemptId, u32)>,
    pub attempt_count: u32,
    pub token: ClaimToken,
    pub generation: u64,
    pub execution_id: Option<ExecutionId>,
    pub owner_user_id: UserId,
    pub owner_device_id: DeviceId,
}

const COLUMNS: &str = "c.id, c.task_id, c.kind, c.release_aim, c.idempotency_key, c.body_json, c.attempt_id, c.attempt_no, c.state, \
     c.answer_json, c.attempt_count, c.next_retry_at, c.last_error, c.created_at";

impl CallRecord {
    fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        let attempt: Option<AttemptId> = parsed_opt(row, "attempt_id")?;
        let attempt_no: Option<u32> = number_opt(row, "attempt_no")?;
        Ok(Self {
            id: row.get("id")?,
            task: row.get("task_id")?,
            kind: CallKind::parse(&row.get::<_, String>("kind")?, text_opt(row, "release_aim")?)?,
            key: parsed(row, "idempotency_key")?,
            body_json: row.get("body_json")?,
            attempt: attempt.zip(attempt_no),
            state: text(row, "state")?,
            answer_json: row.get("answer_json")?,
            attempt_count: number(row, "attempt_count")?,
            next_retry_at: parsed_opt(row, "next_retry_at")?,
            last_error: row.get("last_error")?,
            created_at: parsed(row, "created_at")?,
        })
    }
}

impl Reader<'_> {
    /// How a call stands; the engine waits on this after committing its intent.
    pub fn call_get(&self, id: CallId) -> Result<Option<CallRecord>, StoreError> {
        one(self.conn, "c.id = ?1", params![id])
    }

    /// The call the task waits for.
    pub fn call_open_of(&self, task: LocalTaskId) -> Result<Option<CallRecord>, StoreError> {
        one(self.conn, "c.task_id = ?1 AND c.state = 'open'", params![task])
    }

    /// The newest call of the task, whatever became of it.
    pub fn call_newest_of(&self, task: LocalTaskId) -> Result<Option<CallRecord>, StoreError> {
        one(self.conn, "c.task_id = ?1 ORDER BY c.id DESC LIMIT 1", params![task])
    }

    pub(crate) fn call_must_be_open(&self, id: CallId) -> Result<CallRecord, StoreError> {
        let call = self.call_get(id)?.ok_or_else(|| StoreError::NoSuch { what: "call", id: id.to_string() })?;
        match call.state {
            CallState::Open => Ok(call),
            CallState::Done | CallState::Refused => Err(StoreError::NotOpen { what: "call", id: id.to_string() }),
        }
    }

    /// The earliest call this login may perform now; `longest` is the longest back-off in use.
    ///
    /// Narrower than first asked for: calls of another login are left alone, for they would be answered 404 (D3).
    ///
    /// # Errors
    /// [`StoreError::Seal`] when this computer's key does not open the claim token; [`StoreError::NoClaimToken`].
    pub fn call_due(&self, user: UserId, device: DeviceId, now: WireTime, longest: Duration) -> Result<Option<CallRow>, StoreError> {
        let believed = now.plus_ms(i64::try_from(longest.as_millis()).unwrap_or(i64::MAX));
        let mut statement = self.conn.prepare_cached(&format!(
            "SELECT {COLUMNS}, t.remote_task_id, t.claim_generation, t.execution_id, t.owner_user_id, t.owner_device_id \
             FROM server_calls c JOIN pdd_tasks t ON t.id = c.task_id \
             WHERE c.state = 'open' AND t.owner_user_id = :user AND t.owner_device_id = :device \
               AND (c.next_retry_at IS NULL OR c.next_retry_at <= :now OR c.next_retry_at > :believed) \
             ORDER BY c.id LIMIT 1"
        ))?;
        let mut rows = statement.query_and_then(
            named_params! {
                ":user": user.to_string(), ":device": device.to_string(), ":now": now.to_string(), ":believed": believed.to_string(),
            },
            |row| {
                let call = CallRecord::read(row)?;
                Ok::<_, StoreError>(CallRow {
                    id: call.id,
                    task: call.task,
                    remote_task_id: parsed(row, "remote_task_id")?,
                    kind: call.kind,
                    key: call.key,
                    body_json: call.body_json,
                    attempt: call.attempt,
                    attempt_count: call.attempt_count,
                    token: self.claim_token(call.task)?,
                    generation: number(row, "claim_generation")?,
                    execution_id: parsed_opt(row, "execution_id")?,
                    owner_user_id: parsed(row, "owner_user_id")?,
                    owner_device_id: parsed(row, "owner_device_id")?,
                })
            },
        )?;
        rows.next().transpose()
    }
}

impl Tx<'_> {
    /// Lets every waiting call try now: the network or the login came back.
    pub fn calls_hurry(&mut self, now: WireTime) -> Result<usize, StoreError> {
        Ok(self
            .conn
            .prepare_cached(
                "UPDATE server_calls SET next_retry_at = NULL, updated_at = ?1 WHERE state = 'open' AND next_retry_at IS NOT NULL",
            )?
            .execute(params![now.to_string()])?)
    }

    /// No definite answer: the same call with the same key again at `at` (D5).
    ///
    /// # Errors
    /// [`StoreError::NotOpen`] when it is settled already.
    pub fn call_retry_later(&mut self, id: CallId, at: WireTime, error: &str, now: WireTime) -> Result<(), StoreError> {
        let put = self
            .conn
            .prepare_cached(
                "UPDATE server_calls SET attempt_count = attempt_count + 1, next_retry_at = ?2, last_error = ?3, updated_at = ?4 \
                 WHERE id = ?1 AND state = 'open'",
            )?
            .execute(params![id, at.to_string(), error, now.to_string()])?;
        if put == 1 { Ok(()) } else { Err(StoreError::NotOpen { what: "call", id: id.to_string() }) }
    }
}

pub(crate) struct CallWrite<'a> {
    pub(crate) task: LocalTaskId,
    pub(crate) kind: CallKind,
    pub(crate) key: &'a IdempotencyKey,
    pub(crate) body_json: &'a str,
    pub(crate) attempt: Option<(AttemptId, u32)>,
}

pub(crate) fn insert(conn: &Connection, call: &CallWrite<'_>, now: WireTime) -> Result<CallId, StoreError> {
    conn.prepare_cached(
        "INSERT INTO server_calls (task_id, kind, release_aim, idempotency_key, body_json, attempt_id, attempt_no, state, created_at, \
         updated_at) VALUES (:task, :kind, :aim, :key, :body, :attempt, :no, :state, :now, :now)",
    )?
    .execute(named_params! {
        ":task": call.task,
        ":kind": call.kind.text(),
        ":aim": call.kind.aim().map(Text::text),
        ":key": call.key.as_str(),
        ":body": call.body_json,
        ":attempt": call.attempt.map(|(id, _)| id.to_string()),
        ":no": call.attempt.map(|(_, no)| no),
        ":state": CallState::Open.text(),
        ":now": now.to_string(),
    })?;
    Ok(CallId(conn.last_insert_rowid()))
}

/// Settles an open call; the caller checked that it is open.
pub(crate) fn settle(
    conn: &Connection,
    id: CallId,
    state: CallState,
    answer_json: Option<&str>,
    error: Option<&str>,
    now: WireTime,
) -> Result<(), StoreError> {
    conn.prepare_cached(
        "UPDATE server_calls SET state = ?2, answer_json = ?3, last_error = ?4, next_retry_at = NULL, updated_at = ?5 \
         WHERE id = ?1 AND state = 'open'",
    )?
    .execute(params![id, state.text(), answer_json, error, now.to_string()])?;
    Ok(())
}

/// Open calls whose attempt already has a run row that is over.
pub(crate) fn open_of_ended_runs(conn: &Connection) -> Result<Vec<CallId>, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT c.id FROM server_calls c JOIN task_runs r ON r.attempt_id = c.attempt_id \
         WHERE c.state = 'open' AND r.run_status <> 'running' ORDER BY c.id",
    )?;
    let rows = statement.query_and_then([], |row| Ok(row.get(0)?))?;
    rows.collect()
}

/// Highest attempt number a call of the task has sent; 0 without one.
pub(crate) fn highest_no(conn: &Connection, task: LocalTaskId) -> Result<u32, StoreError> {
    let mut statement = conn.prepare_cached("SELECT max(attempt_no) FROM server_calls WHERE task_id = ?1")?;
    Ok(statement.query_row(params![task], |row| row.get::<_, Option<u32>>(0)).optional()?.flatten().unwrap_or(0))
}

pub(crate) fn any_open(conn: &Connection) -> Result<bool, StoreError> {
    Ok(conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM server_calls WHERE state = 'open')")?.query_row([], |row| row.get(0))?)
}

fn one(conn: &Connection, filter: &'static str, params: &[&dyn rusqlite::ToSql]) -> Result<Option<CallRecord>, StoreError> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM server_calls c WHERE {filter}"))?;
    let mut rows = statement.query_and_then(params, CallRecord::read)?;
    rows.next().transpose()
}
