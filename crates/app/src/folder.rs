//! The data folder: writable, and used by one process at a time (D7).

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::problem::{Kind, Problem};

/// Holds the folder for this process; the system frees it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) root: PathBuf,
    _lock: File,
}

impl Folder {
    /// Makes the folder, proves it can be written and takes it.
    ///
    /// # Errors
    /// `FOLDER_UNWRITABLE` naming the folder; `SECOND_INSTANCE` naming the other process.
    pub(crate) fn take(root: &Path) -> Result<Self, Problem> {
        let unwritable = |error: std::io::Error| Kind::FolderUnwritable.with(format!("{}: {error}", root.display()));
        std::fs::create_dir_all(root).map_err(unwritable)?;
        let probe = root.join(".write-probe");
        std::fs::write(&probe, b"x").and_then(|()| std::fs::remove_file(&probe)).map_err(unwritable)?;
        let lock = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(root.join("lock")).map_err(unwritable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Kind::SecondInstance.with(format!("{}: {}", root.display(), other(root)))),
            Err(TryLockError::Error(error)) => return Err(unwritable(error)),
        }
        // Beside the lock, not in it: Windows lets nobody read a locked file.
        let owner = format!("process {} ({})\n", std::process::id(), std::env::current_exe().unwrap_or_default().display());
        let named = OpenOptions::new().create(true).truncate(true).write(true).open(root.join("lock.owner"));
        named.and_then(|mut file| file.write_all(owner.as_bytes())).map_err(unwritable)?;
        Ok(Self { root: root.to_path_buf(), _lock: lock })
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.root.join("client.db")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }
}

/// Who holds the folder, as it wrote down itself.
fn other(root: &Path) -> String {
    let mut text = String::new();
    let read = File::open(root.join("lock.owner")).and_then(|mut file| {
        file.seek(SeekFrom::Start(0))?;
        file.take(400).read_to_string(&mut text)
    });
    match read {
        Ok(_) if !text.trim().is_empty() => text.trim().to_owned(),
        Ok(_) | Err(_) => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_owner_at_a_time() {
        let dir = tempfile::tempdir().expect("temp dir");
        let first = Folder::take(dir.path()).expect("a fresh folder is free");
        let refused = Folder::take(dir.path()).expect_err("two processes on one database would both drive the phone");
        assert_eq!(refused.code, "SECOND_INSTANCE", "the person must learn what is in the way");
        assert!(refused.detail.contains(&std::process::id().to_string()), "the other process is named: {}", refused.detail);
        drop(first);
        Folder::take(dir.path()).expect("free again once its owner is gone");
    }

    #[test]
    fn an_unwritable_folder_is_named() {
        let dir = tempfile::tempdir().expect("temp dir");
        let file = dir.path().join("a-file");
        std::fs::write(&file, b"x").expect("write");
        let refused = Folder::take(&file.join("data")).expect_err("a file is in the way");
        assert_eq!(refused.code, "FOLDER_UNWRITABLE", "not a crash, a sentence");
        assert!(refused.detail.contains("a-file"), "the folder is named: {}", refused.detail);
    }
}
