-- The first schema: 03 §3-§6 as written, then what contract D5-D8, D12 and D19 add.
-- An older build may NOT open a file of this version: there is none.

CREATE TABLE pdd_tasks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    remote_task_id TEXT NOT NULL UNIQUE,
    task_type TEXT NOT NULL
        CHECK (task_type IN ('collect', 'purchase')),
    execution_mode TEXT NOT NULL DEFAULT 'dry_run'
        CHECK (execution_mode IN ('dry_run', 'live')),
    goods_id TEXT,
    goods_url TEXT NOT NULL,
    title TEXT,
    target_color TEXT,
    target_size TEXT,
    price_cent INTEGER CHECK (price_cent IS NULL OR price_cent >= 0),
    quantity INTEGER CHECK (quantity IS NULL OR quantity > 0),
    status TEXT NOT NULL DEFAULT 'claimed'
        CHECK (status IN (
            'claimed', 'running',
            'result_pending', 'retry_wait',
            'manual_review', 'succeeded',
            'failed', 'cancelled'
        )),
    current_step TEXT,
    priority INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL DEFAULT 1 CHECK (version > 0),
    admin_payload TEXT NOT NULL DEFAULT '{}',
    pdd_data TEXT,
    retry_count INTEGER NOT NULL DEFAULT 0 CHECK (retry_count >= 0),
    last_error_code TEXT,
    last_error_message TEXT,
    received_at TEXT NOT NULL,
    started_at TEXT,
    finished_at TEXT,
    removed_at TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    -- Beyond 03: what the calls of D2-D5 need, and whose task it is (D8).
    claim_generation INTEGER NOT NULL DEFAULT 0 CHECK (claim_generation >= 0),
    execution_id TEXT,
    server_version INTEGER NOT NULL DEFAULT 0 CHECK (server_version >= 0),
    sealed_claim_token BLOB,
    owner_user_id TEXT NOT NULL,
    owner_device_id TEXT NOT NULL,
    max_price_cent INTEGER CHECK (max_price_cent IS NULL OR max_price_cent >= 0),
    external_ref TEXT,
    cancel_requested_at TEXT,
    -- The server said LEASE_EXPIRED: this claimed row waits for a new claim and does not block one (D5.5).
    claim_expired_at TEXT
);

CREATE INDEX idx_pdd_tasks_list
    ON pdd_tasks(updated_at DESC, id DESC);

CREATE INDEX idx_pdd_tasks_status_type
    ON pdd_tasks(status, task_type);

CREATE INDEX idx_pdd_tasks_goods_id
    ON pdd_tasks(goods_id);

CREATE INDEX idx_pdd_tasks_visible_list
    ON pdd_tasks(removed_at, updated_at DESC, id DESC);

CREATE TABLE task_runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id INTEGER NOT NULL,
    attempt_id TEXT NOT NULL UNIQUE,
    attempt_no INTEGER NOT NULL CHECK (attempt_no > 0),
    device_address TEXT NOT NULL,
    run_status TEXT NOT NULL
        CHECK (run_status IN (
            'running', 'succeeded', 'failed',
            'cancelled', 'manual_review'
        )),
    current_step TEXT,
    started_at TEXT NOT NULL,
    finished_at TEXT,
    irreversible_action_at TEXT,
    order_submitted_at TEXT,
    error_code TEXT,
    error_message TEXT,
    diagnostics_json TEXT,
    result_data TEXT,
    artifact_directory TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    -- Beyond 03: which phone it was (D19).
    phone_serial TEXT,
    FOREIGN KEY (task_id) REFERENCES pdd_tasks(id) ON DELETE CASCADE,
    UNIQUE (task_id, attempt_no)
);

CREATE INDEX idx_task_runs_task
    ON task_runs(task_id, attempt_no DESC);

CREATE TABLE outbox_events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id INTEGER NOT NULL,
    event_type TEXT NOT NULL
        CHECK (event_type IN (
            'collect_result', 'purchase_result', 'task_failure'
        )),
    idempotency_key TEXT NOT NULL UNIQUE,
    payload_json TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'sending', 'sent', 'failed')),
    attempt_count INTEGER NOT NULL DEFAULT 0 CHECK (attempt_count >= 0),
    next_retry_at TEXT,
    last_error TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    sent_at TEXT,
    -- Beyond 03: whose result it is and which attempt made it (D8); who settled it when the server would not (D2).
    user_id TEXT NOT NULL,
    device_id TEXT NOT NULL,
    attempt_id TEXT NOT NULL,
    refused_at TEXT,
    abandoned_at TEXT CHECK (abandoned_at IS NULL OR status = 'failed'),
    FOREIGN KEY (task_id) REFERENCES pdd_tasks(id) ON DELETE CASCADE
);

CREATE INDEX idx_outbox_pending
    ON outbox_events(status, next_retry_at, id);

-- Beyond 03: every state change asks whether a task has unsent rows.
CREATE INDEX idx_outbox_task
    ON outbox_events(task_id, id);

CREATE TABLE app_settings (
    setting_key TEXT PRIMARY KEY,
    value_json TEXT NOT NULL,
    updated_at TEXT NOT NULL
);

-- D5.2: a claim is on disk before it is on the wire.
CREATE TABLE claim_attempts (
    idempotency_key TEXT PRIMARY KEY,
    token_sha256 TEXT NOT NULL,
    sealed_token BLOB,
    state TEXT NOT NULL
        CHECK (state IN ('prepared', 'claimed', 'no_task', 'expired', 'refused')),
    user_id TEXT NOT NULL,
    device_id TEXT NOT NULL,
    remote_task_id TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    CHECK ((state = 'prepared') = (sealed_token IS NOT NULL)),
    CHECK ((state = 'claimed') = (remote_task_id IS NOT NULL))
);

CREATE UNIQUE INDEX idx_claim_attempts_open
    ON claim_attempts(state) WHERE state = 'prepared';

-- D5: the engine commits an intent, sync performs it until a definite answer.
CREATE TABLE server_calls (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id INTEGER NOT NULL,
    kind TEXT NOT NULL
        CHECK (kind IN ('start', 'resume', 'release', 'cancel_ack')),
    release_aim TEXT
        CHECK (release_aim IN ('operator_stopped', 'phone_unreachable')),
    idempotency_key TEXT NOT NULL UNIQUE,
    body_json TEXT NOT NULL,
    attempt_id TEXT,
    attempt_no INTEGER CHECK (attempt_no > 0),
    state TEXT NOT NULL DEFAULT 'open'
        CHECK (state IN ('open', 'done', 'refused')),
    answer_json TEXT,
    attempt_count INTEGER NOT NULL DEFAULT 0 CHECK (attempt_count >= 0),
    next_retry_at TEXT,
    last_error TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    FOREIGN KEY (task_id) REFERENCES pdd_tasks(id) ON DELETE CASCADE,
    CHECK ((kind = 'release') = (release_aim IS NOT NULL)),
    CHECK ((kind IN ('start', 'resume')) = (attempt_id IS NOT NULL)),
    CHECK ((attempt_id IS NULL) = (attempt_no IS NULL))
);

CREATE UNIQUE INDEX idx_server_calls_open
    ON server_calls(task_id) WHERE state = 'open';

CREATE INDEX idx_server_calls_task
    ON server_calls(task_id, id);

-- D12: files are under data/artifacts; the row stays when retention deletes the file.
CREATE TABLE run_artifacts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    capture_id TEXT,
    step TEXT,
    relative_path TEXT NOT NULL CHECK (relative_path <> '' AND relative_path NOT LIKE '%:%'),
    sha256 TEXT NOT NULL CHECK (length(sha256) = 64),
    size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
    summary TEXT NOT NULL,
    skew_ms INTEGER,
    deleted_at TEXT,
    created_at TEXT NOT NULL,
    FOREIGN KEY (run_id) REFERENCES task_runs(id) ON DELETE CASCADE
);

CREATE INDEX idx_run_artifacts_run
    ON run_artifacts(run_id, id);

-- D7, D19: which installation this is and which server it belongs to.
CREATE TABLE identity (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    device_id TEXT NOT NULL,
    server_id TEXT,
    created_at TEXT NOT NULL
);

-- D6: secrets of this installation, sealed with the key the OS credential store holds.
CREATE TABLE sealed_secrets (
    name TEXT PRIMARY KEY,
    sealed BLOB NOT NULL,
    updated_at TEXT NOT NULL
);
