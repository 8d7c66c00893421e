//! One command to the phone and its whole answer, over whichever road.
//!
//! A link never answers with half an output: without an exit packet (or trailer) it is an error.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

use crate::adb::AdbError;

/// Largest answer kept: a raw 4K screenshot with room to spare.
pub(crate) const MAX_OUTPUT_BYTES: usize = 64 * 1024 * 1024;
/// Wraps the exit code where the phone has no shell protocol; a control character no command prints.
const MARK: u8 = 0x1E;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShellOutput {
    pub(crate) code: u8,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// Whether an answer is complete.
pub(crate) type Whole = for<'a> fn(&'a [u8]) -> bool;

/// A road to one phone. Dropping the future closes the stream on the phone's side.
#[async_trait]
pub(crate) trait Link: Send + Sync + Debug + 'static {
    fn serial(&self) -> &str;

    /// Runs `cmd` in the phone's shell.
    async fn shell(&self, cmd: &str, limit: Duration) -> Result<ShellOutput, AdbError>;

    /// The raw bytes `cmd` writes; stderr is mixed in and there is no exit code.
    async fn exec(&self, cmd: &str, limit: Duration) -> Result<Vec<u8>, AdbError>;

    /// Sends `request` to a TCP port of the phone itself and reads until `whole` says so or the phone closes.
    ///
    /// This is what `adb forward` does, without opening a port on this computer that any other program could use.
    async fn talk(&self, port: u16, request: &[u8], whole: Whole, limit: Duration) -> Result<Vec<u8>, AdbError> {
        let _ = (request, whole, limit);
        Err(AdbError::Refused(format!("this road offers no tcp:{port} service")))
    }
}

/// Decoder of the shell protocol v2: id, length (LE), bytes.
#[derive(Debug, Default)]
pub(crate) struct ShellPackets {
    pending: Vec<u8>,
    output: ShellOutput,
    exited: bool,
}

impl ShellPackets {
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(), AdbError> {
        self.pending.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(head) = self.pending.get(at..at + 5) {
            let id = head[0];
            let len = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
            if len > MAX_OUTPUT_BYTES {
                return Err(AdbError::TooLarge { cap: MAX_OUTPUT_BYTES });
            }
            let Some(body) = self.pending.get(at + 5..at + 5 + len) else { break };
            match id {
                1 => self.output.stdout.extend_from_slice(body),
                2 => self.output.stderr.extend_from_slice(body),
                3 => {
                    self.output.code = *body.first().ok_or_else(|| AdbError::Protocol("an exit packet without a code".to_owned()))?;
                    self.exited = true;
                }
                // Close-stdin and window-size flow the other way; a phone that echoes them says nothing.
                0 | 4 | 5 => {}
                other => return Err(AdbError::Protocol(format!("shell packet {other}"))),
            }
            at += 5 + len;
        }
        self.pending.drain(..at);
        if self.output.stdout.len() + self.output.stderr.len() > MAX_OUTPUT_BYTES {
            return Err(AdbError::TooLarge { cap: MAX_OUTPUT_BYTES });
        }
        Ok(())
    }

    pub(crate) fn exited(&self) -> bool {
        self.exited
    }

    /// The answer, complete only if the exit code came.
    pub(crate) fn finish(self) -> Result<ShellOutput, AdbError> {
        if self.exited { Ok(self.output) } else { Err(AdbError::BrokeOff) }
    }
}

/// The command line that makes a phone without shell v2 report its exit code.
pub(crate) fn with_trailer(cmd: &str) -> String {
    format!("( {cmd} ); printf '\\036%d\\036' $?")
}

/// Takes the trailer off again; without one the command did not finish.
pub(crate) fn split_trailer(mut raw: Vec<u8>) -> Result<ShellOutput, AdbError> {
    let inner = raw.strip_suffix(&[MARK]).ok_or(AdbError::BrokeOff)?;
    let start = inner.iter().rposition(|b| *b == MARK).ok_or(AdbError::BrokeOff)?;
    let code = std::str::from_utf8(&inner[start + 1..]).ok().and_then(|digits| digits.parse::<u32>().ok()).ok_or(AdbError::BrokeOff)?;
    raw.truncate(start);
    Ok(ShellOutput { code: code as u8, stdout: raw, stderr: Vec::new() })
}

pub(crate) async fn within<T>(limit: Duration, work: impl Future<Output = Result<T, AdbError>>) -> Result<T, AdbError> {
    tokio::time::timeout(limit, work).await.unwrap_or(Err(AdbError::Timeout))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(id: u8, body: &[u8]) -> Vec<u8> {
        let mut out = vec![id];
        out.extend((body.len() as u32).to_le_bytes());
        out.extend(body);
        out
    }

    #[test]
    fn packets_survive_any_split() {
        let all = [packet(1, b"out"), packet(2, b"err"), packet(1, b"!"), packet(3, &[7])].concat();
        for size in 1..=all.len() {
            let mut packets = ShellPackets::default();
            for chunk in all.chunks(size) {
                packets.feed(chunk).expect("well-formed packets must decode");
            }
            let output = packets.finish().expect("an exit packet completes the answer");
            assert_eq!(output.code, 7, "the exit code must survive chunks of {size}");
            assert_eq!(output.stdout, b"out!", "stdout must survive chunks of {size}");
            assert_eq!(output.stderr, b"err", "stderr must survive chunks of {size}");
        }
    }

    #[test]
    fn no_exit_packet_is_never_success() {
        let mut packets = ShellPackets::default();
        packets.feed(&packet(1, b"half")).expect("a valid packet");
        assert!(matches!(packets.finish(), Err(AdbError::BrokeOff)), "facts A2: truncated output must be an error");
    }

    #[test]
    fn broken_packets_are_refused() {
        let rows =
            [("huge", [&[1u8][..], &u32::MAX.to_le_bytes()].concat()), ("empty exit", packet(3, b"")), ("unknown id", packet(9, b"x"))];
        for (name, bytes) in rows {
            assert!(ShellPackets::default().feed(&bytes).is_err(), "row {name} must be an error");
        }
    }

    #[test]
    fn trailers() {
        type Row<'a> = (&'a str, &'a [u8], Option<(u8, &'a [u8])>);
        let rows: [Row<'_>; 5] = [
            ("plain", b"hello\x1e0\x1e", Some((0, b"hello"))),
            ("failed", b"no such file\n\x1e1\x1e", Some((1, b"no such file\n"))),
            ("cut", b"hello\x1e", None),
            ("missing", b"hello", None),
            ("not a number", b"a\x1eb\x1e", None),
        ];
        for (name, raw, want) in rows {
            let got = split_trailer(raw.to_vec()).ok().map(|o| (o.code, o.stdout));
            assert_eq!(got, want.map(|(c, o)| (c, o.to_vec())), "row {name}");
        }
    }
}
