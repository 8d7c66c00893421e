//! ADB packets: 24 bytes of header, then the payload. Checksums are always correct, because a peer
//! of version 0x01000000 checks them.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

pub(crate) const CNXN: u32 = u32::from_le_bytes(*b"CNXN");
pub(crate) const AUTH: u32 = u32::from_le_bytes(*b"AUTH");
pub(crate) const OPEN: u32 = u32::from_le_bytes(*b"OPEN");
pub(crate) const OKAY: u32 = u32::from_le_bytes(*b"OKAY");
pub(crate) const WRTE: u32 = u32::from_le_bytes(*b"WRTE");
pub(crate) const CLSE: u32 = u32::from_le_bytes(*b"CLSE");

/// From this version on, peers ignore checksums.
pub(crate) const VERSION: u32 = 0x0100_0001;
pub(crate) const OLD_VERSION: u32 = 0x0100_0000;
pub(crate) const MAX_PAYLOAD: u32 = 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) command: u32,
    pub(crate) arg0: u32,
    pub(crate) arg1: u32,
    pub(crate) data: Vec<u8>,
    /// As received; 0 from peers that do not compute it.
    pub(crate) sum: u32,
}

impl Packet {
    pub(crate) fn new(command: u32, arg0: u32, arg1: u32, data: impl Into<Vec<u8>>) -> Self {
        let data = data.into();
        let sum = checksum(&data);
        Self { command, arg0, arg1, data, sum }
    }

    pub(crate) fn intact(&self) -> bool {
        self.sum == checksum(&self.data)
    }
}

fn checksum(data: &[u8]) -> u32 {
    data.iter().fold(0_u32, |sum, byte| sum.wrapping_add(u32::from(*byte)))
}

/// Reads one packet; `None` when the peer closed between packets.
pub(crate) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Packet>> {
    let mut head = [0_u8; 24];
    match from.read_exact(&mut head).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let word = |at: usize| u32::from_le_bytes([head[at * 4], head[at * 4 + 1], head[at * 4 + 2], head[at * 4 + 3]]);
    let (command, size) = (word(0), word(3));
    if word(5) != command ^ 0xffff_ffff {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the packet's magic does not match its command"));
    }
    if size > MAX_PAYLOAD {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the packet is larger than agreed"));
    }
    let mut data = vec![0; size as usize];
    from.read_exact(&mut data).await?;
    Ok(Some(Packet { command, arg0: word(1), arg1: word(2), data, sum: word(4) }))
}

/// Writes one packet with a single write.
pub(crate) async fn write(to: &mut (impl AsyncWrite + Unpin), packet: &Packet) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(24 + packet.data.len());
    for word in [packet.command, packet.arg0, packet.arg1, packet.data.len() as u32, packet.sum, packet.command ^ 0xffff_ffff] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.extend_from_slice(&packet.data);
    to.write_all(&bytes).await?;
    to.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_packet_survives_the_wire_and_a_bad_magic_does_not() {
        let sent = Packet::new(WRTE, 1, 2, *b"hello");
        let mut bytes = Vec::new();
        write(&mut bytes, &sent).await.expect("a vector takes everything");
        assert_eq!(read(&mut bytes.as_slice()).await.expect("reads"), Some(sent.clone()), "what was sent arrives");
        assert_eq!(sent.sum, 532, "the checksum is the sum of the bytes");
        assert!(sent.intact(), "and it matches");
        bytes[20] ^= 1;
        assert!(read(&mut bytes.as_slice()).await.is_err(), "a wrong magic ends the connection");
        assert_eq!(read(&mut [].as_slice()).await.expect("reads"), None, "an end between packets is a goodbye");
    }
}
