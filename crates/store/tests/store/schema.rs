//! The schema is 03's, plus named additions, and it refuses bad values by itself.

use std::path::PathBuf;

use crate::support::{Bench, at};

const DDL_03: &str = include_str!("ddl_03.sql");

/// Comments away, white space single, keywords as written.
fn normal(sql: &str) -> String {
    let without_comments: Vec<&str> = sql.lines().map(|line| line.split("--").next().unwrap_or_default()).collect();
    let words: Vec<&str> = without_comments.iter().flat_map(|line| line.split_whitespace()).collect();
    words.join(" ").replace("( ", "(").replace(" )", ")")
}

fn statements(sql: &str) -> Vec<String> {
    normal(sql).split(';').map(|s| s.trim().to_owned()).filter(|s| !s.is_empty()).collect()
}

/// What stands between the outer brackets, split at its top-level commas.
fn parts(statement: &str) -> Vec<String> {
    let open = statement.find('(').expect("a CREATE has brackets");
    let close = statement.rfind(')').expect("a CREATE has brackets");
    let (mut depth, mut out) = (0, vec![String::new()]);
    for c in statement[open + 1..close].chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if c == ',' && depth == 0 { out.push(String::new()) } else { out.last_mut().expect("never empty").push(c) }
    }
    out.iter().map(|p| p.trim().to_owned()).collect()
}

fn is_constraint(part: &str) -> bool {
    ["FOREIGN KEY", "UNIQUE (", "UNIQUE(", "CHECK"].iter().any(|word| part.starts_with(word))
}

#[tokio::test]
async fn tables_columns_checks_and_indexes_of_03_are_all_there() {
    let bench = Bench::new();
    let raw = bench.raw();
    for wanted in statements(DDL_03) {
        let name = wanted.split(['(', ' ']).nth(2).expect("CREATE TABLE name").to_owned();
        let sql: String = raw
            .query_row("SELECT sql FROM sqlite_master WHERE name = ?1", [&name], |row| row.get(0))
            .unwrap_or_else(|e| panic!("03 defines {name}: {e}"));
        let real = normal(&sql);
        if wanted.starts_with("CREATE INDEX") {
            assert_eq!(real, wanted, "index {name} must be exactly 03's");
            continue;
        }
        let (wanted, real) = (parts(&wanted), parts(&real));
        let columns = |all: &[String]| all.iter().filter(|p| !is_constraint(p)).cloned().collect::<Vec<_>>();
        let constraints = |all: &[String]| all.iter().filter(|p| is_constraint(p)).cloned().collect::<Vec<_>>();
        let (wanted_columns, real_columns) = (columns(&wanted), columns(&real));
        assert!(real_columns.len() >= wanted_columns.len(), "{name} lacks columns of 03");
        assert_eq!(real_columns[..wanted_columns.len()], wanted_columns[..], "{name}: 03's columns come first and are exactly its own");
        assert_eq!(constraints(&real), constraints(&wanted), "{name}: table constraints are 03's");
    }
}

#[test]
fn the_transcription_is_the_seeds() {
    let shared = std::env::var_os("CMAUTOBUY_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let Ok(seed) = std::fs::read_to_string(shared.join("seeds/client-data-model.md")) else { return };
    // The seed's lines are set apart by lines of bars.
    let lines = seed.lines().map(str::trim_end).filter(|line| !line.chars().all(|c| c == '|'));
    let (mut sql, mut inside) = (String::new(), false);
    for line in lines {
        match line.trim() {
            "```sql" => inside = true,
            "```" => inside = false,
            _ if inside => {
                sql.push_str(line);
                sql.push('\n');
            }
            _ => {}
        }
    }
    let seeds: Vec<String> = statements(&sql).into_iter().filter(|s| s.starts_with("CREATE")).collect();
    assert_eq!(seeds, statements(DDL_03), "the DDL this crate is tested against must be 03's, word for word");
}

#[tokio::test]
async fn additions_are_there_and_nothing_else() {
    let bench = Bench::new();
    let names: Vec<String> = bench
        .raw()
        .prepare("SELECT type || ' ' || name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY 1")
        .expect("master")
        .query_map([], |row| row.get(0))
        .expect("rows")
        .collect::<Result<_, _>>()
        .expect("names");
    insta::assert_snapshot!(names.join("\n"), @r"
    index idx_claim_attempts_open
    index idx_outbox_pending
    index idx_outbox_task
    index idx_pdd_tasks_goods_id
    index idx_pdd_tasks_list
    index idx_pdd_tasks_status_type
    index idx_pdd_tasks_visible_list
    index idx_run_artifacts_run
    index idx_server_calls_open
    index idx_server_calls_task
    index idx_task_runs_task
    table app_settings
    table claim_attempts
    table identity
    table outbox_events
    table pdd_tasks
    table remembered_phones
    table run_artifacts
    table sealed_secrets
    table server_calls
    table task_runs
    ");
}

#[tokio::test]
async fn every_check_refuses_its_bad_value() {
    let bench = Bench::new();
    let (_, run) = bench.running(1).await;
    bench.collected(run, 3).await;
    let raw = bench.raw();
    raw.pragma_update(None, "foreign_keys", true).expect("pragma");
    let now = at(0).to_string();
    let attempt = |state: &str, sealed: &str, remote: &str, key: &str| {
        format!(
            "INSERT INTO claim_attempts (idempotency_key, token_sha256, sealed_token, state, user_id, device_id, remote_task_id, created_at, \
             updated_at) VALUES ('{key}', 'h', {sealed}, '{state}', 'u', 'd', {remote}, '{now}', '{now}')"
        )
    };
    let call = |kind: &str, aim: &str, attempt: &str, no: &str, state: &str| {
        let key = format!("{kind}{aim}{attempt}{no}{state}").replace('\'', "");
        format!(
            "INSERT INTO server_calls (task_id, kind, release_aim, idempotency_key, body_json, attempt_id, attempt_no, state, created_at, \
             updated_at) VALUES (1, '{kind}', {aim}, '{key}', '{{}}', {attempt}, {no}, '{state}', '{now}', '{now}')"
        )
    };
    let artifact = |path: &str, sha: &str, size: i64, run: i64| {
        format!(
            "INSERT INTO run_artifacts (run_id, kind, relative_path, sha256, size_bytes, summary, created_at) \
             VALUES ({run}, 'log', '{path}', '{sha}', {size}, 's', '{now}')"
        )
    };
    let hash = "a".repeat(64);
    raw.execute_batch(&attempt("prepared", "x'00'", "NULL", "k1")).expect("one prepared attempt is fine");
    for (name, sql) in [
        ("task_type", "UPDATE pdd_tasks SET task_type = 'look'".to_owned()),
        ("execution_mode", "UPDATE pdd_tasks SET execution_mode = 'LIVE'".to_owned()),
        ("price_cent", "UPDATE pdd_tasks SET price_cent = -1".to_owned()),
        ("quantity", "UPDATE pdd_tasks SET quantity = 0".to_owned()),
        ("status pending", "UPDATE pdd_tasks SET status = 'pending'".to_owned()),
        ("status of the server", "UPDATE pdd_tasks SET status = 'SUCCEEDED'".to_owned()),
        ("version", "UPDATE pdd_tasks SET version = 0".to_owned()),
        ("retry_count", "UPDATE pdd_tasks SET retry_count = -1".to_owned()),
        ("claim_generation", "UPDATE pdd_tasks SET claim_generation = -1".to_owned()),
        ("server_version", "UPDATE pdd_tasks SET server_version = -1".to_owned()),
        ("max_price_cent", "UPDATE pdd_tasks SET max_price_cent = -1".to_owned()),
        ("owner_user_id", "UPDATE pdd_tasks SET owner_user_id = NULL".to_owned()),
        ("goods_url", "UPDATE pdd_tasks SET goods_url = NULL".to_owned()),
        ("attempt_no", "UPDATE task_runs SET attempt_no = 0".to_owned()),
        ("run_status", "UPDATE task_runs SET run_status = 'claimed'".to_owned()),
        (
            "second run with the same number",
            "INSERT INTO task_runs (task_id, attempt_id, attempt_no, device_address, run_status, started_at, created_at, updated_at) \
             SELECT task_id, 'other', attempt_no, '', 'failed', '', '', '' FROM task_runs"
                .to_owned(),
        ),
        (
            "run of no task",
            "INSERT INTO task_runs (task_id, attempt_id, attempt_no, device_address, run_status, started_at, created_at, updated_at) \
             VALUES (99, 'other', 1, '', 'failed', '', '', '')"
                .to_owned(),
        ),
        ("event_type", "UPDATE outbox_events SET event_type = 'result'".to_owned()),
        ("outbox status", "UPDATE outbox_events SET status = 'accepted'".to_owned()),
        ("attempt_count", "UPDATE outbox_events SET attempt_count = -1".to_owned()),
        ("abandoned but not refused", "UPDATE outbox_events SET abandoned_at = 'x'".to_owned()),
        (
            "second row under one key",
            "INSERT INTO outbox_events (task_id, event_type, idempotency_key, payload_json, created_at, updated_at, user_id, device_id, attempt_id) \
             SELECT task_id, event_type, idempotency_key, '{}', '', '', '', '', '' FROM outbox_events"
                .to_owned(),
        ),
        ("attempt state", attempt("open", "NULL", "NULL", "k2")),
        ("second prepared attempt", attempt("prepared", "x'00'", "NULL", "k2")),
        ("prepared without token", attempt("prepared", "NULL", "NULL", "k2")),
        ("settled with token", attempt("expired", "x'00'", "NULL", "k2")),
        ("claimed without task", attempt("claimed", "NULL", "NULL", "k2")),
        ("refused with task", attempt("refused", "NULL", "'t'", "k2")),
        ("call kind", call("heartbeat", "NULL", "NULL", "NULL", "done")),
        ("call state", call("cancel_ack", "NULL", "NULL", "NULL", "sent")),
        ("release without aim", call("release", "NULL", "NULL", "NULL", "done")),
        ("release aim", call("release", "'tired'", "NULL", "NULL", "done")),
        ("start with aim", call("start", "'operator_stopped'", "'a'", "1", "done")),
        ("start without attempt", call("start", "NULL", "NULL", "NULL", "done")),
        ("cancel-ack with attempt", call("cancel_ack", "NULL", "'a'", "1", "done")),
        ("attempt without number", call("start", "NULL", "'a'", "NULL", "done")),
        ("attempt number zero", call("start", "NULL", "'a'", "0", "done")),
        (
            "second open call",
            format!("{}; {}", call("cancel_ack", "NULL", "NULL", "NULL", "open"), call("release", "'operator_stopped'", "NULL", "NULL", "open")),
        ),
        ("artifact path empty", artifact("", &hash, 1, 1)),
        ("artifact path with colon", artifact("a/12:00.xml", &hash, 1, 1)),
        ("artifact hash", artifact("a/b", "short", 1, 1)),
        ("artifact size", artifact("a/b", &hash, -1, 1)),
        ("artifact of no run", artifact("a/b", &hash, 1, 99)),
        ("second identity", format!("INSERT INTO identity (id, device_id, created_at) VALUES (2, 'd', '{now}')")),
    ] {
        raw.execute_batch("BEGIN").expect("begin");
        let refused = raw.execute_batch(&sql).expect_err(&format!("{name}: the table itself must refuse it: {sql}"));
        assert!(
            refused.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation),
            "{name}: refused by a constraint, not by a mistake in the test: {refused}"
        );
        raw.execute_batch("ROLLBACK").expect("rollback");
    }
    for (name, sql) in [
        ("a whole start", call("start", "NULL", "'a'", "1", "done")),
        ("a whole release", call("release", "'phone_unreachable'", "NULL", "NULL", "done")),
        ("a whole artifact", artifact("2026-08-06/t/1/tree.xml", &hash, 1, 1)),
        ("an expired attempt", attempt("expired", "NULL", "NULL", "k3")),
        ("a claimed attempt", attempt("claimed", "NULL", "'t'", "k4")),
    ] {
        raw.execute_batch(&sql).unwrap_or_else(|e| panic!("{name} is well formed, or the rows above prove nothing: {e}"));
    }
}

#[tokio::test]
async fn text_the_codec_does_not_know_is_an_error() {
    let bench = Bench::new();
    let (task, run) = bench.running(1).await;
    bench.collected(run, 3).await;
    let raw = bench.raw();
    raw.pragma_update(None, "ignore_check_constraints", true).expect("pragma");
    for (sql, what) in [
        ("UPDATE pdd_tasks SET status = 'paused'", "status"),
        ("UPDATE pdd_tasks SET status = 'claimed', task_type = 'look'", "task_type"),
        ("UPDATE pdd_tasks SET task_type = 'collect', execution_mode = 'semi'", "execution_mode"),
        ("UPDATE pdd_tasks SET execution_mode = 'live', received_at = 'yesterday'", "received_at"),
        ("UPDATE pdd_tasks SET received_at = '2026-08-06T08:00:00.000Z', remote_task_id = 'T-1'", "remote_task_id"),
        ("UPDATE pdd_tasks SET remote_task_id = '00000000-0000-0000-0000-000000000001', price_cent = -5", "price_cent"),
        ("UPDATE pdd_tasks SET price_cent = 5; UPDATE task_runs SET run_status = 'paused'", "run_status"),
        ("UPDATE task_runs SET run_status = 'failed'; UPDATE outbox_events SET status = 'paused'", "status"),
        ("UPDATE outbox_events SET status = 'sent', event_type = 'paused'", "event_type"),
    ] {
        raw.execute_batch(sql).expect("spoiling works without checks");
        let error = bench.store.read(move |r| r.task_detail(task)).await.expect_err("unknown text must never become a default");
        let text = error.to_string();
        assert!(text.contains(what), "the error names the column {what}: {text}");
        assert!(error.is_permanent(), "asking again does not change what is stored");
    }
}
