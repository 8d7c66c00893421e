//! `sync:` in its first version (STAT LIST RECV SEND), which is what clients use when a device
//! offers no more: enough for push, pull and ls.

use std::sync::Arc;

use crate::adb::services::Pipe;
use crate::phone::Phone;

const CHUNK: usize = 64 * 1024;
/// Larger than any picture or dump; a peer cannot fill our memory.
const MOST: usize = 64 * 1024 * 1024;
const FILE_MODE: u32 = 0o100_660;
const DIR_MODE: u32 = 0o040_771;
const TIME: u32 = 1_767_225_600;

struct Reader {
    pipe: Pipe,
    buffer: Vec<u8>,
}

impl Reader {
    async fn take(&mut self, size: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < size {
            self.buffer.extend(self.pipe.input.recv().await?);
        }
        let rest = self.buffer.split_off(size);
        Some(std::mem::replace(&mut self.buffer, rest))
    }

    async fn request(&mut self) -> Option<([u8; 4], u32)> {
        let head = self.take(8).await?;
        Some((head[..4].try_into().ok()?, u32::from_le_bytes(head[4..8].try_into().ok()?)))
    }

    fn send(&self, bytes: Vec<u8>) {
        drop(self.pipe.output.send(bytes));
    }

    fn fail(&self, why: &str) {
        self.send(answer(*b"FAIL", &[why.len() as u32], why.as_bytes()));
    }
}

fn answer(id: [u8; 4], words: &[u32], tail: &[u8]) -> Vec<u8> {
    let mut out = id.to_vec();
    for word in words {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(tail);
    out
}

/// Answers requests until QUIT or the stream closes.
pub(crate) async fn serve(phone: Arc<Phone>, pipe: Pipe) {
    let mut reader = Reader { pipe, buffer: Vec::new() };
    while let Some((id, size)) = reader.request().await {
        if &id == b"QUIT" {
            return;
        }
        if size > 4096 {
            reader.fail("path too long");
            return;
        }
        let Some(raw) = reader.take(size as usize).await else {
            return;
        };
        let path = String::from_utf8_lossy(&raw).into_owned();
        match &id {
            b"STAT" => {
                let (mode, size) = look(&phone, &path);
                reader.send(answer(*b"STAT", &[mode, size, if mode == 0 { 0 } else { TIME }], &[]));
            }
            b"LIST" => {
                for (name, size) in phone.list(&path) {
                    let mode = if size.is_some() { FILE_MODE } else { DIR_MODE };
                    let words = [mode, size.unwrap_or(4096) as u32, TIME, name.len() as u32];
                    reader.send(answer(*b"DENT", &words, name.as_bytes()));
                }
                reader.send(answer(*b"DONE", &[0, 0, 0, 0], &[]));
            }
            b"RECV" => match phone.read_file(&path) {
                Some(bytes) => {
                    for chunk in bytes.chunks(CHUNK) {
                        reader.send(answer(*b"DATA", &[chunk.len() as u32], chunk));
                    }
                    reader.send(answer(*b"DONE", &[0], &[]));
                }
                None => reader.fail("No such file or directory"),
            },
            b"SEND" => {
                if receive(&phone, &mut reader, &path).await.is_none() {
                    return;
                }
            }
            _ => {
                reader.fail("unknown command");
                return;
            }
        }
    }
}

fn look(phone: &Phone, path: &str) -> (u32, u32) {
    match phone.read_file(path) {
        Some(bytes) => (FILE_MODE, bytes.len() as u32),
        None if phone.is_dir(path) => (DIR_MODE, 4096),
        None => (0, 0),
    }
}

/// `path,mode`, then DATA chunks, then DONE; `None` when the stream is over.
async fn receive(phone: &Phone, reader: &mut Reader, target: &str) -> Option<()> {
    let path = target.rsplit_once(',').map_or(target, |(path, _)| path);
    let mut bytes = Vec::new();
    loop {
        let (id, size) = reader.request().await?;
        match &id {
            b"DATA" if size as usize <= CHUNK && bytes.len() <= MOST => {
                bytes.extend(reader.take(size as usize).await?);
            }
            b"DONE" => break,
            _ => {
                reader.fail("unexpected data");
                return None;
            }
        }
    }
    if phone.write_file(path, bytes) {
        reader.send(answer(*b"OKAY", &[0], &[]));
    } else {
        reader.fail("couldn't create file: Permission denied");
    }
    Some(())
}
