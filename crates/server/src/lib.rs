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
mod refusal;
mod secret;
mod store;
mod work;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use cmautobuy_protocol::{Password, ServerId};
use tokio::net::TcpListener;

pub use admin::{Admin, CloseTask, DEFAULT_PAGE, MAX_PAGE};
pub use clock::{Clock, SystemClock, TestClock};
pub use config::{Config, ConfigError};
pub use refusal::{CallError, Refusal};
pub use secret::PasswordError;
pub use store::StoreError;

use house::House;
use work::Actor;

/// The user name of the administrator made at first start.
pub const FIRST_ADMIN: &str = house::FIRST_ADMIN;
/// How long answers under way may take once the server was told to stop.
const DRAIN: Duration = Duration::from_secs(10);

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

    /// Answers on `listener` until `shutdown` ends, then lets calls under way finish for at most 10 s.
    ///
    /// # Errors
    /// [`ServerError::Network`] when the listener fails.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<(), ServerError> {
        let stop = tokio_util::sync::CancellationToken::new();
        let service = self.router().into_make_service_with_connect_info::<SocketAddr>();
        let stopped = stop.clone();
        let on_stop = async move {
            shutdown.await;
            stopped.cancel();
        };
        let late = async {
            stop.cancelled().await;
            tokio::time::sleep(DRAIN).await;
        };
        tokio::select! {
            served = axum::serve(listener, service).with_graceful_shutdown(on_stop).into_future() => served.map_err(ServerError::Network),
            () = late => {
                tracing::warn!("calls were still under way when the server stopped");
                Ok(())
            }
        }
    }
}
