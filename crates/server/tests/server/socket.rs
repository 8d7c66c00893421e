//! Over a real TCP socket: the server answers, and stops when told to.

use cmautobuy_protocol::auth::LoginRequest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::world::World;

async fn exchange(address: std::net::SocketAddr, request: String) -> String {
    let mut stream = TcpStream::connect(address).await.expect("the server listens");
    stream.write_all(request.as_bytes()).await.expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("the server answers and closes");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn it_serves_over_tcp_and_stops_when_told() {
    let world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("its address");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let World { dir: _dir, server, admin_password, .. } = world;
    let served = tokio::spawn(server.serve(listener, async move {
        // A dropped sender stops the server as well.
        let _ = stopped.await;
    }));
    let health = exchange(address, format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")).await;
    assert!(health.starts_with("HTTP/1.1 200"), "healthz must answer over a socket, it said: {health}");
    let login = LoginRequest { user_name: "admin".to_owned(), password: admin_password, device_id: None };
    let body = serde_json::to_string(&login).expect("a login becomes JSON");
    let head =
        format!("POST /api/v1/auth/login HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    let answer = exchange(address, head + &body).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("access_token"), "a login must work over a socket");
    stop.send(()).expect("the server is still there to be told");
    let ended = tokio::time::timeout(std::time::Duration::from_secs(15), served).await.expect("a told server stops");
    ended.expect("it does not panic").expect("it stops cleanly");
}
