//! The other end of every wire the client speaks (T-205, D3-D5, D13, D19): logins, claims, leases, results and the administrator's calls, over
//! one SQLite file.
//!
//! It never operates a phone and never re-queues a task that was started. It keeps no token and no password, only their hashes (D6).

mod admin;
mod auth;
mod clock;
mod config;
mod house;
mod http;
mod life;
mod login_limit;
mod ops;
mod refusal;
mod secret;
mod store;
mod work;

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use cmautobuy_protocol::{Password, ServerId};
use tokio::net::TcpListener;

pub use admin::{
    Admin, CloseTask, DEFAULT_PAGE, MAX_IMAGE_BYTES, MAX_LIST_BYTES, MAX_PAGE, ReleaseHold, TaskQuery, UserQuery, list_template,
};
pub use clock::{Clock, SystemClock, TestClock};
pub use config::{Config, ConfigError, TlsFiles};
pub use ops::backup::{Backup, BackupError};
pub use ops::doctor::{Check, Verdict};
pub use ops::prune::Pruned;
pub use ops::restore::{RestoreError, Restored};
pub use ops::tls::TlsError;
pub use refusal::{CallError, Refusal};
pub use secret::PasswordError;
pub use store::StoreError;

use house::House;
use work::Actor;

/// The user name of the administrator made at first start.
pub const FIRST_ADMIN: &str = house::FIRST_ADMIN;

/// Why the server could not be opened or served.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("use the settings")]
    Config(#[from] ConfigError),
    #[error("open the server's database")]
    Store(#[from] StoreError),
    #[error("make the first administrator")]
    Password(#[from] PasswordError),
    #[error("serve on the network")]
    Network(#[source] std::io::Error),
    #[error("use the data folder {}", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("a restore is under way in {}; wait for it to end", folder.display())]
    BeingRestored { folder: PathBuf },
    #[error(
        "{address} can be reached from other computers and there is no TLS: set tls_certificate and tls_key, listen on 127.0.0.1, \
         or set allow_plain_http when a TLS proxy stands in front"
    )]
    PlainHttp { address: SocketAddr },
    #[error("use the certificate")]
    Tls(#[from] TlsError),
}

/// One open server: its database, its routes, its administrator's calls. Two on one database file are safe.
#[derive(Debug)]
pub struct Server {
    house: Arc<House>,
    first_admin_password: Option<Password>,
}

impl Server {
    /// Opens or makes the database in [`Config::data_dir`]. Blocks for a moment: it hashes a password at first start.
    ///
    /// # Errors
    /// [`ServerError`] when the settings are out of bounds or the database cannot be opened or is of a newer version.
    pub fn open(config: Config, clock: Arc<dyn Clock>) -> Result<Self, ServerError> {
        let (house, first_admin_password) = House::open(config, clock)?;
        Ok(Self { house: Arc::new(house), first_admin_password })
    }

    /// The password of the user [`FIRST_ADMIN`], once, when this open made that user. For a terminal, never for a log (D6).
    pub fn first_admin_password(&mut self) -> Option<Password> {
        self.first_admin_password.take()
    }

    /// The database's identity; a client's store is bound to it (D7).
    pub fn server_id(&self) -> ServerId {
        self.house.server_id
    }

    /// Every route, ready to be called as a `tower::Service`.
    pub fn router(&self) -> Router {
        http::router(Arc::clone(&self.house))
    }

    /// The administrator's calls, without a network; their actor is `console`.
    pub fn admin(&self) -> Admin<'_> {
        Admin::new(&self.house, Actor::Console)
    }

    /// Whether [`Self::serve`] would serve on this address, for a program that says so before it does.
    ///
    /// # Errors
    /// [`ServerError::PlainHttp`], [`ServerError::Tls`].
    pub fn may_serve(&self, address: SocketAddr) -> Result<(), ServerError> {
        ops::serve::way(&self.house.config, address).map(|_| ())
    }

    /// Answers on `listener` until `shutdown` ends, then lets calls under way finish for at most 10 s. With TLS when the settings say so; plain
    /// HTTP beyond this computer only when they allow it.
    ///
    /// # Errors
    /// [`ServerError::Network`] when the listener fails, [`ServerError::PlainHttp`], [`ServerError::Tls`].
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<(), ServerError> {
        ops::serve::serve(self.house, listener, shutdown).await
    }

    /// Copies the database to a new file while servers work, and reads the copy back. Blocks.
    ///
    /// # Errors
    /// [`BackupError`]; the target is then not there.
    pub fn backup(&self, to: &Path) -> Result<Backup, BackupError> {
        ops::backup::backup(&self.house, to)
    }

    /// Puts a backup in the database's place and holds what was under way (D7, ADR 0006). No server may be open on the folder. Blocks.
    ///
    /// # Errors
    /// [`RestoreError`]; the database is then as it was.
    pub fn restore(config: Config, clock: Arc<dyn Clock>, from: &Path) -> Result<Restored, RestoreError> {
        ops::restore::restore(config, clock, from)
    }

    /// Forgets keys and logins nobody can use any more; a serving server does so every hour. Blocks.
    ///
    /// # Errors
    /// When the database fails; what was forgotten by then stays forgotten.
    pub fn prune(&self) -> Result<Pruned, CallError> {
        ops::prune::prune(&self.house)
    }

    /// Looks at everything a server with these settings stands on. Changes nothing. Blocks; reads the whole database.
    pub fn doctor(config: &Config, clock: &dyn Clock) -> Vec<Check> {
        ops::doctor::doctor(config, clock)
    }
}
