//! What a device calls: heartbeat, claim, lifecycle, results.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use cmautobuy_protocol::device::{DeviceHeartbeat, DeviceHeartbeatAnswer};
use cmautobuy_protocol::lifecycle::{CancelAckRequest, ClaimRequest, ReleaseRequest, ResumeRequest, RunHeartbeat, Standing, StartRequest};
use cmautobuy_protocol::result::ResultAnswer;

use super::App;
use super::answer::Fault;
use super::extract::{Body, Buyer, Key, ResultBytes, TaskPath, Token};
use crate::work::heartbeat::Beat;
use crate::work::lifecycle::Asked;
use crate::work::{claim, heartbeat as beats, lifecycle, result};

type Answer<T> = Result<Json<T>, Fault>;

pub(crate) async fn heartbeat(State(house): App, Buyer(buyer): Buyer, Body(beat): Body<DeviceHeartbeat>) -> Answer<DeviceHeartbeatAnswer> {
    match house.blocking(move |house| house.write(|call| beats::beat(call, buyer, &beat))).await? {
        Beat::Taken(answer) => Ok(Json(answer)),
        Beat::InUse(refusal) => Err(refusal.into()),
    }
}

pub(crate) async fn claim_next(
    State(house): App,
    Buyer(buyer): Buyer,
    Token(token): Token,
    Key(key): Key,
    Body(body): Body<ClaimRequest>,
) -> Result<Response, Fault> {
    let work = move |house: &crate::house::House| house.write(|call| claim::claim_next(call, buyer, &body, &token, &key));
    Ok(match house.blocking(work).await? {
        Some(answer) => Json(answer).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// The calls that differ only in their body and in what they do.
macro_rules! lifecycle_call {
    ($($name:ident($body:ty);)+) => {$(
        pub(crate) async fn $name(
            State(house): App,
            Buyer(buyer): Buyer,
            TaskPath(task): TaskPath,
            Token(token): Token,
            Key(key): Key,
            Body(body): Body<$body>,
        ) -> Answer<Standing> {
            let work = move |house: &crate::house::House| {
                house.write(|call| lifecycle::$name(call, &Asked { buyer, task, token: &token, key: &key, body: &body }))
            };
            Ok(Json(house.blocking(work).await?))
        }
    )+};
}

lifecycle_call! {
    start(StartRequest);
    resume(ResumeRequest);
    release(ReleaseRequest);
    cancel_ack(CancelAckRequest);
}

pub(crate) async fn run_heartbeat(
    State(house): App,
    Buyer(buyer): Buyer,
    TaskPath(task): TaskPath,
    Token(token): Token,
    Body(body): Body<RunHeartbeat>,
) -> Answer<Standing> {
    let work = move |house: &crate::house::House| house.write(|call| lifecycle::run_heartbeat(call, buyer, task, &token, &body));
    Ok(Json(house.blocking(work).await?))
}

pub(crate) async fn results(
    State(house): App,
    Buyer(buyer): Buyer,
    TaskPath(task): TaskPath,
    Key(key): Key,
    ResultBytes(bytes): ResultBytes,
) -> Answer<ResultAnswer> {
    let work = move |house: &crate::house::House| house.write(|call| result::accept(call, buyer, task, &key, &bytes));
    Ok(Json(house.blocking(work).await?))
}
