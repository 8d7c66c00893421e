//! Holds the wire to the JSON in `golden/` (D13). The client and the server are updated at different times, so every message is checked
//! four ways: a sample writes exactly the golden text, the golden text reads back as the sample, a newer writer's extra fields are
//! tolerated, and `pdd_data` keeps them (03 §9).
//!
//! A failing test means the wire changed. Adding an optional field: run with `UPDATE_GOLDEN=1` and review the diff. Anything else breaks
//! a deployed client or server and needs a new message or a new `schema_version`.

mod samples;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;
use std::path::PathBuf;

use cmautobuy_protocol::account::{
    AuditEntry, AuditPage, ChangeDevice, ChangeUser, Device, DevicePage, DeviceSeen, Me, Permission, SetPassword, User, UserKind, UserPage,
    WarehouseGrant,
};
use cmautobuy_protocol::admin::{
    AuthorizeDevice, CreateTask, CreateUser, ImportReport, ImportRow, ReferenceImage, RowOutcome, TaskDetail, TaskEvent, TaskExecution,
    TaskPage, TaskResult, TaskSummary, UserCreated,
};
use cmautobuy_protocol::auth::{LoginRequest, RefreshRequest, Role, Session};
use cmautobuy_protocol::device::{DeviceHeartbeat, DeviceHeartbeatAnswer, NotReady};
use cmautobuy_protocol::lifecycle::{
    CancelAckRequest, ClaimAnswer, ClaimRequest, ClaimedTask, ReleaseRequest, ResumeReason, ResumeRequest, RunHeartbeat, Standing,
    StartRequest,
};
use cmautobuy_protocol::pdd_data::{Confirmed, PddData, PriceGranularity, Purchase, Requested};
use cmautobuy_protocol::result::{Disposition, EventType, Failure, ResultAnswer, ResultBody};
use cmautobuy_protocol::{
    AccessToken, ErrorBody, ErrorCode, ErrorDetail, ExecutionMode, OwnTask, Password, RefreshToken, RemoteTaskId, ServerStatus, TaskType,
};
use samples::{at, collected, options, p, towel};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

const NEW_FIELD: &str = "written_by_a_newer_version";
/// Objects whose keys are data, not fields.
const MAPS: [&str; 2] = ["options", "price_observed_at"];

fn golden_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn golden_text(name: &str, written: &str) -> String {
    let path = golden_dir().join(format!("{name}.json"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, written).expect("the golden folder is writable");
    }
    let text = fs::read_to_string(&path).unwrap_or_else(|fault| panic!("{}: {fault}; run with UPDATE_GOLDEN=1", path.display()));
    // A Windows checkout may have CRLF.
    text.replace("\r\n", "\n")
}

/// Adds [`NEW_FIELD`] to every object that is a message or a part of one.
fn extend(value: &mut Value, key: &str) {
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields.iter_mut() {
                extend(inner, key);
            }
            if !MAPS.contains(&key) {
                fields.insert(NEW_FIELD.to_owned(), json!({ "depth": [1, 2] }));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| extend(item, key)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.shift_remove(NEW_FIELD);
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(name: &str, sample: &T) {
    let written = serde_json::to_string_pretty(sample).expect("a message serialises") + "\n";
    let golden = golden_text(name, &written);
    assert_eq!(written, golden, "{name}: what this build writes is not what the other end was promised");

    let read: T = serde_json::from_str(&golden).expect("a golden message is readable");
    assert_eq!(&read, sample, "{name}: the golden text must read back as the same message");

    let plain: Value = serde_json::from_str(&golden).expect("golden text is JSON");
    let mut extended = plain.clone();
    extend(&mut extended, "");
    let tolerant: T = serde_json::from_value(extended)
        .unwrap_or_else(|fault| panic!("{name}: an old reader must tolerate a newer writer's fields, but: {fault}"));
    let mut again = serde_json::to_value(&tolerant).expect("a message serialises");
    strip(&mut again);
    assert_eq!(again, plain, "{name}: extra fields must not disturb the known ones");
}

macro_rules! goldens {
    ($($name:ident: $sample:expr;)+) => {
        $(#[test] fn $name() { check(stringify!($name), &$sample); })+
        const GOLDENS: &[&str] = &[$(stringify!($name),)+ "vocabulary"];
    };
}

goldens! {
    // auth
    login_request: LoginRequest {
        user_name: "buyer-1".to_owned(),
        password: Password::new("correct horse"),
        device_id: Some(p("018f3c2a-0000-7000-8000-00000000d001")),
    };
    login_request_admin: LoginRequest { user_name: "admin".to_owned(), password: Password::new("correct horse"), device_id: None };
    session: Session {
        access_token: AccessToken::new("access-token-sample"),
        access_expires_at: at("09:00:00.000"),
        refresh_token: RefreshToken::new("refresh-token-sample"),
        user_id: p("018f3c2a-0000-7000-8000-00000000b001"),
        user_name: "buyer-1".to_owned(),
        roles: vec![Role::Buyer, Role::Reviewer],
        kind: UserKind::Platform,
        permissions: vec![Permission::AnalyticsList],
        server_id: p("018f3c2a-0000-7000-8000-00000000c001"),
        server_time: at("08:00:00.001"),
    };
    refresh_request: RefreshRequest { refresh_token: RefreshToken::new("refresh-token-sample") };

    // device
    device_heartbeat: DeviceHeartbeat {
        device_id: p("018f3c2a-0000-7000-8000-00000000d001"),
        instance_id: p("018f3c2a-0000-7000-8000-00000000d101"),
        predecessors: vec![p("018f3c2a-0000-7000-8000-00000000d102")],
        phone_serial: Some("127.0.0.1:15555".to_owned()),
        app_version: "0.1.0".to_owned(),
        android_version: Some("14".to_owned()),
        pdd_version: Some("7.40.0".to_owned()),
        accessibility_connected: true,
        pdd_installed: true,
        active_task_id: Some(task_id()),
        client_time: at("08:00:00.000"),
    };
    device_heartbeat_no_phone: DeviceHeartbeat {
        device_id: p("018f3c2a-0000-7000-8000-00000000d001"),
        instance_id: p("018f3c2a-0000-7000-8000-00000000d101"),
        predecessors: Vec::new(),
        phone_serial: None,
        app_version: "0.1.0".to_owned(),
        android_version: None,
        pdd_version: None,
        accessibility_connected: false,
        pdd_installed: false,
        active_task_id: None,
        client_time: at("08:00:00.000"),
    };
    device_heartbeat_answer: DeviceHeartbeatAnswer {
        server_time: at("08:00:00.020"),
        not_ready: vec![NotReady::AccessibilityOff, NotReady::PddMissing],
        active_task_id: Some(task_id()),
        cancel_requested_tasks: vec![task_id()],
        ttl_ms: 90_000,
    };

    // claim and lifecycle
    claim_request: ClaimRequest { device_id: p("018f3c2a-0000-7000-8000-00000000d001") };
    claimed_task_collect: claimed_collect();
    claimed_task_purchase: ClaimedTask {
        task_type: TaskType::Purchase,
        execution_mode: ExecutionMode::DryRun,
        target_color: Some("雾蓝".to_owned()),
        target_size: Some("70x140cm".to_owned()),
        price_cent: Some(3990),
        max_price_cent: Some(4200),
        quantity: Some(2),
        priority: 10,
        external_ref: Some("PO-2026-000123".to_owned()),
        reference_image: Some("/api/v1/tasks/018f3c2a-0000-7000-8000-0000000000a1/reference-image?claim_generation=3".to_owned()),
        ..claimed_collect()
    };
    claim_answer: ClaimAnswer {
        standing: standing(ServerStatus::Claimed, 4),
        task: serde_json::to_value(claimed_collect()).expect("a claimed task serialises"),
    };
    start_request: StartRequest {
        claim_generation: 3,
        expected_version: 4,
        attempt_id: p("018f3c2a-0000-7000-8000-0000000000f1"),
        attempt_no: 1,
    };
    standing_running: Standing {
        execution_id: Some(p("018f3c2a-0000-7000-8000-0000000000e1")),
        lease_expires_at: Some(at("08:01:30.000")),
        ..standing(ServerStatus::Running, 5)
    };
    standing_released: Standing { lease_expires_at: None, ..standing(ServerStatus::Pending, 6) };
    standing_cancel_requested: Standing {
        execution_id: Some(p("018f3c2a-0000-7000-8000-0000000000e1")),
        cancel_requested: true,
        ..standing(ServerStatus::Running, 7)
    };
    run_heartbeat: RunHeartbeat {
        claim_generation: 3,
        execution_id: p("018f3c2a-0000-7000-8000-0000000000e1"),
        step: "collect_skus".to_owned(),
    };
    resume_request: ResumeRequest {
        claim_generation: 3,
        execution_id: p("018f3c2a-0000-7000-8000-0000000000e1"),
        reason: ResumeReason::LeaseLost,
        attempt_id: p("018f3c2a-0000-7000-8000-0000000000f2"),
        attempt_no: 2,
    };
    release_request: ReleaseRequest { claim_generation: 3, expected_version: 4 };
    cancel_ack_request: CancelAckRequest {
        claim_generation: 3,
        execution_id: p("018f3c2a-0000-7000-8000-0000000000e1"),
        expected_version: 7,
    };

    // results
    result_collect: collected();
    result_purchase_dry_run: ResultBody {
        event_type: EventType::PurchaseResult,
        pdd_data: Some(bought_dry()),
        ..collected()
    };
    result_task_failure: failed(Disposition::Failed, "GOODS_REMOVED", "the goods page says the goods were taken down");
    result_task_failure_review: failed(Disposition::ManualReview, "CAPTCHA", "a verification page is shown");
    result_task_failure_cancelled: failed(Disposition::Cancelled, "CANCEL_REQUESTED", "the server asked for a cancel");
    result_task_failure_from_claimed: ResultBody {
        execution_id: None,
        ..failed(Disposition::Failed, "BAD_TASK_DATA", "goods link holds no goods_id")
    };
    result_answer: ResultAnswer { accepted: true, duplicate: false, late: false, task_status: ServerStatus::Succeeded };
    result_answer_repeated: ResultAnswer { accepted: true, duplicate: true, late: true, task_status: ServerStatus::Canceled };
    pdd_data: towel();

    // errors
    error_plain: ErrorBody {
        error: ErrorDetail {
            code: ErrorCode::Malformed,
            message: "goods_url holds no goods_id".to_owned(),
            request_id: Some(p("018f3c2a-0000-7000-8000-000000009001")),
            task: None,
        },
    };
    error_own_task: ErrorBody {
        error: ErrorDetail {
            code: ErrorCode::VersionConflict,
            message: "expected version 4, is 5".to_owned(),
            request_id: Some(p("018f3c2a-0000-7000-8000-000000009002")),
            task: Some(OwnTask {
                status: ServerStatus::Running,
                version: 5,
                execution_id: Some(p("018f3c2a-0000-7000-8000-0000000000e1")),
            }),
        },
    };
    error_unknown_code: ErrorBody {
        error: ErrorDetail {
            code: ErrorCode::Other("SOMETHING_NEWER".to_owned()),
            message: "a newer server says more".to_owned(),
            request_id: None,
            task: None,
        },
    };

    // admin
    create_task_collect: CreateTask {
        task_type: TaskType::Collect,
        execution_mode: ExecutionMode::DryRun,
        goods_url: towel().goods.url,
        title: None,
        target_color: None,
        target_size: None,
        price_cent: None,
        max_price_cent: None,
        quantity: None,
        priority: 0,
        external_ref: None,
    };
    create_task_purchase: CreateTask {
        task_type: TaskType::Purchase,
        execution_mode: ExecutionMode::Live,
        goods_url: towel().goods.url,
        title: Some("毛巾补货".to_owned()),
        target_color: Some("雾蓝".to_owned()),
        target_size: Some("70x140cm".to_owned()),
        price_cent: Some(3990),
        max_price_cent: Some(4200),
        quantity: Some(2),
        priority: -5,
        external_ref: Some("PO-2026-000123".to_owned()),
    };
    task_summary: summary();
    task_page: TaskPage { tasks: vec![summary()], next: Some("cursor-sample".to_owned()) };
    task_page_last: TaskPage { tasks: vec![], next: None };
    task_detail: detail();
    reference_image: an_image();
    import_report: ImportReport {
        dry_run: false,
        repeated: false,
        created: 0,
        exists: 1,
        refused: 1,
        unknown_columns: vec!["memo".to_owned()],
        rows: vec![
            ImportRow {
                row: 2,
                outcome: RowOutcome::Exists,
                task_id: Some(task_id()),
                external_ref: Some("order 7".to_owned()),
                column: None,
                message: None,
            },
            ImportRow {
                row: 3,
                outcome: RowOutcome::Refused,
                task_id: None,
                external_ref: None,
                column: Some("price".to_owned()),
                message: Some("`1,2` is no amount in yuan such as 12.90".to_owned()),
            },
        ],
    };
    create_user: CreateUser {
        user_name: "buyer-1".to_owned(),
        password: Password::new("correct horse"),
        roles: vec![Role::Buyer],
        kind: UserKind::Platform,
        permissions: vec![Permission::AnalyticsList, Permission::AnalyticsSync],
    };
    user: a_user();
    user_page: UserPage { users: vec![a_user()], next: None };
    change_user: ChangeUser { kind: Some(UserKind::Customer), roles: Some(vec![Role::Buyer]), permissions: Some(vec![]), grants: Some(vec![]), disabled: Some(true) };
    change_user_nothing: ChangeUser::default();
    set_password: SetPassword { password: Password::new("correct horse") };
    device: a_device();
    device_page: DevicePage { devices: vec![a_device()], next: Some("cursor-sample".to_owned()) };
    change_device: ChangeDevice { name: Some("desk 2".to_owned()), user_id: None, disabled: Some(false) };
    audit_page: AuditPage {
        entries: vec![AuditEntry {
            entry_id: p("018f3c2a-0000-7000-8000-00000000f001"),
            at: at("08:00:00.001"),
            actor: "console".to_owned(),
            action: "USER_CREATED".to_owned(),
            target: "user:018f3c2a-0000-7000-8000-00000000b001".to_owned(),
            detail: None,
        }],
        next: None,
    };
    me: Me {
        user_id: p("018f3c2a-0000-7000-8000-00000000b001"),
        user_name: "buyer-1".to_owned(),
        kind: UserKind::Platform,
        roles: vec![Role::Buyer],
        permissions: vec![Permission::AnalyticsList],
        grants: vec![WarehouseGrant { account: "A1".to_owned(), warehouse: "NJ".to_owned() }],
        device_id: None,
        access_expires_at: at("09:00:00.000"),
    };
    user_created: UserCreated { user_id: p("018f3c2a-0000-7000-8000-00000000b001") };
    authorize_device: AuthorizeDevice {
        device_id: p("018f3c2a-0000-7000-8000-00000000d001"),
        user_id: p("018f3c2a-0000-7000-8000-00000000b001"),
        name: "desk 3".to_owned(),
    };
}

fn task_id() -> RemoteTaskId {
    p("018f3c2a-0000-7000-8000-0000000000a1")
}

fn claimed_collect() -> ClaimedTask {
    ClaimedTask {
        task_type: TaskType::Collect,
        execution_mode: ExecutionMode::DryRun,
        goods_id: Some(towel().goods.goods_id),
        goods_url: towel().goods.url,
        title: None,
        target_color: None,
        target_size: None,
        price_cent: None,
        max_price_cent: None,
        quantity: None,
        priority: 0,
        external_ref: None,
        reference_image: None,
    }
}

fn standing(status: ServerStatus, version: u64) -> Standing {
    Standing {
        task_id: task_id(),
        status,
        version,
        claim_generation: 3,
        execution_id: None,
        server_time: at("08:00:00.000"),
        lease_expires_at: Some(at("08:10:00.000")),
        cancel_requested: false,
    }
}

fn failed(disposition: Disposition, code: &str, message: &str) -> ResultBody {
    ResultBody {
        event_type: EventType::TaskFailure,
        disposition,
        pdd_data: None,
        failure: Some(Failure { code: code.to_owned(), message: message.to_owned() }),
        ..collected()
    }
}

fn bought_dry() -> PddData {
    let wanted = options(&[("color", "雾蓝"), ("size", "70x140cm")]);
    let purchase = Purchase {
        mode: ExecutionMode::DryRun,
        requested: Requested { options: wanted.clone(), quantity: 2, max_price_cent: Some(4200), extra: Map::new() },
        confirmed: Some(Confirmed { options: wanted, quantity: 2, unit_price_cent: 3990, total_price_cent: 7980, extra: Map::new() }),
        confirmation_reached: true,
        order_submitted: false,
        payment_attempted: false,
        payment_status: None,
        order_no: None,
        ordered_at: None,
        ordered_at_raw: None,
        match_status: "not_submitted".to_owned(),
        extra: Map::new(),
    };
    PddData { purchase: Some(purchase), ..towel() }
}

fn a_user() -> User {
    User {
        user_id: p("018f3c2a-0000-7000-8000-00000000b001"),
        user_name: "buyer-1".to_owned(),
        kind: UserKind::Platform,
        roles: vec![Role::Buyer, Role::Reviewer],
        permissions: vec![Permission::AnalyticsList],
        grants: vec![WarehouseGrant { account: "A1".to_owned(), warehouse: "NJ".to_owned() }],
        disabled: false,
        created_at: at("08:00:00.000"),
    }
}

fn a_device() -> Device {
    Device {
        device_id: p("018f3c2a-0000-7000-8000-00000000d001"),
        name: "desk 1".to_owned(),
        user_id: p("018f3c2a-0000-7000-8000-00000000b001"),
        user_name: "buyer-1".to_owned(),
        disabled: false,
        created_at: at("08:00:00.000"),
        seen: Some(DeviceSeen {
            at: at("08:00:00.001"),
            live: true,
            instance_id: p("018f3c2a-0000-7000-8000-00000000e001"),
            app_version: "0.1.0".to_owned(),
            phone_serial: Some("SERIAL".to_owned()),
            android_version: Some("14".to_owned()),
            pdd_version: None,
            accessibility_connected: true,
            pdd_installed: true,
        }),
        held_task: None,
        in_use: None,
    }
}

fn summary() -> TaskSummary {
    TaskSummary {
        task_id: task_id(),
        task_type: TaskType::Collect,
        execution_mode: ExecutionMode::DryRun,
        status: ServerStatus::Succeeded,
        version: 6,
        claim_generation: 3,
        goods_id: towel().goods.goods_id,
        goods_url: towel().goods.url,
        title: Some("毛巾补货".to_owned()),
        external_ref: None,
        priority: 0,
        cancel_requested: false,
        current_step: Some("close_sheet".to_owned()),
        device_id: Some(p("018f3c2a-0000-7000-8000-00000000d001")),
        user_id: Some(p("018f3c2a-0000-7000-8000-00000000b001")),
        lease_expires_at: None,
        latest_outcome: Some(Disposition::Succeeded),
        order_may_exist: false,
        held: false,
        created_at: at("07:59:00.000"),
        updated_at: at("08:00:42.100"),
    }
}

fn an_image() -> ReferenceImage {
    ReferenceImage {
        sha256: "a".repeat(64),
        bytes: 1234,
        width: 800,
        height: 600,
        uploaded_by: "console".to_owned(),
        uploaded_at: at("07:59:30.000"),
    }
}

fn detail() -> TaskDetail {
    let body = serde_json::to_value(failed(Disposition::Failed, "GOODS_REMOVED", "gone")).expect("a result serialises");
    TaskDetail {
        task: summary(),
        asked: Some(CreateTask::collect(towel().goods.url)),
        created_by: Some("console".to_owned()),
        reference_image: Some(an_image()),
        events: vec![TaskEvent {
            kind: "TASK_CLAIMED".to_owned(),
            actor: "user:018f3c2a-0000-7000-8000-00000000b001".to_owned(),
            from_status: Some(ServerStatus::Pending),
            to_status: ServerStatus::Claimed,
            version: 4,
            claim_generation: 3,
            execution_id: None,
            detail: Some(json!({ "device": "desk 3" })),
            at: at("08:00:00.000"),
        }],
        executions: vec![TaskExecution {
            execution_id: p("018f3c2a-0000-7000-8000-0000000000e1"),
            claim_generation: 3,
            device_id: p("018f3c2a-0000-7000-8000-00000000d001"),
            user_id: p("018f3c2a-0000-7000-8000-00000000b001"),
            started_at: at("08:00:01.000"),
            last_seen_at: at("08:00:40.000"),
            finished_at: Some(at("08:00:42.100")),
            step: Some("collect_skus".to_owned()),
        }],
        results: vec![TaskResult {
            idempotency_key: format!("{}:018f3c2a-0000-7000-8000-0000000000f1:failure-v1", task_id()),
            payload_sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".to_owned(),
            event_type: EventType::TaskFailure,
            disposition: Disposition::Failed,
            attempt_id: p("018f3c2a-0000-7000-8000-0000000000f1"),
            attempt_no: 1,
            claim_generation: 3,
            late: false,
            duplicates: 2,
            received_at: at("08:00:42.100"),
            body,
        }],
    }
}

/// Every fixed word of the wire. A word may be added; one that leaves or changes breaks the other end.
#[test]
fn vocabulary() {
    fn words<T: Serialize>(all: &[T]) -> Value {
        serde_json::to_value(all).expect("words serialise")
    }
    let all = json!({
        "task_type": words(TaskType::ALL),
        "execution_mode": words(ExecutionMode::ALL),
        "server_status": words(ServerStatus::ALL),
        "resume_reason": words(ResumeReason::ALL),
        "event_type": words(EventType::ALL),
        "disposition": words(Disposition::ALL),
        "role": words(&[Role::Admin, Role::Buyer, Role::Reviewer]),
        "not_ready": words(&[NotReady::AccessibilityOff, NotReady::PddMissing]),
        "price_granularity": words(&[PriceGranularity::Color]),
        "error_code": words(ErrorCode::ALL),
        "header": [
            cmautobuy_protocol::HEADER_CLAIM_TOKEN,
            cmautobuy_protocol::HEADER_IDEMPOTENCY_KEY,
            cmautobuy_protocol::HEADER_REQUEST_ID,
        ],
        "api_base": cmautobuy_protocol::API_BASE,
    });
    let written = serde_json::to_string_pretty(&all).expect("words serialise") + "\n";
    assert_eq!(written, golden_text("vocabulary", &written), "a word of the wire changed");
}

#[test]
fn every_golden_file_has_a_test() {
    let files: BTreeSet<String> = fs::read_dir(golden_dir())
        .expect("the golden folder exists")
        .map(|entry| entry.expect("a folder entry").file_name().to_string_lossy().into_owned())
        .collect();
    let known: BTreeSet<String> = GOLDENS.iter().map(|name| format!("{name}.json")).collect();
    assert_eq!(files, known, "a golden file without a test promises something nobody checks");
}

/// 03 §9: an older program that rewrites `pdd_data` drops nothing a newer one wrote, at any depth.
#[test]
fn pdd_data_keeps_unknown_fields_at_every_level() {
    for (name, data) in [("collect", towel()), ("purchase", bought_dry())] {
        let mut newer = serde_json::to_value(&data).expect("pdd_data serialises");
        extend(&mut newer, "");
        let read: PddData = serde_json::from_value(newer.clone()).expect("an old reader tolerates newer fields");
        assert_eq!(read.validate(), Ok(()), "{name}: unknown fields are no reason to refuse a document");
        let again = serde_json::to_value(&read).expect("pdd_data serialises");
        assert_eq!(again, newer, "{name}: rewriting must keep what this version does not know");
    }
}

/// Old writer, new reader: what an older peer leaves out has a safe meaning.
#[test]
fn fields_an_older_peer_leaves_out_have_a_safe_meaning() {
    let task: CreateTask =
        serde_json::from_value(json!({ "task_type": "purchase", "goods_url": "x" })).expect("only two fields are needed to parse");
    assert_eq!(task.execution_mode, ExecutionMode::DryRun, "an absent mode must never mean live (03 §3)");
    assert_eq!(task.priority, 0, "an absent priority is the ordinary one");

    let body: ErrorBody = serde_json::from_value(json!({ "error": { "code": "INTERNAL", "message": "m" } })).expect("the shortest error");
    assert_eq!(body.error.code, ErrorCode::Internal, "the code is what callers branch on");
    assert_eq!(body.error.task, None, "no task in the body means nothing is known about it");

    let mut old = serde_json::to_value(towel()).expect("pdd_data serialises");
    old.as_object_mut().expect("an object").shift_remove("artifacts");
    let data: PddData = serde_json::from_value(old).expect("artifacts came later and may be absent");
    assert!(data.artifacts.is_empty(), "absent artifacts are none");
}

/// A state word this build does not know must not be read as some other state.
#[test]
fn unknown_words_are_errors_except_error_codes() {
    let rows: [(&str, bool); 5] = [
        ("task_type", serde_json::from_value::<TaskType>(json!("resell")).is_err()),
        ("execution_mode", serde_json::from_value::<ExecutionMode>(json!("LIVE")).is_err()),
        ("server_status", serde_json::from_value::<ServerStatus>(json!("PAUSED")).is_err()),
        ("disposition", serde_json::from_value::<Disposition>(json!("ok")).is_err()),
        ("event_type", serde_json::from_value::<EventType>(json!("note")).is_err()),
    ];
    for (name, refused) in rows {
        assert!(refused, "{name}: an unknown word has no default");
    }
    let code: ErrorCode = serde_json::from_value(json!("SOMETHING_NEWER")).expect("an error code may be newer than the reader");
    assert_eq!(code, ErrorCode::Other("SOMETHING_NEWER".to_owned()), "and its text is kept for the log");
}
