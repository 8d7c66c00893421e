-- Restores and pruning (D7, ADR 0006).
-- An older build must not open a file of this version.

-- When the backup this file came from was taken.
ALTER TABLE meta ADD COLUMN backed_up_at TEXT;

-- A live purchase nobody may claim until an administrator has looked (D7).
ALTER TABLE tasks ADD COLUMN held_at TEXT;
DROP INDEX tasks_claimable;
CREATE INDEX tasks_claimable ON tasks (created_at, task_id) WHERE status IN ('PENDING', 'CLAIMED') AND held_at IS NULL;
CREATE INDEX tasks_held ON tasks (created_at DESC, task_id DESC) WHERE held_at IS NOT NULL;

CREATE INDEX idempotency_by_age ON idempotency (created_at);
