//! What a stream can be opened for: shells in their four dialects, `exec:`, `sync:`, `reboot:`, and `tcp:` to the agent's port.
//! Anything else is refused by answering `None`.

use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::adb::sync;
use crate::agent;
use crate::phone::{Fate, Phone};
use crate::shell::{Output, Shell};

/// A stream's two directions.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) input: mpsc::UnboundedReceiver<Vec<u8>>,
    pub(crate) output: mpsc::UnboundedSender<Vec<u8>>,
}

type Service = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How a shell's output is dressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// Packets with separate stdout and stderr and an exit packet; no terminal.
    V2Raw,
    /// The same packets, but from a terminal: merged, CRLF.
    V2Pty,
    /// A bare terminal: merged, CRLF, no exit status.
    V1,
    /// A raw terminal: merged, bytes untouched.
    Exec,
}

/// The service of that name, not yet running.
pub(crate) fn start(phone: Arc<Phone>, name: &str, pipe: Pipe) -> Option<Service> {
    if let Some(rest) = name.strip_prefix("shell") {
        let (options, command) = rest.split_once(':')?;
        let options: Vec<&str> = options.split(',').collect();
        let dialect = match (options.contains(&"v2"), options.contains(&"raw")) {
            (true, true) => Dialect::V2Raw,
            (true, false) => Dialect::V2Pty,
            (false, true) => Dialect::Exec,
            (false, false) => Dialect::V1,
        };
        let command = command.to_owned();
        return Some(Box::pin(shell(phone, command, dialect, pipe)));
    }
    if let Some(command) = name.strip_prefix("exec:") {
        return Some(Box::pin(shell(phone, command.to_owned(), Dialect::Exec, pipe)));
    }
    if name == "sync:" {
        return Some(Box::pin(sync::serve(phone, pipe)));
    }
    if let Some(port) = name.strip_prefix("tcp:") {
        let port = port.split(':').next()?.parse::<u16>().ok()?;
        // Nothing else listens on this phone, so any other port is refused as a closed one.
        return (phone.agent()?.port == port).then(|| -> Service { Box::pin(agent::serve(phone, pipe)) });
    }
    if name.starts_with("reboot:") {
        return Some(Box::pin(async move {
            drop(pipe);
            phone.reboot();
        }));
    }
    None
}

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const EXIT: u8 = 3;
const CLOSE_STDIN: u8 = 4;

fn packet(id: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![id];
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
    out
}

/// A terminal turns every newline into CRLF.
fn crlf(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 16);
    for byte in bytes {
        if *byte == b'\n' {
            out.push(b'\r');
        }
        out.push(*byte);
    }
    out
}

fn dress(dialect: Dialect, output: Output) -> Vec<u8> {
    match (dialect, output) {
        (Dialect::V2Raw, Output::Out(bytes)) => packet(STDOUT, &bytes),
        (Dialect::V2Raw, Output::Err(bytes)) => packet(STDERR, &bytes),
        (Dialect::V2Pty, Output::Out(bytes) | Output::Err(bytes)) => packet(STDOUT, &crlf(&bytes)),
        (Dialect::V1, Output::Out(bytes) | Output::Err(bytes)) => crlf(&bytes),
        (Dialect::Exec, Output::Out(bytes) | Output::Err(bytes)) => bytes,
    }
}

async fn shell(phone: Arc<Phone>, command: String, dialect: Dialect, mut pipe: Pipe) {
    let (to, mut from) = mpsc::unbounded_channel();
    let fate = phone.fate();
    let output = pipe.output.clone();
    let dressing = async {
        let mut held = Vec::new();
        while let Some(one) = from.recv().await {
            let bytes = dress(dialect, one);
            match fate {
                Fate::Whole => drop(output.send(bytes)),
                Fate::Cut | Fate::Reboot => held.extend(bytes),
            }
        }
        held
    };
    let running = async {
        let mut shell = Shell::new(phone.clone(), dialect != Dialect::V2Raw);
        let status = if command.is_empty() {
            interactive(&mut shell, dialect, &mut pipe.input, &to).await
        } else {
            shell.run(&command, &to).await.0
        };
        drop(to);
        status
    };
    let (status, mut held) = tokio::join!(running, dressing);
    if fate != Fate::Whole {
        // Half of what was to come, even of a packet, and no exit status.
        held.truncate(held.len() / 2);
        drop(pipe.output.send(held));
        if fate == Fate::Reboot {
            phone.reboot();
        }
        return;
    }
    if matches!(dialect, Dialect::V2Raw | Dialect::V2Pty) {
        drop(pipe.output.send(packet(EXIT, &[status as u8])));
    }
}

/// Reads lines from a person: prompt, echo, backspace, Ctrl-C, Ctrl-D; until `exit`.
async fn interactive(
    shell: &mut Shell,
    dialect: Dialect,
    input: &mut mpsc::UnboundedReceiver<Vec<u8>>,
    to: &mpsc::UnboundedSender<Output>,
) -> i32 {
    let terminal = dialect != Dialect::V2Raw;
    let say = |bytes: &[u8]| drop(to.send(Output::Out(bytes.to_vec())));
    let prompt = || {
        if terminal {
            say(b"cmsim:/ $ ");
        }
    };
    let mut frames = Vec::new();
    let mut line = Vec::new();
    prompt();
    while let Some(bytes) = input.recv().await {
        let typed = if matches!(dialect, Dialect::V2Raw | Dialect::V2Pty) {
            frames.extend(bytes);
            match unframe(&mut frames) {
                Some(typed) => typed,
                None => return 0,
            }
        } else {
            bytes
        };
        for byte in typed {
            match byte {
                b'\r' | b'\n' => {
                    if terminal {
                        say(b"\n");
                    }
                    let source = String::from_utf8_lossy(&line).into_owned();
                    line.clear();
                    let (status, exit) = shell.run(&source, to).await;
                    if exit {
                        return status;
                    }
                    prompt();
                }
                4 => return 0,
                3 => {
                    line.clear();
                    say(b"^C\n");
                    prompt();
                }
                8 | 127 => {
                    if line.pop().is_some() && terminal {
                        say(b"\x08 \x08");
                    }
                }
                other => {
                    line.push(other);
                    if terminal {
                        say(&[other]);
                    }
                }
            }
        }
    }
    0
}

/// Takes whole stdin packets off the buffer; `None` = the peer closed its input.
fn unframe(frames: &mut Vec<u8>) -> Option<Vec<u8>> {
    let mut typed = Vec::new();
    while frames.len() >= 5 {
        let size = u32::from_le_bytes([frames[1], frames[2], frames[3], frames[4]]) as usize;
        if frames.len() < 5 + size {
            break;
        }
        let id = frames[0];
        let body: Vec<u8> = frames.drain(..5 + size).skip(5).collect();
        match id {
            STDIN => typed.extend(body),
            CLOSE_STDIN if typed.is_empty() => return None,
            _ => {}
        }
    }
    Some(typed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_dialect_dresses_output_as_adbd_does() {
        let rows = [
            (Dialect::V2Raw, Output::Out(b"a\n".to_vec()), b"\x01\x02\0\0\0a\n".to_vec()),
            (Dialect::V2Raw, Output::Err(b"e".to_vec()), b"\x02\x01\0\0\0e".to_vec()),
            (Dialect::V2Pty, Output::Err(b"e\n".to_vec()), b"\x01\x03\0\0\0e\r\n".to_vec()),
            (Dialect::V1, Output::Out(b"a\n".to_vec()), b"a\r\n".to_vec()),
            (Dialect::Exec, Output::Out(b"a\n".to_vec()), b"a\n".to_vec()),
        ];
        for (dialect, output, want) in rows {
            assert_eq!(dress(dialect, output.clone()), want, "{dialect:?} {output:?}");
        }
    }

    #[test]
    fn stdin_packets_are_taken_whole() {
        let mut frames = packet(STDIN, b"ls\n");
        frames.extend(&packet(STDIN, b"id")[..6]);
        assert_eq!(unframe(&mut frames), Some(b"ls\n".to_vec()), "the whole packet is read");
        assert_eq!(frames.len(), 6, "the half one waits");
        assert_eq!(unframe(&mut packet(CLOSE_STDIN, b"")), None, "a closed input ends the shell");
    }
}
