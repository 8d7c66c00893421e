//! A server's database file with as many tasks as asked for: every row a task leaves behind in its life, written in bulk.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use crate::Fallible;

/// Rows written in one transaction.
const CHUNK: u64 = 50_000;
/// One row a number, with the words of a task's life in it. Ids are version 7 UUIDs in the order of their times, as the server makes them.
const NUMBERS: &str = "
CREATE TEMP TABLE IF NOT EXISTS crowd (n INTEGER PRIMARY KEY, device_id TEXT, user_id TEXT);
CREATE TEMP TABLE IF NOT EXISTS made (i INTEGER PRIMARY KEY, ms INTEGER, id TEXT, at TEXT, user_id TEXT, device_id TEXT);
DELETE FROM crowd; INSERT INTO crowd SELECT row_number() OVER (ORDER BY device_id) - 1, device_id, user_id FROM devices;";
const MAKE: &str = "
INSERT INTO made
WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?2), t(i, ms) AS (SELECT i, ?3 + i * ?4 FROM n)
SELECT i, ms, printf('%08x-%04x-7%03x-8000-%012x', ms >> 16, ms & 65535, i & 4095, i),
       strftime('%Y-%m-%dT%H:%M:%fZ', ms / 1000.0, 'unixepoch'), user_id, device_id
FROM t JOIN crowd ON crowd.n = t.i % (SELECT count(*) FROM crowd)";
const PENDING: &str = "
INSERT INTO tasks (task_id, task_type, execution_mode, goods_id, goods_url, status, version, created_by, created_at, updated_at)
    SELECT id, 'collect', 'dry_run', 100000000 + i, 'https://mobile.yangkeduo.com/goods.html?goods_id=' || (100000000 + i), 'PENDING', 1,
           'console', at, at FROM made;
INSERT INTO task_events (event_id, task_id, version, kind, actor, to_status, claim_generation, at)
    SELECT replace(id, '-8000-', '-8001-'), id, 1, 'TASK_CREATED', 'console', 'PENDING', 0, at FROM made;";
const FINISHED: &str = "
INSERT INTO tasks (task_id, task_type, execution_mode, goods_id, goods_url, status, version, claim_generation, user_id, device_id,
                   claim_token_sha256, execution_id, created_by, created_at, updated_at)
    SELECT id, 'collect', 'dry_run', 100000000 + i, 'https://mobile.yangkeduo.com/goods.html?goods_id=' || (100000000 + i), 'SUCCEEDED', 4, 1,
           user_id, device_id, printf('%064x', i), replace(id, '-8000-', '-8010-'), 'console', at, at FROM made;
INSERT INTO dispatches (task_id, claim_generation, user_id, device_id, dispatched_at) SELECT id, 1, user_id, device_id, at FROM made;
INSERT INTO executions (execution_id, task_id, claim_generation, user_id, device_id, started_at, last_seen_at, finished_at)
    SELECT replace(id, '-8000-', '-8010-'), id, 1, user_id, device_id, at, at, at FROM made;
INSERT INTO attempts (task_id, attempt_id, attempt_no, claim_generation, execution_id, opened_by, created_at)
    SELECT id, replace(id, '-8000-', '-8020-'), 1, 1, replace(id, '-8000-', '-8010-'), 'start', at FROM made;
INSERT INTO idempotency (user_id, device_id, operation, key, request_sha256, task_id, claim_generation, version, created_at)
    SELECT user_id, device_id, 'claim_next', replace(id, '-8000-', '-8030-'), printf('%064x', i), id, 1, 2, at FROM made;
INSERT INTO idempotency (user_id, device_id, operation, key, request_sha256, task_id, claim_generation, version, created_at)
    SELECT user_id, device_id, 'start', replace(id, '-8000-', '-8031-'), printf('%064x', i), id, 1, 3, at FROM made;
INSERT INTO results (idempotency_key, task_id, claim_generation, attempt_id, attempt_no, execution_id, user_id, device_id, event_type,
                     disposition, payload_sha256, body, late, task_status, received_at)
    SELECT 'result:' || id, id, 1, replace(id, '-8000-', '-8020-'), 1, replace(id, '-8000-', '-8010-'), user_id, device_id, 'collect_result',
           'succeeded', printf('%064x', i), json_object('seeded', printf('%0600d', i)), 0, 'SUCCEEDED', at FROM made;
INSERT INTO task_events (event_id, task_id, version, kind, actor, from_status, to_status, claim_generation, at)
    SELECT replace(id, '-8000-', v.tail), id, v.version, v.kind, 'buyer:' || user_id || '@' || device_id, v.was, v.is_now, 1, at
    FROM made, (SELECT 1 AS version, '-8001-' AS tail, 'TASK_CREATED' AS kind, NULL AS was, 'PENDING' AS is_now
                UNION ALL SELECT 2, '-8002-', 'TASK_CLAIMED', 'PENDING', 'CLAIMED'
                UNION ALL SELECT 3, '-8003-', 'RUN_STARTED', 'CLAIMED', 'RUNNING'
                UNION ALL SELECT 4, '-8004-', 'RESULT_ACCEPTED', 'RUNNING', 'SUCCEEDED') AS v;";

/// Brings the file to this many tasks. No server may have it open.
pub(crate) fn seed(path: &Path, now_ms: i64, pending: u64, finished: u64) -> Fallible<()> {
    let db = Connection::open(path)?;
    db.pragma_update(None, "synchronous", "OFF")?;
    db.pragma_update(None, "cache_size", -512_000)?;
    db.execute_batch(NUMBERS)?;
    // Finished tasks lie in the past, one each ten seconds; pending ones are of the last day.
    let year_ago = now_ms - 400 * 86_400_000;
    let have: u64 =
        db.query_row("SELECT count(*) FROM tasks WHERE created_at < ?1", [text(&db, now_ms - 2 * 86_400_000)?], |row| row.get(0))?;
    fill(&db, have..finished, year_ago, 10_000, FINISHED)?;
    let waiting: u64 = db.query_row("SELECT count(*) FROM tasks WHERE status = 'PENDING'", [], |row| row.get(0))?;
    let first: Option<u64> = db
        .query_row(
            "SELECT goods_id - 99999999 FROM tasks WHERE goods_id >= '200000000' ORDER BY created_at DESC, task_id DESC LIMIT 1",
            [],
            |row| row.get(0),
        )
        .optional()?;
    let first = first.unwrap_or(100_000_000);
    fill(&db, first..first + pending.saturating_sub(waiting), now_ms - 86_400_000 - 100_000_000 * 100, 100, PENDING)?;
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

fn text(db: &Connection, ms: i64) -> Fallible<String> {
    Ok(db.query_row("SELECT strftime('%Y-%m-%dT%H:%M:%fZ', ?1 / 1000.0, 'unixepoch')", [ms], |row| row.get(0))?)
}

fn fill(db: &Connection, range: std::ops::Range<u64>, from_ms: i64, apart_ms: i64, rows: &str) -> Fallible<()> {
    let mut at = range.start;
    while at < range.end {
        let to = (at + CHUNK).min(range.end);
        db.execute_batch("BEGIN; DELETE FROM made;")?;
        db.execute(MAKE, (at, to, from_ms, apart_ms))?;
        db.execute_batch(rows)?;
        db.execute_batch("COMMIT")?;
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        at = to;
    }
    Ok(())
}
