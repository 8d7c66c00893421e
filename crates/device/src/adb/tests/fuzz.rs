//! Bytes a peer should not send, against the readers of the wire.

#[path = "../../../tests/fuzz/drive.rs"]
mod drive;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::adb::answers;
use crate::adb::link::{ShellPackets, split_trailer, with_trailer};
use crate::adb::message::{CLSE, CNXN, MAX_PAYLOAD, Message, OKAY, OPEN, WRTE};

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let command = prop::sample::select(vec![CNXN, OPEN, OKAY, WRTE, CLSE]);
    let message = (command, any::<u32>(), any::<u32>(), vec(any::<u8>(), 0..60));
    vec(message.prop_map(|(command, arg0, arg1, payload)| Message::new(command, arg0, arg1, payload)), 0..6)
}

fn packets() -> impl Strategy<Value = Vec<(u8, Vec<u8>)>> {
    vec((prop_oneof![6 => 1u8..=2, 1 => 0u8..=6], vec(any::<u8>(), 0..40)), 0..8)
}

fn packet(id: u8, body: &[u8]) -> Vec<u8> {
    [&[id][..], &(body.len() as u32).to_le_bytes(), body].concat()
}

#[test]
fn the_codec_never_panics_and_reads_back_what_was_written() {
    let damage = vec((any::<Index>(), any::<u8>()), 0..4);
    let cases = (messages(), packets(), any::<u8>(), vec(1usize..30, 1..20), damage, "[ -~\u{1e}éé中\\n]{0,60}");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    drive::fuzz("codec", &cases, |(messages, packets, code, sizes, damage, text)| {
        // Messages: written, read back; damaged, read without a panic and without a giant allocation.
        let mut raw: Vec<u8> = messages.iter().flat_map(Message::encode).collect();
        let read_all = |raw: &[u8]| {
            runtime.block_on(async {
                let (mut from, mut read) = (raw, Vec::new());
                loop {
                    match Message::read(&mut from).await {
                        Ok(message) => read.push(message),
                        Err(error) => return (read, error),
                    }
                }
            })
        };
        prop_assert_eq!(&read_all(&raw).0, &messages, "messages survive the wire");
        for (at, byte) in &damage {
            if !raw.is_empty() {
                let at = at.index(raw.len());
                raw[at] = *byte;
            }
        }
        prop_assert!(read_all(&raw).0.iter().all(|message| message.payload.len() <= MAX_PAYLOAD as usize), "the payload cap holds");

        // Shell packets: any split gives the same, and only an exit packet completes them.
        let mut stream: Vec<u8> = packets.iter().filter(|(id, _)| (1..=2).contains(id)).flat_map(|(id, body)| packet(*id, body)).collect();
        let want = |id: u8| packets.iter().filter(|(one, _)| *one == id).flat_map(|(_, body)| body.clone()).collect::<Vec<u8>>();
        let feed = |stream: &[u8]| {
            let (mut decoder, mut at, mut sizes) = (ShellPackets::default(), 0, sizes.iter().cycle());
            while at < stream.len() {
                let end = stream.len().min(at + sizes.next().copied().unwrap_or(1));
                decoder.feed(&stream[at..end])?;
                at = end;
            }
            decoder.finish()
        };
        prop_assert!(feed(&stream).is_err(), "no exit packet is never success");
        stream.extend(packet(3, &[code]));
        let output = feed(&stream).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!((output.code, output.stdout, output.stderr), (code, want(1), want(2)), "the packets' bytes, in order and apart");
        for (at, byte) in &damage {
            let at = at.index(stream.len());
            stream[at] = *byte;
        }
        let _ = feed(&stream);
        let _ = feed(&packets.iter().flat_map(|(id, body)| packet(*id, body)).collect::<Vec<u8>>());

        // Trailers, and everything that reads text.
        let with = [text.as_bytes(), format!("\u{1e}{code}\u{1e}").as_bytes()].concat();
        let output = split_trailer(with).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!((output.code, output.stdout), (code, text.clone().into_bytes()), "a trailer comes off again");
        let _ = (split_trailer(stream.clone()), with_trailer(&text), answers::text(&stream), answers::png(stream.clone()));
        let _ = (answers::devices(&text), answers::screen_size(&text), answers::density(&text), answers::version_name(&text));
        let focus = format!("mCurrentFocus=Window{{{text}}}\nACTIVITY com.xunmeng.pinduoduo {text} goods_id={text}");
        let _ = (answers::current_focus(&focus), answers::resumed_activity(&focus), answers::goods_on_top(&focus));
        Ok(())
    });
}
