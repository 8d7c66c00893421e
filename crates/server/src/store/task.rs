//! Table `tasks`: the server's truth about a task. [`task_save`] is the one place a status is written, and only over the version it was read at.

use cmautobuy_protocol::admin::{CreateTask, TaskSummary};
use cmautobuy_protocol::goods::GoodsId;
use cmautobuy_protocol::result::Disposition;
use cmautobuy_protocol::{DeviceId, ExecutionId, ExecutionMode, OwnTask, RemoteTaskId, ServerStatus, TaskType, UserId, WireTime};
use rusqlite::{OptionalExtension, Row};

use super::{StoreError, Tx, known, parsed, parsed_opt};
use crate::work::Actor;

/// Who holds a task, and the hash of the token that proves it (T-205 §2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) user_id: UserId,
    pub(crate) device_id: DeviceId,
    pub(crate) token_sha256: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskRow {
    pub(crate) task_id: RemoteTaskId,
    pub(crate) goods_id: GoodsId,
    pub(crate) asked: CreateTask,
    pub(crate) status: ServerStatus,
    pub(crate) version: u64,
    pub(crate) claim_generation: u64,
    pub(crate) holder: Option<Holder>,
    pub(crate) lease_expires_at: Option<WireTime>,
    pub(crate) execution_id: Option<ExecutionId>,
    pub(crate) recollecting: bool,
    pub(crate) cancel_requested_at: Option<WireTime>,
    pub(crate) order_may_exist: bool,
    /// Since when a restore keeps this live purchase from being claimed (D7).
    pub(crate) held_at: Option<WireTime>,
}

impl TaskRow {
    pub(crate) fn lease_lives(&self, now: WireTime) -> bool {
        self.lease_expires_at.is_some_and(|end| now < end)
    }

    /// For the caller's own task only (D5).
    pub(crate) fn own(&self) -> OwnTask {
        OwnTask { status: self.status, version: self.version, execution_id: self.execution_id }
    }
}

pub(super) const SUMMARY: &str = "t.*, (SELECT e.step FROM executions e WHERE e.execution_id = t.execution_id) AS step,
    (SELECT r.disposition FROM results r WHERE r.task_id = t.task_id
     ORDER BY r.claim_generation DESC, r.attempt_no DESC, r.received_at DESC, r.rowid DESC LIMIT 1) AS latest_outcome";

const OWN_EXPIRED_CLAIM: &str = "SELECT * FROM tasks WHERE device_id = ?1 AND status = 'CLAIMED' AND lease_expires_at <= ?2";
// INDEXED BY: the planner knows nothing of how the rows are spread and would sort all PENDING tasks by another index.
const CLAIMABLE: &str = "SELECT t.* FROM tasks t INDEXED BY tasks_claimable
    WHERE t.status IN ('PENDING', 'CLAIMED') AND t.held_at IS NULL AND (t.status = 'PENDING' OR t.lease_expires_at <= ?3)
      AND NOT EXISTS (SELECT 1 FROM dispatches d WHERE d.task_id = t.task_id AND d.device_id = ?1 AND d.released_at > ?2)
    ORDER BY t.created_at, t.task_id LIMIT 1";
// Both repeat the condition of the index `tasks_in_hand` word for word: what a device has in hand is found without reading what it finished.
const IN_SLOT: &str = "SELECT task_id FROM tasks INDEXED BY tasks_in_hand
    WHERE device_id = ?1 AND (status IN ('CLAIMED', 'RUNNING', 'WAITING_CONFIRMATION') OR recollecting = 1) AND task_id IS NOT ?2
      AND (status = 'RUNNING' OR ((status = 'CLAIMED' OR recollecting = 1) AND lease_expires_at > ?3))
    ORDER BY status = 'RUNNING' DESC LIMIT 1";
const CANCEL_REQUESTED: &str = "SELECT task_id FROM tasks INDEXED BY tasks_in_hand
    WHERE device_id = ?1 AND (status IN ('CLAIMED', 'RUNNING', 'WAITING_CONFIRMATION') OR recollecting = 1)
      AND cancel_requested_at IS NOT NULL AND status IN ('RUNNING', 'WAITING_CONFIRMATION')
    ORDER BY created_at, task_id";

fn decode(row: &Row<'_>) -> rusqlite::Result<TaskRow> {
    let holder = match parsed_opt(row, "user_id")? {
        None => None,
        Some(user_id) => Some(Holder { user_id, device_id: parsed(row, "device_id")?, token_sha256: row.get("claim_token_sha256")? }),
    };
    Ok(TaskRow {
        task_id: parsed(row, "task_id")?,
        goods_id: parsed(row, "goods_id")?,
        asked: CreateTask {
            task_type: known(row, "task_type", TaskType::parse)?,
            execution_mode: known(row, "execution_mode", ExecutionMode::parse)?,
            goods_url: row.get("goods_url")?,
            title: row.get("title")?,
            target_color: row.get("target_color")?,
            target_size: row.get("target_size")?,
            price_cent: row.get("price_cent")?,
            max_price_cent: row.get("max_price_cent")?,
            quantity: row.get("quantity")?,
            priority: row.get("priority")?,
            external_ref: row.get("external_ref")?,
        },
        status: known(row, "status", ServerStatus::parse)?,
        version: row.get("version")?,
        claim_generation: row.get("claim_generation")?,
        holder,
        lease_expires_at: parsed_opt(row, "lease_expires_at")?,
        execution_id: parsed_opt(row, "execution_id")?,
        recollecting: row.get("recollecting")?,
        cancel_requested_at: parsed_opt(row, "cancel_requested_at")?,
        order_may_exist: row.get("order_may_exist")?,
        held_at: parsed_opt(row, "held_at")?,
    })
}

pub(super) fn decode_summary(row: &Row<'_>) -> rusqlite::Result<TaskSummary> {
    let task = decode(row)?;
    let latest_outcome = match row.get::<_, Option<String>>("latest_outcome")? {
        None => None,
        Some(_) => Some(known(row, "latest_outcome", Disposition::parse)?),
    };
    Ok(TaskSummary {
        task_id: task.task_id,
        task_type: task.asked.task_type,
        execution_mode: task.asked.execution_mode,
        status: task.status,
        version: task.version,
        claim_generation: task.claim_generation,
        goods_id: task.goods_id.into(),
        goods_url: task.asked.goods_url,
        title: task.asked.title,
        external_ref: task.asked.external_ref,
        priority: task.asked.priority,
        cancel_requested: task.cancel_requested_at.is_some(),
        current_step: row.get("step")?,
        device_id: task.holder.as_ref().map(|h| h.device_id),
        user_id: task.holder.as_ref().map(|h| h.user_id),
        lease_expires_at: task.lease_expires_at,
        latest_outcome,
        order_may_exist: task.order_may_exist,
        held: task.held_at.is_some(),
        created_at: parsed(row, "created_at")?,
        updated_at: parsed(row, "updated_at")?,
    })
}

pub(crate) fn task_insert(
    tx: &Tx<'_>,
    id: RemoteTaskId,
    goods: &GoodsId,
    asked: &CreateTask,
    by: Actor,
    now: WireTime,
) -> Result<(), StoreError> {
    tx.run(
        "INSERT INTO tasks (task_id, task_type, execution_mode, goods_id, goods_url, title, target_color, target_size, price_cent,
             max_price_cent, quantity, priority, external_ref, status, version, created_by, created_at, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 'PENDING', 1, ?14, ?15, ?15)",
        (
            id.to_string(),
            asked.task_type.as_str(),
            asked.execution_mode.as_str(),
            goods.as_str(),
            &asked.goods_url,
            &asked.title,
            &asked.target_color,
            &asked.target_size,
            asked.price_cent,
            asked.max_price_cent,
            asked.quantity,
            asked.priority,
            &asked.external_ref,
            by.to_string(),
            now.to_string(),
        ),
    )?;
    Ok(())
}

pub(crate) fn task_get(tx: &Tx<'_>, id: RemoteTaskId) -> Result<Option<TaskRow>, StoreError> {
    let mut read = tx.0.prepare_cached("SELECT * FROM tasks WHERE task_id = ?1")?;
    Ok(read.query_row([id.to_string()], decode).optional()?)
}

pub(crate) fn task_by_external_ref(tx: &Tx<'_>, external_ref: &str) -> Result<Option<RemoteTaskId>, StoreError> {
    let mut read = tx.0.prepare_cached("SELECT task_id FROM tasks WHERE external_ref = ?1")?;
    Ok(read.query_row([external_ref], |row| parsed(row, "task_id")).optional()?)
}

/// Writes what a transition changed: one conditional UPDATE over the version the row was read at.
pub(crate) fn task_save(tx: &Tx<'_>, row: &TaskRow, read_at_version: u64, now: WireTime) -> Result<(), StoreError> {
    let mut write = tx.0.prepare_cached(
        "UPDATE tasks SET status = ?3, version = ?4, claim_generation = ?5, user_id = ?6, device_id = ?7, claim_token_sha256 = ?8,
             lease_expires_at = ?9, execution_id = ?10, recollecting = ?11, cancel_requested_at = ?12, order_may_exist = ?13, held_at = ?14,
             updated_at = ?15
         WHERE task_id = ?1 AND version = ?2",
    )?;
    let changed = write.execute((
        row.task_id.to_string(),
        read_at_version,
        row.status.as_str(),
        row.version,
        row.claim_generation,
        row.holder.as_ref().map(|h| h.user_id.to_string()),
        row.holder.as_ref().map(|h| h.device_id.to_string()),
        row.holder.as_ref().map(|h| &h.token_sha256),
        row.lease_expires_at.map(|t| t.to_string()),
        row.execution_id.map(|id| id.to_string()),
        row.recollecting,
        row.cancel_requested_at.map(|t| t.to_string()),
        row.order_may_exist,
        row.held_at.map(|t| t.to_string()),
        now.to_string(),
    ))?;
    if changed == 1 {
        Ok(())
    } else {
        Err(StoreError::Damaged {
            table: "tasks",
            row: row.task_id.to_string(),
            what: "the version changed inside an immediate transaction",
        })
    }
}

/// This device's claim that ran out: it is taken back first (T-205 §5).
pub(crate) fn task_own_expired_claim(tx: &Tx<'_>, device: DeviceId, now: WireTime) -> Result<Option<TaskRow>, StoreError> {
    let mut read = tx.0.prepare_cached(OWN_EXPIRED_CLAIM)?;
    Ok(read.query_row((device.to_string(), now.to_string()), decode).optional()?)
}

/// The oldest claimable task, smallest id first (T-205 §5), but none this device released after `released_since` (D5).
pub(crate) fn task_claimable(
    tx: &Tx<'_>,
    device: DeviceId,
    released_since: WireTime,
    now: WireTime,
) -> Result<Option<TaskRow>, StoreError> {
    let mut read = tx.0.prepare_cached(CLAIMABLE)?;
    Ok(read.query_row((device.to_string(), released_since.to_string(), now.to_string()), decode).optional()?)
}

/// The task that takes this device's slot: a live claim, any RUNNING, a live re-collect. WAITING_CONFIRMATION does not (D4).
pub(crate) fn task_in_slot(
    tx: &Tx<'_>,
    device: DeviceId,
    other_than: Option<RemoteTaskId>,
    now: WireTime,
) -> Result<Option<RemoteTaskId>, StoreError> {
    let mut read = tx.0.prepare_cached(IN_SLOT)?;
    let found = read
        .query_row((device.to_string(), other_than.map(|id| id.to_string()), now.to_string()), |row| parsed(row, "task_id"))
        .optional()?;
    Ok(found)
}

/// Tasks of this device that wait for a cancel-ack (D4).
pub(crate) fn task_cancel_requested(tx: &Tx<'_>, device: DeviceId) -> Result<Vec<RemoteTaskId>, StoreError> {
    let mut read = tx.0.prepare_cached(CANCEL_REQUESTED)?;
    Ok(read.query_map([device.to_string()], |row| parsed(row, "task_id"))?.collect::<Result<_, _>>()?)
}

pub(crate) fn task_summary(tx: &Tx<'_>, id: RemoteTaskId) -> Result<Option<TaskSummary>, StoreError> {
    let mut read = tx.0.prepare_cached(&format!("SELECT {SUMMARY} FROM tasks t WHERE t.task_id = ?1"))?;
    Ok(read.query_row([id.to_string()], decode_summary).optional()?)
}

/// Every task that has not ended, oldest first.
pub(crate) fn task_unended(tx: &Tx<'_>) -> Result<Vec<TaskRow>, StoreError> {
    let mut read = tx.0.prepare(
        "SELECT * FROM tasks WHERE status IN ('PENDING', 'CLAIMED', 'RUNNING', 'WAITING_CONFIRMATION') ORDER BY created_at, task_id",
    )?;
    Ok(read.query_map([], decode)?.collect::<Result<_, _>>()?)
}

/// Raises the generation of every task that has ended; nobody goes on looking at it again by itself. How many there are.
pub(crate) fn task_raise_ended(tx: &Tx<'_>, by: u64) -> Result<u64, StoreError> {
    let raised = tx.0.execute(
        "UPDATE tasks SET claim_generation = claim_generation + ?1, recollecting = 0 WHERE status IN ('SUCCEEDED', 'FAILED', 'CANCELED')",
        [by],
    )?;
    Ok(raised as u64)
}

/// As its first event says it: `admin:<user>` or `console`.
pub(crate) fn task_created_by(tx: &Tx<'_>, id: RemoteTaskId) -> Result<Option<String>, StoreError> {
    let mut read = tx.0.prepare_cached("SELECT created_by FROM tasks WHERE task_id = ?1")?;
    Ok(read.query_row([id.to_string()], |row| row.get(0)).optional()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    /// What a claim or a heartbeat looks at must not grow with the tasks a device, or all of them, ever finished.
    #[test]
    fn what_a_device_calls_often_reads_only_open_tasks() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (store, ()) = Store::open(&dir.path().join("server.sqlite3"), |_| Ok::<_, StoreError>(())).expect("a store in an empty folder");
        let rows = [
            ("own expired claim", OWN_EXPIRED_CLAIM, "one_claimed_per_device"),
            ("claimable", CLAIMABLE, "tasks_claimable"),
            ("in slot", IN_SLOT, "tasks_in_hand"),
            ("cancel requested", CANCEL_REQUESTED, "tasks_in_hand"),
        ];
        for (name, sql, index) in rows {
            let plan = |tx: &Tx<'_>| {
                let mut read = tx.0.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
                let none = rusqlite::params_from_iter(std::iter::repeat_n(rusqlite::types::Null, read.parameter_count()));
                let steps: Vec<String> = read.query_map(none, |row| row.get("detail"))?.collect::<Result<_, _>>()?;
                Ok::<_, StoreError>(steps)
            };
            let plan = store.read(plan).expect("a plan");
            let on_tasks: Vec<_> = plan.iter().filter(|step| step.contains("tasks") || step.contains(" t ")).collect();
            assert!(
                !on_tasks.is_empty() && on_tasks.iter().all(|step| step.contains(index)),
                "row `{name}` must read tasks by {index} alone, its plan is {plan:?}"
            );
        }
    }
}
