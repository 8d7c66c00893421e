-- Lists of tasks sent as one file, reference images (T-205 §13), and indexes that keep a claim's and a list's cost off the history.
-- An older build must not open a file of this version.

-- What a list with this key made; the answer is kept as it was given (D19).
CREATE TABLE imports (
    actor          TEXT NOT NULL,
    key            TEXT NOT NULL,
    request_sha256 TEXT NOT NULL CHECK (length(request_sha256) = 64),
    report         TEXT NOT NULL,
    created_at     TEXT NOT NULL,
    PRIMARY KEY (actor, key)
) STRICT, WITHOUT ROWID;

-- Beside the task, so that reading a task never reads its picture.
CREATE TABLE reference_images (
    task_id     TEXT PRIMARY KEY REFERENCES tasks (task_id),
    jpeg        BLOB NOT NULL CHECK (length(jpeg) BETWEEN 1 AND 5242880),
    sha256      TEXT NOT NULL CHECK (length(sha256) = 64),
    width       INTEGER NOT NULL CHECK (width > 0),
    height      INTEGER NOT NULL CHECK (height > 0),
    uploaded_by TEXT NOT NULL,
    uploaded_at TEXT NOT NULL
) STRICT;

-- The tasks a device has in hand: a handful, however many it finished. The queries repeat this condition word for word.
CREATE INDEX tasks_in_hand ON tasks (device_id)
    WHERE device_id IS NOT NULL AND (status IN ('CLAIMED', 'RUNNING', 'WAITING_CONFIRMATION') OR recollecting = 1);
-- The administrator's lists, newest first.
DROP INDEX tasks_by_device;
CREATE INDEX tasks_by_device ON tasks (device_id, created_at DESC, task_id DESC) WHERE device_id IS NOT NULL;
CREATE INDEX tasks_by_user ON tasks (user_id, created_at DESC, task_id DESC) WHERE user_id IS NOT NULL;
CREATE INDEX tasks_by_status ON tasks (status, created_at DESC, task_id DESC);
CREATE INDEX tasks_by_goods ON tasks (goods_id, created_at DESC, task_id DESC);
CREATE INDEX tasks_with_doubt ON tasks (created_at DESC, task_id DESC) WHERE order_may_exist = 1;
CREATE INDEX tasks_to_cancel ON tasks (created_at DESC, task_id DESC) WHERE cancel_requested_at IS NOT NULL;
