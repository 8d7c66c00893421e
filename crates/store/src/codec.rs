//! The one place where states become text and text becomes states. Unknown text is an error, never a default.

use std::str::FromStr;

use cmautobuy_protocol::result::EventType;
use cmautobuy_protocol::{ExecutionMode, TaskType};
use cmautobuy_task::TaskState;
use rusqlite::Row;

use crate::StoreError;

/// A closed set of texts.
pub(crate) trait Text: Sized + Copy {
    fn text(self) -> &'static str;
    fn parse(text: &str) -> Option<Self>;
}

macro_rules! texts {
    ($($name:ty { $($variant:ident = $text:literal,)+ })+) => {$(
        impl Text for $name {
            fn text(self) -> &'static str { match self { $(Self::$variant => $text,)+ } }
            fn parse(text: &str) -> Option<Self> { match text { $($text => Some(Self::$variant),)+ _ => None } }
        }
    )+};
}

/// How a run stands (03 §4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RunStatus {
    Running,
    Succeeded,
    Failed,
    Cancelled,
    ManualReview,
}

/// How an outbox row stands (03 §5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OutboxStatus {
    Pending,
    Sending,
    Sent,
    /// The server refused it for good (D8).
    Failed,
}

/// How a claim attempt stands (D5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AttemptState {
    Prepared,
    Claimed,
    NoTask,
    Expired,
    Refused,
}

/// What is to become of a task once the server let it go.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReleaseAim {
    /// A person stopped it: `cancelled`.
    OperatorStopped,
    /// The phone was not there: `retry_wait`, and it comes back by a new claim (D2).
    PhoneUnreachable,
}

/// Which lifecycle call (D5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CallKind {
    Start,
    Resume,
    Release { aim: ReleaseAim },
    CancelAck,
}

/// How a lifecycle call stands (D5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CallState {
    Open,
    Done,
    Refused,
}

texts! {
    TaskState {
        Claimed = "claimed",
        Running = "running",
        ResultPending = "result_pending",
        RetryWait = "retry_wait",
        ManualReview = "manual_review",
        Succeeded = "succeeded",
        Failed = "failed",
        Cancelled = "cancelled",
    }
    RunStatus {
        Running = "running",
        Succeeded = "succeeded",
        Failed = "failed",
        Cancelled = "cancelled",
        ManualReview = "manual_review",
    }
    OutboxStatus {
        Pending = "pending",
        Sending = "sending",
        Sent = "sent",
        Failed = "failed",
    }
    AttemptState {
        Prepared = "prepared",
        Claimed = "claimed",
        NoTask = "no_task",
        Expired = "expired",
        Refused = "refused",
    }
    ReleaseAim {
        OperatorStopped = "operator_stopped",
        PhoneUnreachable = "phone_unreachable",
    }
    CallState {
        Open = "open",
        Done = "done",
        Refused = "refused",
    }
}

/// `protocol` owns these texts; the database uses the same ones.
macro_rules! wire_texts {
    ($($name:ty),+) => {$(
        impl Text for $name {
            fn text(self) -> &'static str { self.as_str() }
            fn parse(text: &str) -> Option<Self> { <$name>::parse(text) }
        }
    )+};
}
wire_texts!(TaskType, ExecutionMode, EventType);

impl CallKind {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Resume => "resume",
            Self::Release { .. } => "release",
            Self::CancelAck => "cancel_ack",
        }
    }

    pub(crate) fn aim(self) -> Option<ReleaseAim> {
        match self {
            Self::Release { aim } => Some(aim),
            Self::Start | Self::Resume | Self::CancelAck => None,
        }
    }

    /// The pair of columns back to one value; a half-set pair is an error (architecture rule 2).
    pub(crate) fn parse(kind: &str, aim: Option<ReleaseAim>) -> Result<Self, StoreError> {
        match (kind, aim) {
            ("start", None) => Ok(Self::Start),
            ("resume", None) => Ok(Self::Resume),
            ("release", Some(aim)) => Ok(Self::Release { aim }),
            ("cancel_ack", None) => Ok(Self::CancelAck),
            (other, _) => Err(StoreError::UnknownText { column: "server_calls.kind", text: other.to_owned() }),
        }
    }
}

/// Reads a column that holds one of a closed set of texts.
pub(crate) fn text<T: Text>(row: &Row<'_>, column: &'static str) -> Result<T, StoreError> {
    let text: String = row.get(column)?;
    T::parse(&text).ok_or(StoreError::UnknownText { column, text })
}

pub(crate) fn text_opt<T: Text>(row: &Row<'_>, column: &'static str) -> Result<Option<T>, StoreError> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| T::parse(&text).ok_or(StoreError::UnknownText { column, text })).transpose()
}

/// Reads an id or a time.
pub(crate) fn parsed<T>(row: &Row<'_>, column: &'static str) -> Result<T, StoreError>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    let text: String = row.get(column)?;
    parse(column, &text)
}

pub(crate) fn parsed_opt<T>(row: &Row<'_>, column: &'static str) -> Result<Option<T>, StoreError>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    let text: Option<String> = row.get(column)?;
    text.map(|text| parse(column, &text)).transpose()
}

fn parse<T>(column: &'static str, text: &str) -> Result<T, StoreError>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|e: T::Err| StoreError::BadValue { column, detail: e.to_string() })
}

/// Reads a count or an amount.
pub(crate) fn number<T: TryFrom<i64>>(row: &Row<'_>, column: &'static str) -> Result<T, StoreError> {
    let n: i64 = row.get(column)?;
    T::try_from(n).map_err(|_| StoreError::BadValue { column, detail: n.to_string() })
}

pub(crate) fn number_opt<T: TryFrom<i64>>(row: &Row<'_>, column: &'static str) -> Result<Option<T>, StoreError> {
    let n: Option<i64> = row.get(column)?;
    n.map(|n| T::try_from(n).map_err(|_| StoreError::BadValue { column, detail: n.to_string() })).transpose()
}

/// For columns SQLite keeps as a signed 64-bit number. Beyond its end the value is held at the end: an answer must be storable whatever
/// it says (D5.4), and no real version or amount comes near.
pub(crate) fn held(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Text + PartialEq + std::fmt::Debug>(all: &[T]) {
        for one in all {
            assert_eq!(T::parse(one.text()), Some(*one), "what is written must be read back as the same state");
        }
        for wrong in ["", "pending ", "CLAIMED", "unknown"] {
            assert_eq!(T::parse(wrong), None, "`{wrong}` is not a text of this column and must never become a default");
        }
    }

    #[test]
    fn every_text_is_read_back() {
        round_trip(&TaskState::ALL);
        round_trip(&[RunStatus::Running, RunStatus::Succeeded, RunStatus::Failed, RunStatus::Cancelled, RunStatus::ManualReview]);
        round_trip(&[OutboxStatus::Pending, OutboxStatus::Sending, OutboxStatus::Sent, OutboxStatus::Failed]);
        round_trip(&[AttemptState::Prepared, AttemptState::Claimed, AttemptState::NoTask, AttemptState::Expired, AttemptState::Refused]);
        round_trip(&[ReleaseAim::OperatorStopped, ReleaseAim::PhoneUnreachable]);
        round_trip(&[CallState::Open, CallState::Done, CallState::Refused]);
        round_trip(TaskType::ALL);
        round_trip(ExecutionMode::ALL);
        round_trip(EventType::ALL);
    }

    #[test]
    fn a_call_kind_is_two_columns_or_none() {
        let all = [
            CallKind::Start,
            CallKind::Resume,
            CallKind::Release { aim: ReleaseAim::OperatorStopped },
            CallKind::Release { aim: ReleaseAim::PhoneUnreachable },
            CallKind::CancelAck,
        ];
        for kind in all {
            assert_eq!(CallKind::parse(kind.text(), kind.aim()).expect("own text"), kind, "a kind must survive its two columns");
        }
        for (kind, aim) in [("release", None), ("start", Some(ReleaseAim::OperatorStopped)), ("stop", None)] {
            assert!(CallKind::parse(kind, aim).is_err(), "{kind} with {aim:?} is half set and must be refused");
        }
    }
}
