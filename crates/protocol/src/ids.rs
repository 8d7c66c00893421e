//! Every id is its own type, so that a task id can never be passed where an execution id is meant.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! uuid_id {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID the caller made (UUIDv7 for new ids: this crate has no clock).
            pub const fn from_uuid(uuid: Uuid) -> Self { Self(uuid) }
            pub const fn uuid(self) -> Uuid { self.0 }
            /// The last eight hex digits: what people read out to each other.
            pub fn short(self) -> String {
                let text = self.0.simple().to_string();
                text[text.len() - 8..].to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { fmt::Display::fmt(&self.0, f) }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, concat!(stringify!($name), "({})"), self.0) }
        }
        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> { Uuid::parse_str(text).map(Self) }
        }
    )+};
}

uuid_id! {
    /// The stable task number shared by server, client, logs and archive (03 §3 `remote_task_id`).
    RemoteTaskId;
    /// One installation (D19); made at first start, never typed.
    DeviceId;
    UserId;
    /// One server-side execution (T-205 §7); may hold several attempts (D5).
    ExecutionId;
    /// One client-side run (03 §4 `attempt_id`); part of a result's idempotency key (D8).
    AttemptId;
    /// One process of an installation, to tell two live copies apart (D19).
    InstanceId;
    /// The server database a client store is bound to (D7).
    ServerId;
    /// One request, repeated in its answer and in both logs (D13).
    RequestId;
    /// One row of a task's event list.
    EventId;
}

/// A UUIDv7 for a moment the caller's clock gave; its random bits come from the operating system.
pub fn uuid_at(now: crate::WireTime) -> Uuid {
    let ms = u64::try_from(now.unix_ms()).unwrap_or(0);
    Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, ms / 1000, u32::try_from(ms % 1000).unwrap_or(0) * 1_000_000))
}

/// The key under which a call may be repeated without being done twice.
///
/// UUIDv7 text for lifecycle calls (D5), `<task>:<attempt>:result-v1|failure-v1` for results (D8).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    pub const MAX_LEN: usize = 200;

    /// A key for a lifecycle call, from a UUIDv7 the caller made.
    pub fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid.to_string())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The moment inside a UUIDv7 key in Unix milliseconds; `None` for any other key (D5: claim keys older than 30 days are refused).
    pub fn unix_ms(&self) -> Option<u64> {
        let uuid = Uuid::parse_str(&self.0).ok()?;
        let (seconds, nanos) = uuid.get_timestamp().filter(|_| uuid.get_version_num() == 7)?.to_unix();
        Some(seconds * 1000 + u64::from(nanos) / 1_000_000)
    }
}

/// Why a text is not an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("idempotency key must be 1 to {} visible ASCII characters", IdempotencyKey::MAX_LEN)]
pub struct BadIdempotencyKey;

impl FromStr for IdempotencyKey {
    type Err = BadIdempotencyKey;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = (1..=Self::MAX_LEN).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        fits.then(|| Self(text.to_owned())).ok_or(BadIdempotencyKey)
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
