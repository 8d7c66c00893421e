//! How things stand, counted for whoever watches the server. Only what is open is counted, so the cost does not grow with what has ended.

use cmautobuy_protocol::{ServerStatus, WireTime};
use rusqlite::{OptionalExtension, params_from_iter};

use super::{Store, StoreError, Tx, beside, known, parsed};

/// One moment's figures.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Figures {
    /// Per status that has not ended.
    pub(crate) tasks: Vec<(ServerStatus, u64)>,
    pub(crate) oldest_pending: Option<WireTime>,
    pub(crate) held: u64,
    /// RUNNING without a living lease: the device is silent, a person must decide (D4).
    pub(crate) stalled: u64,
    pub(crate) devices_live: u64,
    pub(crate) devices_silent: u64,
    pub(crate) devices_disabled: u64,
}

pub(crate) fn figures(tx: &Tx<'_>, now: WireTime, heard_since: WireTime) -> Result<Figures, StoreError> {
    let mut counts = tx.0.prepare_cached("SELECT count(*) FROM tasks WHERE status = ?1")?;
    let open = [ServerStatus::Pending, ServerStatus::Claimed, ServerStatus::Running, ServerStatus::WaitingConfirmation];
    let tasks = open.iter().map(|status| Ok((*status, counts.query_row([status.as_str()], |row| row.get(0))?)));
    let count = |sql: &str, at: &[String]| tx.0.prepare_cached(sql)?.query_row(params_from_iter(at), |row| row.get::<_, u64>(0));
    let (now, heard_since) = ([now.to_string()], [heard_since.to_string()]);
    Ok(Figures {
        tasks: tasks.collect::<rusqlite::Result<_>>()?,
        oldest_pending: tx
            .0
            .prepare_cached("SELECT created_at FROM tasks WHERE status = 'PENDING' ORDER BY created_at LIMIT 1")?
            .query_row([], |row| parsed(row, "created_at"))
            .optional()?,
        held: count("SELECT count(*) FROM tasks WHERE held_at IS NOT NULL", &[])?,
        stalled: count("SELECT count(*) FROM tasks WHERE status = 'RUNNING' AND lease_expires_at <= ?1", &now)?,
        devices_live: count("SELECT count(*) FROM devices WHERE disabled = 0 AND heartbeat_at > ?1", &heard_since)?,
        devices_silent: count(
            "SELECT count(*) FROM devices WHERE disabled = 0 AND (heartbeat_at IS NULL OR heartbeat_at <= ?1)",
            &heard_since,
        )?,
        devices_disabled: count("SELECT count(*) FROM devices WHERE disabled = 1", &[])?,
    })
}

/// What a check of the whole database looks at beside its pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) admins: u64,
    /// The newest event; a clock before it was set back.
    pub(crate) last_event: Option<WireTime>,
    /// Tasks that have not ended and may have been ordered.
    pub(crate) in_doubt: Vec<(String, ServerStatus)>,
}

pub(crate) fn standing(tx: &Tx<'_>) -> Result<Standing, StoreError> {
    let mut doubt = tx.0.prepare(
        "SELECT task_id, status FROM tasks WHERE order_may_exist = 1 AND status IN ('PENDING', 'CLAIMED', 'RUNNING', 'WAITING_CONFIRMATION')
         ORDER BY created_at LIMIT 20",
    )?;
    let in_doubt = doubt.query_map([], |row| Ok((row.get("task_id")?, known(row, "status", ServerStatus::parse)?)))?;
    Ok(Standing {
        admins: tx.0.query_row("SELECT count(*) FROM users WHERE is_admin = 1 AND disabled = 0", [], |row| row.get(0))?,
        last_event: tx.0.query_row("SELECT at FROM task_events ORDER BY rowid DESC LIMIT 1", [], |row| parsed(row, "at")).optional()?,
        in_doubt: in_doubt.collect::<Result<_, _>>()?,
    })
}

impl Store {
    /// Bytes of the database with what is not yet moved into its main file.
    pub(crate) fn bytes(&self) -> u64 {
        let size = |end| std::fs::metadata(beside(&self.path, end)).map_or(0, |file| file.len());
        size("") + size("-wal")
    }
}
