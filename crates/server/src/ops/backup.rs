//! A copy of the database while servers go on working (D7).

use std::fs::File;
use std::path::{Path, PathBuf};

use cmautobuy_protocol::WireTime;

use crate::house::House;
use crate::store::copy::{Checked, check_copy, stamp_copy};
use crate::store::{StoreError, beside};

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{} is there already; choose another name, a backup is never overwritten", path.display())]
    Exists { path: PathBuf },
    #[error("write {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("copy the database")]
    Store(#[from] StoreError),
    #[error("the copy is not whole ({problem}), so it was thrown away; check the disk, and the database with `autobuy-server doctor`")]
    Damaged { problem: String },
}

/// A backup that was read back and found whole.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Backup {
    pub path: PathBuf,
    pub bytes: u64,
    pub tasks: u64,
    pub taken_at: WireTime,
}

/// Writes beside the target, reads it back, and only then gives it its name: a file of that name is a whole backup. Blocks.
pub(crate) fn backup(house: &House, to: &Path) -> Result<Backup, BackupError> {
    if to.try_exists().map_err(|source| BackupError::File { path: to.to_owned(), source })? {
        return Err(BackupError::Exists { path: to.to_owned() });
    }
    let part = beside(to, ".part");
    let at_part = |source| BackupError::File { path: part.clone(), source };
    if part.try_exists().map_err(at_part)? {
        // A backup that was killed; SQLite writes into no file that is there.
        std::fs::remove_file(&part).map_err(at_part)?;
    }
    let made = copy(house, &part);
    let finished = made.and_then(|(tasks, taken_at)| {
        let file = File::options().write(true).open(&part).map_err(at_part)?;
        file.sync_all().map_err(at_part)?;
        let bytes = file.metadata().map_err(at_part)?.len();
        drop(file);
        // A hard link instead of a rename: it fails when the name was taken meanwhile.
        std::fs::hard_link(&part, to).map_err(|source| BackupError::File { path: to.to_owned(), source })?;
        Ok(Backup { path: to.to_owned(), bytes, tasks, taken_at })
    });
    // Thrown away when it failed, a second name when it did not; left over it is removed by the next backup.
    let _ = std::fs::remove_file(&part);
    if let Ok(backup) = &finished {
        tracing::info!(path = %backup.path.display(), bytes = backup.bytes, "backup taken");
    }
    finished
}

fn copy(house: &House, part: &Path) -> Result<(u64, WireTime), BackupError> {
    let taken_at = house.now();
    house.copy_database(part)?;
    stamp_copy(part, taken_at)?;
    match check_copy(part)? {
        Checked::Whole { tasks, .. } => Ok((tasks, taken_at)),
        Checked::Damaged(problem) => Err(BackupError::Damaged { problem }),
    }
}
