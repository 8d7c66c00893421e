//! Reference images (T-205 §13): put, looked at, removed by an administrator while nobody holds the task.

use std::io::Cursor;

use cmautobuy_protocol::admin::ReferenceImage;
use cmautobuy_protocol::secret::sha256_hex;
use cmautobuy_protocol::{ErrorCode, RemoteTaskId, ServerStatus};
use image::{ImageFormat, ImageReader, Limits};
use serde_json::json;

use super::tasks::get;
use super::{Admin, decoding, no_such, noted};
use crate::house::Call;
use crate::refusal::{CallError, Refusal};
use crate::store::reference_image::{reference_image_about, reference_image_delete, reference_image_jpeg, reference_image_put};

/// Largest file, in bytes.
pub const MAX_IMAGE_BYTES: usize = 5 * 1024 * 1024;
/// Longest side, in pixels.
const MAX_SIDE: u32 = 10_000;
/// Most pixels.
const MAX_PIXELS: u64 = 40_000_000;

impl Admin<'_> {
    /// Puts or replaces the picture. It is decoded whole before it is kept, so what a client gets is a picture. Slow: call it where hashing is
    /// done.
    ///
    /// # Errors
    /// 422 `MALFORMED` for what is no JPEG or has too many pixels, 413 `TOO_LARGE`, 404, 409 `ILLEGAL_STATE` unless the task is PENDING.
    pub fn put_reference_image(&self, task: RemoteTaskId, jpeg: &[u8]) -> Result<ReferenceImage, CallError> {
        let (width, height) = decoding("picture", || checked_jpeg(jpeg))?;
        self.house.write(|call| {
            must_be_pending(call, task)?;
            let about = ReferenceImage {
                sha256: sha256_hex(jpeg),
                bytes: jpeg.len() as u64,
                width,
                height,
                uploaded_by: self.actor.to_string(),
                uploaded_at: call.now,
            };
            reference_image_put(call.tx, task, &about, jpeg)?;
            let detail = json!({"sha256": about.sha256, "bytes": about.bytes});
            noted(call, self.actor, "REFERENCE_IMAGE_SET", &format!("task:{task}"), Some(detail))?;
            Ok(about)
        })
    }

    /// # Errors
    /// 404 when there is no such task or picture, 409 `ILLEGAL_STATE` unless the task is PENDING.
    pub fn delete_reference_image(&self, task: RemoteTaskId) -> Result<(), CallError> {
        self.house.write(|call| {
            must_be_pending(call, task)?;
            if !reference_image_delete(call.tx, task)? {
                return Err(no_such("reference image").into());
            }
            noted(call, self.actor, "REFERENCE_IMAGE_REMOVED", &format!("task:{task}"), None)
        })
    }

    /// The bytes as they were put.
    ///
    /// # Errors
    /// 404 when there is no such task or picture.
    pub fn reference_image(&self, task: RemoteTaskId) -> Result<Vec<u8>, CallError> {
        self.house.read(|call| Ok(reference_image_jpeg(call.tx, task)?.ok_or_else(|| no_such("reference image"))?))
    }
}

pub(super) fn about(call: Call<'_>, task: RemoteTaskId) -> Result<Option<ReferenceImage>, CallError> {
    Ok(reference_image_about(call.tx, task)?)
}

/// Whoever claimed the task has been told what there is to see.
fn must_be_pending(call: Call<'_>, task: RemoteTaskId) -> Result<(), CallError> {
    let row = get(call, task)?;
    if row.status == ServerStatus::Pending {
        return Ok(());
    }
    let message = "the task is no longer PENDING, so its picture stays as it was claimed; cancel it and make a new one";
    Err(Refusal::new(ErrorCode::IllegalState, message).about(row.own()).into())
}

/// Width and height. By its bytes, not by a name or a header; the pixel count is known before any pixel is decoded.
fn checked_jpeg(jpeg: &[u8]) -> Result<(u32, u32), Refusal> {
    if jpeg.len() > MAX_IMAGE_BYTES {
        return Err(Refusal::new(
            ErrorCode::TooLarge,
            format!("the picture is larger than {} MiB; make it smaller", MAX_IMAGE_BYTES >> 20),
        ));
    }
    if image::guess_format(jpeg).ok() != Some(ImageFormat::Jpeg) {
        return Err(Refusal::malformed("the picture is no JPEG; save it as JPEG"));
    }
    let damaged = |error: image::ImageError| Refusal::malformed(format!("the JPEG cannot be decoded: {error}; save it anew"));
    let reader = || {
        let mut limits = Limits::default();
        (limits.max_image_width, limits.max_image_height) = (Some(MAX_SIDE), Some(MAX_SIDE));
        limits.max_alloc = Some(MAX_PIXELS * 4);
        let mut reader = ImageReader::with_format(Cursor::new(jpeg), ImageFormat::Jpeg);
        reader.limits(limits);
        reader
    };
    let (width, height) = reader().into_dimensions().map_err(damaged)?;
    if width > MAX_SIDE || height > MAX_SIDE || u64::from(width) * u64::from(height) > MAX_PIXELS {
        let most = MAX_PIXELS / 1_000_000;
        return Err(Refusal::malformed(format!(
            "the picture has {width} x {height} pixels; at most {MAX_SIDE} on a side and {most} million in all"
        )));
    }
    reader().decode().map_err(damaged)?;
    Ok((width, height))
}
