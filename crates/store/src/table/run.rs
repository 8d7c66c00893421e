//! `task_runs` (03 §4): one row an attempt; history is never overwritten.

use cmautobuy_protocol::{AttemptId, WireTime};
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};

use crate::codec::{RunStatus, Text, number, parsed, parsed_opt, text};
use crate::{LocalTaskId, Reader, RunId, StoreError, Tx};

/// One attempt.
#[derive(Clone, PartialEq, Debug)]
pub struct RunRow {
    pub id: RunId,
    pub task_id: LocalTaskId,
    pub attempt_id: AttemptId,
    /// Counts from 1 within the task; gaps are attempts that never began.
    pub attempt_no: u32,
    /// Empty for a run that only records bad task data.
    pub device_address: String,
    pub phone_serial: Option<String>,
    pub run_status: RunStatus,
    pub current_step: Option<String>,
    pub started_at: WireTime,
    pub finished_at: Option<WireTime>,
    /// Set means: look, never buy (03 §7.3).
    pub irreversible_action_at: Option<WireTime>,
    pub order_submitted_at: Option<WireTime>,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    /// JSON text with a `schema_version`.
    pub diagnostics_json: Option<String>,
    /// Whether `result_data` holds a result; read it with [`Reader::run_result`].
    pub has_result: bool,
    /// Below the data folder (D12).
    pub artifact_directory: Option<String>,
}

const COLUMNS: &str = "id, task_id, attempt_id, attempt_no, device_address, phone_serial, run_status, current_step, started_at, finished_at, \
     irreversible_action_at, order_submitted_at, error_code, error_message, diagnostics_json, result_data IS NOT NULL AS has_result, \
     artifact_directory";

impl RunRow {
    fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            task_id: row.get("task_id")?,
            attempt_id: parsed(row, "attempt_id")?,
            attempt_no: number(row, "attempt_no")?,
            device_address: row.get("device_address")?,
            phone_serial: row.get("phone_serial")?,
            run_status: text(row, "run_status")?,
            current_step: row.get("current_step")?,
            started_at: parsed(row, "started_at")?,
            finished_at: parsed_opt(row, "finished_at")?,
            irreversible_action_at: parsed_opt(row, "irreversible_action_at")?,
            order_submitted_at: parsed_opt(row, "order_submitted_at")?,
            error_code: row.get("error_code")?,
            error_message: row.get("error_message")?,
            diagnostics_json: row.get("diagnostics_json")?,
            has_result: row.get("has_result")?,
            artifact_directory: row.get("artifact_directory")?,
        })
    }
}

impl Reader<'_> {
    pub fn run_get(&self, id: RunId) -> Result<Option<RunRow>, StoreError> {
        one(self.conn, "id = ?1", params![id])
    }

    pub(crate) fn run_must(&self, id: RunId) -> Result<RunRow, StoreError> {
        self.run_get(id)?.ok_or_else(|| StoreError::NoSuch { what: "run", id: id.to_string() })
    }

    /// The attempt with the highest number: the only one whose result may move the task (03 §5.3).
    pub fn run_newest(&self, task: LocalTaskId) -> Result<Option<RunRow>, StoreError> {
        one(self.conn, "task_id = ?1 ORDER BY attempt_no DESC LIMIT 1", params![task])
    }

    /// Every attempt, newest first.
    pub fn run_list(&self, task: LocalTaskId) -> Result<Vec<RunRow>, StoreError> {
        many(self.conn, "task_id = ?1 ORDER BY attempt_no DESC", params![task])
    }

    /// The whole result of one attempt as JSON text.
    pub fn run_result(&self, id: RunId) -> Result<Option<String>, StoreError> {
        let mut statement = self.conn.prepare_cached("SELECT result_data FROM task_runs WHERE id = ?1")?;
        Ok(statement.query_row(params![id], |row| row.get(0)).optional()?.flatten())
    }

    /// Whether an order may exist: some run of the task passed the irreversible mark (D10).
    pub(crate) fn run_marked(&self, task: LocalTaskId) -> Result<bool, StoreError> {
        let mut statement = self
            .conn
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM task_runs WHERE task_id = ?1 AND irreversible_action_at IS NOT NULL)")?;
        Ok(statement.query_row(params![task], |row| row.get(0))?)
    }
}

impl Tx<'_> {
    /// Keeps what helps to understand the run later; the JSON root must hold `schema_version` (03 §9) and no secret (D6).
    ///
    /// # Errors
    /// [`StoreError::NoSchemaVersion`], [`StoreError::NoSuch`].
    pub fn run_diagnostics(&mut self, id: RunId, diagnostics: &serde_json::Value, now: WireTime) -> Result<(), StoreError> {
        if !diagnostics.get("schema_version").is_some_and(serde_json::Value::is_i64) {
            return Err(StoreError::NoSchemaVersion);
        }
        let kept = self
            .conn
            .prepare_cached("UPDATE task_runs SET diagnostics_json = ?2, updated_at = ?3 WHERE id = ?1")?
            .execute(params![id, serde_json::to_string(diagnostics)?, now.to_string()])?;
        if kept == 1 { Ok(()) } else { Err(StoreError::NoSuch { what: "run", id: id.to_string() }) }
    }
}

pub(crate) struct NewRun<'a> {
    pub(crate) task: LocalTaskId,
    pub(crate) attempt: AttemptId,
    pub(crate) attempt_no: u32,
    pub(crate) device_address: &'a str,
    pub(crate) phone_serial: Option<&'a str>,
}

pub(crate) fn insert(conn: &Connection, run: &NewRun<'_>, now: WireTime) -> Result<RunId, StoreError> {
    conn.prepare_cached(
        "INSERT INTO task_runs (task_id, attempt_id, attempt_no, device_address, phone_serial, run_status, started_at, created_at, updated_at) \
         VALUES (:task, :attempt, :no, :address, :serial, :status, :now, :now, :now)",
    )?
    .execute(named_params! {
        ":task": run.task,
        ":attempt": run.attempt.to_string(),
        ":no": run.attempt_no,
        ":address": run.device_address,
        ":serial": run.phone_serial,
        ":status": RunStatus::Running.text(),
        ":now": now.to_string(),
    })?;
    Ok(RunId(conn.last_insert_rowid()))
}

pub(crate) struct RunFinish<'a> {
    pub(crate) status: RunStatus,
    pub(crate) step: Option<&'a str>,
    pub(crate) code: Option<&'a str>,
    pub(crate) message: Option<&'a str>,
    pub(crate) result_data: Option<&'a str>,
}

/// `false` when the run had already ended.
pub(crate) fn finish(conn: &Connection, id: RunId, finish: &RunFinish<'_>, now: WireTime) -> Result<bool, StoreError> {
    let ended = conn
        .prepare_cached(
            "UPDATE task_runs SET run_status = :status, current_step = coalesce(:step, current_step), finished_at = :now, \
             error_code = :code, error_message = :message, result_data = :data, updated_at = :now \
             WHERE id = :id AND run_status = 'running'",
        )?
        .execute(named_params! {
            ":id": id,
            ":status": finish.status.text(),
            ":step": finish.step,
            ":code": finish.code,
            ":message": finish.message,
            ":data": finish.result_data,
            ":now": now.to_string(),
        })?;
    Ok(ended == 1)
}

/// `false` when the run is over: a late step of a dead worker is not written.
pub(crate) fn set_step(conn: &Connection, id: RunId, step: &str, now: WireTime) -> Result<bool, StoreError> {
    let set = conn
        .prepare_cached("UPDATE task_runs SET current_step = ?2, updated_at = ?3 WHERE id = ?1 AND run_status = 'running'")?
        .execute(params![id, step, now.to_string()])?;
    Ok(set == 1)
}

pub(crate) fn set_artifact_directory(conn: &Connection, id: RunId, directory: &str) -> Result<(), StoreError> {
    conn.prepare_cached("UPDATE task_runs SET artifact_directory = coalesce(artifact_directory, ?2) WHERE id = ?1")?
        .execute(params![id, directory])?;
    Ok(())
}

pub(crate) fn by_attempt(conn: &Connection, attempt: AttemptId) -> Result<Option<RunRow>, StoreError> {
    one(conn, "attempt_id = ?1", params![attempt.to_string()])
}

/// Runs no one ended, newest attempt of each task first.
pub(crate) fn running(conn: &Connection) -> Result<Vec<RunRow>, StoreError> {
    many(conn, "run_status = 'running' ORDER BY task_id, attempt_no DESC", params![])
}

/// Highest attempt number a run of the task has; 0 without one.
pub(crate) fn highest_no(conn: &Connection, task: LocalTaskId) -> Result<u32, StoreError> {
    let mut statement = conn.prepare_cached("SELECT coalesce(max(attempt_no), 0) FROM task_runs WHERE task_id = ?1")?;
    Ok(statement.query_row(params![task], |row| row.get(0))?)
}

fn one(conn: &Connection, filter: &'static str, params: &[&dyn rusqlite::ToSql]) -> Result<Option<RunRow>, StoreError> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM task_runs WHERE {filter}"))?;
    let mut rows = statement.query_and_then(params, RunRow::read)?;
    rows.next().transpose()
}

fn many(conn: &Connection, filter: &'static str, params: &[&dyn rusqlite::ToSql]) -> Result<Vec<RunRow>, StoreError> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM task_runs WHERE {filter}"))?;
    let rows = statement.query_and_then(params, RunRow::read)?;
    rows.collect()
}
