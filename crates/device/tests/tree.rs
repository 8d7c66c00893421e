//! The parser against every oddity seen in the wild, in our own small look-alikes.

use cmautobuy_device::{Bounds, MAX_DEPTH, MAX_DUMP_BYTES, MAX_NODES, NodeId, Point, Query, Says, TreeError, UiTree};
use proptest::prelude::*;

const HEAD: &str = "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>";

fn node(attributes: &str, inner: &str) -> String {
    format!("<node index=\"0\" {attributes}>{inner}</node>")
}

fn page(inner: &str) -> String {
    format!("{HEAD}<hierarchy rotation=\"0\">{inner}</hierarchy>")
}

fn sample() -> String {
    let leaf = node("text=\"收藏\" class=\"a.T\" package=\"p\" bounds=\"[10,20][30,60]\" clickable=\"true\"", "");
    page(&node("text=\"\" content-desc=\"分享\" class=\"a.F\" package=\"p\" bounds=\"[0,0][100,200]\"", &leaf))
}

fn utf16(text: &str, little: bool, bom: bool) -> Vec<u8> {
    let mark = if bom { "\u{FEFF}" } else { "" };
    format!("{mark}{text}").encode_utf16().flat_map(|unit| if little { unit.to_le_bytes() } else { unit.to_be_bytes() }).collect()
}

#[test]
fn every_wrapping_gives_the_same_tree() {
    let sample = sample();
    let mut gbk = HEAD.as_bytes().to_vec();
    // "收藏" and "分享" as GBK bytes under a declaration that says UTF-8.
    let body = &sample[HEAD.len()..];
    for piece in body.split_inclusive(['收', '藏', '分', '享']) {
        let ascii: String = piece.chars().filter(char::is_ascii).collect();
        gbk.extend(ascii.as_bytes());
        gbk.extend(match piece.chars().last() {
            Some('收') => &[0xCA, 0xD5][..],
            Some('藏') => &[0xB2, 0xD8][..],
            Some('分') => &[0xB7, 0xD6][..],
            Some('享') => &[0xCF, 0xED][..],
            _ => &[][..],
        });
    }
    let rows: Vec<(&str, Vec<u8>)> = vec![
        ("plain", sample.clone().into()),
        ("utf-8 bom", [b"\xEF\xBB\xBF", sample.as_bytes()].concat()),
        ("utf-16le bom", utf16(&sample, true, true)),
        ("utf-16be bom", utf16(&sample, false, true)),
        ("utf-16le bare", utf16(&sample, true, false)),
        ("utf-16be bare", utf16(&sample, false, false)),
        ("gbk", gbk),
        ("cr cr lf", sample.replace('>', ">\r\r\n").into()),
        ("status line after", format!("{sample}UI hierchary dumped to: /dev/tty\r\n").into()),
        ("broken markup after", format!("{sample}<<<>& junk").into()),
        ("log line before", format!("I/adb: started <ok\r\r\n{sample}").replace("<ok", "ok").into()),
        ("grep prefix", format!("file.txt:1:{}", sample.replace("><", ">\nfile.txt:2:<")).into()),
        ("no declaration", sample[HEAD.len()..].into()),
        ("fragment", sample[HEAD.len()..].replace("<hierarchy rotation=\"0\">", "").replace("</hierarchy>", "").into()),
        ("fragment and stray end", sample[HEAD.len()..].replace("<hierarchy rotation=\"0\">", "").into()),
        ("control characters", sample.replace("><", ">\u{1}\u{8}<").into()),
        (
            "windows",
            sample
                .replace("<hierarchy", "<displays><display id=\"0\"><window index=\"1\"><hierarchy")
                .replace("</hierarchy>", "</hierarchy></window></display></displays>")
                .into(),
        ),
    ];
    for (name, raw) in rows {
        let tree = UiTree::parse(&raw).unwrap_or_else(|error| panic!("row {name} must parse: {error}"));
        assert_eq!(tree.len(), 2, "row {name}: both nodes must be found");
        let leaf = tree.node(tree.nodes().last().expect("two nodes").id());
        assert_eq!(leaf.text(), "收藏", "row {name}: the text must be decoded");
        assert_eq!(leaf.parent().map(|p| p.desc()), Some("分享"), "row {name}: the parent must be known");
        assert_eq!(leaf.bounds(), Bounds::new(10, 20, 30, 60), "row {name}: the bounds must be read");
        assert!(leaf.clickable() && leaf.enabled() && !leaf.selected(), "row {name}: the flags must be read");
    }
}

#[test]
fn attributes_keep_what_cannot_be_decoded() {
    let rows = [
        ("decimal emoji", "a&#128512;b", "a😀b"),
        ("newline", "a&#10;b", "a\nb"),
        ("named", "&lt;&amp;&gt;", "<&>"),
        ("nul", "a&#0;b", "a&#0;b"),
        ("lone surrogate", "a&#xD83D;b", "a&#xD83D;b"),
        ("unknown entity", "a&nope;b", "a&nope;b"),
        ("bare ampersand", "a & b", "a & b"),
        ("less than", "a < b", "a < b"),
        ("greater than", "a > b", "a > b"),
        ("stripped surrogates", "..", ".."),
    ];
    for (name, raw, want) in rows {
        let xml = page(&node(&format!("text=\"{raw}\" bounds=\"[0,0][1,1]\""), &node("text=\"next\"", "")));
        let tree = UiTree::parse(xml.as_bytes()).unwrap_or_else(|error| panic!("row {name} must parse: {error}"));
        assert_eq!(tree.len(), 2, "row {name}: one odd value must not lose the next node");
        assert_eq!(tree.node(tree.roots().next().expect("a root").id()).text(), want, "row {name}");
    }
}

#[test]
fn appium_tags_become_classes() {
    let xml = "<hierarchy rotation=\"1\"><android.widget.FrameLayout bounds=\"[0,0][9,9]\">\
               <android.widget.TextView text=\"x\" bounds=\"[1,1][2,2]\"/></android.widget.FrameLayout></hierarchy>";
    let tree = UiTree::parse(xml.as_bytes()).expect("class-name tags are nodes");
    assert_eq!(tree.rotation(), 1, "rotation comes from the hierarchy");
    let classes: Vec<&str> = tree.nodes().map(|n| n.class()).collect();
    assert_eq!(classes, ["android.widget.FrameLayout", "android.widget.TextView"], "the tag is the class");
}

#[test]
fn the_tree_can_be_walked_every_way() {
    let b = node("text=\"b\"", &node("text=\"c\"", ""));
    let xml = page(&(node("text=\"a\"", &format!("{b}{}", node("text=\"d\"", ""))) + &node("text=\"e\"", "")));
    let tree = UiTree::parse(xml.as_bytes()).expect("well-formed");
    let texts =
        |nodes: &mut dyn Iterator<Item = cmautobuy_device::Node<'_>>| nodes.map(|n| n.text().to_owned()).collect::<Vec<_>>().join("");
    assert_eq!(texts(&mut tree.nodes()), "abcde", "document order");
    assert_eq!(texts(&mut tree.roots()), "ae", "two roots");
    let a = tree.roots().next().expect("a");
    assert_eq!(texts(&mut a.children()), "bd", "children only");
    assert_eq!(texts(&mut a.descendants()), "bcd", "pre-order without itself");
    let c = tree.nodes().nth(2).expect("c");
    assert_eq!(texts(&mut c.ancestors()), "ba", "upwards");
    assert_eq!(tree.get(NodeId::clone(&c.id())).map(|n| n.text()), Some("c"), "by id");
    assert_eq!(c.label(), "c", "text is the label");
}

#[test]
fn unusable_dumps_have_typed_errors() {
    let sample = sample();
    assert_eq!(UiTree::parse(b"").unwrap_err(), TreeError::Empty, "no bytes");
    assert_eq!(UiTree::parse(b" \r\n\t").unwrap_err(), TreeError::Empty, "blank");
    assert_eq!(UiTree::parse(b"ERROR: could not get idle state.").unwrap_err(), TreeError::NoTree, "a message");
    assert_eq!(UiTree::parse(page("").as_bytes()).unwrap_err(), TreeError::NoTree, "a tree without nodes");
    for cut in (HEAD.len() + 40..sample.len() - 12).step_by(7) {
        let Some(part) = sample.get(..cut) else { continue };
        assert!(
            matches!(UiTree::parse(part.as_bytes()), Err(TreeError::Xml { .. })),
            "cut at {cut}: the missing half may hold the pay button, so half a tree is an error"
        );
    }
    let crossed = page("<node text=\"a\"><other></node></other>");
    assert!(matches!(UiTree::parse(crossed.as_bytes()), Err(TreeError::Xml { .. })), "crossed tags lie about parents");
}

#[test]
fn caps_hold_and_depth_does_not_overflow_the_stack() {
    let big = vec![b' '; MAX_DUMP_BYTES + 1];
    assert!(matches!(UiTree::parse(&big), Err(TreeError::TooLarge { .. })), "20 MB is the cap");

    let many = page(&"<node/>".repeat(MAX_NODES + 1));
    assert_eq!(UiTree::parse(many.as_bytes()).unwrap_err(), TreeError::TooManyNodes { cap: MAX_NODES }, "node cap");

    let full = page(&"<node/>".repeat(MAX_NODES));
    assert_eq!(UiTree::parse(full.as_bytes()).expect("exactly the cap is allowed").len(), MAX_NODES, "all nodes kept");

    let levels = |depth: usize| page(&format!("{}<node text=\"x\"/>{}", "<v>".repeat(depth), "</v>".repeat(depth)));
    // The hierarchy and the node are two more levels.
    assert_eq!(UiTree::parse(levels(MAX_DEPTH - 2).as_bytes()).expect("exactly the cap is allowed").len(), 1, "the deepest page allowed");
    for depth in [MAX_DEPTH - 1, 400_000] {
        let got = UiTree::parse(levels(depth).as_bytes()).unwrap_err();
        assert_eq!(got, TreeError::TooDeep { cap: MAX_DEPTH }, "{depth} levels must be refused, and without a stack overflow");
    }

    let chain = MAX_DEPTH - 1;
    let tree = UiTree::parse(page(&format!("{}{}", "<node>".repeat(chain), "</node>".repeat(chain))).as_bytes()).expect("a chain of nodes");
    let last = tree.nodes().last().expect("nodes");
    assert_eq!(last.ancestors().count(), chain - 1, "walking up the deepest chain");
    assert_eq!(tree.roots().next().expect("root").descendants().count(), chain - 1, "and walking down");
}

/// Texts in plenty, with and without references.
fn many_nodes(count: usize) -> String {
    let node =
        |n: usize| format!("<node index=\"{n}\" text=\"价格 {n} &amp; &#128512;\" class=\"a.T\" package=\"p\" bounds=\"[0,{n}][9,{n}]\"/>");
    page(&(0..count).map(node).collect::<String>())
}

#[test]
fn nodes_cost_no_allocation_of_their_own() {
    let allocations = |count: usize| {
        let xml = many_nodes(count);
        allocation_counter::measure(|| drop(UiTree::parse(xml.as_bytes()).expect("well-formed"))).count_total
    };
    let (few, many) = (allocations(100), allocations(20_000));
    assert!(many < few + 60, "200 times the nodes may only grow the buffers a few times: {few} against {many} allocations");

    let tree = UiTree::parse(many_nodes(20_000).as_bytes()).expect("well-formed");
    let query = Query::of(&["p"]).text(Says::Contains("999")).class(Says::Exactly("a.T")).within(Bounds::new(0, 0, 100, 100_000));
    let spent = allocation_counter::measure(|| assert_eq!(tree.find(&query).count(), 0, "empty bounds lie in nothing"));
    assert!(spent.count_total < 12, "a query allocates per condition, never per node: {}", spent.count_total);
}

#[test]
fn queries() {
    let xml = "<hierarchy><node package=\"systemui\" text=\"提交\" bounds=\"[0,0][100,10]\"/>\
         <node package=\"p\" class=\"v.Group\" content-desc=\"sheet\" clickable=\"true\" bounds=\"[0,10][100,200]\">\
         <node package=\"p\" class=\"v.Text\" text=\"雾蓝\" selected=\"true\" resource-id=\"p:id/tv\" bounds=\"[0,20][50,60]\"/>\
         <node package=\"p\" class=\"v.Group\" bounds=\"[0,60][100,100]\" scrollable=\"true\">\
         <node package=\"p\" class=\"v.Text\" content-desc=\"提交订单\" bounds=\"[10,70][20,80]\"/></node></node>\
         <node package=\"q\" text=\"雾蓝\" bounds=\"[0,200][100,210]\"/></hierarchy>";
    let tree = UiTree::parse(xml.as_bytes()).expect("well-formed");
    let sheet = tree.nodes().nth(1).expect("the sheet").id();
    let all = Query::anything;
    let rows: Vec<(&str, Query<'_>, &[usize])> = vec![
        ("everything", all(), &[0, 1, 2, 3, 4, 5]),
        ("package", Query::of(&["p"]), &[1, 2, 3, 4]),
        ("two packages", Query::of(&["q", "systemui"]), &[0, 5]),
        ("a package that is not there", Query::of(&["nobody"]), &[]),
        ("text in the package", Query::of(&["p"]).text(Says::Exactly("雾蓝")), &[2]),
        ("text anywhere", all().text(Says::OneOf(&["雾蓝", "提交"])), &[0, 2, 5]),
        ("description", all().desc(Says::StartsWith("提交")), &[4]),
        ("label is either", all().label(Says::Contains("提交")), &[0, 4]),
        ("class", all().class(Says::EndsWith(".Text")), &[2, 4]),
        ("id", all().resource_id(Says::EndsWith("/tv")), &[2]),
        ("flags", all().clickable(), &[1]),
        ("selected", all().selected(), &[2]),
        ("scrollable", all().scrollable(), &[3]),
        ("below", all().below(sheet), &[2, 3, 4]),
        ("children", all().child_of(sheet), &[2, 3]),
        ("children below something else", all().child_of(sheet).below(tree.nodes().nth(3).expect("a node").id()), &[]),
        ("holding", Query::of(&["p"]).holding(Says::Exactly("提交订单")), &[1, 3]),
        ("over a point", all().over(Point { x: 15, y: 75 }), &[1, 3, 4]),
        ("within", all().within(Bounds::new(0, 60, 100, 100)), &[3, 4]),
        ("touching", all().touching(Bounds::new(0, 55, 5, 65)), &[1, 2, 3]),
        ("text that is nowhere", all().text(Says::Exactly("x")), &[]),
    ];
    for (name, query, want) in rows {
        let got: Vec<usize> = tree.find(&query).map(|node| node.id().index()).collect();
        assert_eq!(got, want, "row {name}");
    }
    assert_eq!(tree.deepest_at(Point { x: 15, y: 75 }).map(|n| n.desc()), Some("提交订单"), "what a finger meets first");
    assert_eq!(tree.deepest_at(Point { x: 15, y: 999 }).map(|n| n.id()), None, "nothing there");
    let leaf = tree.nodes().nth(4).expect("a node");
    assert_eq!(leaf.pressed().map(|n| n.id()), Some(sheet), "a click on the leaf presses the sheet");
    assert_eq!(tree.nodes().nth(2).expect("a node").siblings().count(), 1, "one other child");
    assert_eq!(tree.nodes().next().expect("a node").siblings().count(), 2, "two other roots");
}

#[test]
fn bounds_text() {
    let rows = [
        ("[0,95][1080,2354]", Some(Bounds::new(0, 95, 1080, 2354))),
        ("[-5,-6][7,8]", Some(Bounds::new(-5, -6, 7, 8))),
        ("[1,2][3]", None),
        ("", None),
        ("[1,2][3,99999999999]", None),
    ];
    for (text, want) in rows {
        assert_eq!(Bounds::parse(text), want, "bounds {text:?}");
    }
    let reversed = Bounds::new(9, 9, 1, 1);
    assert!(reversed.is_empty() && reversed.width() == 0, "a reversed rectangle is empty, not negative");
    assert!(!reversed.contains(Point { x: 5, y: 5 }), "and contains nothing");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_never_panic(raw in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = UiTree::parse(&raw);
    }

    #[test]
    fn mutated_dumps_never_panic(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..12)
    ) {
        let mut raw = sample().into_bytes();
        for (at, byte, how) in edits {
            let at = at.index(raw.len());
            match how {
                0 => raw[at] = byte,
                1 => raw.insert(at, byte),
                _ => { if raw.len() > 1 { raw.remove(at); } }
            }
        }
        if let Ok(tree) = UiTree::parse(&raw) {
            for node in tree.nodes() {
                prop_assert!(node.ancestors().count() < tree.len(), "no cycle upwards");
                prop_assert!(node.descendants().all(|below| below.id() > node.id()), "pre-order below");
            }
        }
    }

    #[test]
    fn bounds_arithmetic_never_overflows(a in any::<[i32; 4]>(), b in any::<[i32; 4]>(), x in any::<i32>(), y in any::<i32>()) {
        let a = Bounds::new(a[0], a[1], a[2], a[3]);
        let b = Bounds::new(b[0], b[1], b[2], b[3]);
        let point = Point { x, y };
        let meet = a.intersect(&b);
        prop_assert_eq!(meet.contains(point), a.contains(point) && b.contains(point), "the common part is common");
        prop_assert!(a.area() >= 0, "no negative area");
        if !a.is_empty() {
            prop_assert!(a.contains(a.center()), "the centre of a rectangle is inside it");
        }
        prop_assert_eq!(Bounds::parse(&a.to_string()), Some(a), "display and parse agree");
    }
}
