-- The companion server's first schema (T-205, D3-D5, D13, D19).
-- Never edited once shipped; an older build must not open a file with a higher user_version.
-- Times are RFC 3339 UTC text with three fraction digits, so text order is time order (D1). Tokens are SHA-256 hex only (D6).

CREATE TABLE meta (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    server_id  TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

CREATE TABLE users (
    user_id       TEXT PRIMARY KEY,
    user_name     TEXT NOT NULL UNIQUE COLLATE NOCASE CHECK (length(user_name) BETWEEN 1 AND 64),
    password_hash TEXT NOT NULL CHECK (password_hash LIKE '$argon2id$%'),
    is_admin      INTEGER NOT NULL CHECK (is_admin IN (0, 1)),
    is_buyer      INTEGER NOT NULL CHECK (is_buyer IN (0, 1)),
    is_reviewer   INTEGER NOT NULL CHECK (is_reviewer IN (0, 1)),
    disabled      INTEGER NOT NULL DEFAULT 0 CHECK (disabled IN (0, 1)),
    created_at    TEXT NOT NULL
) STRICT;

CREATE TABLE devices (
    device_id               TEXT PRIMARY KEY,
    user_id                 TEXT NOT NULL REFERENCES users (user_id),
    name                    TEXT NOT NULL,
    disabled                INTEGER NOT NULL DEFAULT 0 CHECK (disabled IN (0, 1)),
    created_at              TEXT NOT NULL,
    -- the last accepted heartbeat (T-205 §4): all or nothing
    heartbeat_at            TEXT,
    instance_id             TEXT,
    app_version             TEXT,
    accessibility_connected INTEGER CHECK (accessibility_connected IN (0, 1)),
    pdd_installed           INTEGER CHECK (pdd_installed IN (0, 1)),
    phone_serial            TEXT,
    android_version         TEXT,
    pdd_version             TEXT,
    reported_task_id        TEXT,
    client_time             TEXT,
    -- the last refused one (D19)
    rival_instance_id       TEXT,
    rival_at                TEXT,
    rival_text              TEXT,
    CHECK ((heartbeat_at IS NULL) = (instance_id IS NULL)
       AND (heartbeat_at IS NULL) = (app_version IS NULL)
       AND (heartbeat_at IS NULL) = (accessibility_connected IS NULL)
       AND (heartbeat_at IS NULL) = (pdd_installed IS NULL)
       AND (heartbeat_at IS NULL) = (client_time IS NULL)),
    CHECK ((rival_at IS NULL) = (rival_instance_id IS NULL) AND (rival_at IS NULL) = (rival_text IS NULL))
) STRICT;
CREATE INDEX devices_by_phone ON devices (phone_serial) WHERE phone_serial IS NOT NULL;

CREATE TABLE sessions (
    session_id TEXT PRIMARY KEY,
    user_id    TEXT NOT NULL REFERENCES users (user_id),
    device_id  TEXT REFERENCES devices (device_id),
    created_at TEXT NOT NULL
) STRICT;

CREATE TABLE access_tokens (
    token_sha256 TEXT PRIMARY KEY CHECK (length(token_sha256) = 64),
    session_id   TEXT NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    expires_at   TEXT NOT NULL
) STRICT;
CREATE INDEX access_tokens_by_session ON access_tokens (session_id);

CREATE TABLE refresh_tokens (
    token_sha256       TEXT PRIMARY KEY CHECK (length(token_sha256) = 64),
    session_id         TEXT NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    -- the token this one replaces; that one goes when this one is first used (D5)
    predecessor_sha256 TEXT,
    expires_at         TEXT NOT NULL
) STRICT;
CREATE INDEX refresh_tokens_by_session ON refresh_tokens (session_id);

CREATE TABLE tasks (
    task_id             TEXT PRIMARY KEY,
    task_type           TEXT NOT NULL CHECK (task_type IN ('collect', 'purchase')),
    execution_mode      TEXT NOT NULL CHECK (execution_mode IN ('dry_run', 'live')),
    goods_id            TEXT NOT NULL CHECK (length(goods_id) BETWEEN 1 AND 20 AND goods_id NOT GLOB '*[^0-9]*'),
    goods_url           TEXT NOT NULL,
    title               TEXT,
    target_color        TEXT,
    target_size         TEXT,
    price_cent          INTEGER CHECK (price_cent >= 0),
    max_price_cent      INTEGER CHECK (max_price_cent >= 0),
    quantity            INTEGER CHECK (quantity > 0),
    priority            INTEGER NOT NULL DEFAULT 0,
    external_ref        TEXT UNIQUE,
    status              TEXT NOT NULL CHECK (status IN
                          ('PENDING', 'CLAIMED', 'RUNNING', 'WAITING_CONFIRMATION', 'SUCCEEDED', 'FAILED', 'CANCELED')),
    version             INTEGER NOT NULL CHECK (version >= 1),
    claim_generation    INTEGER NOT NULL DEFAULT 0 CHECK (claim_generation >= 0),
    user_id             TEXT REFERENCES users (user_id),
    device_id           TEXT REFERENCES devices (device_id),
    claim_token_sha256  TEXT CHECK (length(claim_token_sha256) = 64),
    lease_expires_at    TEXT,
    execution_id        TEXT,
    -- a re-collect of a finished task holds the device while its lease lives (D4)
    recollecting        INTEGER NOT NULL DEFAULT 0 CHECK (recollecting IN (0, 1)),
    cancel_requested_at TEXT,
    order_may_exist     INTEGER NOT NULL DEFAULT 0 CHECK (order_may_exist IN (0, 1)),
    created_by          TEXT NOT NULL,
    created_at          TEXT NOT NULL,
    updated_at          TEXT NOT NULL,
    CHECK (task_type = 'collect' OR (external_ref IS NOT NULL AND quantity IS NOT NULL)),
    CHECK ((user_id IS NULL) = (device_id IS NULL) AND (user_id IS NULL) = (claim_token_sha256 IS NULL)),
    CHECK (status <> 'PENDING' OR (user_id IS NULL AND lease_expires_at IS NULL AND execution_id IS NULL)),
    CHECK (status <> 'CLAIMED' OR (user_id IS NOT NULL AND lease_expires_at IS NOT NULL AND execution_id IS NULL)),
    CHECK (status <> 'RUNNING' OR (user_id IS NOT NULL AND lease_expires_at IS NOT NULL AND execution_id IS NOT NULL)),
    CHECK (status <> 'WAITING_CONFIRMATION' OR user_id IS NOT NULL),
    CHECK (recollecting = 0 OR (status IN ('SUCCEEDED', 'FAILED', 'CANCELED') AND task_type = 'collect'
                                AND execution_id IS NOT NULL AND lease_expires_at IS NOT NULL))
) STRICT;
CREATE INDEX tasks_claimable ON tasks (created_at, task_id) WHERE status IN ('PENDING', 'CLAIMED');
CREATE INDEX tasks_newest ON tasks (created_at DESC, task_id DESC);
CREATE INDEX tasks_by_device ON tasks (device_id) WHERE device_id IS NOT NULL;
-- A device holds at most one claim and runs at most one task (T-205 §5), whatever the code does.
CREATE UNIQUE INDEX one_claimed_per_device ON tasks (device_id) WHERE status = 'CLAIMED';
CREATE UNIQUE INDEX one_running_per_device ON tasks (device_id) WHERE status = 'RUNNING';

-- Kept for ever: a result is accepted by it (D3).
CREATE TABLE dispatches (
    task_id          TEXT NOT NULL REFERENCES tasks (task_id),
    claim_generation INTEGER NOT NULL CHECK (claim_generation >= 1),
    user_id          TEXT NOT NULL REFERENCES users (user_id),
    device_id        TEXT NOT NULL REFERENCES devices (device_id),
    dispatched_at    TEXT NOT NULL,
    released_at      TEXT,
    PRIMARY KEY (task_id, claim_generation)
) STRICT, WITHOUT ROWID;
CREATE INDEX dispatches_released ON dispatches (device_id, released_at) WHERE released_at IS NOT NULL;

CREATE TABLE executions (
    execution_id     TEXT PRIMARY KEY,
    task_id          TEXT NOT NULL,
    claim_generation INTEGER NOT NULL,
    user_id          TEXT NOT NULL,
    device_id        TEXT NOT NULL,
    phone_serial     TEXT,
    started_at       TEXT NOT NULL,
    last_seen_at     TEXT NOT NULL,
    finished_at      TEXT,
    step             TEXT,
    UNIQUE (task_id, claim_generation),
    FOREIGN KEY (task_id, claim_generation) REFERENCES dispatches (task_id, claim_generation)
) STRICT;

-- One execution may hold several client attempts (D5).
CREATE TABLE attempts (
    task_id          TEXT NOT NULL,
    attempt_id       TEXT NOT NULL,
    attempt_no       INTEGER NOT NULL CHECK (attempt_no >= 1),
    claim_generation INTEGER NOT NULL,
    execution_id     TEXT REFERENCES executions (execution_id),
    opened_by        TEXT NOT NULL CHECK (opened_by IN ('start', 'resume', 'recollect', 'result')),
    created_at       TEXT NOT NULL,
    PRIMARY KEY (task_id, attempt_id),
    FOREIGN KEY (task_id, claim_generation) REFERENCES dispatches (task_id, claim_generation)
) STRICT, WITHOUT ROWID;

-- What a lifecycle call answered, as identity only (D3). Only 200 and 204 are stored (D5).
CREATE TABLE idempotency (
    user_id          TEXT NOT NULL,
    device_id        TEXT NOT NULL,
    operation        TEXT NOT NULL CHECK (operation IN ('claim_next', 'start', 'resume', 'release', 'cancel_ack')),
    key              TEXT NOT NULL,
    request_sha256   TEXT NOT NULL CHECK (length(request_sha256) = 64),
    -- NULL: there was no task (204)
    task_id          TEXT REFERENCES tasks (task_id),
    claim_generation INTEGER,
    version          INTEGER,
    created_at       TEXT NOT NULL,
    PRIMARY KEY (user_id, device_id, operation, key),
    CHECK ((task_id IS NULL) = (claim_generation IS NULL) AND (task_id IS NULL) = (version IS NULL)),
    CHECK (task_id IS NOT NULL OR operation = 'claim_next')
) STRICT, WITHOUT ROWID;

CREATE TABLE results (
    idempotency_key  TEXT PRIMARY KEY,
    task_id          TEXT NOT NULL,
    claim_generation INTEGER NOT NULL,
    attempt_id       TEXT NOT NULL,
    attempt_no       INTEGER NOT NULL,
    execution_id     TEXT,
    user_id          TEXT NOT NULL,
    device_id        TEXT NOT NULL,
    event_type       TEXT NOT NULL CHECK (event_type IN ('collect_result', 'purchase_result', 'task_failure')),
    disposition      TEXT NOT NULL CHECK (disposition IN ('succeeded', 'failed', 'cancelled', 'manual_review')),
    payload_sha256   TEXT NOT NULL CHECK (length(payload_sha256) = 64),
    body             TEXT NOT NULL,
    late             INTEGER NOT NULL CHECK (late IN (0, 1)),
    task_status      TEXT NOT NULL,
    duplicates       INTEGER NOT NULL DEFAULT 0,
    received_at      TEXT NOT NULL,
    CHECK ((event_type = 'task_failure') = (disposition <> 'succeeded')),
    FOREIGN KEY (task_id, claim_generation) REFERENCES dispatches (task_id, claim_generation),
    FOREIGN KEY (task_id, attempt_id) REFERENCES attempts (task_id, attempt_id)
) STRICT;
CREATE INDEX results_by_task ON results (task_id, claim_generation, attempt_no);

-- One order belongs to one task (D10).
CREATE TABLE reported_orders (
    order_no    TEXT PRIMARY KEY,
    task_id     TEXT NOT NULL REFERENCES tasks (task_id),
    reported_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row a transition (T-205 §11); a version names exactly one of them.
CREATE TABLE task_events (
    event_id         TEXT PRIMARY KEY,
    task_id          TEXT NOT NULL REFERENCES tasks (task_id),
    version          INTEGER NOT NULL,
    kind             TEXT NOT NULL,
    actor            TEXT NOT NULL,
    from_status      TEXT,
    to_status        TEXT NOT NULL,
    claim_generation INTEGER NOT NULL,
    execution_id     TEXT,
    detail           TEXT,
    at               TEXT NOT NULL,
    UNIQUE (task_id, version)
) STRICT;

CREATE TABLE admin_idempotency (
    actor          TEXT NOT NULL,
    key            TEXT NOT NULL,
    request_sha256 TEXT NOT NULL CHECK (length(request_sha256) = 64),
    task_id        TEXT NOT NULL REFERENCES tasks (task_id),
    created_at     TEXT NOT NULL,
    PRIMARY KEY (actor, key)
) STRICT, WITHOUT ROWID;
