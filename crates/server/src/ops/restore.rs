//! Putting a backup in the database's place (D7, ADR 0006). What happened after the backup is unknown, so nothing that was under way goes on by
//! itself: every claim is taken back, every lease ends, every generation rises beyond any that could have been given out, every login ends, and
//! a live purchase that had not ended waits for a person.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cmautobuy_protocol::{ExecutionMode, RemoteTaskId, ServerId, ServerStatus, TaskType, WireTime};
use serde_json::json;

use super::InUse;
use crate::ServerError;
use crate::clock::Clock;
use crate::config::Config;
use crate::house::{Call, House};
use crate::life::LifeEvent;
use crate::refusal::CallError;
use crate::store::copy::{Checked, check_copy, settle_file};
use crate::store::meta::meta_backed_up_at;
use crate::store::session::session_delete_all;
use crate::store::task::{TaskRow, task_raise_ended, task_unended};
use crate::store::{StoreError, beside};
use crate::work::{Actor, EventKind, Step, transition};

/// Beyond any generation that could have been given out after the backup (D7).
pub(crate) const RAISED_BY: u64 = 1_000_000;

/// Why a backup was not restored. The database is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("a server or another command is at work in {}; stop every one of them first", folder.display())]
    InUse { folder: PathBuf },
    #[error("read or write {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{} is no whole backup ({problem}); use another one", path.display())]
    Damaged { path: PathBuf, problem: String },
    #[error(
        "the backup is of server {theirs}, the database here of server {ours}; clients are bound to theirs (D7). \
         To put it here all the same, move {} away first", database.display()
    )]
    OtherServer { ours: ServerId, theirs: ServerId, database: PathBuf },
    #[error("use the backup")]
    Store(#[from] StoreError),
    #[error("open the backup as a database")]
    Open(#[source] Box<ServerError>),
    #[error("hold what was under way")]
    Hold(#[source] Box<CallError>),
}

/// What the restore changed, and what a person must look at.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Restored {
    pub server_id: ServerId,
    /// `None` for a copy that was not made by `backup`.
    pub backed_up_at: Option<WireTime>,
    pub tasks: u64,
    /// Claims that were taken back.
    pub unclaimed: u64,
    /// Live purchases that wait for `task release-hold`.
    pub held: Vec<RemoteTaskId>,
    /// Started tasks whose device cannot go on with them: close them once their results are in.
    pub to_close: Vec<RemoteTaskId>,
    /// The database as it was before, when there was one.
    pub kept: Option<PathBuf>,
}

/// Blocks. Until the last step everything happens beside the database; that step is one rename.
pub(crate) fn restore(config: Config, clock: Arc<dyn Clock>, from: &Path) -> Result<Restored, RestoreError> {
    let (folder, database) = (config.data_dir.clone(), config.database());
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| RestoreError::File { path, source }
    };
    let alone = InUse::alone(&folder).map_err(at(&folder))?;
    let _alone = alone.ok_or_else(|| RestoreError::InUse { folder: folder.clone() })?;
    let theirs = whole(from)?;
    let is_there = database.try_exists().map_err(at(&database))?;
    if is_there {
        // A damaged database has no say: that is what backups are for.
        if let Ok(Checked::Whole { server_id: Some(ours), .. }) = check_copy(&database)
            && ours != theirs
        {
            return Err(RestoreError::OtherServer { ours, theirs, database });
        }
        settle_file(&database)?;
    }
    let work = folder.join("restoring");
    if work.try_exists().map_err(at(&work))? {
        std::fs::remove_dir_all(&work).map_err(at(&work))?;
    }
    std::fs::create_dir_all(&work).map_err(at(&work))?;
    let inner = Config { data_dir: work.clone(), ..config };
    let restoring = inner.database();
    std::fs::copy(from, &restoring).map_err(at(&restoring))?;
    let now = clock.now();
    let mut restored = {
        let (house, _first) = House::open(inner, clock).map_err(|error| RestoreError::Open(Box::new(error)))?;
        house.write(|call| hold(call, &house)).map_err(|error| RestoreError::Hold(Box::new(error)))?
    };
    settle_file(&restoring)?;
    if is_there {
        let kept = folder.join(format!("server.before-restore-{}.sqlite3", now.unix_ms()));
        std::fs::hard_link(&database, &kept).or_else(|_| std::fs::copy(&database, &kept).map(|_| ())).map_err(at(&kept))?;
        // What could not be settled belongs to the old file; beside the new one SQLite would play it into that.
        for end in ["-wal", "-shm"] {
            let left = beside(&database, end);
            if left.try_exists().map_err(at(&left))? {
                std::fs::rename(&left, beside(&kept, end)).map_err(at(&left))?;
            }
        }
        restored.kept = Some(kept);
    }
    File::options().write(true).open(&restoring).and_then(|file| file.sync_all()).map_err(at(&restoring))?;
    std::fs::rename(&restoring, &database).map_err(at(&database))?;
    #[cfg(unix)]
    File::open(&folder).and_then(|folder| folder.sync_all()).map_err(at(&folder))?;
    // Only locks are left in it.
    let _ = std::fs::remove_dir_all(&work);
    Ok(restored)
}

fn whole(from: &Path) -> Result<ServerId, RestoreError> {
    let damaged = |problem: String| RestoreError::Damaged { path: from.to_owned(), problem };
    File::open(from).map_err(|source| RestoreError::File { path: from.to_owned(), source })?;
    match check_copy(from) {
        Ok(Checked::Whole { server_id: Some(server_id), .. }) => Ok(server_id),
        Ok(Checked::Whole { server_id: None, .. }) => Err(damaged("it has no server id".to_owned())),
        Ok(Checked::Damaged(problem)) => Err(damaged(problem)),
        Err(StoreError::Sqlite(error)) => Err(damaged(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

fn hold(call: Call<'_>, house: &House) -> Result<Restored, CallError> {
    let backed_up_at = meta_backed_up_at(call.tx)?;
    let mut restored = Restored {
        server_id: house.server_id,
        backed_up_at,
        tasks: task_raise_ended(call.tx, RAISED_BY)?,
        unclaimed: 0,
        held: Vec::new(),
        to_close: Vec::new(),
        kept: None,
    };
    for mut task in task_unended(call.tx)? {
        restored.tasks += 1;
        let is_live_purchase = is_live_purchase(&task);
        match task.status {
            ServerStatus::Claimed => restored.unclaimed += 1,
            ServerStatus::Running | ServerStatus::WaitingConfirmation => restored.to_close.push(task.task_id),
            ServerStatus::Pending | ServerStatus::Succeeded | ServerStatus::Failed | ServerStatus::Canceled => {}
        }
        if is_live_purchase {
            restored.held.push(task.task_id);
        }
        let detail = json!({"held": is_live_purchase, "backed_up_at": backed_up_at});
        let step = Step { life: LifeEvent::Restore, kind: EventKind::Restored, actor: Actor::Console, detail: Some(detail) };
        transition(call, &mut task, step, |task| {
            task.claim_generation += RAISED_BY;
            task.held_at = if is_live_purchase { Some(call.now) } else { task.held_at };
            if task.status == ServerStatus::Pending {
                (task.holder, task.lease_expires_at) = (None, None);
            } else {
                task.lease_expires_at = task.lease_expires_at.map(|end| end.min(call.now));
            }
        })?;
    }
    session_delete_all(call.tx)?;
    Ok(restored)
}

fn is_live_purchase(task: &TaskRow) -> bool {
    task.asked.task_type == TaskType::Purchase && task.asked.execution_mode == ExecutionMode::Live
}
