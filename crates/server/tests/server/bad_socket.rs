//! What comes over a socket and is no HTTP, or HTTP that lies: the server answers 4xx or closes, goes on serving, and nothing changes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cmautobuy_server::{Clock, Config, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::bad_input::dump;
use crate::world::World;

/// How the sender ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Waits for the answer and for the server to close.
    Waits,
    /// Hangs up in the middle of what it promised.
    Cut,
}

/// Longest an answer may take; far above what one of these needs, so that only a server that hangs meets it.
const PATIENCE: Duration = Duration::from_secs(20);

/// Sends bytes and reads what is answered until the server closes. `End::Cut` says that no more will come, which is a hang-up to the server.
async fn exchange(name: &str, address: SocketAddr, bytes: &[u8], end: End) -> String {
    let talk = async {
        let mut stream = TcpStream::connect(address).await.expect("the server listens");
        // A server that has closed already refuses the rest, which is an answer too.
        let _ = stream.write_all(bytes).await;
        if end == End::Cut {
            let _ = stream.shutdown().await;
        }
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    };
    let outcome = tokio::time::timeout(PATIENCE, talk).await;
    outcome.unwrap_or_else(|_| panic!("row `{name}`: there must be an answer or a close within the time a call may take"))
}

/// The status codes of all answers in the text.
fn statuses(answer: &str) -> Vec<u16> {
    let lines = answer.split("HTTP/1.").skip(1);
    lines.filter_map(|line| line.split(' ').nth(1)?.parse().ok()).collect()
}

fn post(path: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n{body}").into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_what_is_no_http_is_refused_and_the_server_goes_on() {
    let world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("its address");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    // A second one on the same file: serving takes the server away, and the first is still needed to look.
    let config = Config { data_dir: world.dir.path().to_owned(), ..Config::default() };
    let server = Server::open(config, Arc::clone(&world.clock) as Arc<dyn Clock>).expect("two servers may share a file");
    let served = tokio::spawn(server.serve(listener, async move {
        let _ = stopped.await;
    }));

    let login = "/api/v1/auth/login";
    let good = "{\"user_name\": \"a\", \"password\": \"b\"}";
    let length = good.len();
    use End::{Cut, Waits};
    let rows: Vec<(&str, End, Vec<u8>, &[u16])> = vec![
        ("nothing at all", Cut, Vec::new(), &[]),
        ("a line of noise", Waits, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 this is TLS\r\n\r\n".to_vec(), &[400]),
        ("zeros", Waits, vec![0; 1_000], &[400]),
        ("no version", Waits, b"GET /healthz\r\n\r\n".to_vec(), &[400]),
        ("an unknown version", Waits, b"GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n".to_vec(), &[400]),
        ("HTTP/2 and then silence", Cut, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), &[400]),
        ("a method with a space", Waits, b"GE T /healthz HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), &[400]),
        ("a NUL in the path", Waits, b"GET /health\0z HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), &[400]),
        ("a coded NUL in the path", Waits, b"GET /health%00z HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".to_vec(), &[404]),
        ("bad UTF-8 in the path", Waits, b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".to_vec(), &[400, 404]),
        ("a path upwards", Waits, b"GET /../../../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".to_vec(), &[404]),
        (
            "a coded path upwards",
            Waits,
            b"GET /docs/..%2f..%2f..%2fetc%2fpasswd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".to_vec(),
            &[400, 404],
        ),
        ("bad UTF-8 in the page's path", Waits, b"GET /docs/%ff%fe HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".to_vec(), &[400, 404]),
        (
            "another server's address",
            Waits,
            b"GET http://elsewhere.example/etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".to_vec(),
            &[404],
        ),
        (
            "a tunnel",
            Waits,
            b"CONNECT elsewhere.example:443 HTTP/1.1\r\nHost: elsewhere.example:443\r\nConnection: close\r\n\r\n".to_vec(),
            &[400, 404, 405],
        ),
        ("a star for a path", Waits, b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".to_vec(), &[400, 404, 405]),
        (
            "a path of 100,000 letters",
            Waits,
            format!("GET /{} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "a".repeat(100_000)).into_bytes(),
            &[400, 404, 414, 431],
        ),
        (
            "a header of 1 MB",
            Waits,
            format!("GET /healthz HTTP/1.1\r\nHost: x\r\nX-Large: {}\r\n\r\n", "a".repeat(1_000_000)).into_bytes(),
            &[431],
        ),
        ("1,000 headers", Waits, format!("GET /healthz HTTP/1.1\r\n{}\r\n", "X-Many: 1\r\n".repeat(1_000)).into_bytes(), &[431]),
        ("a header without a colon", Waits, b"GET /healthz HTTP/1.1\r\nHost x\r\n\r\n".to_vec(), &[400]),
        ("a header with a NUL", Waits, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Nul: a\0b\r\n\r\n".to_vec(), &[400]),
        ("a length in words", Waits, post(login, "Content-Length: many\r\n", good), &[400]),
        ("a length below zero", Waits, post(login, "Content-Length: -5\r\n", good), &[400]),
        ("a length of 21 digits", Waits, post(login, "Content-Length: 999999999999999999999\r\n", good), &[400]),
        ("two lengths", Waits, post(login, &format!("Content-Length: {length}\r\nContent-Length: 3\r\n"), good), &[400]),
        ("a length beyond what comes", Cut, post(login, "Content-Length: 5000\r\n", good), &[400, 422]),
        ("a length short of what comes", Waits, post(login, &format!("Content-Length: {}\r\n", length - 5), good), &[400, 422]),
        ("a length of a terabyte", Cut, post(login, "Content-Length: 1000000000000\r\n", good), &[400, 413, 422]),
        ("a chunk of no length", Waits, post(login, "Transfer-Encoding: chunked\r\n", "zz\r\nabc\r\n0\r\n\r\n"), &[400, 422]),
        ("a chunk of endless length", Waits, post(login, "Transfer-Encoding: chunked\r\n", "ffffffffffffffffff\r\nabc\r\n"), &[400, 422]),
        ("a chunk cut off", Cut, post(login, "Transfer-Encoding: chunked\r\n", "ff\r\nabc"), &[400, 422]),
        ("an unknown coding", Waits, post(login, "Transfer-Encoding: brew\r\n", good), &[400, 422]),
        (
            "two answers to how long",
            Waits,
            post(login, &format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n"), "0\r\n\r\n"),
            &[400, 422],
        ),
        (
            "garbage behind a request",
            Waits,
            [b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".as_slice(), b"\0\0garbage\r\n\r\n"].concat(),
            &[200, 400],
        ),
    ];
    let before = dump(&world);
    for (name, end, bytes, allowed) in rows {
        let answer = exchange(name, address, &bytes, end).await;
        let got = statuses(&answer);
        assert!(got.iter().all(|status| allowed.contains(status)), "row `{name}` answered {got:?}, not {allowed:?}: {answer}");
        assert!(end == Cut || !got.is_empty(), "row `{name}`: whoever waits gets an answer, not silence: {answer}");
        assert!(!answer.contains("root:"), "row `{name}`: no file of this computer goes out");
        assert!(before == dump(&world), "row `{name}` changed the database");
        let health = exchange(name, address, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", Waits).await;
        assert_eq!(statuses(&health), [200], "row `{name}`: the server must go on serving, it said: {health}");
    }
    stop.send(()).expect("the server is still there to be told");
    let ended = tokio::time::timeout(PATIENCE, served).await.expect("no connection of these keeps it from stopping");
    ended.expect("it does not panic").expect("it stops cleanly");
}
