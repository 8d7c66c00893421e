//! The real server on a loopback socket, and devices that speak its protocol.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use cmautobuy_protocol::admin::{AuthorizeDevice, CreateUser};
use cmautobuy_protocol::auth::Role;
use cmautobuy_protocol::device::DeviceHeartbeat;
use cmautobuy_protocol::lifecycle::{ClaimAnswer, ClaimRequest, RunHeartbeat, Standing, StartRequest};
use cmautobuy_protocol::pdd_data::{Dimension, DimensionValue, Goods, Metrics, PddData, PriceGranularity, Shop, Sku, Source};
use cmautobuy_protocol::result::{Disposition, EventType, ResultBody, result_key};
use cmautobuy_protocol::secret::sha256_hex;
use cmautobuy_protocol::{API_BASE, AttemptId, DeviceId, InstanceId, Password};
use cmautobuy_server::{Clock, Config, Server, SystemClock};
use rusqlite::Connection;
use serde_json::Map;
use uuid::Uuid;

use crate::drive::{Call, Desk};
use crate::front::Front;
use crate::http::Http;
use crate::{DEVICES, Fallible, seed};

pub(crate) struct Ours {
    dir: PathBuf,
    devices: Vec<(DeviceId, String)>,
    instance: InstanceId,
}

fn config(dir: &Path) -> Config {
    Config { data_dir: dir.to_owned(), ..Config::default() }
}

fn open(dir: &Path) -> Fallible<Server> {
    Ok(Server::open(config(dir), Arc::new(SystemClock))?)
}

impl Ours {
    /// A fresh database with one buyer on [`DEVICES`] devices.
    pub(crate) fn new(dir: &Path) -> Fallible<Self> {
        let server = open(dir)?;
        let new = CreateUser::new("buyer", Password::new("the-password-of-the-bench"), vec![Role::Buyer]);
        let user_id = server.admin().create_user(&new)?.user_id;
        let mut devices = Vec::with_capacity(DEVICES);
        for n in 0..DEVICES {
            let device_id = DeviceId::from_uuid(Uuid::now_v7());
            server.admin().authorize_device(&AuthorizeDevice { device_id, user_id, name: format!("desk {n}") })?;
            devices.push((device_id, random_token()));
        }
        drop(server);
        // A login hashes a password and is limited by name; a hundred of them would be the slowest part of the run.
        let db = Connection::open(config(dir).database())?;
        for (device, token) in &devices {
            let session = Uuid::now_v7().to_string();
            let row = (&session, user_id.to_string(), device.to_string());
            db.execute("INSERT INTO sessions VALUES (?1, ?2, ?3, '2026-01-01T00:00:00.000Z')", row)?;
            db.execute("INSERT INTO access_tokens VALUES (?1, ?2, '9999-01-01T00:00:00.000Z')", (sha256_hex(token.as_bytes()), &session))?;
        }
        Ok(Self { dir: dir.to_owned(), devices, instance: InstanceId::from_uuid(Uuid::now_v7()) })
    }

    pub(crate) fn seed(&self, pending: u64, finished: u64) -> Fallible<()> {
        seed::seed(&config(&self.dir).database(), SystemClock.now().unix_ms(), pending, finished)
    }

    pub(crate) fn open(&self) -> Fallible<Open> {
        let server = open(&self.dir)?;
        let front = Front::open(|listener, stopped| async move {
            let stop = async move {
                // A dropped sender stops the server as well.
                let _ = stopped.await;
            };
            Ok(server.serve(listener, stop).await?)
        })?;
        Ok(Open { front, devices: self.devices.clone(), instance: self.instance })
    }
}

pub(crate) struct Open {
    front: Front,
    devices: Vec<(DeviceId, String)>,
    instance: InstanceId,
}

impl Open {
    /// The first `many` devices, heard of and ready.
    pub(crate) async fn desks(&self, many: usize) -> Fallible<Vec<OurDesk>> {
        let mut desks = Vec::with_capacity(many);
        for (device, access) in self.devices.iter().take(many) {
            let mut desk = OurDesk {
                http: Http::connect(self.front.address).await?,
                device: *device,
                // One folder for the whole run, so that no device has to wait out its former instance.
                instance: self.instance,
                authorization: format!("authorization: Bearer {access}\r\n"),
                held: None,
            };
            desk.beat().await?;
            desks.push(desk);
        }
        Ok(desks)
    }

    pub(crate) fn close(self) -> Fallible<()> {
        self.front.close()
    }
}

struct Held {
    standing: Standing,
    token: String,
    attempt: AttemptId,
}

pub(crate) struct OurDesk {
    http: Http,
    device: DeviceId,
    instance: InstanceId,
    authorization: String,
    held: Option<Held>,
}

impl Desk for OurDesk {
    async fn call(&mut self, call: Call) -> Fallible<()> {
        match call {
            Call::Claim => self.claim().await,
            Call::Start => self.start().await,
            Call::RunBeat => self.run_beat().await,
            Call::Result => self.result().await,
            Call::Beat => self.beat().await,
        }
    }
}

fn random_token() -> String {
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

impl OurDesk {
    async fn claim(&mut self) -> Fallible<()> {
        let token = random_token();
        let headers = format!("{}x-claim-token: {token}\r\nidempotency-key: {}\r\n", self.authorization, Uuid::now_v7());
        let body = serde_json::to_vec(&ClaimRequest { device_id: self.device })?;
        let answer = self.http.post(&format!("{API_BASE}/tasks/claim-next"), &headers, &body).await?;
        let answer: ClaimAnswer = serde_json::from_slice(&answer)?;
        self.held = Some(Held { standing: answer.standing, token, attempt: AttemptId::from_uuid(Uuid::now_v7()) });
        Ok(())
    }

    async fn start(&mut self) -> Fallible<()> {
        let held = self.held.as_mut().ok_or("start without a claim")?;
        let body = StartRequest {
            claim_generation: held.standing.claim_generation,
            expected_version: held.standing.version,
            attempt_id: held.attempt,
            attempt_no: 1,
        };
        let headers = format!("{}x-claim-token: {}\r\nidempotency-key: {}\r\n", self.authorization, held.token, Uuid::now_v7());
        let path = format!("{API_BASE}/tasks/{}/start", held.standing.task_id);
        held.standing = serde_json::from_slice(&self.http.post(&path, &headers, &serde_json::to_vec(&body)?).await?)?;
        Ok(())
    }

    async fn run_beat(&mut self) -> Fallible<()> {
        let held = self.held.as_ref().ok_or("a run heartbeat without a run")?;
        let body = RunHeartbeat {
            claim_generation: held.standing.claim_generation,
            execution_id: held.standing.execution_id.ok_or("a run without an execution")?,
            step: "read the goods".to_owned(),
        };
        let headers = format!("{}x-claim-token: {}\r\n", self.authorization, held.token);
        let path = format!("{API_BASE}/tasks/{}/heartbeat", held.standing.task_id);
        self.http.post(&path, &headers, &serde_json::to_vec(&body)?).await?;
        Ok(())
    }

    async fn result(&mut self) -> Fallible<()> {
        let held = self.held.take().ok_or("a result without a run")?;
        let body = result_body(&held)?;
        let key = result_key(held.standing.task_id, held.attempt, body.event_type);
        let headers = format!("{}idempotency-key: {}\r\n", self.authorization, key.as_str());
        let path = format!("{API_BASE}/tasks/{}/results", held.standing.task_id);
        self.http.post(&path, &headers, &serde_json::to_vec(&body)?).await?;
        Ok(())
    }

    async fn beat(&mut self) -> Fallible<()> {
        let beat = DeviceHeartbeat {
            device_id: self.device,
            instance_id: self.instance,
            predecessors: Vec::new(),
            phone_serial: Some(format!("phone of {}", self.device)),
            app_version: "0.1.0".to_owned(),
            android_version: Some("14".to_owned()),
            pdd_version: Some("7.30.0".to_owned()),
            accessibility_connected: true,
            pdd_installed: true,
            active_task_id: None,
            client_time: SystemClock.now(),
        };
        self.http.post(&format!("{API_BASE}/devices/heartbeat"), &self.authorization, &serde_json::to_vec(&beat)?).await?;
        Ok(())
    }
}

/// A collect result with ten priced variants, a few kB, as a desk sends it.
fn result_body(held: &Held) -> Fallible<ResultBody> {
    let now = SystemClock.now();
    let color = |n: u64| BTreeMap::from([("color".to_owned(), format!("color {n}"))]);
    let values = (0..10).map(|n| DimensionValue { text: format!("color {n}"), available: true, extra: Map::new() });
    let dimension = Dimension { key: "color".to_owned(), name: "color".to_owned(), values: values.collect(), extra: Map::new() };
    let skus = (0..10).map(|n| Sku {
        options: color(n),
        price_cent: Some(1990 + n),
        list_price_cent: Some(2990),
        price_observed_at: color(n),
        currency: "CNY".to_owned(),
        available: true,
        raw_price: Some("19.9".to_owned()),
        extra: Map::new(),
    });
    let pdd_data = PddData {
        schema_version: 1,
        goods: Goods { goods_id: "1000".to_owned(), url: String::new(), title: "cup".to_owned(), extra: Map::new() },
        shop: Shop { name: Some("cups".to_owned()), extra: Map::new() },
        metrics: Metrics { sales: None, reviews: None, extra: Map::new() },
        dimensions: vec![dimension],
        skus: skus.collect(),
        price_granularity: PriceGranularity::Color,
        purchase: None,
        captured_at: now,
        source: Source {
            client_id: "bench".to_owned(),
            device_address: "bench".to_owned(),
            pdd_package: "com.xunmeng.pinduoduo".to_owned(),
            extra: Map::new(),
        },
        artifacts: Vec::new(),
        extra: Map::new(),
    };
    Ok(ResultBody {
        schema_version: 1,
        event_type: EventType::CollectResult,
        disposition: Disposition::Succeeded,
        claim_generation: held.standing.claim_generation,
        execution_id: held.standing.execution_id,
        attempt_id: held.attempt,
        attempt_no: 1,
        pdd_data: Some(pdd_data),
        failure: None,
        finished_at: now,
    })
}
