//! A store in a temporary folder and short ways to bring a task where a test needs it.

use std::path::PathBuf;
use std::time::Duration;

use cmautobuy_protocol::lifecycle::{ClaimAnswer, Standing};
use cmautobuy_protocol::pdd_data::PddData;
use cmautobuy_protocol::result::ResultAnswer;
use cmautobuy_protocol::{AttemptId, ClaimToken, DeviceId, ExecutionId, IdempotencyKey, RemoteTaskId, ServerStatus, UserId, WireTime};
use cmautobuy_store::{
    CallKind, ClaimStored, Ending, FreshClaim, LocalTaskId, NewCall, OpenClaim, PhoneRef, PrepareOutcome, RunId, SealKey, Settle, Settled,
    Store, StoreError, TaskRow, Tx,
};
use cmautobuy_task::{Event, TaskState};
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

pub(crate) const LONGEST: Duration = Duration::from_secs(300);
pub(crate) const KEY: [u8; 32] = [42; 32];

pub(crate) struct Bench {
    pub(crate) dir: TempDir,
    pub(crate) store: Store,
}

/// `seconds` after a fixed moment.
pub(crate) fn at(seconds: i64) -> WireTime {
    WireTime::from_unix_ms(1_760_000_000_000 + seconds * 1000).expect("test time")
}
fn uuid(kind: u128, n: u128) -> Uuid {
    Uuid::from_u128((kind << 64) | n)
}
pub(crate) fn remote(n: u128) -> RemoteTaskId {
    RemoteTaskId::from_uuid(uuid(1, n))
}
pub(crate) fn attempt(n: u128) -> AttemptId {
    AttemptId::from_uuid(uuid(2, n))
}
pub(crate) fn execution(n: u128) -> ExecutionId {
    ExecutionId::from_uuid(uuid(3, n))
}
pub(crate) fn user(n: u128) -> UserId {
    UserId::from_uuid(uuid(4, n))
}
pub(crate) fn device(n: u128) -> DeviceId {
    DeviceId::from_uuid(uuid(5, n))
}
pub(crate) fn key(n: u128) -> IdempotencyKey {
    IdempotencyKey::from_uuid(uuid(6, n))
}
pub(crate) fn token(n: u128) -> ClaimToken {
    format!("{n:_>42}A").parse().expect("43 characters of base64url")
}
pub(crate) fn fresh(n: u128) -> FreshClaim {
    FreshClaim { key: key(n), token: token(n) }
}
pub(crate) fn phone() -> PhoneRef {
    PhoneRef { device_address: "127.0.0.1:5555".to_owned(), phone_serial: Some("SIM-1".to_owned()) }
}
pub(crate) fn accepted() -> ResultAnswer {
    ResultAnswer { accepted: true, duplicate: false, late: false, task_status: ServerStatus::Succeeded }
}

pub(crate) fn standing(task: RemoteTaskId, generation: u64, execution: Option<ExecutionId>) -> Standing {
    Standing {
        task_id: task,
        status: if execution.is_some() { ServerStatus::Running } else { ServerStatus::Claimed },
        version: 3,
        claim_generation: generation,
        execution_id: execution,
        server_time: at(0),
        lease_expires_at: Some(at(600)),
        cancel_requested: false,
    }
}

pub(crate) fn collect_json() -> Value {
    json!({"task_type": "collect", "execution_mode": "dry_run", "goods_url": "https://mobile.yangkeduo.com/goods.html?goods_id=737116531267",
           "title": "given title", "priority": 0})
}
pub(crate) fn purchase_json() -> Value {
    json!({"task_type": "purchase", "execution_mode": "live", "goods_url": "https://mobile.yangkeduo.com/goods.html?goods_id=737116531267",
           "quantity": 2, "price_cent": 3990, "max_price_cent": 4200, "external_ref": "PO-1"})
}

pub(crate) fn pdd_data() -> PddData {
    serde_json::from_value(json!({
        "schema_version": 1,
        "goods": {"goods_id": "737116531267", "url": "https://mobile.yangkeduo.com/goods.html?goods_id=737116531267", "title": "seen title"},
        "shop": {"name": "shop"},
        "metrics": {"sales": {"value": 12000, "raw": "1.2万+", "approximate": true}, "reviews": null},
        "dimensions": [{"key": "color", "name": "颜色", "values": [{"text": "黑", "available": true}, {"text": "白", "available": true}]}],
        "skus": [
            {"options": {"color": "黑"}, "price_cent": 3990, "list_price_cent": 3990, "price_observed_at": {"color": "黑"},
             "currency": "CNY", "available": true, "raw_price": "¥39.90"},
            {"options": {"color": "白"}, "price_cent": 3590, "list_price_cent": 3590, "price_observed_at": {"color": "白"},
             "currency": "CNY", "available": true, "raw_price": "¥35.90"}
        ],
        "price_granularity": "color",
        "purchase": null,
        "captured_at": "2026-08-06T08:00:00.000Z",
        "source": {"client_id": "c", "device_address": "127.0.0.1:5555", "pdd_package": "com.xunmeng.pinduoduo"},
        "artifacts": [],
        "future_field": {"kept": true}
    }))
    .expect("a valid document")
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(&dir.path().join("client.db"), SealKey::from_bytes(KEY)).expect("a fresh store opens");
        Self { dir, store }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("client.db")
    }

    /// A connection of the test's own, to look at or to spoil what the store wrote.
    pub(crate) fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).expect("the file is a database")
    }

    /// Runs a write that must succeed.
    pub(crate) async fn write<T: Send + 'static>(&self, f: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static) -> T {
        self.store.write(f).await.expect("this write is part of the set-up and must succeed")
    }

    pub(crate) async fn prepare(&self, n: u128) -> OpenClaim {
        match self.write(move |tx| tx.claim_prepare(fresh(n), user(1), device(1), at(0))).await {
            PrepareOutcome::Open(open) => open,
            other @ (PrepareOutcome::LocalTaskNeedsPhone(_) | PrepareOutcome::OtherOwner { .. }) => panic!("claiming is free: {other:?}"),
        }
    }

    /// Claims task `n` with `task` as its data, generation 1.
    pub(crate) async fn claim_json(&self, n: u128, task: Value) -> ClaimStored {
        let open = self.prepare(n).await;
        let answer = ClaimAnswer { standing: standing(remote(n), 1, None), task };
        self.write(move |tx| tx.claim_store(&open.key, &answer, &answer.task.to_string(), attempt(1000 + n), at(0))).await
    }

    pub(crate) async fn claimed(&self, n: u128) -> LocalTaskId {
        self.claim_json(n, collect_json()).await.task
    }

    /// A claimed task whose start was answered: attempt `n * 10 + no`.
    pub(crate) async fn start(&self, task: LocalTaskId, n: u128) -> RunId {
        self.write(move |tx| {
            let row = tx.task_get(task)?.expect("the task exists");
            let no = tx.attempt_no_next(task)?;
            let kind = if row.claim.execution_id.is_some() { CallKind::Resume } else { CallKind::Start };
            let call = tx.call_open(
                &NewCall {
                    task,
                    kind,
                    key: key(7000 + n * 10 + u128::from(no)),
                    body_json: "{}".to_owned(),
                    attempt: Some((attempt(n * 10 + u128::from(no)), no)),
                },
                at(1),
            )?;
            let standing = standing(row.remote_task_id, row.claim.generation, Some(execution(n)));
            Ok(tx.call_answered_start(call, &standing, &phone(), at(1))?.run)
        })
        .await
    }

    pub(crate) async fn running(&self, n: u128) -> (LocalTaskId, RunId) {
        let task = self.claimed(n).await;
        (task, self.start(task, n).await)
    }

    pub(crate) async fn running_purchase(&self, n: u128) -> (LocalTaskId, RunId) {
        let task = self.claim_json(n, purchase_json()).await.task;
        (task, self.start(task, n).await)
    }

    /// Sets the irreversible mark, which no public function of this version does yet.
    pub(crate) fn mark(&self, run: RunId) {
        let marked = self
            .raw()
            .execute("UPDATE task_runs SET irreversible_action_at = ?2 WHERE id = ?1", rusqlite::params![run.0, at(2).to_string()]);
        assert_eq!(marked.expect("the run can be marked"), 1, "the run exists");
    }

    pub(crate) async fn collected(&self, run: RunId, seconds: i64) -> Settled {
        self.write(move |tx| tx.save_result_and_enqueue(&Settle { run, ending: Ending::Collected(Box::new(pdd_data())) }, at(seconds)))
            .await
    }

    pub(crate) async fn failed(&self, run: RunId, event: Event, seconds: i64) -> Settled {
        let ending = Ending::Failure { event, code: "CODE".to_owned(), message: "message".to_owned() };
        self.write(move |tx| tx.save_result_and_enqueue(&Settle { run, ending }, at(seconds))).await
    }

    /// Sends the event and has the server accept it.
    pub(crate) async fn deliver(&self, settled: &Settled, seconds: i64) -> cmautobuy_store::OutboxMoved {
        let (id, _) = settled.outbox.clone().expect("this ending is reported");
        self.write(move |tx| {
            tx.outbox_sending(id, at(seconds))?;
            tx.outbox_accepted(id, &accepted(), at(seconds))
        })
        .await
    }

    pub(crate) async fn task(&self, id: LocalTaskId) -> TaskRow {
        self.store.read(move |r| r.task_get(id)).await.expect("readable").expect("the task exists")
    }

    pub(crate) async fn state(&self, id: LocalTaskId) -> TaskState {
        self.task(id).await.state
    }

    /// Every row of every table as text, to compare before and after.
    pub(crate) fn dump(&self) -> String {
        dump(&self.raw())
    }
}

pub(crate) fn dump(conn: &rusqlite::Connection) -> String {
    let tables: Vec<String> = conn
        .prepare(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'fault%' ORDER BY name",
        )
        .expect("master")
        .query_map([], |row| row.get(0))
        .expect("rows")
        .collect::<Result<_, _>>()
        .expect("names");
    let mut out = String::new();
    for table in tables {
        let mut statement = conn.prepare(&format!("SELECT * FROM {table}")).expect("a table of the schema");
        let columns = statement.column_count();
        let mut rows = statement.query([]).expect("readable");
        while let Some(row) = rows.next().expect("a row") {
            let values: Vec<String> = (0..columns).map(|i| show(row.get_ref(i).expect("a column"))).collect();
            out.push_str(&format!("{table}: {}\n", values.join(" | ")));
        }
    }
    out
}

fn show(value: rusqlite::types::ValueRef<'_>) -> String {
    match value {
        rusqlite::types::ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{other:?}"),
    }
}
