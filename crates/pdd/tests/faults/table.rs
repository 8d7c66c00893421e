//! The table: one row is one trouble at one moment of a collect run, and what the client makes of it. docs/faults.md is its print.

use std::fmt::Write as _;
use std::time::Duration;

use cmautobuy_pdd::{Step, Verdict};
use cmautobuy_phone_sim::{Fault, Scenario, SimConfig};

use crate::rig::{Play, Run, Trouble, goods, play_all};
use crate::rows::{ROWS, TOWEL};
use crate::truth::differences;

/// Of every run, by the stopped clock.
const BUDGET: Duration = Duration::from_secs(180);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    trouble: Trouble,
    at: Step,
    want: Want,
    passes: Option<u64>,
    goods: &'static str,
}

/// What a run comes to. Data is always what the catalogue says, to the last price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    Data,
    /// This code and another try; once the trouble is over the same connection reads the data.
    Retry(&'static str),
    /// The same, but the trouble is how the page is and stays.
    RetryAgain(&'static str),
    /// This code, and a person looks; once the trouble is over the same connection reads the data.
    Person(&'static str),
    /// The same, but what was met stays until a person has acted.
    PersonAgain(&'static str),
    /// This code, and the task is over.
    Failed(&'static str),
}

pub(crate) const fn row(trouble: Trouble, at: Step, want: Want) -> Row {
    Row { trouble, at, want, passes: None, goods: TOWEL }
}

impl Row {
    /// Every fault ends after so many seconds.
    pub(crate) const fn passing(self, after: u64) -> Row {
        Row { passes: Some(after), ..self }
    }

    pub(crate) const fn of(self, goods: &'static str) -> Row {
        Row { goods, ..self }
    }

    fn play(&self) -> Play {
        let mut config = SimConfig { seed: 7, ..SimConfig::default() };
        let mut at_step = None;
        match self.trouble {
            Trouble::Scenario(name) => config = config.with_scenario(Scenario::named(name).expect("the rows name shipped scenarios")),
            Trouble::NotInstalled => config.pdd_installed = false,
            Trouble::Fault(_) | Trouble::Layer(_) => at_step = Some((self.at, self.trouble)),
        }
        Play {
            goods_id: self.goods.to_owned(),
            seed: config.seed,
            dump_time: config.dump_time,
            scenario: config.scenario,
            plan: config.plan,
            installed: config.pdd_installed,
            at_step,
            passes: self.passes.map(Duration::from_secs),
            budget: BUDGET,
            again: true,
        }
    }

    fn name(&self) -> String {
        let trouble = match self.trouble {
            Trouble::Fault(fault) => {
                let json = serde_json::to_value(fault).expect("a fault can be written");
                let number = ["times", "ms", "looks"].iter().find_map(|key| json.get(key)).map(|n| format!(" {n}")).unwrap_or_default();
                format!("{}{number}", json["name"].as_str().unwrap_or_default())
            }
            Trouble::Layer(name) => format!("layer {name}"),
            Trouble::Scenario(name) => format!("scenario {name}"),
            Trouble::NotInstalled => "not installed".to_owned(),
        };
        let passes = self.passes.map(|after| format!(", over after {after} s")).unwrap_or_default();
        let goods = if self.goods == TOWEL { String::new() } else { format!(", goods {}", self.goods) };
        format!("{trouble} at {}{passes}{goods}", self.at)
    }

    fn is(&self) -> String {
        match self.trouble {
            Trouble::Fault(fault) => describe(fault).to_owned(),
            Trouble::Layer(_) => "this layer lies over the page (`resources/phone-sim/popups.toml`)".to_owned(),
            Trouble::Scenario(name) => Scenario::named(name).expect("the rows name shipped scenarios").about,
            Trouble::NotInstalled => "Pinduoduo is not on the phone".to_owned(),
        }
    }
}

impl Want {
    fn does(self) -> String {
        match self {
            Want::Data => "reads everything as the catalogue says".to_owned(),
            Want::Retry(code) => format!("`{code}`, another try; after the trouble it reads everything"),
            Want::RetryAgain(code) => format!("`{code}`, another try; the same as long as the page is so"),
            Want::Person(code) => format!("`{code}`, to a person; after the trouble it reads everything"),
            Want::PersonAgain(code) => format!("`{code}`, to a person; the same until one has acted"),
            Want::Failed(code) => format!("`{code}`, the task is over"),
        }
    }

    fn first(self) -> End {
        match self {
            Want::Data => End::Data,
            Want::Retry(code) | Want::RetryAgain(code) => End::Error(code, Verdict::Retry),
            Want::Person(code) | Want::PersonAgain(code) => End::Error(code, Verdict::ManualReview),
            Want::Failed(code) => End::Error(code, Verdict::Failed),
        }
    }

    /// Of the run after the trouble.
    fn then(self) -> Option<End> {
        match self {
            Want::Data => None,
            Want::Retry(_) | Want::Person(_) => Some(End::Data),
            Want::RetryAgain(_) | Want::PersonAgain(_) | Want::Failed(_) => Some(self.first()),
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    Data,
    Error(&'static str, Verdict),
    /// Data that is not the catalogue's.
    Wrong(Vec<String>),
    OverBudget,
}

fn end(run: &Run, goods_id: &str) -> End {
    match &run.result {
        None => End::OverBudget,
        Some(Err(error)) => End::Error(error.code(), error.verdict()),
        Some(Ok(data)) => {
            let wrong = differences(goods(goods_id), data);
            if wrong.is_empty() { End::Data } else { End::Wrong(wrong) }
        }
    }
}

#[expect(clippy::print_stdout, reason = "how long the rows take belongs in the log")]
#[test]
fn every_row_ends_as_the_table_says() {
    let mut wrong = Vec::new();
    let mut longest = Duration::ZERO;
    let only = std::env::var("CMAUTOBUY_ROW").ok().and_then(|text| text.parse::<usize>().ok());
    let rows = ROWS.iter().enumerate().filter(|(at, _)| only.is_none_or(|only| only == at + 1));
    play_all(rows.map(|(at, row)| (at, row.play())).collect(), |at, play, played| {
        let row = &ROWS[at];
        if only.is_some() {
            println!("{}\n{}\n{:?}", row.name(), played.story.join("\n"), played.first.result);
        }
        longest = longest.max(played.first.took);
        let ends = (end(&played.first, &play.goods_id), played.second.as_ref().map(|run| end(run, &play.goods_id)));
        if ends != (row.want.first(), row.want.then()) {
            wrong.push(format!("CMAUTOBUY_ROW={} {}: want {:?}, got {ends:?}", at + 1, row.name(), row.want));
        }
        if (played.orders, played.payments, played.forbidden.len()) != (0, 0, 0) {
            wrong.push(format!("{}: {} orders, {} payments, {:?}", row.name(), played.orders, played.payments, played.forbidden));
        }
    });
    println!("{} rows, the longest run {longest:?}", ROWS.len());
    assert!(wrong.is_empty(), "{} rows end otherwise:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_rows_have_names_of_their_own_and_cover_every_fault_and_layer() {
    let mut names: Vec<String> = ROWS.iter().map(Row::name).collect();
    names.sort();
    let many = names.len();
    names.dedup();
    assert_eq!(names.len(), many, "a name says which row it is");
    assert!(many >= 80, "at least 80 cases are promised, there are {many}");
    let kind = |fault: &Fault| std::mem::discriminant(fault);
    for (fault, _) in Fault::samples() {
        let shown = ROWS.iter().any(|row| matches!(&row.trouble, Trouble::Fault(one) if kind(one) == kind(&fault)));
        assert!(shown, "a fault without a row may do anything: {fault:?}");
    }
    for layer in cmautobuy_phone_sim::Sim::popups() {
        let shown = ROWS.iter().any(|row| row.trouble == Trouble::Layer(layer));
        assert!(shown, "a layer without a row may do anything: {layer}");
    }
    for scenario in Scenario::names().filter(|name| *name != "plain") {
        assert!(ROWS.iter().any(|row| row.trouble == Trouble::Scenario(scenario)), "a scenario without a row: {scenario}");
    }
    let known = |want: Want| if let End::Error(code, _) = want.first() { crate::CODES.contains(&code) } else { true };
    assert!(ROWS.iter().all(|row| known(row.want)), "every row ends in a word the interface has a sentence for");
}

#[test]
fn the_document_prints_these_rows() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/faults.md");
    let (begin, ending) = ("<!-- rows -->\n", "<!-- end of rows -->");
    let mut table = String::from("\n| # | trouble | what happens | what the client does |\n|---|---|---|---|\n");
    for (at, row) in ROWS.iter().enumerate() {
        writeln!(table, "| {} | {} | {} | {} |", at + 1, row.name(), row.is(), row.want.does()).expect("a string takes everything");
    }
    table.push('\n');
    let text = std::fs::read_to_string(path).expect("docs/faults.md is part of the repository").replace("\r\n", "\n");
    let (head, rest) = text.split_once(begin).expect("the mark before the table");
    let (printed, tail) = rest.split_once(ending).expect("the mark behind the table");
    if std::env::var_os("CMAUTOBUY_WRITE_DOCS").is_some() {
        std::fs::write(path, format!("{head}{begin}{table}{ending}{tail}")).expect("the document can be written");
        return;
    }
    assert_eq!(printed, table, "docs/faults.md must print these rows; CMAUTOBUY_WRITE_DOCS=1 writes it");
}

fn describe(fault: Fault) -> &'static str {
    match fault {
        Fault::HangDump => "`uiautomator dump` never ends",
        Fault::SlowDump { .. } => "every dump takes so many ms longer",
        Fault::DumpExit137 { .. } => "so many dumps die with 137 and say nothing",
        Fault::NeverIdle => "`could not get idle state` after ten seconds, exit 0",
        Fault::NullRoot { .. } => "`null root node` so many times, exit 0, no file",
        Fault::EmptyTree { .. } => "after each entry into the app so many dumps hold a root and nothing in it",
        Fault::TruncatedXml { .. } => "so many files end in the middle",
        Fault::MalformedXml { .. } => "so many files hold raw `&` and `<` and a wrong closing tag",
        Fault::EmojiSurrogates => "emoji come as references to surrogates, which no XML may hold",
        Fault::EmojiKills => "a page with emoji kills the dump with a stack trace",
        Fault::WrongWindow { .. } => "so many dumps hold another package's window, with texts like walls and prices",
        Fault::SystemUiNotification => "the tree carries system icons described with notification texts",
        Fault::StaleFile => "the dump says it succeeded and leaves the previous tree in the file",
        Fault::FullStorage => "the dump says it succeeded and writes nothing",
        Fault::OtherClient => "another program holds the only UiAutomation connection",
        Fault::BlackScreen => "every picture is black",
        Fault::PngWarning => "a warning stands before every picture",
        Fault::TruncatedPng { .. } => "so many pictures end in the middle",
        Fault::DropConnections => "every connection is closed, new ones too",
        Fault::Offline => "connections are accepted and never answered",
        Fault::Unauthorized => "the phone forgot every key and accepts none",
        Fault::RebootMidCommand { .. } => "the phone restarts in the middle of a command",
        Fault::DropStream { .. } => "so many streams end in the middle, without an exit code",
        Fault::DeadTaps { .. } => "so many touches succeed and do nothing",
        Fault::InputDenied => "`input` is refused: INJECT_EVENTS",
        Fault::AppCrash { .. } => "the next touch ends Pinduoduo, and the system asks",
        Fault::Rotation => "the screen lies on its side",
        Fault::WrongGoods { .. } => "a goods link opens other goods so many times",
        Fault::PriceChanging => "prices differ at every look",
        Fault::LazyPrices { .. } => "after opening or choosing, so many looks have no price",
        Fault::CaptchaOnGoods => "goods links end on a captcha",
        Fault::RiskNotice => "goods links end on a notice that the account is limited",
        Fault::RealName => "goods links end on a request for one's real name",
        Fault::LoginWall => "everything ends on the login page",
        Fault::NetworkError => "goods links end on a network error",
        Fault::ScreenLocked => "the screen is off behind a keyguard",
        Fault::Clear => "every fault ends",
    }
}
