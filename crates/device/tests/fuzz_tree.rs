//! Dumps nobody should send, against the tree parser: made by a grammar, wrapped in noise, re-encoded and then damaged.

#[path = "fuzz/drive.rs"]
mod drive;

use cmautobuy_device::{Bounds, MAX_DEPTH, MAX_NODES, UiTree};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseError;

/// A node, its attributes already escaped.
#[derive(Clone, Debug)]
struct Shape {
    tag: &'static str,
    attributes: Vec<(&'static str, String)>,
    children: Vec<Shape>,
}

impl Shape {
    fn write(&self, into: &mut String) {
        into.push('<');
        into.push_str(self.tag);
        for (name, value) in &self.attributes {
            into.push_str(&format!(" {name}=\"{value}\""));
        }
        if self.children.is_empty() {
            into.push_str("/>");
            return;
        }
        into.push('>');
        for child in &self.children {
            child.write(into);
        }
        into.push_str(&format!("</{}>", self.tag));
    }
}

/// Well-formed values, so that a strict parser can be asked for its opinion.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-z0-9 ¥.收藏提交订单立即支付]{0,12}",
        "(&amp;|&lt;|&quot;|&#128512;|&#10;|&#x4e2d;|[a-z]){0,5}",
        Just("true".to_owned()),
    ]
}

fn place() -> impl Strategy<Value = String> {
    prop_oneof![
        9 => any::<[i16; 4]>().prop_map(|[l, t, r, b]| Bounds::new(l.into(), t.into(), r.into(), b.into()).to_string()),
        1 => "[\\[\\],0-9-]{0,20}",
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    let name = prop_oneof![Just("node"), Just("node"), Just("node"), Just("android.view.View"), Just("extra")];
    let attribute = prop_oneof![
        4 => (prop::sample::select(vec!["text", "content-desc", "class", "package", "hint", "resource-id"]), value()),
        3 => place().prop_map(|place| ("bounds", place)),
        2 => (prop::sample::select(vec!["clickable", "selected", "focused", "enabled", "rotation"]), value()),
    ];
    let own = (name, vec(attribute, 0..6)).prop_map(|(tag, mut attributes)| {
        // A repeated attribute is not well-formed; the strict parser would not say anything about it.
        attributes.sort_by_key(|(name, _)| *name);
        attributes.dedup_by_key(|(name, _)| *name);
        Shape { tag, attributes, children: Vec::new() }
    });
    own.clone()
        .prop_recursive(8, 60, 6, move |inner| (own.clone(), vec(inner, 0..6)).prop_map(|(shape, children)| Shape { children, ..shape }))
}

fn dump() -> impl Strategy<Value = String> {
    vec(shape(), 0..5).prop_map(|shapes| {
        let mut xml = String::from("<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"1\">");
        shapes.iter().for_each(|shape| shape.write(&mut xml));
        xml + "</hierarchy>"
    })
}

/// What must hold of any tree that came out.
fn sound(tree: &UiTree) -> Result<(), TestCaseError> {
    prop_assert!(!tree.is_empty() && tree.len() <= MAX_NODES, "a tree has nodes, and not too many");
    let mut counted = 0;
    for root in tree.roots() {
        counted += 1 + root.descendants().count();
    }
    prop_assert_eq!(counted, tree.len(), "every node is under exactly one root");
    for node in tree.nodes() {
        prop_assert!(node.ancestors().count() < MAX_DEPTH, "no cycle and no endless chain");
        prop_assert!(node.parent().is_none_or(|up| up.is_above(node.id())), "a parent's range holds its child");
        prop_assert_eq!(
            node.children().count(),
            node.descendants().filter(|d| d.parent().map(|p| p.id()) == Some(node.id())).count(),
            "children"
        );
        let _ = (node.text(), node.desc(), node.hint(), node.class(), node.package(), node.resource_id());
    }
    Ok(())
}

/// The same document read by a strict parser written by others.
fn agrees(xml: &str, tree: Option<&UiTree>) -> Result<(), TestCaseError> {
    let document = roxmltree::Document::parse(xml).map_err(|error| TestCaseError::fail(format!("the grammar made bad XML: {error}")))?;
    let is_node = |element: &roxmltree::Node<'_, '_>| {
        element.is_element()
            && element.tag_name().name() != "hierarchy"
            && (element.tag_name().name() == "node" || element.has_attribute("class") || element.has_attribute("bounds"))
    };
    let theirs: Vec<_> = document.descendants().filter(is_node).collect();
    let ours: Vec<_> = tree.into_iter().flat_map(UiTree::nodes).collect();
    prop_assert_eq!(ours.len(), theirs.len(), "the same nodes");
    for (our, their) in ours.iter().zip(&theirs) {
        prop_assert_eq!(our.text(), their.attribute("text").unwrap_or(""), "the same text");
        prop_assert_eq!(our.desc(), their.attribute("content-desc").unwrap_or(""), "the same description");
        prop_assert_eq!(our.clickable(), their.attribute("clickable") == Some("true"), "the same flag");
        let place = their.attribute("bounds").and_then(Bounds::parse);
        prop_assert_eq!(our.bounds(), place.unwrap_or_default(), "the same place");
        let parent = their.ancestors().skip(1).find(|up| is_node(up));
        let index = parent.and_then(|up| theirs.iter().position(|one| *one == up));
        prop_assert_eq!(our.parent().map(|up| up.id().index()), index, "the same parent");
    }
    Ok(())
}

/// One way to damage bytes.
#[derive(Clone, Debug)]
enum Damage {
    Put(Index, u8),
    Insert(Index, u8),
    Remove(Index),
    Cut(Index),
    Copy(Index, Index),
    Piece(Index, &'static str),
}

fn damage() -> impl Strategy<Value = Damage> {
    let pieces = vec![
        "<",
        ">",
        "\"",
        "&",
        "</node>",
        "<node",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<?",
        "\0",
        "&#0;",
        "\u{FEFF}",
        "<hierarchy>",
        "</hierarchy>",
    ];
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Put(at, byte)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Insert(at, byte)),
        any::<Index>().prop_map(Damage::Remove),
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Copy(from, to)),
        (any::<Index>(), prop::sample::select(pieces)).prop_map(|(at, piece)| Damage::Piece(at, piece)),
    ]
}

fn damaged(mut raw: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        if raw.is_empty() {
            break;
        }
        match damage {
            Damage::Put(at, byte) => {
                let at = at.index(raw.len());
                raw[at] = *byte;
            }
            Damage::Insert(at, byte) => raw.insert(at.index(raw.len()), *byte),
            Damage::Remove(at) => drop(raw.remove(at.index(raw.len()))),
            Damage::Cut(at) => raw.truncate(at.index(raw.len())),
            Damage::Copy(from, to) => {
                let from = from.index(raw.len());
                let piece: Vec<u8> = raw[from..raw.len().min(from + 40)].to_vec();
                let to = to.index(raw.len());
                raw.splice(to..to, piece);
            }
            Damage::Piece(at, piece) => {
                let at = at.index(raw.len());
                raw.splice(at..at, piece.bytes());
            }
        }
    }
    raw
}

fn encoded(xml: &str, how: u8) -> Vec<u8> {
    match how {
        0..=4 => xml.as_bytes().to_vec(),
        5 => xml.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        6 => xml.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        7 => [b"\xEF\xBB\xBF", xml.as_bytes()].concat(),
        8 => [xml.as_bytes(), b"UI hierchary dumped to: /dev/tty\r\n"].concat(),
        _ => [b"WARNING: linker\r\r\n", xml.as_bytes()].concat(),
    }
}

#[test]
fn the_tree_parser_never_panics_and_never_lies() {
    let cases = (dump(), 0u8..10, vec(damage(), 0..8), any::<Index>());
    drive::fuzz("tree", &cases, |(xml, how, damages, cut)| {
        let raw = encoded(&xml, how);
        let whole = UiTree::parse(&raw);
        agrees(&xml, whole.as_ref().ok())?;
        if let Ok(tree) = UiTree::parse(&damaged(raw, &damages)) {
            sound(&tree)?;
        }
        // A dump that stops short must never pass for the screen: the missing half may hold the pay button.
        let end = xml.len() - "</hierarchy>".len();
        let at = cut.index(end.max(1));
        if at > xml.find("<hierarchy").unwrap_or(0) {
            prop_assert!(UiTree::parse(&xml.as_bytes()[..at]).is_err(), "half a dump was taken for a whole one");
        }
        Ok(())
    });
}
