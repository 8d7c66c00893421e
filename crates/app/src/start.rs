//! Building the house, in the order in which nothing is lost: folder, log, secrets, store, crash recovery, and only then the loops.

use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use cmautobuy_device::AdbKey;
use cmautobuy_device::connect::{AdbHub, AdbPlaces};
use cmautobuy_engine::{ArtifactStore, Engine, EngineNudges, EngineParts, PhoneSlot, WorkOrder, WorkState};
use cmautobuy_pdd::RulePack;
use cmautobuy_protocol::error::chain;
use cmautobuy_protocol::ids::uuid_at;
use cmautobuy_protocol::{AttemptId, DeviceId, InstanceId};
use cmautobuy_store::{SealKey, Store};
use cmautobuy_sync::wire::{HttpWire, NoServer, Wire};
use cmautobuy_sync::{Api, Nudges, PhoneReport, Sync, SyncParts, Timing};
use cmautobuy_task::{Backoff, Clock, LeaseCell};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::demo::{self, Demo};
use crate::folder::Folder;
use crate::house::{App, Inner};
use crate::options::StartOptions;
use crate::phone::{PhoneLoop, PhoneStatus, describe};
use crate::problem::{Kind, Problem};
use crate::secrets::{self, LoginKeeper, SecretStore};
use crate::settings::{self, Settings, parse_phone};
use crate::{logging, settings::PhoneAddress};

const APP_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The store with its key, and whose installation it is.
struct Opened {
    store: Store,
    device: DeviceId,
}

/// Opens the store and puts in order what the last process left (03 §7.3), with the key the credential store holds for this installation (D6, D7).
async fn open_store(folder: &Folder, secrets: &Arc<dyn SecretStore>, clock: &dyn Clock) -> Result<Opened, Problem> {
    let path = folder.database();
    let known = cmautobuy_store::peek_device(&path)?;
    let now = clock.now();
    let device = known.unwrap_or_else(|| DeviceId::from_uuid(uuid_at(now)));
    let name = format!("seal:{device}");
    let secret_failed = |error: secrets::SecretError| Kind::KeyMissing.with(chain(&error));
    let stored = {
        let (secrets, name) = (Arc::clone(secrets), name.clone());
        tokio::task::spawn_blocking(move || secrets.get(&name)).await.map_err(|e| Kind::Internal.with(e))?.map_err(secret_failed)?
    };
    let (key, fresh) = match stored {
        Some(text) => {
            let bytes = STANDARD_NO_PAD.decode(text).ok().and_then(|b| <[u8; 32]>::try_from(b).ok());
            (bytes.ok_or_else(|| Kind::KeyMissing.with(format!("entry {name} is damaged")))?, false)
        }
        // A folder with a history but without its key was copied from another computer or user: nothing in it may be driven here (D7).
        None if known.is_some() && !secrets.is_session_only() => return Err(Kind::KeyMissing.with(format!("entry {name}"))),
        None => (rand::random(), true),
    };
    if fresh {
        // Before anything is sealed with it: a key that could not be kept must not be used.
        let (secrets, name, text) = (Arc::clone(secrets), name, STANDARD_NO_PAD.encode(key));
        tokio::task::spawn_blocking(move || secrets.set(&name, &text)).await.map_err(|e| Kind::Internal.with(e))?.map_err(secret_failed)?;
    }
    let store = Store::open(&path, SealKey::from_bytes(key))?;
    store.write(move |tx| tx.identity_init(device, now).map(drop)).await?;
    let recovered = store.write(move |tx| tx.recover_after_crash(now)).await?;
    tracing::info!(version = APP_VERSION, %device, ?recovered, "started");
    if fresh && known.is_some() {
        // Session-only secrets of an earlier start are gone: what they sealed can never be used again (D6).
        store.write(move |tx| tx.sealed_lost(|| AttemptId::from_uuid(uuid_at(now)), now)).await?;
    }
    Ok(Opened { store, device })
}

/// The key this computer shows to phones; made once, sealed in the store (D6).
async fn adb_key(store: &Store, clock: &dyn Clock) -> Result<Arc<AdbKey>, Problem> {
    const NAME: &str = "adb-key";
    let bad = |error: cmautobuy_device::BadKey| Kind::Internal.with(chain(&error));
    if let Some(der) = store.read(|r| r.secret_get(NAME)).await? {
        return AdbKey::from_pkcs8_der(&der).map(Arc::new).map_err(bad);
    }
    let key = tokio::task::spawn_blocking(AdbKey::generate).await.map_err(|e| Kind::Internal.with(e))?.map_err(bad)?;
    let (der, now) = (key.to_pkcs8().map_err(bad)?, clock.now());
    store.write(move |tx| tx.secret_put(NAME, &der, now)).await?;
    Ok(Arc::new(key))
}

/// Where to look for an adb: the operator's word, then what came with us, then the system's.
fn adb_places(settings: &Settings) -> AdbPlaces {
    let said = std::env::var("CMAUTOBUY_ADB").ok().unwrap_or_else(|| settings.adb_program.clone());
    let chosen = (!said.trim().is_empty()).then(|| std::path::PathBuf::from(said.trim()));
    let exe = std::env::current_exe().ok();
    AdbPlaces::of_this_computer(chosen, exe.as_deref().and_then(std::path::Path::parent))
}

pub(crate) fn wire(base_url: &str, timeout: Duration) -> Result<Arc<dyn Wire>, Problem> {
    if base_url.is_empty() {
        return Ok(Arc::new(NoServer));
    }
    HttpWire::new(base_url, timeout).map(|w| Arc::new(w) as Arc<dyn Wire>).map_err(|error| Kind::SettingInvalid.with(chain(&error)))
}

impl App {
    /// Opens the data folder, recovers what a crash left and starts the loops.
    ///
    /// # Errors
    /// A [`Problem`] that says what is in the way and what to do: unwritable folder, second instance, newer or broken database,
    /// missing key.
    pub async fn start(options: StartOptions) -> Result<Self, Problem> {
        let folder = Folder::take(&options.data_dir)?;
        logging::start(&folder.logs(), options.log_to_terminal)?;
        if options.demo.is_some() {
            demo::wipe(&folder.root)?;
        }
        let clock: Arc<dyn Clock> = Arc::new(crate::clock::SystemClock::new());
        let secrets = secrets::open(options.secret_file.clone(), options.demo.is_some());
        let Opened { store, device } = open_store(&folder, &secrets, clock.as_ref()).await?;
        let now = clock.now();
        let settings = Settings::load(&store).await?;
        let instance = InstanceId::from_uuid(uuid_at(now));
        let predecessors = settings::join_instances(&store, instance, now).await?;
        let key = adb_key(&store, clock.as_ref()).await?;

        let stop = CancellationToken::new();
        let demo = match &options.demo {
            Some(_) => Some(Demo::start(&folder.root, device, stop.child_token()).await?),
            None => None,
        };
        let base_url = demo.as_ref().map_or_else(|| settings.base_url.clone(), |d| format!("http://{}", d.server));
        let address = match (&demo, &options.phone) {
            // Demo can reach only the simulated phone (D7).
            (Some(demo), _) => Some(PhoneAddress::Direct(demo.phone)),
            (None, Some(typed)) => parse_phone(typed)?,
            (None, None) => parse_phone(&settings.phone).unwrap_or_default(),
        };

        let hub = Arc::new(AdbHub::new(adb_places(&settings)));
        let lease = Arc::new(LeaseCell::default());
        let nudges = Arc::new(Nudges::default());
        let keeper = Arc::new(LoginKeeper { secrets: Arc::clone(&secrets), name: Mutex::new(LoginKeeper::entry_name(device, &base_url)) });
        let api = {
            let (wire, clock, keeper) = (wire(&base_url, settings.request_timeout)?, Arc::clone(&clock), Arc::clone(&keeper));
            tokio::task::spawn_blocking(move || Arc::new(Api::new(wire, clock, keeper))).await.map_err(|e| Kind::Internal.with(e))?
        };
        let slot = watch::Sender::<PhoneSlot>::new(None);
        let report = watch::Sender::new(PhoneReport::default());
        // Named from the first moment, so that whoever waits for the phone's light to settle does not take "not looked yet" for "no phone".
        let status = watch::Sender::new(PhoneStatus { address: describe(address.as_ref()), ..PhoneStatus::default() });
        let address = watch::Sender::new(address);
        let claiming = watch::Sender::new(false);
        let order = watch::Sender::new(if options.auto_start { WorkOrder::Run { press: 0 } } else { WorkOrder::Stop });
        let poll = if demo.is_some() { Duration::from_secs(1) } else { settings.poll };

        let sync = Arc::new(Sync::new(SyncParts {
            store: store.clone(),
            api: Arc::clone(&api),
            clock: Arc::clone(&clock),
            lease: Arc::clone(&lease),
            nudges: Arc::clone(&nudges),
            device,
            instance,
            predecessors,
            app_version: APP_VERSION,
            timing: Timing { poll, heartbeat: Duration::from_secs(30), backoff: Backoff::SERVER },
            phone: report.subscribe(),
            claiming: claiming.subscribe(),
        }));
        let engine = Arc::new(Engine::new(EngineParts {
            store: store.clone(),
            clock: Arc::clone(&clock),
            lease: Arc::clone(&lease),
            nudges: EngineNudges {
                engine: Arc::clone(&nudges.engine),
                lease_changed: Arc::clone(&nudges.lease_changed),
                calls: Arc::clone(&nudges.calls),
                lease: Arc::clone(&nudges.lease),
                drain: Arc::clone(&nudges.drain),
                claim: Arc::clone(&nudges.claim),
            },
            rules: Arc::new(RulePack::builtin()),
            artifacts: ArtifactStore::new(&folder.root),
            phone: slot.subscribe(),
            order: order.subscribe(),
            client_id: device.to_string(),
            max_retries: settings.max_retries,
        }));
        let phone_loop = PhoneLoop {
            clock: Arc::clone(&clock),
            lease: Arc::clone(&lease),
            key: Arc::clone(&key),
            hub: Arc::clone(&hub),
            store: store.clone(),
            address: address.subscribe(),
            slot: slot.clone(),
            report,
            status: status.clone(),
            beat: Arc::clone(&nudges.beat),
            engine: Arc::clone(&nudges.engine),
            claim: Arc::clone(&nudges.claim),
        };

        let mut tasks = JoinSet::new();
        sync.spawn(&mut tasks, &stop);
        {
            let (engine, stop) = (Arc::clone(&engine), stop.clone());
            tasks.spawn(async move { engine.run(stop).await });
        }
        tasks.spawn(phone_loop.run(stop.clone()));

        let began = clock.mono();
        let inner = Arc::new(Inner {
            folder,
            clock,
            store,
            api,
            keeper,
            sync,
            work: engine.state(),
            order,
            lease,
            nudges,
            device,
            phone: status.subscribe(),
            hub,
            key,
            address,
            base_url: Mutex::new(base_url),
            settings: Mutex::new(settings),
            session_only: secrets.is_session_only() && demo.is_none(),
            demo,
            began,
            presses: AtomicU32::new(0),
            changes: watch::Sender::new(0),
            stop: stop.clone(),
            tasks: tokio::sync::Mutex::new(tasks),
        });
        let app = App::of(inner);
        app.spawn_own_loops(claiming, options.demo.and_then(|d| d.report)).await;
        app.log_in_to_demo().await?;
        Ok(app)
    }

    pub(crate) async fn save_setting<T>(&self, key: &'static str, value: T) -> Result<(), Problem>
    where
        T: serde::Serialize + serde::de::DeserializeOwned + Send + std::marker::Sync + 'static,
    {
        let inner = self.inner();
        settings::save(&inner.store, key, value, inner.clock.now()).await.map_err(Problem::from)
    }

    /// Whether work goes on, as the claim loop sees it.
    pub(crate) fn is_claiming(order: WorkOrder, work: &WorkState) -> bool {
        order.is_run() && !matches!(work, WorkState::Paused(_))
    }
}
