//! What the phone says is on its screen, as a flat arena in document order.
//!
//! It exists so that recognition and the tap guard look at one immutable thing. It never recurses (a
//! dump may be nested 400 000 deep), never trusts the declared encoding, and never returns half a
//! tree: a dump that stops inside an element is an error, because the missing half may hold the pay button.

mod bounds;
mod clean;
mod parse;
mod query;
mod texts;

use std::fmt;

pub use bounds::{Bounds, Point};
pub use query::{Query, Says};
use texts::{Sym, Texts};

/// Largest dump accepted, in bytes.
pub const MAX_DUMP_BYTES: usize = 20 * 1024 * 1024;
/// Most nodes accepted.
pub const MAX_NODES: usize = 200_000;
/// Deepest nesting accepted, in elements. Real pages reach 35 (facts D); a bound keeps every walk upwards short.
pub const MAX_DEPTH: usize = 1_000;

const NONE: u32 = u32::MAX;

/// Index of a node in its own tree; 0 is the first node of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// Position in document order.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Why bytes are not a usable UI tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    #[error("the dump is empty")]
    Empty,
    #[error("the dump holds no ui node")]
    NoTree,
    #[error("the dump is {bytes} bytes, more than {cap}")]
    TooLarge { bytes: usize, cap: usize },
    #[error("the dump holds more than {cap} nodes")]
    TooManyNodes { cap: usize },
    #[error("the dump is nested more than {cap} deep")]
    TooDeep { cap: usize },
    #[error("the dump is broken at byte {position}: {reason}")]
    Xml { position: u64, reason: String },
}

mod flag {
    pub(super) const CLICKABLE: u16 = 1;
    pub(super) const SELECTED: u16 = 1 << 1;
    pub(super) const SCROLLABLE: u16 = 1 << 2;
    pub(super) const ENABLED: u16 = 1 << 3;
    pub(super) const CHECKED: u16 = 1 << 4;
    pub(super) const LONG_CLICKABLE: u16 = 1 << 5;
    pub(super) const BOUNDS_KNOWN: u16 = 1 << 6;
    pub(super) const FOCUSED: u16 = 1 << 7;
}

/// 52 bytes without a pointer: texts are symbols, relations are indexes.
#[derive(Clone, Copy, Debug)]
struct Record {
    text: Sym,
    desc: Sym,
    hint: Sym,
    resource_id: Sym,
    class: Sym,
    package: Sym,
    bounds: Bounds,
    flags: u16,
    parent: u32,
    /// One past the last descendant: a subtree is the range `id..end`.
    end: u32,
}

/// An immutable UI tree. Several roots are possible (windows, fragments).
#[derive(Clone, Default)]
pub struct UiTree {
    records: Vec<Record>,
    texts: Texts,
    rotation: u8,
}

impl fmt::Debug for UiTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UiTree").field("nodes", &self.records.len()).field("rotation", &self.rotation).finish_non_exhaustive()
    }
}

impl UiTree {
    /// Parses whatever `uiautomator dump` and its relatives leave behind.
    pub fn parse(raw: &[u8]) -> Result<UiTree, TreeError> {
        parse::parse(raw)
    }

    /// A tree without nodes: what a capture that got no dump carries.
    pub fn empty() -> UiTree {
        UiTree::default()
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Quarter turns from the natural orientation, 0..=3.
    pub fn rotation(&self) -> u8 {
        self.rotation
    }

    /// The node, or `None` when the id belongs to another (larger) tree.
    pub fn get(&self, id: NodeId) -> Option<Node<'_>> {
        (id.index() < self.records.len()).then_some(Node { tree: self, id })
    }

    /// # Panics
    /// When `id` comes from another tree and is out of range; use [`UiTree::get`] when unsure.
    pub fn node(&self, id: NodeId) -> Node<'_> {
        assert!(id.index() < self.records.len(), "node {} is not in this tree of {}", id.0, self.records.len());
        Node { tree: self, id }
    }

    /// Every node in document order.
    pub fn nodes(&self) -> impl Iterator<Item = Node<'_>> {
        (0..self.records.len() as u32).map(|i| Node { tree: self, id: NodeId(i) })
    }

    /// Nodes without a parent, in document order.
    pub fn roots(&self) -> impl Iterator<Item = Node<'_>> {
        Siblings { tree: self, at: 0, end: self.records.len() as u32 }
    }

    /// Nodes that a query describes, in document order.
    pub fn find<'t, 'q>(&'t self, query: &'q Query<'q>) -> impl Iterator<Item = Node<'t>> + use<'t, 'q> {
        query.run(self)
    }

    /// The last node in document order that covers the point: what a finger meets first.
    pub fn deepest_at(&self, at: Point) -> Option<Node<'_>> {
        self.records.iter().rposition(|record| record.bounds.contains(at)).map(|index| Node { tree: self, id: NodeId(index as u32) })
    }

    /// Every distinct text of the tree, by symbol: work on texts is done once per text, not once per node.
    pub(crate) fn distinct_texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.texts.iter()
    }

    fn slice(&self, sym: Sym) -> &str {
        self.texts.get(sym)
    }
}

/// A node seen through its tree. Copy it freely.
#[derive(Clone, Copy)]
pub struct Node<'t> {
    tree: &'t UiTree,
    id: NodeId,
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("id", &self.id.0)
            .field("label", &self.label())
            .field("class", &self.class())
            .field("bounds", &self.bounds())
            .finish()
    }
}

impl<'t> Node<'t> {
    fn record(&self) -> &'t Record {
        &self.tree.records[self.id.index()]
    }

    fn has(&self, flag: u16) -> bool {
        self.record().flags & flag != 0
    }

    pub fn id(&self) -> NodeId {
        self.id
    }

    pub fn tree(&self) -> &'t UiTree {
        self.tree
    }

    pub fn text(&self) -> &'t str {
        self.tree.slice(self.record().text)
    }

    /// `content-desc`.
    pub fn desc(&self) -> &'t str {
        self.tree.slice(self.record().desc)
    }

    /// What a person would read: the text, or the description when there is no text.
    pub fn label(&self) -> &'t str {
        let text = self.text();
        if text.is_empty() { self.desc() } else { text }
    }

    pub fn hint(&self) -> &'t str {
        self.tree.slice(self.record().hint)
    }

    pub fn resource_id(&self) -> &'t str {
        self.tree.slice(self.record().resource_id)
    }

    pub fn class(&self) -> &'t str {
        self.tree.slice(self.record().class)
    }

    pub fn package(&self) -> &'t str {
        self.tree.slice(self.record().package)
    }

    /// Symbols of text, description and hint, for tables made from [`UiTree::distinct_texts`].
    pub(crate) fn label_symbols(&self) -> [usize; 3] {
        let record = self.record();
        [record.text.index(), record.desc.index(), record.hint.index()]
    }

    /// Empty when the dump gave none; see [`Node::bounds_known`].
    pub fn bounds(&self) -> Bounds {
        self.record().bounds
    }

    /// Whether the dump stated readable bounds for this node.
    pub fn bounds_known(&self) -> bool {
        self.has(flag::BOUNDS_KNOWN)
    }

    pub fn clickable(&self) -> bool {
        self.has(flag::CLICKABLE)
    }

    pub fn long_clickable(&self) -> bool {
        self.has(flag::LONG_CLICKABLE)
    }

    pub fn selected(&self) -> bool {
        self.has(flag::SELECTED)
    }

    pub fn scrollable(&self) -> bool {
        self.has(flag::SCROLLABLE)
    }

    /// True when the dump does not say.
    pub fn enabled(&self) -> bool {
        self.has(flag::ENABLED)
    }

    pub fn checked(&self) -> bool {
        self.has(flag::CHECKED)
    }

    pub fn focused(&self) -> bool {
        self.has(flag::FOCUSED)
    }

    pub fn parent(&self) -> Option<Node<'t>> {
        let parent = self.record().parent;
        (parent != NONE).then_some(Node { tree: self.tree, id: NodeId(parent) })
    }

    /// Direct children in document order.
    pub fn children(&self) -> impl Iterator<Item = Node<'t>> + use<'t> {
        Siblings { tree: self.tree, at: self.id.0 + 1, end: self.record().end }
    }

    /// Parent, grandparent, ... without the node itself.
    pub fn ancestors(&self) -> impl Iterator<Item = Node<'t>> + use<'t> {
        std::iter::successors(self.parent(), |node| node.parent())
    }

    /// The other children of the same parent (or the other roots), in document order.
    pub fn siblings(&self) -> impl Iterator<Item = Node<'t>> + use<'t> {
        let (tree, own) = (self.tree, self.id);
        let (at, end) = match self.parent() {
            Some(parent) => (parent.id.0 + 1, parent.record().end),
            None => (0, tree.records.len() as u32),
        };
        Siblings { tree, at, end }.filter(move |node| node.id != own)
    }

    /// Whether `other` lies somewhere below this node of the same tree.
    pub fn is_above(&self, other: NodeId) -> bool {
        other > self.id && other.0 < self.record().end
    }

    /// The node itself when it is clickable, else its nearest clickable ancestor: what a click on it presses.
    pub fn pressed(&self) -> Option<Node<'t>> {
        std::iter::once(*self).chain(self.ancestors()).find(Node::clickable)
    }

    /// Everything below, pre-order, without the node itself.
    pub fn descendants(&self) -> impl Iterator<Item = Node<'t>> + use<'t> {
        let tree = self.tree;
        (self.id.0 + 1..self.record().end).map(move |i| Node { tree, id: NodeId(i) })
    }
}

struct Siblings<'t> {
    tree: &'t UiTree,
    at: u32,
    end: u32,
}

impl<'t> Iterator for Siblings<'t> {
    type Item = Node<'t>;

    fn next(&mut self) -> Option<Node<'t>> {
        if self.at >= self.end {
            return None;
        }
        let node = Node { tree: self.tree, id: NodeId(self.at) };
        self.at = node.record().end;
        Some(node)
    }
}
