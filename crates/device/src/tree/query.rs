//! Asking a tree for nodes by text, description, class, package, relation and place.
//!
//! Conditions on texts are decided once per distinct text before the first node is looked at; per node only numbers are compared and
//! nothing is allocated. The package comes first: most nodes of a foreign window are gone after one comparison.

use super::texts::Sym;
use super::{Bounds, Node, NodeId, Point, UiTree};

/// How a text must look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says<'q> {
    Exactly(&'q str),
    StartsWith(&'q str),
    EndsWith(&'q str),
    Contains(&'q str),
    /// Any of these, whole.
    OneOf(&'q [&'q str]),
}

impl Says<'_> {
    fn holds(&self, text: &str) -> bool {
        match self {
            Says::Exactly(want) => text == *want,
            Says::StartsWith(want) => text.starts_with(want),
            Says::EndsWith(want) => text.ends_with(want),
            Says::Contains(want) => text.contains(want),
            Says::OneOf(wants) => wants.contains(&text),
        }
    }
}

/// Which nodes are wanted. Every condition must hold; without any, all nodes are.
#[derive(Clone, Debug, Default)]
pub struct Query<'q> {
    packages: Option<&'q [&'q str]>,
    text: Option<Says<'q>>,
    desc: Option<Says<'q>>,
    label: Option<Says<'q>>,
    class: Option<Says<'q>>,
    resource_id: Option<Says<'q>>,
    clickable: Option<bool>,
    selected: Option<bool>,
    scrollable: Option<bool>,
    below: Option<NodeId>,
    child_of: Option<NodeId>,
    holding: Option<Says<'q>>,
    over: Option<Point>,
    within: Option<Bounds>,
    touching: Option<Bounds>,
}

impl<'q> Query<'q> {
    /// Every node of every package.
    pub fn anything() -> Query<'q> {
        Query::default()
    }

    /// Only nodes of these packages.
    pub fn of(packages: &'q [&'q str]) -> Query<'q> {
        Query { packages: Some(packages), ..Query::default() }
    }

    #[must_use]
    pub fn text(mut self, says: Says<'q>) -> Query<'q> {
        self.text = Some(says);
        self
    }

    /// `content-desc`.
    #[must_use]
    pub fn desc(mut self, says: Says<'q>) -> Query<'q> {
        self.desc = Some(says);
        self
    }

    /// The text, or the description of a node without one.
    #[must_use]
    pub fn label(mut self, says: Says<'q>) -> Query<'q> {
        self.label = Some(says);
        self
    }

    #[must_use]
    pub fn class(mut self, says: Says<'q>) -> Query<'q> {
        self.class = Some(says);
        self
    }

    #[must_use]
    pub fn resource_id(mut self, says: Says<'q>) -> Query<'q> {
        self.resource_id = Some(says);
        self
    }

    #[must_use]
    pub fn clickable(mut self) -> Query<'q> {
        self.clickable = Some(true);
        self
    }

    #[must_use]
    pub fn selected(mut self) -> Query<'q> {
        self.selected = Some(true);
        self
    }

    #[must_use]
    pub fn scrollable(mut self) -> Query<'q> {
        self.scrollable = Some(true);
        self
    }

    /// Somewhere under this node.
    #[must_use]
    pub fn below(mut self, node: NodeId) -> Query<'q> {
        self.below = Some(node);
        self
    }

    #[must_use]
    pub fn child_of(mut self, node: NodeId) -> Query<'q> {
        self.child_of = Some(node);
        self
    }

    /// With a node of this label somewhere under it.
    #[must_use]
    pub fn holding(mut self, says: Says<'q>) -> Query<'q> {
        self.holding = Some(says);
        self
    }

    /// Covering this point.
    #[must_use]
    pub fn over(mut self, at: Point) -> Query<'q> {
        self.over = Some(at);
        self
    }

    /// Not empty and wholly inside this rectangle.
    #[must_use]
    pub fn within(mut self, area: Bounds) -> Query<'q> {
        self.within = Some(area);
        self
    }

    /// Sharing a pixel with this rectangle.
    #[must_use]
    pub fn touching(mut self, area: Bounds) -> Query<'q> {
        self.touching = Some(area);
        self
    }

    pub(super) fn run<'t>(&'q self, tree: &'t UiTree) -> impl Iterator<Item = Node<'t>> + use<'t, 'q> {
        let plan = Plan::of(self, tree);
        (plan.from..plan.to).map(move |index| Node { tree, id: NodeId(index) }).filter(move |node| plan.takes(node))
    }
}

/// The distinct texts a condition holds for.
enum Set {
    Any,
    None,
    One(Sym),
    Many(Vec<bool>),
}

impl Set {
    fn of(says: Option<&Says<'_>>, tree: &UiTree) -> Set {
        let Some(says) = says else { return Set::Any };
        if let Says::Exactly(want) = says {
            return tree.texts.iter().position(|text| text == *want).map_or(Set::None, |index| Set::One(Sym::at(index)));
        }
        let holds: Vec<bool> = tree.texts.iter().map(|text| says.holds(text)).collect();
        if holds.contains(&true) { Set::Many(holds) } else { Set::None }
    }

    fn has(&self, sym: Sym) -> bool {
        match self {
            Set::Any => true,
            Set::None => false,
            Set::One(want) => *want == sym,
            Set::Many(holds) => holds[sym.index()],
        }
    }
}

/// A query with its texts looked up in one tree.
struct Plan<'q> {
    query: &'q Query<'q>,
    from: u32,
    to: u32,
    package: Set,
    text: Set,
    desc: Set,
    label: Set,
    class: Set,
    resource_id: Set,
    holding: Set,
}

impl<'q> Plan<'q> {
    fn of(query: &'q Query<'q>, tree: &UiTree) -> Plan<'q> {
        let all = tree.records.len() as u32;
        // A node of another tree has nothing under it here.
        let range = |id: NodeId| tree.records.get(id.index()).map_or((0, 0), |record| (id.0 + 1, record.end));
        let (from, to) = query.below.or(query.child_of).map_or((0, all), range);
        let packages = query.packages.map(Says::OneOf);
        let set = |says: &Option<Says<'_>>| Set::of(says.as_ref(), tree);
        let plan = Plan {
            query,
            from,
            to,
            package: set(&packages),
            text: set(&query.text),
            desc: set(&query.desc),
            label: set(&query.label),
            class: set(&query.class),
            resource_id: set(&query.resource_id),
            holding: set(&query.holding),
        };
        let sets = [&plan.package, &plan.text, &plan.desc, &plan.label, &plan.class, &plan.resource_id, &plan.holding];
        let hopeless = sets.into_iter().any(|set| matches!(set, Set::None));
        if hopeless { Plan { to: plan.from, ..plan } } else { plan }
    }

    fn takes(&self, node: &Node<'_>) -> bool {
        let record = node.record();
        let query = self.query;
        self.package.has(record.package)
            && self.text.has(record.text)
            && self.desc.has(record.desc)
            && self.class.has(record.class)
            && self.resource_id.has(record.resource_id)
            && self.label.has(label(node))
            && query.clickable.is_none_or(|want| node.clickable() == want)
            && query.selected.is_none_or(|want| node.selected() == want)
            && query.scrollable.is_none_or(|want| node.scrollable() == want)
            && query.child_of.is_none_or(|parent| record.parent == parent.0)
            && query.below.is_none_or(|above| node.tree().node(above).is_above(node.id()))
            && query.over.is_none_or(|at| record.bounds.contains(at))
            && query.within.is_none_or(|area| !record.bounds.is_empty() && area.encloses(&record.bounds))
            && query.touching.is_none_or(|area| area.touches(&record.bounds))
            && (query.holding.is_none() || node.descendants().any(|below| self.holding.has(label(&below))))
    }
}

fn label(node: &Node<'_>) -> Sym {
    let record = node.record();
    if record.text == Sym::EMPTY { record.desc } else { record.text }
}
