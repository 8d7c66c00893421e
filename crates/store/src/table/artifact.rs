//! `run_artifacts` (D12): where a run left its trees, pictures and long logs. The files themselves are `app`'s and `engine`'s.

use cmautobuy_protocol::WireTime;
use rusqlite::{Connection, Row, named_params, params};

use crate::codec::{held, number, parsed, parsed_opt};
use crate::table::run;
use crate::{ArtifactId, LocalTaskId, Reader, RunId, StoreError, Tx};

/// A file a run left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewArtifact {
    pub run: RunId,
    /// Such as `tree`, `screenshot`, `log`.
    pub kind: String,
    /// Tree and picture of one capture share it (D11).
    pub capture_id: Option<String>,
    pub step: Option<String>,
    /// Below the data folder, with `/` between its parts (D12).
    pub relative_path: String,
    /// Lowercase hex.
    pub sha256: String,
    pub size_bytes: u64,
    /// One line a person can read.
    pub summary: String,
    /// How far apart tree and picture of the capture were taken.
    pub skew_ms: Option<i64>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArtifactRow {
    pub id: ArtifactId,
    pub run_id: RunId,
    pub kind: String,
    pub capture_id: Option<String>,
    pub step: Option<String>,
    pub relative_path: String,
    pub sha256: String,
    pub size_bytes: u64,
    pub summary: String,
    pub skew_ms: Option<i64>,
    /// Retention took the file; hash and size stay.
    pub deleted_at: Option<WireTime>,
    pub created_at: WireTime,
}

impl ArtifactRow {
    fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            run_id: row.get("run_id")?,
            kind: row.get("kind")?,
            capture_id: row.get("capture_id")?,
            step: row.get("step")?,
            relative_path: row.get("relative_path")?,
            sha256: row.get("sha256")?,
            size_bytes: number(row, "size_bytes")?,
            summary: row.get("summary")?,
            skew_ms: row.get("skew_ms")?,
            deleted_at: parsed_opt(row, "deleted_at")?,
            created_at: parsed(row, "created_at")?,
        })
    }
}

impl Reader<'_> {
    /// Every artifact of every run of the task, oldest first.
    pub fn artifact_list(&self, task: LocalTaskId) -> Result<Vec<ArtifactRow>, StoreError> {
        many(
            self.conn,
            "SELECT a.* FROM run_artifacts a JOIN task_runs r ON r.id = a.run_id WHERE r.task_id = ?1 ORDER BY a.id",
            params![task],
        )
    }

    pub fn artifact_get(&self, id: ArtifactId) -> Result<Option<ArtifactRow>, StoreError> {
        Ok(many(self.conn, "SELECT * FROM run_artifacts WHERE id = ?1", params![id])?.pop())
    }

    /// Up to `limit` files older than `before` that retention may still delete.
    pub fn artifact_expired(&self, before: WireTime, limit: u32) -> Result<Vec<ArtifactRow>, StoreError> {
        many(
            self.conn,
            "SELECT * FROM run_artifacts WHERE deleted_at IS NULL AND created_at < ?1 ORDER BY id LIMIT ?2",
            params![before.to_string(), limit],
        )
    }
}

impl Tx<'_> {
    /// Names a file already written. The run's `artifact_directory` becomes the folder of its first one.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] for a path that leaves the artifact folder or that NTFS refuses.
    pub fn artifact_add(&mut self, artifact: &NewArtifact, now: WireTime) -> Result<ArtifactId, StoreError> {
        let path = &artifact.relative_path;
        let is_bad_char = |c: char| c.is_control() || matches!(c, ':' | '\\' | '<' | '>' | '"' | '|' | '?' | '*');
        if path.contains(is_bad_char) || path.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(StoreError::Unfit { column: "relative_path", detail: path.clone() });
        }
        self.conn
            .prepare_cached(
                "INSERT INTO run_artifacts (run_id, kind, capture_id, step, relative_path, sha256, size_bytes, summary, skew_ms, created_at) \
                 VALUES (:run, :kind, :capture, :step, :path, :sha256, :size, :summary, :skew, :now)",
            )?
            .execute(named_params! {
                ":run": artifact.run,
                ":kind": artifact.kind,
                ":capture": artifact.capture_id,
                ":step": artifact.step,
                ":path": path,
                ":sha256": artifact.sha256,
                ":size": held(artifact.size_bytes),
                ":summary": artifact.summary,
                ":skew": artifact.skew_ms,
                ":now": now.to_string(),
            })?;
        let id = ArtifactId(self.conn.last_insert_rowid());
        if let Some((folder, _)) = path.rsplit_once('/') {
            run::set_artifact_directory(self.conn, artifact.run, folder)?;
        }
        Ok(id)
    }

    /// Retention deleted the file; the row stays as its tombstone (D12).
    pub fn artifact_deleted(&mut self, id: ArtifactId, now: WireTime) -> Result<(), StoreError> {
        self.conn
            .prepare_cached("UPDATE run_artifacts SET deleted_at = ?2 WHERE id = ?1 AND deleted_at IS NULL")?
            .execute(params![id, now.to_string()])?;
        Ok(())
    }
}

fn many(conn: &Connection, sql: &'static str, params: &[&dyn rusqlite::ToSql]) -> Result<Vec<ArtifactRow>, StoreError> {
    let mut statement = conn.prepare_cached(sql)?;
    let rows = statement.query_and_then(params, ArtifactRow::read)?;
    rows.collect()
}
