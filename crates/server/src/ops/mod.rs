//! Running the server as a thing on a machine: serving, TLS, figures, backup, restore, pruning, checks. It decides nothing about a task, except
//! that a restore holds what it cannot know (D7, ADR 0006).

pub(crate) mod backup;
pub(crate) mod doctor;
pub(crate) mod metrics;
pub(crate) mod prune;
pub(crate) mod restore;
pub(crate) mod serve;
pub(crate) mod tls;

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

/// Whether somebody works in a data folder: shared by every open server, exclusive for a restore.
#[derive(Debug)]
pub(crate) struct InUse(#[expect(dead_code, reason = "the lock lives as long as the file is open")] File);

impl InUse {
    /// `None` when a restore is under way.
    pub(crate) fn shared(folder: &Path) -> io::Result<Option<Self>> {
        Self::of(folder, File::try_lock_shared)
    }

    /// `None` when a server is open on the folder.
    pub(crate) fn alone(folder: &Path) -> io::Result<Option<Self>> {
        Self::of(folder, File::try_lock)
    }

    fn of(folder: &Path, lock: impl FnOnce(&File) -> Result<(), TryLockError>) -> io::Result<Option<Self>> {
        std::fs::create_dir_all(folder)?;
        let file = File::create(folder.join("in-use.lock"))?;
        match lock(&file) {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}
