//! What a device calls: heartbeat, claim, lifecycle, results.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use cmautobuy_protocol::device::{DeviceHeartbeat, DeviceHeartbeatAnswer};
use cmautobuy_protocol::lifecycle::{
    CancelAckRequest, ClaimAnswer, ClaimRequest, ReleaseRequest, ResumeRequest, RunHeartbeat, Standing, StartRequest,
};
use cmautobuy_protocol::result::{ResultAnswer, ResultBody};
use cmautobuy_protocol::{ClaimToken, IdempotencyKey, MAX_RESULT_BYTES, RemoteTaskId};
use serde::Deserialize;

use super::App;
use super::answer::{Fault, Jpeg};
use super::extract::{Ask, Body, Buyer, Bytes, Key, TaskPath, Token};
use crate::house::Call;
use crate::work::heartbeat::Beat;
use crate::work::lifecycle::Asked;
use crate::work::{claim, heartbeat as beats, image, lifecycle, result};

type Answer<T> = Result<Json<T>, Fault>;

/// Says that the device lives and whether it is ready (T-205 §4, D19).
#[utoipa::path(post, path = "/devices/heartbeat", tag = "device", request_body = DeviceHeartbeat, responses((status = 200, body = DeviceHeartbeatAnswer)))]
pub(crate) async fn heartbeat(State(house): App, Buyer(buyer): Buyer, Body(beat): Body<DeviceHeartbeat>) -> Answer<DeviceHeartbeatAnswer> {
    match house.commit(move |call| beats::beat(call, buyer, &beat)).await? {
        Beat::Taken(answer) => Ok(Json(answer)),
        Beat::InUse(refusal) => Err(refusal.into()),
    }
}

/// The next task for this device, or 204; a repeated key gets the same answer (T-205 §3, §5).
#[utoipa::path(post, path = "/tasks/claim-next", tag = "device", request_body = ClaimRequest,
    params(("X-Claim-Token" = ClaimToken, Header, description = "43 characters of unpadded base64url the client made (T-205 §2)."), ("Idempotency-Key" = IdempotencyKey, Header, description = "Repeating the call with the same key does it once.")),
    responses((status = 200, body = ClaimAnswer), (status = 204, description = "there is no task")))]
pub(crate) async fn claim_next(
    State(house): App,
    Buyer(buyer): Buyer,
    Token(token): Token,
    Key(key): Key,
    Body(body): Body<ClaimRequest>,
) -> Result<Response, Fault> {
    Ok(match house.commit(move |call| claim::claim_next(call, buyer, &body, &token, &key)).await? {
        Some(answer) => Json(answer).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// The calls that differ only in their body and in what they do.
macro_rules! lifecycle_call {
    ($($(#[$doc:meta])* $name:ident($body:ident) at $path:tt;)+) => {$(
        $(#[$doc])*
        #[utoipa::path(post, path = $path, tag = "device", request_body = $body,
            params(
                ("id" = RemoteTaskId, Path),
                ("X-Claim-Token" = ClaimToken, Header, description = "43 characters of unpadded base64url the client made (T-205 §2)."),
                ("Idempotency-Key" = IdempotencyKey, Header, description = "Repeating the call with the same key does it once."),
            ),
            responses((status = 200, body = Standing)))]
        pub(crate) async fn $name(
            State(house): App,
            Buyer(buyer): Buyer,
            TaskPath(task): TaskPath,
            Token(token): Token,
            Key(key): Key,
            Body(body): Body<$body>,
        ) -> Answer<Standing> {
            let work = move |call: Call<'_>| lifecycle::$name(call, &Asked { buyer, task, token: &token, key: &key, body: &body });
            Ok(Json(house.commit(work).await?))
        }
    )+};
}

lifecycle_call! {
    /// `CLAIMED` to `RUNNING`, with one execution (T-205 §7).
    start(StartRequest) at "/tasks/{id}/start";
    /// Goes on with the same execution under a fresh lease (D4).
    resume(ResumeRequest) at "/tasks/{id}/resume";
    /// Gives an unstarted task back (T-205 §9).
    release(ReleaseRequest) at "/tasks/{id}/release";
    /// The device has stopped at a safe point (T-205 §10, D4).
    cancel_ack(CancelAckRequest) at "/tasks/{id}/cancel-ack";
}

/// Renews a live run lease and notes the step (T-205 §8).
#[utoipa::path(post, path = "/tasks/{id}/heartbeat", tag = "device", request_body = RunHeartbeat,
    params(("id" = RemoteTaskId, Path), ("X-Claim-Token" = ClaimToken, Header, description = "43 characters of unpadded base64url the client made (T-205 §2).")),
    responses((status = 200, body = Standing)))]
pub(crate) async fn run_heartbeat(
    State(house): App,
    Buyer(buyer): Buyer,
    TaskPath(task): TaskPath,
    Token(token): Token,
    Body(body): Body<RunHeartbeat>,
) -> Answer<Standing> {
    Ok(Json(house.commit(move |call| lifecycle::run_heartbeat(call, buyer, task, &token, &body)).await?))
}

/// A result, accepted by identity whatever the lease (D3, D8).
#[utoipa::path(post, path = "/tasks/{id}/results", tag = "device", request_body = ResultBody,
    params(("id" = RemoteTaskId, Path), ("Idempotency-Key" = IdempotencyKey, Header, description = "Repeating the call with the same key does it once.")),
    responses((status = 200, body = ResultAnswer)))]
pub(crate) async fn results(
    State(house): App,
    Buyer(buyer): Buyer,
    TaskPath(task): TaskPath,
    Key(key): Key,
    Bytes(bytes): Bytes<MAX_RESULT_BYTES>,
) -> Answer<ResultAnswer> {
    Ok(Json(house.commit(move |call| result::accept(call, buyer, task, &key, &bytes)).await?))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct OfClaim {
    /// Of the claim the token belongs to.
    claim_generation: u64,
}

/// The picture of a claimed task, while the claim and its lease live; the claim's answer says where (T-205 §13).
#[utoipa::path(get, path = "/tasks/{id}/reference-image", tag = "device",
    params(("id" = RemoteTaskId, Path), OfClaim, ("X-Claim-Token" = ClaimToken, Header, description = "43 characters of unpadded base64url the client made (T-205 §2).")),
    responses((status = 200, body = Vec<u8>, content_type = "image/jpeg")))]
pub(crate) async fn reference_image(
    State(house): App,
    Buyer(buyer): Buyer,
    TaskPath(task): TaskPath,
    Token(token): Token,
    Ask(of): Ask<OfClaim>,
) -> Result<Jpeg, Fault> {
    let work = move |house: &crate::house::House| house.read(|call| image::read(call, buyer, task, &token, of.claim_generation));
    Ok(Jpeg(house.blocking(work).await?))
}
