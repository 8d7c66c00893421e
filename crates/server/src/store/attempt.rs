//! Table `attempts`: the client-side runs the server knows of (D5: one execution may hold several). Only the highest one of the current
//! generation may move the status (D3).

use cmautobuy_protocol::{AttemptId, ExecutionId, RemoteTaskId, WireTime};
use rusqlite::OptionalExtension;

use super::{StoreError, Tx, known};

/// How the server first heard of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenedBy {
    Start,
    Resume,
    Recollect,
    /// By its result, with no call before it (D2 `manual_review -> failed`, D3 bad task data).
    Result,
}

impl OpenedBy {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Resume => "resume",
            Self::Recollect => "recollect",
            Self::Result => "result",
        }
    }
    fn parse(text: &str) -> Option<Self> {
        [Self::Start, Self::Resume, Self::Recollect, Self::Result].into_iter().find(|known| known.as_str() == text)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct NewAttempt {
    pub(crate) task_id: RemoteTaskId,
    pub(crate) attempt_id: AttemptId,
    pub(crate) attempt_no: u32,
    pub(crate) claim_generation: u64,
    pub(crate) execution_id: Option<ExecutionId>,
    pub(crate) opened_by: OpenedBy,
}

/// What happened to a named attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noted {
    New,
    /// Known already with the same number and generation; how it was opened is kept.
    Known(OpenedBy),
    /// The same id was named with another number or generation.
    Contradicts,
}

pub(crate) fn attempt_note(tx: &Tx<'_>, new: &NewAttempt, now: WireTime) -> Result<Noted, StoreError> {
    let mut read =
        tx.0.prepare_cached("SELECT attempt_no, claim_generation, opened_by FROM attempts WHERE task_id = ?1 AND attempt_id = ?2")?;
    let found: Option<(u32, u64, OpenedBy)> = read
        .query_row((new.task_id.to_string(), new.attempt_id.to_string()), |row| {
            Ok((row.get("attempt_no")?, row.get("claim_generation")?, known(row, "opened_by", OpenedBy::parse)?))
        })
        .optional()?;
    if let Some((attempt_no, generation, opened_by)) = found {
        let same = attempt_no == new.attempt_no && generation == new.claim_generation;
        return Ok(if same { Noted::Known(opened_by) } else { Noted::Contradicts });
    }
    tx.run(
        "INSERT INTO attempts (task_id, attempt_id, attempt_no, claim_generation, execution_id, opened_by, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (
            new.task_id.to_string(),
            new.attempt_id.to_string(),
            new.attempt_no,
            new.claim_generation,
            new.execution_id.map(|id| id.to_string()),
            new.opened_by.as_str(),
            now.to_string(),
        ),
    )?;
    Ok(Noted::New)
}

/// The highest attempt number known of a generation; 0 when none is.
pub(crate) fn attempt_highest(tx: &Tx<'_>, task: RemoteTaskId, generation: u64) -> Result<u32, StoreError> {
    let mut read = tx.0.prepare_cached("SELECT coalesce(max(attempt_no), 0) FROM attempts WHERE task_id = ?1 AND claim_generation = ?2")?;
    Ok(read.query_row((task.to_string(), generation), |row| row.get(0))?)
}
