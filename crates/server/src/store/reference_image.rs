//! Table `reference_images`: the picture of what a task is about (T-205 §13). Read only for whoever may see that task now.

use cmautobuy_protocol::RemoteTaskId;
use cmautobuy_protocol::admin::ReferenceImage;
use rusqlite::OptionalExtension;

use super::{StoreError, Tx, parsed};

pub(crate) fn reference_image_put(tx: &Tx<'_>, task: RemoteTaskId, about: &ReferenceImage, jpeg: &[u8]) -> Result<(), StoreError> {
    tx.0.execute(
        "INSERT OR REPLACE INTO reference_images (task_id, jpeg, sha256, width, height, uploaded_by, uploaded_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (task.to_string(), jpeg, &about.sha256, about.width, about.height, &about.uploaded_by, about.uploaded_at.to_string()),
    )?;
    Ok(())
}

/// `false` when there was none.
pub(crate) fn reference_image_delete(tx: &Tx<'_>, task: RemoteTaskId) -> Result<bool, StoreError> {
    Ok(tx.0.execute("DELETE FROM reference_images WHERE task_id = ?1", [task.to_string()])? == 1)
}

pub(crate) fn reference_image_about(tx: &Tx<'_>, task: RemoteTaskId) -> Result<Option<ReferenceImage>, StoreError> {
    let mut read = tx.0.prepare_cached(
        "SELECT sha256, length(jpeg) AS bytes, width, height, uploaded_by, uploaded_at FROM reference_images WHERE task_id = ?1",
    )?;
    let about = read.query_row([task.to_string()], |row| {
        Ok(ReferenceImage {
            sha256: row.get("sha256")?,
            bytes: row.get("bytes")?,
            width: row.get("width")?,
            height: row.get("height")?,
            uploaded_by: row.get("uploaded_by")?,
            uploaded_at: parsed(row, "uploaded_at")?,
        })
    });
    Ok(about.optional()?)
}

pub(crate) fn reference_image_any(tx: &Tx<'_>, task: RemoteTaskId) -> Result<bool, StoreError> {
    let mut read = tx.0.prepare_cached("SELECT EXISTS (SELECT 1 FROM reference_images WHERE task_id = ?1)")?;
    Ok(read.query_row([task.to_string()], |row| row.get(0))?)
}

pub(crate) fn reference_image_jpeg(tx: &Tx<'_>, task: RemoteTaskId) -> Result<Option<Vec<u8>>, StoreError> {
    let mut read = tx.0.prepare_cached("SELECT jpeg FROM reference_images WHERE task_id = ?1")?;
    Ok(read.query_row([task.to_string()], |row| row.get(0)).optional()?)
}
