//! Answering on a socket: plain or TLS, with a limit on every wait a stranger could drag out, and a stop that lets calls under way finish.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum_server::Handle;
use axum_server::accept::NoDelayAcceptor;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use hyper_util::rt::TokioTimer;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::{prune, tls};
use crate::config::{Config, TlsFiles};
use crate::house::House;
use crate::{ServerError, http};

/// How long answers under way may take once the server was told to stop.
const DRAIN: Duration = Duration::from_secs(10);
/// For a TLS handshake, and from a connection's last answer to the end of the next request's headers. Longer than the 30 s between two
/// heartbeats, so that a device keeps its connection.
const HEADERS: Duration = Duration::from_secs(45);
/// Larger headers are refused.
const HEADER_BYTES: usize = 32 * 1024;

/// Until `shutdown` ends, then at most [`DRAIN`] longer.
pub(crate) async fn serve(
    house: Arc<House>,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServerError> {
    let address = listener.local_addr().map_err(ServerError::Network)?;
    let tls = way(&house.config, address)?;
    if tls.is_none() && !address.ip().is_loopback() {
        tracing::warn!(%address, "plain HTTP beyond this computer (allow_plain_http); a TLS proxy must stand in front");
    }
    let handle = Handle::new();
    // Dropped, and with it aborted, when serving ends.
    let mut beside = JoinSet::new();
    let told = handle.clone();
    beside.spawn(async move {
        shutdown.await;
        told.graceful_shutdown(Some(DRAIN));
    });
    beside.spawn(prune::now_and_then(Arc::clone(&house)));
    let app = http::router(house).into_make_service_with_connect_info::<SocketAddr>();
    let mut server = axum_server::from_tcp(listener.into_std().map_err(ServerError::Network)?).map_err(ServerError::Network)?;
    server.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(HEADERS).max_buf_size(HEADER_BYTES);
    let server = server.http1_only().first_request_timeout(HEADERS).handle(handle);
    let served = match tls {
        None => server.acceptor(NoDelayAcceptor::new()).serve(app).await,
        Some((files, config)) => {
            let config = RustlsConfig::from_config(config);
            beside.spawn(reload(files, config.clone()));
            server.acceptor(RustlsAcceptor::new(config).handshake_timeout(HEADERS).acceptor(NoDelayAcceptor::new())).serve(app).await
        }
    };
    served.map_err(ServerError::Network)
}

/// TLS with this certificate, or `None` for plain HTTP where that is allowed.
pub(crate) fn way(config: &Config, address: SocketAddr) -> Result<Option<(TlsFiles, Arc<ServerConfig>)>, ServerError> {
    match &config.tls {
        Some(files) => Ok(Some((files.clone(), tls::load(files)?))),
        None if address.ip().is_loopback() || config.allow_plain_http => Ok(None),
        None => Err(ServerError::PlainHttp { address }),
    }
}

/// Reads the certificate anew on SIGHUP. Files that do not fit together are refused and the old ones stay in use.
#[cfg(unix)]
async fn reload(files: TlsFiles, config: RustlsConfig) {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hangups = match signal(SignalKind::hangup()) {
        Ok(hangups) => hangups,
        Err(error) => return tracing::warn!(%error, "SIGHUP cannot be heard; restart the server for a new certificate"),
    };
    while hangups.recv().await.is_some() {
        let (files, config) = (files.clone(), config.clone());
        match tokio::task::spawn_blocking(move || read_anew(&files, &config)).await {
            Ok(Ok(())) => tracing::info!("the certificate was read anew"),
            Ok(Err(error)) => {
                tracing::error!(error = &error as &dyn std::error::Error, "the new certificate cannot be used; the old one stays");
            }
            Err(error) => tracing::error!(%error, "reading the certificate did not come to its end; the old one stays"),
        }
    }
}

#[cfg(unix)]
fn read_anew(files: &TlsFiles, config: &RustlsConfig) -> Result<(), tls::TlsError> {
    config.reload_from_config(tls::load(files)?);
    Ok(())
}

/// Windows has no such signal: a new certificate needs a restart.
#[cfg(not(unix))]
async fn reload(_: TlsFiles, _: RustlsConfig) {}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_cannot_be_used_leaves_the_old_one_in_use() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let files = tls::tests::pair(dir.path(), "server");
        let config = RustlsConfig::from_config(tls::load(&files).expect("a pair that fits"));
        let first = config.get_inner();
        std::fs::write(&files.certificate, "half a file").expect("a certificate being written");
        read_anew(&files, &config).expect_err("half a file is no certificate");
        assert!(Arc::ptr_eq(&first, &config.get_inner()), "handshakes go on with the certificate that worked");
        tls::tests::pair(dir.path(), "server");
        read_anew(&files, &config).expect("a new pair");
        assert!(!Arc::ptr_eq(&first, &config.get_inner()), "and take the new one once it is whole");
    }
}
