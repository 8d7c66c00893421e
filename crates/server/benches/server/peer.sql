-- The peer's tables: the server's own of a claim with its indexes and references, in PostgreSQL's native types, without its checks.
CREATE TABLE users (user_id uuid PRIMARY KEY, disabled bool NOT NULL DEFAULT false);
CREATE TABLE devices (
    device_id uuid PRIMARY KEY, user_id uuid NOT NULL REFERENCES users, heartbeat_at timestamptz, accessibility_connected bool,
    pdd_installed bool, rival_at timestamptz
);
CREATE TABLE access_tokens (token_sha256 text PRIMARY KEY, device_id uuid NOT NULL REFERENCES devices, expires_at timestamptz NOT NULL);
CREATE TABLE tasks (
    task_id uuid PRIMARY KEY, task_type text NOT NULL, execution_mode text NOT NULL, goods_id text NOT NULL, goods_url text NOT NULL, title text,
    price_cent bigint, max_price_cent bigint, quantity int, priority int NOT NULL DEFAULT 0, external_ref text UNIQUE, status text NOT NULL,
    version bigint NOT NULL, claim_generation bigint NOT NULL DEFAULT 0, user_id uuid REFERENCES users,
    device_id uuid REFERENCES devices, claim_token_sha256 text,
    lease_expires_at timestamptz, execution_id uuid, recollecting bool NOT NULL DEFAULT false, created_by text NOT NULL,
    created_at timestamptz NOT NULL, updated_at timestamptz NOT NULL
);
CREATE INDEX tasks_claimable ON tasks (created_at, task_id) WHERE status IN ('PENDING', 'CLAIMED');
CREATE INDEX tasks_newest ON tasks (created_at DESC, task_id DESC);
-- Narrower than the server's own index, which holds every task a device ever had.
CREATE INDEX tasks_in_slot ON tasks (device_id) WHERE status IN ('CLAIMED', 'RUNNING') OR recollecting;
CREATE UNIQUE INDEX one_claimed_per_device ON tasks (device_id) WHERE status = 'CLAIMED';
CREATE UNIQUE INDEX one_running_per_device ON tasks (device_id) WHERE status = 'RUNNING';
CREATE TABLE dispatches (
    task_id uuid NOT NULL REFERENCES tasks, claim_generation bigint NOT NULL, user_id uuid NOT NULL REFERENCES users,
    device_id uuid NOT NULL REFERENCES devices, dispatched_at timestamptz NOT NULL, released_at timestamptz, PRIMARY KEY (task_id, claim_generation)
);
CREATE INDEX dispatches_released ON dispatches (device_id, released_at) WHERE released_at IS NOT NULL;
CREATE TABLE idempotency (
    user_id uuid NOT NULL, device_id uuid NOT NULL, operation text NOT NULL, key uuid NOT NULL, request_sha256 text NOT NULL,
    task_id uuid REFERENCES tasks,
    claim_generation bigint, version bigint, created_at timestamptz NOT NULL, PRIMARY KEY (user_id, device_id, operation, key)
);
CREATE TABLE results (idempotency_key text PRIMARY KEY, task_id uuid NOT NULL REFERENCES tasks, body text NOT NULL, received_at timestamptz NOT NULL);
CREATE TABLE task_events (
    event_id uuid PRIMARY KEY, task_id uuid NOT NULL REFERENCES tasks, version bigint NOT NULL, kind text NOT NULL, actor text NOT NULL, from_status text,
    to_status text NOT NULL, claim_generation bigint NOT NULL, at timestamptz NOT NULL, UNIQUE (task_id, version)
);
