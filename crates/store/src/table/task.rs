//! `pdd_tasks` (03 §3): tasks this computer has claimed, never a mirror of the server's pool.

use std::collections::BTreeMap;

use cmautobuy_protocol::lifecycle::{ClaimedTask, Standing};
use cmautobuy_protocol::{ClaimToken, DeviceId, ExecutionId, ExecutionMode, OwnTask, RemoteTaskId, TaskType, UserId, WireTime};
use cmautobuy_task::TaskState;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};

use crate::codec::{Text, held, number, number_opt, parsed, parsed_opt, text};
use crate::seal::Aad;
use crate::{LocalTaskId, Reader, StoreError, Tx};

/// What the lifecycle calls need to name this claim (D2). `server_version` goes into `expected_version`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClaimRef {
    pub generation: u64,
    /// `None` until a `start` was answered.
    pub execution_id: Option<ExecutionId>,
    pub server_version: u64,
}

/// One task with everything but the raw admin payload.
#[derive(Clone, PartialEq, Debug)]
pub struct TaskRow {
    pub id: LocalTaskId,
    pub remote_task_id: RemoteTaskId,
    pub task_type: TaskType,
    pub execution_mode: ExecutionMode,
    pub goods_id: Option<String>,
    /// Empty when the server sent none (bad task data).
    pub goods_url: String,
    pub title: Option<String>,
    pub target_color: Option<String>,
    pub target_size: Option<String>,
    pub price_cent: Option<u64>,
    pub max_price_cent: Option<u64>,
    pub quantity: Option<u32>,
    pub state: TaskState,
    pub current_step: Option<String>,
    pub priority: i64,
    /// The server's version when it was claimed, at least 1.
    pub version: u64,
    /// Newest result as JSON text.
    pub pdd_data: Option<String>,
    pub retry_count: u32,
    pub last_error_code: Option<String>,
    pub last_error_message: Option<String>,
    pub received_at: WireTime,
    pub started_at: Option<WireTime>,
    /// When it reached `succeeded`, `failed` or `cancelled`.
    pub finished_at: Option<WireTime>,
    /// Hidden from the ordinary list; never deleted (03 §3.1).
    pub removed_at: Option<WireTime>,
    pub created_at: WireTime,
    pub updated_at: WireTime,
    pub claim: ClaimRef,
    pub owner_user_id: UserId,
    pub owner_device_id: DeviceId,
    pub external_ref: Option<String>,
    pub cancel_requested_at: Option<WireTime>,
    /// The server said the claim ran out; waits to be claimed again (D5.5).
    pub claim_expired_at: Option<WireTime>,
}

/// One line of the task list.
#[derive(Clone, PartialEq, Debug)]
pub struct TaskSummaryRow {
    pub id: LocalTaskId,
    pub remote_task_id: RemoteTaskId,
    pub task_type: TaskType,
    pub execution_mode: ExecutionMode,
    pub goods_id: Option<String>,
    pub goods_url: String,
    pub title: Option<String>,
    pub target_color: Option<String>,
    pub target_size: Option<String>,
    pub price_cent: Option<u64>,
    pub quantity: Option<u32>,
    pub state: TaskState,
    pub current_step: Option<String>,
    pub retry_count: u32,
    pub last_error_code: Option<String>,
    pub last_error_message: Option<String>,
    pub received_at: WireTime,
    pub finished_at: Option<WireTime>,
    pub updated_at: WireTime,
    pub cancel_requested_at: Option<WireTime>,
}

impl From<&TaskRow> for TaskSummaryRow {
    fn from(row: &TaskRow) -> Self {
        Self {
            id: row.id,
            remote_task_id: row.remote_task_id,
            task_type: row.task_type,
            execution_mode: row.execution_mode,
            goods_id: row.goods_id.clone(),
            goods_url: row.goods_url.clone(),
            title: row.title.clone(),
            target_color: row.target_color.clone(),
            target_size: row.target_size.clone(),
            price_cent: row.price_cent,
            quantity: row.quantity,
            state: row.state,
            current_step: row.current_step.clone(),
            retry_count: row.retry_count,
            last_error_code: row.last_error_code.clone(),
            last_error_message: row.last_error_message.clone(),
            received_at: row.received_at,
            finished_at: row.finished_at,
            updated_at: row.updated_at,
            cancel_requested_at: row.cancel_requested_at,
        }
    }
}

/// What the list shows. The default shows every task that is not hidden.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TaskFilter {
    /// Part of the title, the task number, the goods id, the link or the outside reference.
    pub text: Option<String>,
    /// Empty means every state.
    pub states: Vec<TaskState>,
    pub task_type: Option<TaskType>,
}

/// A page of the list, newest change first; `before` is the last line of the page above.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Page {
    pub limit: u32,
    pub before: Option<(WireTime, LocalTaskId)>,
}

const COLUMNS: &str = "id, remote_task_id, task_type, execution_mode, goods_id, goods_url, title, target_color, target_size, price_cent, \
     max_price_cent, quantity, status, current_step, priority, version, pdd_data, retry_count, last_error_code, last_error_message, \
     received_at, started_at, finished_at, removed_at, created_at, updated_at, claim_generation, execution_id, server_version, \
     owner_user_id, owner_device_id, external_ref, cancel_requested_at, claim_expired_at";

const LIST_SQL: &str = "SELECT id, remote_task_id, task_type, execution_mode, goods_id, goods_url, title, target_color, target_size, \
     price_cent, quantity, status, current_step, retry_count, last_error_code, last_error_message, received_at, finished_at, updated_at, \
     cancel_requested_at \
     FROM pdd_tasks \
     WHERE removed_at IS NULL \
       AND (updated_at, id) < (:before_at, :before_id) \
       AND (:any_state OR +status IN (SELECT value FROM json_each(:states))) \
       AND (:task_type IS NULL OR +task_type = :task_type) \
       AND (:text IS NULL OR title LIKE :text ESCAPE '\\' OR remote_task_id LIKE :text ESCAPE '\\' OR +goods_id LIKE :text ESCAPE '\\' \
            OR goods_url LIKE :text ESCAPE '\\' OR external_ref LIKE :text ESCAPE '\\') \
     ORDER BY updated_at DESC, id DESC \
     LIMIT :limit";

impl TaskRow {
    fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            remote_task_id: parsed(row, "remote_task_id")?,
            task_type: text(row, "task_type")?,
            execution_mode: text(row, "execution_mode")?,
            goods_id: row.get("goods_id")?,
            goods_url: row.get("goods_url")?,
            title: row.get("title")?,
            target_color: row.get("target_color")?,
            target_size: row.get("target_size")?,
            price_cent: number_opt(row, "price_cent")?,
            max_price_cent: number_opt(row, "max_price_cent")?,
            quantity: number_opt(row, "quantity")?,
            state: text(row, "status")?,
            current_step: row.get("current_step")?,
            priority: row.get("priority")?,
            version: number(row, "version")?,
            pdd_data: row.get("pdd_data")?,
            retry_count: number(row, "retry_count")?,
            last_error_code: row.get("last_error_code")?,
            last_error_message: row.get("last_error_message")?,
            received_at: parsed(row, "received_at")?,
            started_at: parsed_opt(row, "started_at")?,
            finished_at: parsed_opt(row, "finished_at")?,
            removed_at: parsed_opt(row, "removed_at")?,
            created_at: parsed(row, "created_at")?,
            updated_at: parsed(row, "updated_at")?,
            claim: ClaimRef {
                generation: number(row, "claim_generation")?,
                execution_id: parsed_opt(row, "execution_id")?,
                server_version: number(row, "server_version")?,
            },
            owner_user_id: parsed(row, "owner_user_id")?,
            owner_device_id: parsed(row, "owner_device_id")?,
            external_ref: row.get("external_ref")?,
            cancel_requested_at: parsed_opt(row, "cancel_requested_at")?,
            claim_expired_at: parsed_opt(row, "claim_expired_at")?,
        })
    }
}

impl TaskSummaryRow {
    fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            remote_task_id: parsed(row, "remote_task_id")?,
            task_type: text(row, "task_type")?,
            execution_mode: text(row, "execution_mode")?,
            goods_id: row.get("goods_id")?,
            goods_url: row.get("goods_url")?,
            title: row.get("title")?,
            target_color: row.get("target_color")?,
            target_size: row.get("target_size")?,
            price_cent: number_opt(row, "price_cent")?,
            quantity: number_opt(row, "quantity")?,
            state: text(row, "status")?,
            current_step: row.get("current_step")?,
            retry_count: number(row, "retry_count")?,
            last_error_code: row.get("last_error_code")?,
            last_error_message: row.get("last_error_message")?,
            received_at: parsed(row, "received_at")?,
            finished_at: parsed_opt(row, "finished_at")?,
            updated_at: parsed(row, "updated_at")?,
            cancel_requested_at: parsed_opt(row, "cancel_requested_at")?,
        })
    }
}

impl Reader<'_> {
    pub fn task_get(&self, id: LocalTaskId) -> Result<Option<TaskRow>, StoreError> {
        one(self.conn, "id = ?1", params![id])
    }

    pub fn task_by_remote(&self, id: RemoteTaskId) -> Result<Option<TaskRow>, StoreError> {
        one(self.conn, "remote_task_id = ?1", params![id.to_string()])
    }

    pub(crate) fn task_must(&self, id: LocalTaskId) -> Result<TaskRow, StoreError> {
        self.task_get(id)?.ok_or_else(|| StoreError::NoSuch { what: "task", id: id.to_string() })
    }

    /// The oldest collect task that waits for another run of its execution.
    pub fn retry_next(&self) -> Result<Option<TaskRow>, StoreError> {
        // Without an execution the claim was given back; such a row comes back by a new claim (D2).
        one(
            self.conn,
            "status = 'retry_wait' AND task_type = 'collect' AND execution_id IS NOT NULL \
             ORDER BY updated_at, id LIMIT 1",
            params![],
        )
    }

    /// The claimed task to run next: highest priority, then the one that waits longest. Rows whose claim ran out wait for a new claim.
    pub fn claimed_next(&self) -> Result<Option<TaskRow>, StoreError> {
        one(self.conn, "status = 'claimed' AND claim_expired_at IS NULL ORDER BY priority DESC, received_at, id LIMIT 1", params![])
    }

    /// A task that still needs the phone, so that none may be claimed (D5.3).
    pub(crate) fn task_needing_phone(&self) -> Result<Option<LocalTaskId>, StoreError> {
        let mut statement = self.conn.prepare_cached(
            "SELECT id, status FROM pdd_tasks \
             WHERE status IN ('claimed', 'running', 'retry_wait') \
               AND NOT (status = 'claimed' AND claim_expired_at IS NOT NULL) \
               AND NOT (status = 'retry_wait' AND execution_id IS NULL) \
             ORDER BY id LIMIT 1",
        )?;
        Ok(statement.query_row([], |row| row.get("id")).optional()?)
    }

    /// The token every lifecycle call of this claim carries.
    ///
    /// # Errors
    /// [`StoreError::NoClaimToken`] after a release; [`StoreError::Seal`] when this computer's key does not open it.
    pub fn claim_token(&self, id: LocalTaskId) -> Result<ClaimToken, StoreError> {
        let row: Option<(String, Option<Vec<u8>>)> = self
            .conn
            .prepare_cached("SELECT remote_task_id, sealed_claim_token FROM pdd_tasks WHERE id = ?1")?
            .query_row(params![id], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let (remote, blob) = row.ok_or_else(|| StoreError::NoSuch { what: "task", id: id.to_string() })?;
        let remote: RemoteTaskId =
            remote.parse().map_err(|e: uuid::Error| StoreError::BadValue { column: "remote_task_id", detail: e.to_string() })?;
        let blob = blob.ok_or(StoreError::NoClaimToken(id))?;
        Ok(self.key.open_token(&blob, &Aad::ClaimToken(remote))?)
    }

    /// The raw task JSON of the newest claim.
    pub fn task_admin_payload(&self, id: LocalTaskId) -> Result<Option<String>, StoreError> {
        let mut statement = self.conn.prepare_cached("SELECT admin_payload FROM pdd_tasks WHERE id = ?1")?;
        Ok(statement.query_row(params![id], |row| row.get(0)).optional()?)
    }

    /// One page of the task list.
    pub fn task_list(&self, filter: &TaskFilter, page: Page) -> Result<Vec<TaskSummaryRow>, StoreError> {
        let states: Vec<&str> = filter.states.iter().map(|s| s.text()).collect();
        let like = filter.text.as_deref().map(str::trim).filter(|t| !t.is_empty()).map(like_pattern);
        // Past every RFC 3339 text, so that the first page needs no second statement.
        let (before_at, before_id) = page.before.map_or_else(|| ("~".to_owned(), i64::MAX), |(at, id)| (at.to_string(), id.0));
        let mut statement = self.conn.prepare_cached(LIST_SQL)?;
        let rows = statement.query_and_then(
            named_params! {
                ":before_at": before_at,
                ":before_id": before_id,
                ":any_state": states.is_empty(),
                ":states": serde_json::to_string(&states)?,
                ":task_type": filter.task_type.map(Text::text),
                ":text": like,
                ":limit": page.limit,
            },
            TaskSummaryRow::read,
        )?;
        rows.collect()
    }

    /// How many visible tasks stand in each state; states without a task are absent.
    pub fn counts(&self) -> Result<BTreeMap<TaskState, u64>, StoreError> {
        let mut statement =
            self.conn.prepare_cached("SELECT status, count(*) AS n FROM pdd_tasks WHERE removed_at IS NULL GROUP BY status")?;
        let rows = statement.query_and_then([], |row| Ok((text(row, "status")?, number(row, "n")?)))?;
        rows.collect()
    }
}

impl Tx<'_> {
    /// Notes that the server asked for a cancel (D4, D9); acted on at the next safe point. Answers how many rows learned it now.
    pub fn cancel_requested(&mut self, tasks: &[RemoteTaskId], now: WireTime) -> Result<usize, StoreError> {
        let mut statement = self.conn.prepare_cached(
            "UPDATE pdd_tasks SET cancel_requested_at = ?2, updated_at = ?2 \
             WHERE remote_task_id = ?1 AND cancel_requested_at IS NULL AND status NOT IN ('succeeded', 'failed', 'cancelled')",
        )?;
        let mut learned = 0;
        for task in tasks {
            learned += statement.execute(params![task.to_string(), now.to_string()])?;
        }
        Ok(learned)
    }

    /// Remembers what a lifecycle answer (a run heartbeat for example) says about version, execution and cancel.
    /// An answer about another generation is ignored.
    pub fn standing_seen(&mut self, id: LocalTaskId, standing: &Standing, now: WireTime) -> Result<(), StoreError> {
        store_standing(self.conn, id, standing, now)
    }
}

/// What a claim writes. `Text` of the state comes from `task::first_state`.
pub(crate) struct ClaimWrite<'a> {
    pub(crate) task: &'a ClaimedTask,
    pub(crate) standing: &'a Standing,
    pub(crate) raw: &'a str,
    pub(crate) sealed_token: &'a [u8],
    pub(crate) user: UserId,
    pub(crate) device: DeviceId,
    pub(crate) now: WireTime,
}

pub(crate) fn insert_claimed(conn: &Connection, state: TaskState, write: &ClaimWrite<'_>) -> Result<LocalTaskId, StoreError> {
    let task = write.task;
    conn.prepare_cached(
        "INSERT INTO pdd_tasks (remote_task_id, task_type, execution_mode, goods_id, goods_url, title, target_color, target_size, \
         price_cent, max_price_cent, quantity, status, priority, version, admin_payload, received_at, created_at, updated_at, \
         claim_generation, execution_id, server_version, sealed_claim_token, owner_user_id, owner_device_id, external_ref, cancel_requested_at) \
         VALUES (:remote, :task_type, :mode, :goods_id, :goods_url, :title, :color, :size, :price, :max_price, :quantity, :state, \
         :priority, :version, :raw, :now, :now, :now, :generation, :execution, :server_version, :token, :user, :device, :external, :cancel)",
    )?
    .execute(named_params! {
        ":remote": write.standing.task_id.to_string(),
        ":task_type": task.task_type.text(),
        ":mode": task.execution_mode.text(),
        ":goods_id": task.goods_id,
        ":goods_url": task.goods_url,
        ":title": task.title,
        ":color": task.target_color,
        ":size": task.target_size,
        ":price": task.price_cent.map(held),
        ":max_price": task.max_price_cent.map(held),
        ":quantity": task.quantity,
        ":state": state.text(),
        ":priority": task.priority,
        ":version": held(write.standing.version).max(1),
        ":raw": write.raw,
        ":now": write.now.to_string(),
        ":generation": held(write.standing.claim_generation),
        ":execution": write.standing.execution_id.map(|e| e.to_string()),
        ":server_version": held(write.standing.version),
        ":token": write.sealed_token,
        ":user": write.user.to_string(),
        ":device": write.device.to_string(),
        ":external": task.external_ref,
        ":cancel": write.standing.cancel_requested.then(|| write.now.to_string()),
    })?;
    Ok(LocalTaskId(conn.last_insert_rowid()))
}

/// A new claim of a known task: definition and claim are the server's newest, history stays (D5.4). The state is moved separately.
pub(crate) fn update_reclaimed(conn: &Connection, id: LocalTaskId, write: &ClaimWrite<'_>) -> Result<(), StoreError> {
    let task = write.task;
    conn.prepare_cached(
        "UPDATE pdd_tasks SET task_type = :task_type, execution_mode = :mode, goods_id = :goods_id, goods_url = :goods_url, \
         title = coalesce(:title, title), target_color = :color, target_size = :size, price_cent = :price, max_price_cent = :max_price, \
         quantity = :quantity, priority = :priority, version = :version, admin_payload = :raw, received_at = :now, updated_at = :now, \
         retry_count = 0, last_error_code = NULL, last_error_message = NULL, removed_at = NULL, current_step = NULL, \
         external_ref = :external WHERE id = :id",
    )?
    .execute(named_params! {
        ":id": id,
        ":task_type": task.task_type.text(),
        ":mode": task.execution_mode.text(),
        ":goods_id": task.goods_id,
        ":goods_url": task.goods_url,
        ":title": task.title,
        ":color": task.target_color,
        ":size": task.target_size,
        ":price": task.price_cent.map(held),
        ":max_price": task.max_price_cent.map(held),
        ":quantity": task.quantity,
        ":priority": task.priority,
        ":version": held(write.standing.version).max(1),
        ":raw": write.raw,
        ":now": write.now.to_string(),
        ":external": task.external_ref,
    })?;
    Ok(())
}

/// Generation, execution, version, token and owner of a new claim; also for a row whose state no claim may move.
pub(crate) fn update_claim(conn: &Connection, id: LocalTaskId, write: &ClaimWrite<'_>) -> Result<(), StoreError> {
    conn.prepare_cached(
        "UPDATE pdd_tasks SET claim_generation = :generation, execution_id = :execution, server_version = :server_version, \
         sealed_claim_token = :token, owner_user_id = :user, owner_device_id = :device, cancel_requested_at = :cancel, \
         claim_expired_at = NULL, updated_at = :now WHERE id = :id",
    )?
    .execute(named_params! {
        ":id": id,
        ":generation": held(write.standing.claim_generation),
        ":execution": write.standing.execution_id.map(|e| e.to_string()),
        ":server_version": held(write.standing.version),
        ":token": write.sealed_token,
        ":user": write.user.to_string(),
        ":device": write.device.to_string(),
        ":cancel": write.standing.cancel_requested.then(|| write.now.to_string()),
        ":now": write.now.to_string(),
    })?;
    Ok(())
}

/// Writes the state `task::next` decided. `false` when the row was not in `from` any more.
pub(crate) fn move_state(conn: &Connection, id: LocalTaskId, from: TaskState, to: TaskState, now: WireTime) -> Result<bool, StoreError> {
    let moved = conn
        .prepare_cached(
            "UPDATE pdd_tasks SET status = :to, updated_at = :now, finished_at = CASE WHEN :ended THEN :now END \
             WHERE id = :id AND status = :from",
        )?
        .execute(named_params! {
            ":id": id, ":from": from.text(), ":to": to.text(), ":ended": to.is_terminal(), ":now": now.to_string(),
        })?;
    Ok(moved == 1)
}

pub(crate) fn store_standing(conn: &Connection, id: LocalTaskId, standing: &Standing, now: WireTime) -> Result<(), StoreError> {
    conn.prepare_cached(
        "UPDATE pdd_tasks SET server_version = :version, execution_id = coalesce(:execution, execution_id), \
         cancel_requested_at = coalesce(cancel_requested_at, :cancel), updated_at = :now \
         WHERE id = :id AND claim_generation = :generation",
    )?
    .execute(named_params! {
        ":id": id,
        ":version": held(standing.version),
        ":execution": standing.execution_id.map(|e| e.to_string()),
        ":cancel": standing.cancel_requested.then(|| now.to_string()),
        ":generation": held(standing.claim_generation),
        ":now": now.to_string(),
    })?;
    Ok(())
}

/// What a refusal says about the caller's own task (D5).
pub(crate) fn store_own(conn: &Connection, id: LocalTaskId, own: &OwnTask, now: WireTime) -> Result<(), StoreError> {
    conn.prepare_cached(
        "UPDATE pdd_tasks SET server_version = ?2, execution_id = coalesce(?3, execution_id), updated_at = ?4 WHERE id = ?1",
    )?
    .execute(params![id, held(own.version), own.execution_id.map(|e| e.to_string()), now.to_string()])?;
    Ok(())
}

pub(crate) fn mark_started(conn: &Connection, id: LocalTaskId, now: WireTime) -> Result<(), StoreError> {
    conn.prepare_cached(
        "UPDATE pdd_tasks SET started_at = coalesce(started_at, ?2), last_error_code = NULL, last_error_message = NULL, \
         current_step = NULL, updated_at = ?2 WHERE id = ?1",
    )?
    .execute(params![id, now.to_string()])?;
    Ok(())
}

/// The claim is given back or gone: its token is worth nothing and must not lie about.
pub(crate) fn drop_claim(conn: &Connection, id: LocalTaskId) -> Result<(), StoreError> {
    conn.prepare_cached("UPDATE pdd_tasks SET sealed_claim_token = NULL WHERE id = ?1")?.execute(params![id])?;
    Ok(())
}

pub(crate) fn mark_claim_expired(conn: &Connection, id: LocalTaskId, now: WireTime) -> Result<(), StoreError> {
    conn.prepare_cached("UPDATE pdd_tasks SET claim_expired_at = ?2, updated_at = ?2 WHERE id = ?1")?
        .execute(params![id, now.to_string()])?;
    Ok(())
}

pub(crate) fn set_step(conn: &Connection, id: LocalTaskId, step: Option<&str>, now: WireTime) -> Result<(), StoreError> {
    conn.prepare_cached("UPDATE pdd_tasks SET current_step = ?2, updated_at = ?3 WHERE id = ?1")?.execute(params![
        id,
        step,
        now.to_string()
    ])?;
    Ok(())
}

pub(crate) fn set_error(conn: &Connection, id: LocalTaskId, code: &str, message: &str) -> Result<(), StoreError> {
    conn.prepare_cached("UPDATE pdd_tasks SET last_error_code = ?2, last_error_message = ?3 WHERE id = ?1")?
        .execute(params![id, code, message])?;
    Ok(())
}

pub(crate) fn add_retry(conn: &Connection, id: LocalTaskId) -> Result<(), StoreError> {
    conn.prepare_cached("UPDATE pdd_tasks SET retry_count = retry_count + 1 WHERE id = ?1")?.execute(params![id])?;
    Ok(())
}

/// The collected result. A purchase keeps its own `price_cent`: that is the price its safety limits are measured from.
pub(crate) struct ResultWrite<'a> {
    pub(crate) pdd_data: &'a str,
    pub(crate) goods_id: &'a str,
    pub(crate) title: &'a str,
    pub(crate) price_cent: Option<u64>,
}

pub(crate) fn set_result(conn: &Connection, id: LocalTaskId, result: &ResultWrite<'_>) -> Result<(), StoreError> {
    conn.prepare_cached(
        "UPDATE pdd_tasks SET pdd_data = :data, goods_id = :goods_id, title = :title, \
         price_cent = CASE WHEN task_type = 'collect' THEN :price ELSE price_cent END, \
         last_error_code = NULL, last_error_message = NULL WHERE id = :id",
    )?
    .execute(named_params! {
        ":id": id, ":data": result.pdd_data, ":goods_id": result.goods_id, ":title": result.title, ":price": result.price_cent.map(held),
    })?;
    Ok(())
}

/// A person asked for the task to be collected again: it shows up in the list and counts its retries anew.
pub(crate) fn reset_for_recollect(conn: &Connection, id: LocalTaskId) -> Result<(), StoreError> {
    conn.prepare_cached(
        "UPDATE pdd_tasks SET retry_count = 0, last_error_code = NULL, last_error_message = NULL, removed_at = NULL, \
         current_step = NULL, cancel_requested_at = NULL WHERE id = ?1",
    )?
    .execute(params![id])?;
    Ok(())
}

pub(crate) fn hide(conn: &Connection, id: LocalTaskId, now: WireTime) -> Result<(), StoreError> {
    conn.prepare_cached("UPDATE pdd_tasks SET removed_at = ?2 WHERE id = ?1 AND removed_at IS NULL")?
        .execute(params![id, now.to_string()])?;
    Ok(())
}

/// Tasks in one state, oldest first.
pub(crate) fn in_state(conn: &Connection, state: TaskState) -> Result<Vec<TaskRow>, StoreError> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM pdd_tasks WHERE status = ?1 ORDER BY id"))?;
    let rows = statement.query_and_then(params![state.text()], TaskRow::read)?;
    rows.collect()
}

fn one(conn: &Connection, filter: &'static str, params: &[&dyn rusqlite::ToSql]) -> Result<Option<TaskRow>, StoreError> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM pdd_tasks WHERE {filter}"))?;
    let mut rows = statement.query_and_then(params, TaskRow::read)?;
    rows.next().transpose()
}

/// A started task that waits (`retry_wait`, `manual_review`) although the server asked for a cancel.
pub(crate) fn cancel_waiting(conn: &Connection) -> Result<Option<TaskRow>, StoreError> {
    one(
        conn,
        "status IN ('retry_wait', 'manual_review') AND cancel_requested_at IS NOT NULL AND execution_id IS NOT NULL ORDER BY id LIMIT 1",
        params![],
    )
}

/// `%` and `_` typed by a person mean themselves.
fn like_pattern(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{escaped}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_reads_its_index_in_order() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let conn = crate::open::open_writer(&dir.path().join("client.db")).expect("a fresh database");
        let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {LIST_SQL}")).expect("the statement the list uses");
        let plan: Vec<String> = statement
            .query_map(
                named_params! { ":before_at": "~", ":before_id": i64::MAX, ":any_state": true, ":states": "[]",
                ":task_type": None::<String>, ":text": None::<String>, ":limit": 50 },
                |row| row.get("detail"),
            )
            .expect("a plan")
            .collect::<Result<_, _>>()
            .expect("plan rows");
        let plan = plan.join("\n");
        assert!(
            plan.contains("idx_pdd_tasks_visible_list (removed_at=? AND updated_at<?)"),
            "a page must seek in the list's index:\n{plan}"
        );
        assert!(!plan.contains("TEMP B-TREE"), "a page must not sort what the index already orders:\n{plan}");
    }

    #[test]
    fn wildcards_typed_by_a_person_mean_themselves() {
        assert_eq!(like_pattern(r"5%_\x"), r"%5\%\_\\x%", "a search for 5% must not find 5 of anything");
    }
}
