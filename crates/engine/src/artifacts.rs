//! Files a run leaves (D12): `artifacts/<yyyy-mm-dd>/<remote_task_id>/<attempt_no>/`, named without characters NTFS refuses.
//!
//! A file is written whole under another name and then renamed, so a row never points at half a file.

use std::path::{Path, PathBuf};

use cmautobuy_protocol::secret::sha256_hex;
use cmautobuy_protocol::{RemoteTaskId, WireTime};

/// Why a file could not be kept. The run goes on: evidence is worth less than the result.
#[derive(Debug, thiserror::Error)]
#[error("write artifact {}", .path.display())]
pub struct ArtifactError {
    pub path: PathBuf,
    #[source]
    pub source: std::io::Error,
}

/// A file that is safely on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Relative to the data folder, with `/`, so that a folder moved between systems stays readable.
    pub(crate) relative_path: String,
    pub(crate) sha256: String,
    pub(crate) size_bytes: u64,
}

/// The artifacts folder of a data folder.
#[derive(Debug, Clone)]
pub struct ArtifactStore {
    data_dir: PathBuf,
}

impl ArtifactStore {
    pub fn new(data_dir: &Path) -> Self {
        Self { data_dir: data_dir.to_path_buf() }
    }

    /// The folder of one attempt, relative to the data folder. The day is the UTC day the attempt began.
    pub fn directory(task: RemoteTaskId, attempt_no: u32, began: WireTime) -> String {
        let day = began.to_string();
        format!("artifacts/{}/{task}/{attempt_no}", &day[..10])
    }

    /// Writes `bytes` as `directory/name`, on a blocking thread.
    pub(crate) async fn keep(&self, directory: &str, name: &str, bytes: Vec<u8>) -> Result<Kept, ArtifactError> {
        let relative_path = format!("{directory}/{name}");
        let target = self.data_dir.join(&relative_path);
        let kept = Kept { relative_path, sha256: sha256_hex(&bytes), size_bytes: bytes.len() as u64 };
        let written = {
            let target = target.clone();
            tokio::task::spawn_blocking(move || write_whole(&target, &bytes)).await
        };
        match written {
            Ok(Ok(())) => Ok(kept),
            Ok(Err(source)) => Err(ArtifactError { path: target, source }),
            Err(panicked) => Err(ArtifactError { path: target, source: std::io::Error::other(panicked) }),
        }
    }
}

fn write_whole(target: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = target.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let part = target.with_extension("part");
    std::fs::write(&part, bytes)?;
    std::fs::rename(&part, target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_hold_no_character_ntfs_refuses() {
        let task: RemoteTaskId = "01890a5d-ac96-774b-bcce-b302099a8057".parse().expect("a UUID");
        let at: WireTime = "2026-08-06T23:59:59.123Z".parse().expect("a time");
        let directory = ArtifactStore::directory(task, 2, at);
        assert_eq!(directory, "artifacts/2026-08-06/01890a5d-ac96-774b-bcce-b302099a8057/2", "D12's layout");
        assert!(!directory.contains([':', '*', '?', '"', '<', '>', '|', '\\']), "NTFS refuses these in names");
    }

    #[tokio::test]
    async fn a_kept_file_is_whole_and_described() {
        let dir = tempfile::tempdir().expect("temp dir");
        let store = ArtifactStore::new(dir.path());
        let kept = store.keep("artifacts/2026-08-06/t/1", "01-open.xml", b"<hierarchy/>".to_vec()).await.expect("kept");
        let bytes = std::fs::read(dir.path().join(&kept.relative_path)).expect("the row's path must lead to the file");
        assert_eq!((kept.size_bytes, &kept.sha256), (bytes.len() as u64, &sha256_hex(&bytes)), "size and hash describe what is on disk");
    }

    #[tokio::test]
    async fn an_unwritable_folder_is_an_error_with_its_path() {
        let dir = tempfile::tempdir().expect("temp dir");
        let blocked = dir.path().join("artifacts");
        std::fs::write(&blocked, b"a file where the folder should be").expect("write");
        let error = ArtifactStore::new(dir.path()).keep("artifacts/x", "a.xml", Vec::new()).await.expect_err("a file is in the way");
        assert!(error.to_string().contains("a.xml"), "support must see which file: {error}");
    }
}
