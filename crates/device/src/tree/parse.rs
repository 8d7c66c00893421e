//! XML events to arena records.
//!
//! One loop, an explicit stack, no recursion. A dump is often wrapped in noise (a status line, a grep
//! prefix, an adb warning), so it starts at the first thing that looks like a tree and stops when that is closed.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::texts::{Interner, Sym};
use super::{Bounds, MAX_DEPTH, MAX_DUMP_BYTES, MAX_NODES, NONE, Record, TreeError, UiTree, clean, flag};

/// Elements that only hold nodes; the last two from `--windows` dumps.
const CONTAINERS: [&str; 4] = ["hierarchy", "displays", "display", "window"];

pub(super) fn parse(raw: &[u8]) -> Result<UiTree, TreeError> {
    if raw.len() > MAX_DUMP_BYTES {
        return Err(TreeError::TooLarge { bytes: raw.len(), cap: MAX_DUMP_BYTES });
    }
    let text = clean::decode(raw);
    if text.trim().is_empty() {
        return Err(TreeError::Empty);
    }
    // UTF-16 and GBK grow when decoded; the arena offsets are 32 bit and the cap keeps them so.
    if text.len() > 3 * MAX_DUMP_BYTES {
        return Err(TreeError::TooLarge { bytes: text.len(), cap: MAX_DUMP_BYTES });
    }
    let start = tree_start(&text).ok_or(TreeError::NoTree)?;
    let mut reader = Reader::from_str(&text[start..]);
    let config = reader.config_mut();
    config.check_end_names = true;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;

    let mut builder = Builder::for_bytes(text.len() - start);
    loop {
        let event = match reader.read_event() {
            Ok(event) => event,
            // Noise after a finished fragment is not part of it.
            Err(_) if builder.open.is_empty() && !builder.records.is_empty() => break,
            Err(error) => {
                return Err(TreeError::Xml { position: start as u64 + reader.error_position(), reason: error.to_string() });
            }
        };
        let done = match event {
            Event::Start(element) => {
                let position = start as u64 + reader.buffer_position();
                builder.open(&element, position)?;
                false
            }
            Event::Empty(element) => {
                let position = start as u64 + reader.buffer_position();
                builder.open(&element, position)?;
                builder.close()
            }
            Event::End(_) => builder.close(),
            Event::Eof => true,
            Event::Text(_)
            | Event::CData(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::DocType(_)
            | Event::GeneralRef(_) => false,
        };
        if done {
            break;
        }
    }
    if !builder.open.is_empty() {
        return Err(TreeError::Xml {
            position: start as u64 + reader.buffer_position(),
            reason: format!("it ends inside {} open element(s)", builder.open.len()),
        });
    }
    if builder.records.is_empty() {
        return Err(TreeError::NoTree);
    }
    Ok(UiTree { records: builder.records, texts: builder.texts.finish(), rotation: builder.rotation })
}

/// Byte offset of the first container or node; a log line or a declaration before it is skipped.
fn tree_start(text: &str) -> Option<usize> {
    ["<hierarchy", "<displays", "<node"].iter().filter_map(|mark| text.find(mark)).min().or_else(|| {
        // Appium class-name tags without a hierarchy.
        text.match_indices('<').find(|(at, _)| text[at + 1..].starts_with(|c: char| c.is_ascii_alphabetic())).map(|(at, _)| at)
    })
}

struct Builder {
    records: Vec<Record>,
    texts: Interner,
    rotation: u8,
    /// One entry per open element: its record, or `NONE` for a container or a foreign element.
    open: Vec<Open>,
    /// Whether the document began with a container, so that closing it ends the tree.
    rooted: bool,
}

struct Open {
    /// The nearest record at or above this element.
    nearest: u32,
    /// Whether the record is this very element.
    own: bool,
}

/// A node takes 350 to 700 bytes of a dump (facts D); reserving for the smaller avoids most growing.
const BYTES_PER_NODE: usize = 350;

impl Builder {
    fn for_bytes(bytes: usize) -> Builder {
        let nodes = (bytes / BYTES_PER_NODE + 1).min(MAX_NODES);
        Builder {
            records: Vec::with_capacity(nodes),
            texts: Interner::for_nodes(nodes),
            rotation: 0,
            open: Vec::with_capacity(64),
            rooted: false,
        }
    }

    fn open(&mut self, element: &BytesStart<'_>, position: u64) -> Result<(), TreeError> {
        let name = element.name();
        let name = name.as_ref();
        let container = CONTAINERS.contains(&name);
        if self.open.is_empty() && self.records.is_empty() && container {
            self.rooted = true;
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(TreeError::TooDeep { cap: MAX_DEPTH });
        }
        let parent = self.open.last().map_or(NONE, |o| o.nearest);
        let mut record = Record {
            text: Sym::EMPTY,
            desc: Sym::EMPTY,
            hint: Sym::EMPTY,
            resource_id: Sym::EMPTY,
            class: Sym::EMPTY,
            package: Sym::EMPTY,
            bounds: Bounds::default(),
            flags: flag::ENABLED,
            parent,
            end: 0,
        };
        let mut is_node = name == "node";
        for attribute in element.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| TreeError::Xml { position, reason: format!("attribute of <{name}>: {error}") })?;
            let raw: &str = &attribute.value;
            let key = attribute.key.into_inner();
            if container {
                if key == "rotation" {
                    self.rotation = raw.trim().parse::<u8>().map_or(self.rotation, |turns| turns % 4);
                }
                continue;
            }
            match key {
                "text" => record.text = self.texts.intern(raw),
                "content-desc" => record.desc = self.texts.intern(raw),
                "hint" => record.hint = self.texts.intern(raw),
                "resource-id" => record.resource_id = self.texts.intern(raw),
                "class" => {
                    record.class = self.texts.intern(raw);
                    is_node = true;
                }
                "package" => record.package = self.texts.intern(raw),
                "bounds" => {
                    is_node = true;
                    if let Some(bounds) = Bounds::parse(raw) {
                        record.bounds = bounds;
                        record.flags |= flag::BOUNDS_KNOWN;
                    }
                }
                "clickable" => set(&mut record.flags, flag::CLICKABLE, raw),
                "long-clickable" => set(&mut record.flags, flag::LONG_CLICKABLE, raw),
                "selected" => set(&mut record.flags, flag::SELECTED, raw),
                "scrollable" => set(&mut record.flags, flag::SCROLLABLE, raw),
                "enabled" => set(&mut record.flags, flag::ENABLED, raw),
                "focused" => set(&mut record.flags, flag::FOCUSED, raw),
                "checked" => set(&mut record.flags, flag::CHECKED, raw),
                // 42 attribute names occur across tools (facts D); the rest say nothing we use.
                _ => {}
            }
        }
        if container || !is_node {
            self.open.push(Open { nearest: parent, own: false });
            return Ok(());
        }
        if self.records.len() >= MAX_NODES {
            return Err(TreeError::TooManyNodes { cap: MAX_NODES });
        }
        if record.class == Sym::EMPTY && name != "node" {
            record.class = self.texts.intern(name);
        }
        let id = self.records.len() as u32;
        record.end = id + 1;
        self.records.push(record);
        self.open.push(Open { nearest: id, own: true });
        Ok(())
    }

    /// Closes the innermost element; true when that was the root container.
    fn close(&mut self) -> bool {
        let Some(open) = self.open.pop() else { return false };
        if open.own {
            self.records[open.nearest as usize].end = self.records.len() as u32;
        }
        self.rooted && self.open.is_empty()
    }
}

fn set(flags: &mut u16, bit: u16, value: &str) {
    if value == "true" {
        *flags |= bit;
    } else {
        *flags &= !bit;
    }
}
