DROP INDEX idempotency_by_age;
DROP INDEX tasks_held;
DROP INDEX tasks_claimable;
ALTER TABLE tasks DROP COLUMN held_at;
CREATE INDEX tasks_claimable ON tasks (created_at, task_id) WHERE status IN ('PENDING', 'CLAIMED');
ALTER TABLE meta DROP COLUMN backed_up_at;
