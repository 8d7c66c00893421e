//! The same claim on PostgreSQL, as one would write it there: `SELECT ... FOR UPDATE SKIP LOCKED`, statements prepared once, a connection per
//! device, two round trips a claim, with the same token check and the same
//! references. The HTTP front reads no body and writes no log.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};
use uuid::Uuid;

use crate::drive::{Call, Desk};
use crate::front::Front;
use crate::http::Http;
use crate::{DEVICES, Fallible};

const OWNER: &str = "SELECT d.device_id FROM access_tokens t JOIN devices d USING (device_id) JOIN users u USING (user_id)
    WHERE t.token_sha256 = $1 AND t.expires_at > now() AND NOT u.disabled";
const SEEN: &str = "SELECT request_sha256, task_id FROM idempotency
    WHERE user_id = $1 AND device_id = $2 AND operation = 'claim_next' AND key = $3";
const DEVICE: &str = "SELECT heartbeat_at > now() - interval '120 s' AND accessibility_connected AND pdd_installed AND rival_at IS NULL
    FROM devices WHERE device_id = $1";
const SLOT: &str = "SELECT task_id FROM tasks
    WHERE device_id = $1 AND (status IN ('CLAIMED', 'RUNNING') OR recollecting)
      AND (status = 'RUNNING' OR lease_expires_at > now()) LIMIT 1";
const OWN_EXPIRED: &str = "SELECT task_id FROM tasks WHERE device_id = $1 AND status = 'CLAIMED' AND lease_expires_at <= now()";
const CHOOSE: &str =
    "SELECT t.task_id, t.task_type, t.execution_mode, t.goods_id, t.goods_url, t.title, t.version, t.claim_generation FROM tasks t
    WHERE t.status IN ('PENDING', 'CLAIMED') AND (t.status = 'PENDING' OR t.lease_expires_at <= now())
      AND NOT EXISTS (SELECT 1 FROM dispatches d
                      WHERE d.task_id = t.task_id AND d.device_id = $1 AND d.released_at > now() - interval '10 min')
    ORDER BY t.created_at, t.task_id LIMIT 1 FOR UPDATE OF t SKIP LOCKED";
const TAKE: &str = "UPDATE tasks SET status = 'CLAIMED', version = version + 1, claim_generation = claim_generation + 1, user_id = $2,
    device_id = $3, claim_token_sha256 = $4, lease_expires_at = now() + interval '10 min', updated_at = now() WHERE task_id = $1";
const DISPATCH: &str =
    "INSERT INTO dispatches (task_id, claim_generation, user_id, device_id, dispatched_at) VALUES ($1, $2, $3, $4, now())";
const EVENT: &str = "INSERT INTO task_events (event_id, task_id, version, kind, actor, from_status, to_status, claim_generation, at)
    VALUES ($1, $2, $3, 'TASK_CLAIMED', $4, 'PENDING', 'CLAIMED', $5, now())";
const KEEP: &str =
    "INSERT INTO idempotency (user_id, device_id, operation, key, request_sha256, task_id, claim_generation, version, created_at)
    VALUES ($1, $2, 'claim_next', $3, $4, $5, $6, $7, now())";
const FINISH: &str = "UPDATE tasks SET status = 'SUCCEEDED', version = version + 1, lease_expires_at = NULL, updated_at = now()
    WHERE task_id = $1 AND device_id = $2 AND status = 'CLAIMED'";
const RESULT: &str = "INSERT INTO results (idempotency_key, task_id, body, received_at) VALUES ($1, $2, $3, now())";

/// A finished task as many rows as ours has in the tables a claim touches; ids by number, in the order of their times.
const SEED: &str = "
INSERT INTO tasks (task_id, task_type, execution_mode, goods_id, goods_url, status, version, claim_generation, user_id, device_id,
                   claim_token_sha256, created_by, created_at, updated_at)
    SELECT lpad(to_hex(i), 32, '0')::uuid, 'collect', 'dry_run', 100000000 + i, 'https://mobile.yangkeduo.com/goods.html?goods_id=' || (100000000 + i),
           'SUCCEEDED', 4, 1, d.user_id, d.device_id, lpad(i::text, 64, '0'), 'console', at, at
    FROM made JOIN (SELECT row_number() OVER () - 1 AS n, * FROM devices) d ON d.n = i % (SELECT count(*) FROM devices);
INSERT INTO dispatches (task_id, claim_generation, user_id, device_id, dispatched_at)
    SELECT task_id, 1, user_id, device_id, at FROM made JOIN tasks ON task_id = lpad(to_hex(i), 32, '0')::uuid;
INSERT INTO idempotency SELECT user_id, device_id, o, task_id, claim_token_sha256, task_id, 1, 2, at
    FROM made JOIN tasks ON task_id = lpad(to_hex(i), 32, '0')::uuid, (VALUES ('claim_next'), ('start')) AS v(o);
INSERT INTO results SELECT 'result:' || task_id, task_id, lpad(i::text, 600, '0'), at
    FROM made JOIN tasks ON task_id = lpad(to_hex(i), 32, '0')::uuid;
INSERT INTO task_events SELECT lpad(to_hex(i * 4 + v), 32, '0')::uuid, lpad(to_hex(i), 32, '0')::uuid, v + 1, 'TASK_MOVED', 'buyer', 'PENDING',
    'CLAIMED', 1, at FROM made, generate_series(0, 3) AS v;";
const SEED_PENDING: &str = "
INSERT INTO tasks (task_id, task_type, execution_mode, goods_id, goods_url, status, version, created_by, created_at, updated_at)
    SELECT lpad(to_hex(i), 32, '0')::uuid, 'collect', 'dry_run', 100000000 + i, 'https://mobile.yangkeduo.com/goods.html?goods_id=' || (100000000 + i),
           'PENDING', 1, 'console', at, at FROM made;
INSERT INTO task_events SELECT lpad(to_hex(i * 4), 32, '0')::uuid, lpad(to_hex(i), 32, '0')::uuid, 1, 'TASK_CREATED', 'console', NULL, 'PENDING', 0, at
    FROM made;";
/// Numbers of pending tasks begin here.
const FIRST_PENDING: i64 = 100_000_000;

pub(crate) struct Peer {
    connection: String,
    admin: Client,
}

async fn connect(connection: &str) -> Fallible<Client> {
    let (client, link) = tokio_postgres::connect(connection, NoTls).await?;
    tokio::spawn(link);
    Ok(client)
}

impl Peer {
    pub(crate) async fn new(connection: &str) -> Fallible<Self> {
        let admin = connect(connection).await?;
        admin.batch_execute(include_str!("peer.sql")).await?;
        // A user each: nothing but the tasks is shared between two claims.
        let make = format!(
            "INSERT INTO users SELECT gen_random_uuid() FROM generate_series(1, {DEVICES});
             INSERT INTO devices SELECT gen_random_uuid(), user_id, NULL, true, true, NULL FROM users;
             INSERT INTO access_tokens SELECT lpad(device_id::text, 64, '0'), device_id, now() + interval '1 day' FROM devices;"
        );
        admin.batch_execute(&make).await?;
        Ok(Self { connection: connection.to_owned(), admin })
    }

    pub(crate) async fn seed(&self, pending: u64, finished: u64) -> Fallible<()> {
        let count = async |what: &str| Fallible::Ok(self.admin.query_one(what, &[]).await?.get::<_, i64>(0));
        let (pending, finished) = (i64::try_from(pending)?, i64::try_from(finished)?);
        let have = count("SELECT count(*) FROM tasks WHERE created_at < now() - interval '2 days'").await?;
        self.fill(have, finished, "now() - interval '400 days' + i * interval '10 s'", SEED).await?;
        let waiting = count("SELECT count(*) FROM tasks WHERE status = 'PENDING'").await?;
        let last = count("SELECT coalesce(max(goods_id::bigint), 0) - 100000000 + 1 FROM tasks").await?.max(FIRST_PENDING);
        let at = format!("now() - interval '1 day' + (i - {FIRST_PENDING}) * interval '100 ms'");
        self.fill(last, last + (pending - waiting).max(0), &at, SEED_PENDING).await?;
        self.admin.batch_execute("VACUUM ANALYZE").await?;
        self.admin.batch_execute("CHECKPOINT").await?;
        Ok(())
    }

    async fn fill(&self, from: i64, to: i64, at: &str, rows: &str) -> Fallible<()> {
        if from >= to {
            return Ok(());
        }
        let made = format!(
            "CREATE TEMP TABLE made ON COMMIT DROP AS SELECT i, {at} AS at FROM generate_series({from}::bigint, {}::bigint) AS i",
            to - 1
        );
        self.admin.batch_execute(&format!("BEGIN; SET LOCAL synchronous_commit = off; SET LOCAL session_replication_role = replica; {made}; ANALYZE made; {rows} COMMIT;")).await?;
        Ok(())
    }

    pub(crate) async fn open(&self) -> Fallible<Open> {
        // A run is shorter than this keeps them ready.
        self.admin.batch_execute("UPDATE devices SET heartbeat_at = now() + interval '1 day'").await?;
        let rows = self.admin.query("SELECT device_id, user_id FROM devices", &[]).await?;
        let devices: Vec<(Uuid, Uuid)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let connection = self.connection.clone();
        let front = Front::open(|listener, stopped| async move {
            let mut lines = Vec::with_capacity(devices.len());
            for (device, user) in devices {
                lines.push(Line::new(&connection, device, user).await?);
            }
            let router =
                Router::new().route("/claim/{n}", post(claim)).route("/result/{n}/{task}", post(finish)).with_state(Arc::new(lines));
            let stop = async move {
                // A dropped sender stops the server as well.
                let _ = stopped.await;
            };
            Ok(axum::serve(listener, router).with_graceful_shutdown(stop).await?)
        })?;
        Ok(Open { front })
    }
}

type Arg<'a> = &'a (dyn ToSql + Sync);

/// One device's connection.
struct Line {
    client: Client,
    device: Uuid,
    user: Uuid,
    access: String,
    owner: Statement,
    seen: Statement,
    ready: Statement,
    slot: Statement,
    own_expired: Statement,
    choose: Statement,
    take: Statement,
    dispatch: Statement,
    event: Statement,
    keep: Statement,
    finish: Statement,
    result: Statement,
}

impl Line {
    async fn new(connection: &str, device: Uuid, user: Uuid) -> Fallible<Self> {
        let client = connect(connection).await?;
        Ok(Self {
            access: format!("{:0>64}", device.to_string()),
            owner: client.prepare(OWNER).await?,
            seen: client.prepare(SEEN).await?,
            ready: client.prepare(DEVICE).await?,
            slot: client.prepare(SLOT).await?,
            own_expired: client.prepare(OWN_EXPIRED).await?,
            choose: client.prepare(CHOOSE).await?,
            take: client.prepare(TAKE).await?,
            dispatch: client.prepare(DISPATCH).await?,
            event: client.prepare(EVENT).await?,
            keep: client.prepare(KEEP).await?,
            finish: client.prepare(FINISH).await?,
            result: client.prepare(RESULT).await?,
            client,
            device,
            user,
        })
    }

    /// `None` when there is nothing to claim or something forbids it.
    async fn claim(&self) -> Result<Option<Value>, tokio_postgres::Error> {
        let (key, token) = (Uuid::now_v7(), format!("{:064x}", rand::random::<u128>()));
        let (db, device, user) = (&self.client, &self.device, &self.user);
        let (by_key, by_device, by_token): ([Arg<'_>; 3], [Arg<'_>; 1], [Arg<'_>; 1]) = ([user, device, &key], [device], [&self.access]);
        let (_, owner, seen, ready, slot, own, found) = tokio::try_join!(
            biased;
            db.batch_execute("BEGIN"),
            db.query_opt(&self.owner, &by_token),
            db.query_opt(&self.seen, &by_key),
            db.query_one(&self.ready, &by_device),
            db.query_opt(&self.slot, &by_device),
            db.query_opt(&self.own_expired, &by_device),
            db.query_opt(&self.choose, &by_device),
        )?;
        let is_free = owner.is_some_and(|owner| owner.get::<_, Uuid>(0) == *device)
            && seen.is_none()
            && ready.get::<_, Option<bool>>(0) == Some(true)
            && slot.is_none()
            && own.is_none();
        let Some(task) = found.filter(|_| is_free) else {
            db.batch_execute("ROLLBACK").await?;
            return Ok(None);
        };
        let id: Uuid = task.get(0);
        let (version, generation) = (task.get::<_, i64>(6) + 1, task.get::<_, i64>(7) + 1);
        let (event, actor) = (Uuid::now_v7(), format!("buyer:{user}@{device}"));
        let take: [Arg<'_>; 4] = [&id, user, device, &token];
        let dispatch: [Arg<'_>; 4] = [&id, &generation, user, device];
        let moved: [Arg<'_>; 5] = [&event, &id, &version, &actor, &generation];
        let keep: [Arg<'_>; 7] = [user, device, &key, &token, &id, &generation, &version];
        tokio::try_join!(
            biased;
            db.execute(&self.take, &take),
            db.execute(&self.dispatch, &dispatch),
            db.execute(&self.event, &moved),
            db.execute(&self.keep, &keep),
            db.batch_execute("COMMIT"),
        )?;
        let text = |at: usize| task.get::<_, Option<String>>(at);
        Ok(Some(json!({
            "task_id": id, "version": version, "claim_generation": generation, "task_type": text(1), "execution_mode": text(2),
            "goods_id": text(3), "goods_url": text(4), "title": text(5),
        })))
    }

    async fn finish(&self, task: Uuid, body: &str) -> Result<bool, tokio_postgres::Error> {
        let (db, event, key, actor) = (&self.client, Uuid::now_v7(), format!("result:{}", Uuid::now_v7()), format!("buyer:{}", self.user));
        let (finish, result): ([Arg<'_>; 2], [Arg<'_>; 3]) = ([&task, &self.device], [&key, &task, &body]);
        let moved: [Arg<'_>; 5] = [&event, &task, &3_i64, &actor, &1_i64];
        let (_, finished, ..) = tokio::try_join!(
            biased;
            db.batch_execute("BEGIN"),
            db.execute(&self.finish, &finish),
            db.execute(&self.result, &result),
            db.execute(&self.event, &moved),
            db.batch_execute("COMMIT"),
        )?;
        Ok(finished == 1)
    }
}

type Lines = State<Arc<Vec<Line>>>;

fn failed(error: impl std::fmt::Display) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

async fn claim(State(lines): Lines, Path(n): Path<usize>) -> Result<Json<Value>, (StatusCode, String)> {
    let line = lines.get(n).ok_or_else(|| failed("no such device"))?;
    line.claim().await.map_err(failed)?.map(Json).ok_or_else(|| failed("nothing to claim"))
}

async fn finish(State(lines): Lines, Path((n, task)): Path<(usize, Uuid)>, body: String) -> Result<&'static str, (StatusCode, String)> {
    let line = lines.get(n).ok_or_else(|| failed("no such device"))?;
    if line.finish(task, &body).await.map_err(failed)? { Ok("finished") } else { Err(failed("not this device's task")) }
}

pub(crate) struct Open {
    front: Front,
}

impl Open {
    pub(crate) async fn desks(&self, many: usize) -> Fallible<Vec<PeerDesk>> {
        let mut desks = Vec::with_capacity(many);
        for n in 0..many {
            desks.push(PeerDesk { http: Http::connect(self.front.address).await?, n, held: None });
        }
        Ok(desks)
    }

    pub(crate) fn close(self) -> Fallible<()> {
        self.front.close()
    }
}

pub(crate) struct PeerDesk {
    http: Http,
    n: usize,
    held: Option<String>,
}

impl Desk for PeerDesk {
    async fn call(&mut self, call: Call) -> Fallible<()> {
        match call {
            Call::Claim => {
                let answer = self.http.post(&format!("/claim/{}", self.n), "", b"").await?;
                let answer: Value = serde_json::from_slice(&answer)?;
                self.held = Some(answer["task_id"].as_str().ok_or("a claim without a task")?.to_owned());
            }
            Call::Result => {
                let task = self.held.take().ok_or("a result without a claim")?;
                self.http.post(&format!("/result/{}/{task}", self.n), "", &[b'x'; 2048]).await?;
            }
            Call::Start | Call::RunBeat | Call::Beat => return Err("the peer has only claims and results".into()),
        }
        Ok(())
    }
}
