//! The reference image as the device that holds the task sees it: authorised anew on every read, by claim and lease (T-205 §13).

use cmautobuy_protocol::{API_BASE, ClaimToken, ErrorCode, RemoteTaskId, ServerStatus};

use super::{Proof, own_task};
use crate::auth::Buyer;
use crate::house::Call;
use crate::refusal::{CallError, Refusal};
use crate::store::reference_image::reference_image_jpeg;

/// What a claim's answer says of it: good for this claim only, and says nothing of where the bytes are.
pub(crate) fn path(task: RemoteTaskId, generation: u64) -> String {
    format!("{API_BASE}/tasks/{task}/reference-image?claim_generation={generation}")
}

/// # Errors
/// As of every call about one's own task; `ILLEGAL_STATE` once it has ended, `LEASE_EXPIRED`, 404 when there is no picture.
pub(crate) fn read(call: Call<'_>, buyer: Buyer, task: RemoteTaskId, token: &ClaimToken, generation: u64) -> Result<Vec<u8>, CallError> {
    let row = own_task(call, buyer, task, &Proof { generation, token_sha256: token.sha256_hex() })?;
    match row.status {
        ServerStatus::Claimed | ServerStatus::Running | ServerStatus::WaitingConfirmation => {}
        ServerStatus::Pending | ServerStatus::Succeeded | ServerStatus::Failed | ServerStatus::Canceled => {
            let message = "the task has ended, so its picture is no longer shown";
            return Err(Refusal::new(ErrorCode::IllegalState, message).about(row.own()).into());
        }
    }
    if !row.lease_lives(call.now) {
        let message = "the lease of this task ran out; renew it or resume first";
        return Err(Refusal::new(ErrorCode::LeaseExpired, message).about(row.own()).into());
    }
    let jpeg = reference_image_jpeg(call.tx, task)?;
    Ok(jpeg.ok_or_else(|| Refusal::new(ErrorCode::NotFound, "this task has no reference image"))?)
}
