//! What every call shares: settings, clock, store, login limits. It decides nothing; it opens transactions and hands out the time.

use std::path::Path;
use std::sync::Arc;

use cmautobuy_protocol::secret::sha256_hex;
use cmautobuy_protocol::{Password, ServerId, WireTime};
use tokio::sync::Semaphore;

use crate::clock::{Clock, Ids};
use crate::config::{Config, ms};
use crate::login_limit::LoginLimit;
use crate::ops::InUse;
use crate::ops::metrics::Metrics;
use crate::refusal::CallError;
use crate::store::figures::{Figures, figures};
use crate::store::{self, POOL, Store, StoreError, Tx};
use crate::{ServerError, secret};

/// Password hashes computed at the same time; each takes about 19 MiB.
const HASHES: usize = 2;
/// The user made at first start.
pub(crate) const FIRST_ADMIN: &str = "admin";

#[derive(Debug)]
pub(crate) struct House {
    pub(crate) config: Config,
    pub(crate) server_id: ServerId,
    pub(crate) logins: LoginLimit,
    pub(crate) metrics: Metrics,
    /// Hash of the token that reads `/metrics`.
    pub(crate) metrics_token_sha256: Option<String>,
    _in_use: InUse,
    clock: Arc<dyn Clock>,
    ids: Ids,
    store: Arc<Store>,
    calls: Arc<Semaphore>,
    hashes: Arc<Semaphore>,
}

/// One call inside its transaction. `now` was read after the write lock was taken, so that no two calls see time run backwards.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) tx: &'a Tx<'a>,
    pub(crate) house: &'a House,
    pub(crate) now: WireTime,
}

impl Call<'_> {
    /// How things stand now.
    pub(crate) fn figures(&self) -> Result<Figures, StoreError> {
        figures(self.tx, self.now, self.now.plus_ms(-ms(self.house.config.heartbeat_ttl)))
    }

    pub(crate) fn new_id(&self) -> uuid::Uuid {
        self.house.ids.next(self.now)
    }
}

impl House {
    /// Opens the database; the password is that of the first administrator, made when there was no user at all.
    pub(crate) fn open(config: Config, clock: Arc<dyn Clock>) -> Result<(Self, Option<Password>), ServerError> {
        config.validate()?;
        let in_use = InUse::shared(&config.data_dir).map_err(|source| ServerError::Folder { path: config.data_dir.clone(), source })?;
        let in_use = in_use.ok_or_else(|| ServerError::BeingRestored { folder: config.data_dir.clone() })?;
        let metrics_token_sha256 = config.metrics_token()?.map(|token| sha256_hex(token.reveal().as_bytes()));
        secret::warm_up();
        let ids = Ids::default();
        let first = |store: &Store| first_start(store, &*clock, &ids);
        let (store, (server_id, password)) = Store::open(&config.database(), first)?;
        let house = Self {
            config,
            server_id,
            logins: LoginLimit::default(),
            metrics: Metrics::default(),
            metrics_token_sha256,
            _in_use: in_use,
            clock,
            ids,
            store: Arc::new(store),
            calls: Arc::new(Semaphore::new(POOL)),
            hashes: Arc::new(Semaphore::new(HASHES)),
        };
        Ok((house, password))
    }

    pub(crate) fn now(&self) -> WireTime {
        self.clock.now()
    }

    /// One state of the whole database into a file that must not exist. Blocks.
    pub(crate) fn copy_database(&self, path: &Path) -> Result<(), StoreError> {
        self.store.copy_to(path)
    }

    pub(crate) fn database_bytes(&self) -> u64 {
        self.store.bytes()
    }

    /// A new id outside any transaction, such as a request's.
    pub(crate) fn new_id(&self) -> uuid::Uuid {
        self.ids.next(self.now())
    }

    /// One call that writes: whole or not at all, on the disk when it is answered. Calls that wait at the same time share one transaction.
    pub(crate) async fn commit<T: Send + 'static>(
        self: &Arc<Self>,
        call: impl FnOnce(Call<'_>) -> Result<T, CallError> + Send + 'static,
    ) -> Result<T, CallError> {
        let (house, span) = (Arc::clone(self), tracing::Span::current());
        let work = move |tx: &Tx<'_>| span.in_scope(|| call(Call { tx, house: &house, now: house.now() }));
        let (answer, lead) = self.store.queue(work)?;
        if let Some(lead) = lead {
            // Not awaited: it answers this call and others, also when this caller goes away.
            tokio::task::spawn_blocking(|| lead.run());
        }
        answer.await.unwrap_or_else(|_| Err(StoreError::Stopping.into()))
    }

    /// One immediate transaction of its own. Blocks.
    pub(crate) fn write<T>(&self, call: impl FnOnce(Call<'_>) -> Result<T, CallError>) -> Result<T, CallError> {
        self.store.write(|tx| call(Call { tx, house: self, now: self.now() }))
    }

    /// One reading transaction. Blocks.
    pub(crate) fn read<T>(&self, call: impl FnOnce(Call<'_>) -> Result<T, CallError>) -> Result<T, CallError> {
        self.store.read(|tx| call(Call { tx, house: self, now: self.now() }))
    }

    /// Runs `work` on a blocking thread, a bounded number at a time.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, CallError> + Send + 'static,
    ) -> Result<T, CallError> {
        self.on_thread(&self.calls, work).await
    }

    /// Like [`Self::blocking`] for password hashes, with a smaller bound of its own so that logins cannot starve heartbeats.
    pub(crate) async fn hashing<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, CallError> + Send + 'static,
    ) -> Result<T, CallError> {
        self.on_thread(&self.hashes, work).await
    }

    async fn on_thread<T: Send + 'static>(
        self: &Arc<Self>,
        bound: &Arc<Semaphore>,
        work: impl FnOnce(&Self) -> Result<T, CallError> + Send + 'static,
    ) -> Result<T, CallError> {
        // The semaphore is never closed, so there is always a permit to wait for.
        let permit = Arc::clone(bound).acquire_owned().await.ok();
        let (house, span) = (Arc::clone(self), tracing::Span::current());
        let run = move || {
            let _permit = permit;
            span.in_scope(|| work(&house))
        };
        tokio::task::spawn_blocking(run).await?
    }
}

fn first_start(store: &Store, clock: &dyn Clock, ids: &Ids) -> Result<(ServerId, Option<Password>), ServerError> {
    let found = store.read(|tx| Ok::<_, StoreError>((store::meta::meta_server_id(tx)?, store::user::user_any(tx)?)))?;
    if let (Some(server_id), true) = found {
        return Ok((server_id, None));
    }
    let password = secret::random_password();
    let hash = secret::hash_password(&password)?;
    store.write(|tx| {
        let now = clock.now();
        let server_id = match store::meta::meta_server_id(tx)? {
            Some(server_id) => server_id,
            None => {
                let server_id = ServerId::from_uuid(ids.next(now));
                store::meta::meta_insert(tx, server_id, now)?;
                server_id
            }
        };
        let user = store::user::UserRow {
            user_id: cmautobuy_protocol::UserId::from_uuid(ids.next(now)),
            user_name: FIRST_ADMIN.to_owned(),
            password: hash,
            kind: cmautobuy_protocol::account::UserKind::Platform,
            roles: vec![cmautobuy_protocol::auth::Role::Admin],
            disabled: false,
            created_at: now,
        };
        store::user::user_insert(tx, &user)?;
        Ok((server_id, Some(password)))
    })
}
