//! As much HTTP as the agent, the control call and the screen page need: small requests in, whole answers out. It opens no socket.

use thiserror::Error;

const MOST_HEAD: usize = 16 * 1024;
const MOST_BODY: usize = 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Without the query.
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum BadRequest {
    #[error("the request is no HTTP")]
    Malformed,
    #[error("the request is too large")]
    TooLarge,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
    }
}

/// Takes one whole request off the buffer; `None` = more bytes are needed.
pub(crate) fn take(buffer: &mut Vec<u8>) -> Result<Option<Request>, BadRequest> {
    let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") else {
        return if buffer.len() > MOST_HEAD { Err(BadRequest::TooLarge) } else { Ok(None) };
    };
    if end > MOST_HEAD {
        return Err(BadRequest::TooLarge);
    }
    let head = std::str::from_utf8(&buffer[..end]).map_err(|_| BadRequest::Malformed)?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version)) = (first.next(), first.next(), first.next()) else {
        return Err(BadRequest::Malformed);
    };
    if !version.starts_with("HTTP/1.") || !target.starts_with('/') {
        return Err(BadRequest::Malformed);
    }
    let headers: Vec<(String, String)> =
        lines.filter_map(|line| line.split_once(':')).map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect();
    let path = target.split('?').next().unwrap_or_default().to_owned();
    let mut request = Request { method: method.to_owned(), path, headers, body: Vec::new() };
    let size = match request.header("content-length") {
        "" => 0,
        size => size.parse::<usize>().map_err(|_| BadRequest::Malformed)?,
    };
    if size > MOST_BODY || !request.header("transfer-encoding").is_empty() {
        return Err(BadRequest::TooLarge);
    }
    let whole = end + 4 + size;
    if buffer.len() < whole {
        return Ok(None);
    }
    request.body = buffer[end + 4..whole].to_vec();
    buffer.drain(..whole);
    Ok(Some(request))
}

/// A whole answer.
pub(crate) fn answer(status: u16, kind: &str, body: &[u8]) -> Vec<u8> {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Payload Too Large",
        415 => "Unsupported Media Type",
        _ => "Error",
    };
    let mut out = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\r\n",
        body.len()
    )
    .into_bytes();
    out.extend_from_slice(body);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_taken_whole() {
        let mut buffer = b"POST /tap?x=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nab".to_vec();
        assert_eq!(take(&mut buffer), Ok(None), "the body is not there yet");
        buffer.extend_from_slice(b"cGET / HTTP/1.1\r\n\r\n");
        let first = take(&mut buffer).expect("a good request").expect("whole");
        assert_eq!((first.method.as_str(), first.path.as_str(), first.body.as_slice()), ("POST", "/tap", b"abc".as_slice()), "taken apart");
        assert_eq!(first.header("host"), "localhost", "names of headers have no case");
        let second = take(&mut buffer).expect("a good request").expect("whole");
        assert_eq!((second.path.as_str(), buffer.len()), ("/", 0), "the next one follows in the same bytes");
    }

    #[test]
    fn rubbish_is_refused() {
        let rows: [(&str, Vec<u8>, BadRequest); 5] = [
            ("no request", b"hello\r\n\r\n".to_vec(), BadRequest::Malformed),
            ("not HTTP", b"GET / SPDY/3\r\n\r\n".to_vec(), BadRequest::Malformed),
            ("a wrong length", b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n".to_vec(), BadRequest::Malformed),
            ("a huge body", b"GET / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n".to_vec(), BadRequest::TooLarge),
            ("an endless head", vec![b'a'; MOST_HEAD + 1], BadRequest::TooLarge),
        ];
        for (what, mut bytes, want) in rows {
            assert_eq!(take(&mut bytes), Err(want), "must be refused: {what}");
        }
    }
}
