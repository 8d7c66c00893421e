//! TLS by settings: real handshakes, certificates read anew, nothing plain beyond this computer.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use cmautobuy_server::{Config, ServerError, TlsFiles};
use reqwest::{Certificate, Client};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::world::World;

/// A new self-signed certificate in the files; its PEM text.
fn certificate(files: &TlsFiles) -> String {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    std::fs::write(&files.key, made.signing_key.serialize_pem()).expect("the key");
    std::fs::write(&files.certificate, made.cert.pem()).expect("the certificate");
    made.cert.pem()
}

fn files(folder: &Path) -> TlsFiles {
    TlsFiles { certificate: folder.join("server.pem"), key: folder.join("server.key") }
}

fn client(trusted: &str, address: SocketAddr) -> Client {
    // A second test in this process may have installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let root = Certificate::from_pem(trusted.as_bytes()).expect("a certificate");
    let builder = Client::builder().tls_certs_only([root]).no_proxy().resolve("localhost", address).pool_max_idle_per_host(0);
    builder.timeout(Duration::from_secs(10)).build().expect("a client")
}

#[tokio::test(flavor = "multi_thread")]
async fn it_speaks_tls_and_takes_a_new_certificate_without_a_restart() {
    let folder = tempfile::tempdir().expect("a folder for the certificate");
    let files = files(folder.path());
    let first = certificate(&files);
    let World { dir: _dir, server, .. } = World::with(Config { tls: Some(files.clone()), ..Config::default() });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("its address");
    let url = format!("https://localhost:{}/healthz", address.port());
    let (stop, stopped) = oneshot::channel::<()>();
    let served = tokio::spawn(server.serve(listener, async move {
        let _ = stopped.await;
    }));
    let answer = client(&first, address).get(&url).send().await.expect("a handshake with the server's certificate");
    assert_eq!(answer.text().await.expect("a body"), "ok", "the same calls, over TLS");
    let stranger = certificate(&TlsFiles { certificate: folder.path().join("x.pem"), key: folder.path().join("x.key") });
    assert!(client(&stranger, address).get(&url).send().await.is_err(), "another certificate is not this server");
    let plain = Client::builder().no_proxy().build().expect("a client").get(format!("http://{address}/healthz")).send().await;
    assert!(!plain.is_ok_and(|answer| answer.status().is_success()), "there is no plain HTTP beside it");

    let second = certificate(&files);
    hang_up();
    let (trusting, mut tries) = (client(&second, address), 0);
    while trusting.get(&url).send().await.is_err() {
        tries += 1;
        assert!(tries < 200, "the new certificate must be in use soon after SIGHUP");
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    stop.send(()).expect("the server is there to be told");
    tokio::time::timeout(Duration::from_secs(15), served).await.expect("it stops").expect("without a panic").expect("cleanly");
}

fn hang_up() {
    let pid = std::process::id().to_string();
    let told = std::process::Command::new("kill").args(["-HUP", &pid]).status().expect("kill is there");
    assert!(told.success(), "the signal must be sent");
}

#[tokio::test]
async fn plain_http_beyond_this_computer_must_be_asked_for() {
    for (allow, listen, serves) in [(false, "0.0.0.0:0", false), (true, "0.0.0.0:0", true), (false, "127.0.0.1:0", true)] {
        let World { dir: _dir, server, .. } = World::with(Config { allow_plain_http: allow, ..Config::default() });
        let listener = TcpListener::bind(listen).await.expect("a free port");
        let served = server.serve(listener, std::future::ready(())).await;
        match served {
            Ok(()) => assert!(serves, "{listen}, allowed: {allow}: passwords would cross the network readable"),
            Err(error) => {
                assert!(!serves && matches!(error, ServerError::PlainHttp { .. }), "{listen}, allowed: {allow}: {error}");
                assert!(error.to_string().contains("tls_certificate"), "the error must say what to set: {error}");
            }
        }
    }
}
