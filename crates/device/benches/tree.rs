//! The tree parser beside roxmltree and, when it is there, Python's lxml: time to a tree whose nodes have text, bounds and parents.
//!
//! Run through `scripts/bench tree`. Every contestant does the same work: parse, then per node keep text, description, class, bounds and
//! the clickable flag. The best of many rounds counts, because everything else a machine does only adds time.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cmautobuy_device::{Bounds, Query, Says, UiTree};

/// How long each contestant may try on one file.
const PER_FILE: Duration = Duration::from_millis(300);
const MIN_ROUNDS: u32 = 5;

struct Kept<'x> {
    #[expect(dead_code, reason = "it is the work that is measured")]
    text: &'x str,
    #[expect(dead_code, reason = "it is the work that is measured")]
    desc: &'x str,
    #[expect(dead_code, reason = "it is the work that is measured")]
    class: &'x str,
    #[expect(dead_code, reason = "it is the work that is measured")]
    bounds: Option<Bounds>,
    #[expect(dead_code, reason = "it is the work that is measured")]
    clickable: bool,
}

fn ours(xml: &[u8]) -> Option<usize> {
    let tree = UiTree::parse(xml).ok()?;
    Some(black_box(&tree).len())
}

fn roxmltree(xml: &str) -> Option<usize> {
    // A UI tree of 10 MB is beyond its default.
    let options = roxmltree::ParsingOptions { nodes_limit: u32::MAX, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(xml, options).ok()?;
    let kept: Vec<Kept<'_>> = document
        .descendants()
        .filter(|node| node.has_tag_name("node"))
        .map(|node| {
            let get = |name: &str| node.attribute(name).unwrap_or("");
            Kept {
                text: get("text"),
                desc: get("content-desc"),
                class: get("class"),
                bounds: Bounds::parse(get("bounds")),
                clickable: get("clickable") == "true",
            }
        })
        .collect();
    Some(black_box(&kept).len())
}

/// The best of many rounds.
fn best(work: impl Fn() -> Option<usize>) -> Option<(Duration, usize)> {
    let nodes = work()?;
    let began = Instant::now();
    let (mut best, mut rounds) = (Duration::MAX, 0);
    while rounds < MIN_ROUNDS || began.elapsed() < PER_FILE {
        let start = Instant::now();
        black_box(work());
        best = best.min(start.elapsed());
        rounds += 1;
    }
    Some((best, nodes))
}

/// lxml's best round, measured inside Python so that starting it does not count.
fn lxml(python: &str, file: &Path) -> Option<Duration> {
    const SCRIPT: &str = r#"
import re, sys, time
from lxml import etree
raw = open(sys.argv[1], "rb").read()
place = re.compile(r"\[(-?\d+),(-?\d+)\]\[(-?\d+),(-?\d+)\]")
def once():
    root = etree.fromstring(raw, etree.XMLParser(huge_tree=True))
    kept = []
    for node in root.iter("node"):
        get = node.attrib.get
        found = place.match(get("bounds", ""))
        bounds = tuple(map(int, found.groups())) if found else None
        kept.append((get("text"), get("content-desc"), get("class"), bounds, get("clickable") == "true"))
    return kept
once()
best, rounds, began = 1e9, 0, time.perf_counter()
while rounds < 5 or time.perf_counter() - began < 0.3:
    start = time.perf_counter()
    once()
    best = min(best, time.perf_counter() - start)
    rounds += 1
print(best)
"#;
    let output = Command::new(python).arg("-c").arg(SCRIPT).arg(file).stderr(Stdio::null()).output().ok()?;
    let seconds: f64 = String::from_utf8(output.stdout).ok()?.trim().parse().ok()?;
    Some(Duration::from_secs_f64(seconds))
}

/// A page of about 10 MB, shaped like a dump: rows of cards, texts mostly their own, everything else repeated.
fn synthetic() -> String {
    let mut xml = String::from("<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"0\">");
    let node = |index: usize, text: &str, class: &str, place: [usize; 4]| {
        let [l, t, r, b] = place;
        format!(
            "<node index=\"{index}\" text=\"{text}\" resource-id=\"com.xunmeng.pinduoduo:id/pdd\" class=\"android.{class}\" \
             package=\"com.xunmeng.pinduoduo\" content-desc=\"\" checkable=\"false\" checked=\"false\" clickable=\"{}\" enabled=\"true\" \
             focusable=\"true\" focused=\"false\" scrollable=\"false\" long-clickable=\"false\" password=\"false\" selected=\"false\" \
             visible-to-user=\"true\" bounds=\"[{l},{t}][{r},{b}]\" drawing-order=\"{index}\" hint=\"\" display-id=\"0\"",
            index.is_multiple_of(3)
        )
    };
    let mut card = 0;
    while xml.len() < 10_000_000 {
        let top = card * 300 % 2400;
        xml += &(node(card, "", "view.ViewGroup", [0, top, 1080, top + 300]) + ">");
        xml += &(node(0, &format!("商品标题 {card} &amp; 规格"), "widget.TextView", [20, top, 900, top + 60]) + "/>");
        xml += &(node(1, &format!("¥{}.{:02}", card % 977, card % 100), "widget.TextView", [20, top + 70, 300, top + 120]) + "/>");
        xml += &(node(2, "", "widget.ImageView", [900, top, 1080, top + 180]) + "/>");
        xml += "</node>";
        card += 1;
    }
    xml + "</hierarchy>"
}

fn dumps() -> Vec<PathBuf> {
    let root = std::env::var_os("CMAUTOBUY_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from)
        .join("dumps");
    let mut found: Vec<PathBuf> = [root.clone(), root.join("pdd")]
        .iter()
        .filter_map(|dir| std::fs::read_dir(dir).ok())
        .flat_map(|dir| dir.filter_map(|entry| entry.ok().map(|entry| entry.path())))
        .filter(|path| path.is_file() && path.extension().is_some_and(|ext| ext == "xml" || ext == "uix" || ext == "txt"))
        .collect();
    found.sort();
    found
}

/// One line per contestant: over all files that both of a pair can read.
struct Score {
    files: usize,
    bytes: usize,
    ours: Duration,
    theirs: Duration,
}

impl Score {
    const NONE: Score = Score { files: 0, bytes: 0, ours: Duration::ZERO, theirs: Duration::ZERO };

    fn add(&mut self, bytes: usize, ours: Duration, theirs: Duration) {
        self.files += 1;
        self.bytes += bytes;
        self.ours += ours;
        self.theirs += theirs;
    }

    fn print(&self, what: &str, peer: &str) {
        let rate = |time: Duration| self.bytes as f64 / 1e6 / time.as_secs_f64();
        println!(
            "{what:<22} vs {peer:<10} {:>3} file(s) {:>6.2} MB   ours {:>8.3} ms {:>5.0} MB/s   {peer} {:>8.3} ms {:>5.0} MB/s   ratio {:.2}x",
            self.files,
            self.bytes as f64 / 1e6,
            self.ours.as_secs_f64() * 1e3,
            rate(self.ours),
            self.theirs.as_secs_f64() * 1e3,
            rate(self.theirs),
            self.theirs.as_secs_f64() / self.ours.as_secs_f64()
        );
    }
}

fn main() {
    let python = std::env::var("CMAUTOBUY_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let (mut rox, mut lx, mut unread) = (Score::NONE, Score::NONE, 0);
    for file in dumps() {
        let raw = std::fs::read(&file).expect("a listed file can be read");
        let Some((own, _)) = best(|| ours(&raw)) else {
            unread += 1;
            continue;
        };
        if let Some((time, _)) = std::str::from_utf8(&raw).ok().and_then(|text| best(|| roxmltree(text))) {
            rox.add(raw.len(), own, time);
        }
        if let Some(time) = lxml(&python, &file) {
            lx.add(raw.len(), own, time);
        }
    }
    for (score, peer) in [(&rox, "roxmltree"), (&lx, "lxml")] {
        if score.files > 0 {
            score.print("real dumps", peer);
        }
    }
    println!("real dumps             that we refuse, with a typed error: {unread}");

    let big = synthetic();
    let (own, nodes) = best(|| ours(big.as_bytes())).expect("the synthetic page is well-formed");
    let (time, theirs) = best(|| roxmltree(&big)).expect("the synthetic page is well-formed");
    assert_eq!(nodes, theirs, "both must have read the same nodes for the ratio to mean anything");
    let mut score = Score::NONE;
    score.add(big.len(), own, time);
    score.print("synthetic", "roxmltree");
    let file = std::env::temp_dir().join(format!("cmautobuy-tree-{}.xml", std::process::id()));
    std::fs::File::create(&file).and_then(|mut out| out.write_all(big.as_bytes())).expect("the temporary folder is writable");
    match lxml(&python, &file) {
        Some(time) => {
            let mut score = Score::NONE;
            score.add(big.len(), own, time);
            score.print("synthetic", "lxml");
        }
        None => println!("lxml is not there: install python3-lxml, or set CMAUTOBUY_PYTHON"),
    }
    let _ = std::fs::remove_file(&file);

    let tree = UiTree::parse(big.as_bytes()).expect("the synthetic page is well-formed");
    let query = Query::of(&["com.xunmeng.pinduoduo"]).text(Says::StartsWith("¥97")).within(Bounds::new(0, 0, 1080, 2400));
    let (took, found) = best(|| Some(tree.find(&query).count())).expect("a query always answers");
    println!("query                  package + text + place over {nodes} nodes: {found} found in {:.3} ms", took.as_secs_f64() * 1e3);
}
