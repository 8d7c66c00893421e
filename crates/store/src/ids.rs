//! Local row numbers, each its own type. They mean nothing outside this database (03 §5.2 rule 1).

use std::fmt;

use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};

macro_rules! row_id {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { fmt::Display::fmt(&self.0, f) }
        }
        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> { self.0.to_sql() }
        }
        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> { i64::column_result(value).map(Self) }
        }
    )+};
}

row_id! {
    /// Row of `pdd_tasks`.
    LocalTaskId;
    /// Row of `task_runs`.
    RunId;
    /// Row of `outbox_events`.
    OutboxId;
    /// Row of `server_calls`.
    CallId;
    /// Row of `run_artifacts`.
    ArtifactId;
}
