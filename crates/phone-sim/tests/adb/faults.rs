//! Every fault as a real client meets it, over the stock `adb`.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::support::{Adb, parses, phone};
use cmautobuy_phone_sim::{Fault, FaultPlan, FaultRule, JournalKind, Moment, Scenario, Sim, SimConfig};

const GOODS: &str = "618203947511";
const PDD: &str = "com.xunmeng.pinduoduo";

struct Rig {
    adb: Adb,
    sim: Sim,
}

/// What one shell line gave.
#[derive(Debug)]
struct Said {
    out: Vec<u8>,
    err: String,
    code: Option<i32>,
}

impl Said {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }
}

impl Rig {
    async fn new() -> Self {
        let rig = Self { adb: Adb::new(), sim: phone(SimConfig::default()).await };
        rig.adb.connect(&rig.sim);
        rig.adb.wait_for_state(&rig.sim, "device");
        rig
    }

    fn shell(&self, line: &str) -> Said {
        let done = self.adb.on(&self.sim, &["shell", line]);
        Said { out: done.stdout, err: String::from_utf8_lossy(&done.stderr).into_owned(), code: done.status.code() }
    }

    /// The line a careful client dumps with.
    fn dump(&self) -> Said {
        self.shell("f=/data/local/tmp/u_$$.xml; uiautomator dump $f >&2; cat $f; r=$?; rm -f $f; exit $r")
    }

    fn open(&self, goods: &str) {
        let line = format!("am start -a android.intent.action.VIEW -d 'https://mobile.yangkeduo.com/goods.html?goods_id={goods}' -p {PDD}");
        assert_eq!(self.shell(&line).code, Some(0), "the link is taken");
    }

    fn until(&self, what: &str, mut level: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !level() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    fn whole_tree(&self) -> bool {
        let said = self.dump();
        said.code == Some(0) && said.text().ends_with("</hierarchy>") && parses(&said.out) > 5
    }
}

/// What a fault does to a client.
type Effect = fn(&Rig, Fault);

/// Name, fault and effect of those a dump meets.
fn dumps() -> Vec<(Fault, Effect)> {
    vec![
        (Fault::HangDump, |rig, fault| {
            rig.sim.set_fault(fault);
            std::thread::scope(|threads| {
                let hung = threads.spawn(|| rig.shell("uiautomator dump /sdcard/h.xml"));
                // It hangs until somebody ends it, and `pkill` finds it only while it does.
                rig.until("the dump hangs until it is ended", || rig.shell("pkill -f com.android.commands.uiautomator").code == Some(0));
                assert_eq!(hung.join().expect("joined").code, Some(137), "with the status of a killed program");
            });
        }),
        (Fault::SlowDump { ms: 700 }, |rig, fault| {
            rig.sim.set_fault(fault);
            let began = Instant::now();
            assert!(rig.whole_tree(), "a slow dump is a good one");
            assert!(began.elapsed() >= Duration::from_millis(700), "only later");
        }),
        (Fault::DumpExit137 { times: 1 }, |rig, fault| {
            rig.sim.set_fault(fault);
            let said = rig.shell("uiautomator dump /sdcard/a.xml");
            assert_eq!((said.code, said.err.as_str(), said.out.len()), (Some(137), "", 0), "dead without a word");
        }),
        (Fault::NeverIdle, |rig, fault| {
            rig.sim.set_fault(fault);
            let said = rig.shell("uiautomator dump /sdcard/a.xml");
            assert_eq!((said.code, said.err.as_str()), (Some(0), "ERROR: could not get idle state.\n"), "it fails with status 0");
        }),
        (Fault::NullRoot { times: 1 }, |rig, fault| {
            rig.sim.set_fault(fault);
            let said = rig.dump();
            assert!(said.out.is_empty() && said.err.contains("null root node"), "no tree, and a reason: {said:?}");
            assert!(rig.whole_tree(), "it wears off");
        }),
        (Fault::EmptyTree { times: 2 }, |rig, fault| {
            rig.sim.set_fault(fault);
            rig.open(GOODS);
            for _ in 0..2 {
                assert_eq!(parses(&rig.dump().out), 2, "a root without anything in it, twice");
            }
            assert!(rig.whole_tree(), "then the page");
            rig.shell("input keyevent 3");
            rig.shell(&format!("monkey -p {PDD} -c android.intent.category.LAUNCHER 1"));
            assert_eq!(parses(&rig.dump().out), 2, "and again when the app comes back");
        }),
        (Fault::TruncatedXml { times: 1 }, |rig, fault| {
            rig.sim.set_fault(fault);
            let said = rig.dump();
            assert!(said.code == Some(0) && !said.out.is_empty() && !said.text().ends_with("</hierarchy>"), "half a file and status 0");
        }),
        (Fault::MalformedXml { times: 1 }, |rig, fault| {
            rig.sim.set_fault(fault);
            let said = rig.dump();
            assert!(said.text().contains("<满减 & 优惠>"), "raw markup in a label");
            assert!(strict(&said.text()).is_err(), "which no strict parser takes");
        }),
        (Fault::EmojiSurrogates, |rig, fault| {
            rig.sim.set_fault(fault);
            rig.open(GOODS);
            rig.shell("input swipe 540 2000 540 600 300");
            rig.shell("input swipe 540 2000 540 1300 300");
            assert!(rig.dump().text().contains("&#55357;&#56842;"), "an emoji comes as two halves, which is no XML");
        }),
        (Fault::EmojiKills, |rig, fault| {
            rig.sim.set_fault(fault);
            assert!(rig.whole_tree(), "a page without emoji is read");
            rig.open(GOODS);
            rig.shell("input swipe 540 2000 540 600 300");
            rig.shell("input swipe 540 2000 540 1300 300");
            let said = rig.shell("uiautomator dump /sdcard/a.xml");
            assert!(said.code == Some(137) && said.err.contains("Illegal character (d83d)"), "one with kills the dump: {said:?}");
        }),
        (Fault::WrongWindow { times: 1 }, |rig, fault| {
            rig.sim.set_fault(fault);
            rig.open(GOODS);
            let said = rig.dump().text();
            assert!(said.contains("请完成安全验证") && said.contains("券后¥0.01"), "a notification that reads like a wall and a price");
            assert!(!said.contains(&format!("package=\"{PDD}\"")), "and nothing of the app");
        }),
        (Fault::SystemUiNotification, |rig, fault| {
            rig.sim.set_fault(fault);
            rig.open(GOODS);
            let said = rig.dump().text();
            assert!(said.contains("验证码是274610") && said.contains(&format!("package=\"{PDD}\"")), "both windows are in the tree");
        }),
        (Fault::StaleFile, |rig, fault| {
            assert!(rig.whole_tree(), "a tree of the launcher");
            rig.sim.set_fault(fault);
            rig.open(GOODS);
            assert!(!rig.dump().text().contains(PDD), "still the launcher's, though the app is open");
        }),
        (Fault::FullStorage, |rig, fault| {
            rig.sim.set_fault(fault);
            let said = rig.dump();
            assert!(
                said.err.contains("UI hierchary dumped to") && said.err.contains("No such file"),
                "it says yes and wrote nothing: {said:?}"
            );
        }),
        (Fault::OtherClient, |rig, fault| {
            rig.sim.set_fault(fault);
            let said = rig.dump();
            assert!(
                said.err.contains("UiAutomationService") && said.err.contains("already registered!"),
                "the connection is taken: {said:?}"
            );
            assert!(rig.shell("ps -A").text().contains("com.github.uiautomator"), "and who has it can be found");
        }),
    ]
}

fn pictures() -> Vec<(Fault, Effect)> {
    vec![
        (Fault::BlackScreen, |rig, fault| {
            rig.sim.set_fault(fault);
            let png = rig.adb.on(&rig.sim, &["exec-out", "screencap", "-p"]).stdout;
            let picture = image::load_from_memory(&png).expect("a valid PNG").into_rgb8();
            assert!(picture.pixels().all(|pixel| pixel.0 == [0; 3]), "every pixel is black");
            assert!(rig.whole_tree(), "the tree does not mind");
        }),
        (Fault::PngWarning, |rig, fault| {
            rig.sim.set_fault(fault);
            let png = rig.adb.on(&rig.sim, &["exec-out", "screencap", "-p"]).stdout;
            assert!(png.starts_with(b"[Warning] Multiple displays"), "words come first");
            let at = png.windows(4).position(|four| four == b"\x89PNG").expect("then the picture");
            assert!(image::load_from_memory(&png[at..]).is_ok(), "which is whole");
        }),
        (Fault::TruncatedPng { times: 1 }, |rig, fault| {
            rig.sim.set_fault(fault);
            let half = rig.adb.on(&rig.sim, &["exec-out", "screencap", "-p"]).stdout;
            assert!(image::load_from_memory(&half).is_err() && half.starts_with(b"\x89PNG"), "half a picture is none");
            let whole = rig.adb.on(&rig.sim, &["exec-out", "screencap", "-p"]).stdout;
            assert!(image::load_from_memory(&whole).is_ok(), "the next one is whole");
        }),
        (Fault::Rotation, |rig, fault| {
            rig.sim.set_fault(fault);
            rig.open(GOODS);
            let said = rig.dump().text();
            assert!(
                said.contains("<hierarchy rotation=\"1\">") && said.contains("bounds=\"[0,0][2400,1080]\""),
                "the tree lies on its side"
            );
            let (x, y) = centre(&said, "收藏").expect("the page is there");
            rig.shell(&format!("input tap {x} {y}"));
            assert!(rig.dump().text().contains("已收藏"), "and a finger lands where the tree says");
            let png = rig.adb.on(&rig.sim, &["exec-out", "screencap", "-p"]).stdout;
            let picture = image::load_from_memory(&png).expect("a valid PNG");
            assert_eq!((picture.width(), picture.height()), (2400, 1080), "the picture too");
            assert!(rig.shell("wm size").text().contains("1080x2400"), "the panel itself does not turn");
        }),
    ]
}

fn wires() -> Vec<(Fault, Effect)> {
    vec![
        (Fault::DropConnections, |rig, fault| {
            rig.sim.set_fault(fault);
            rig.until("adb notices", || rig.adb.state(&rig.sim) != "device");
        }),
        (Fault::Offline, |rig, fault| {
            rig.sim.set_fault(fault);
            rig.until("the phone is no device any more", || rig.adb.state(&rig.sim) != "device");
            assert!(!rig.adb.on(&rig.sim, &["shell", "true"]).status.success(), "and nothing can be run");
        }),
        (Fault::Unauthorized, |rig, fault| {
            rig.sim.set_fault(fault);
            rig.until("the phone forgets us", || {
                rig.adb.connect(&rig.sim);
                rig.adb.state(&rig.sim) == "unauthorized"
            });
        }),
        (Fault::RebootMidCommand { times: 1 }, |rig, fault| {
            rig.open(GOODS);
            rig.sim.set_fault(fault);
            let said = rig.shell("dumpsys window; echo end");
            // The stock client calls a stream without a status a success, which is why nobody may trust that.
            assert!(!said.text().contains("end"), "the command breaks off: {said:?}");
            rig.until("the phone is back", || {
                rig.adb.connect(&rig.sim);
                rig.adb.state(&rig.sim) == "device"
            });
            assert_eq!(rig.sim.screen_name(), "launcher", "with nothing open");
        }),
        (Fault::DropStream { times: 1 }, |rig, fault| {
            rig.sim.set_fault(fault);
            let said = rig.shell("echo begin; dumpsys window; echo end");
            assert!(said.text() == "begin\n", "part of the output and then nothing: {said:?}");
            assert_eq!(rig.shell("echo well").text(), "well\n", "the connection itself is alive");
        }),
    ]
}

fn app() -> Vec<(Fault, Effect)> {
    vec![
        (Fault::DeadTaps { times: 1 }, |rig, fault| {
            rig.open(GOODS);
            rig.sim.set_fault(fault);
            let (x, y) = centre(&rig.dump().text(), "收藏").expect("the page is there");
            assert_eq!(rig.shell(&format!("input tap {x} {y}")).code, Some(0), "the tap succeeds");
            assert!(!rig.dump().text().contains("已收藏"), "and nothing happened");
            rig.shell(&format!("input tap {x} {y}"));
            assert!(rig.dump().text().contains("已收藏"), "the next one works");
        }),
        (Fault::InputDenied, |rig, fault| {
            rig.sim.set_fault(fault);
            let said = rig.shell("input tap 5 5");
            assert!(said.code != Some(0) && said.err.contains("INJECT_EVENTS"), "the phone says which permission is missing: {said:?}");
            assert!(!rig.sim.journal().iter().any(|entry| matches!(entry.kind, JournalKind::Tap { .. })), "no finger came down");
        }),
        (Fault::AppCrash { times: 1 }, |rig, fault| {
            rig.open(GOODS);
            rig.sim.set_fault(fault);
            rig.shell("input tap 195 2270");
            assert_eq!(rig.sim.screen_name(), "popup:crashed", "the system says so");
            assert!(rig.shell(&format!("pidof {PDD}")).text().is_empty(), "the app is gone");
            assert!(rig.dump().text().contains("package=\"android\""), "the question is another package's");
        }),
        (Fault::WrongGoods { times: 1 }, |rig, fault| {
            rig.sim.set_fault(fault);
            rig.open(GOODS);
            assert!(!rig.shell("dumpsys activity top").text().contains(GOODS), "the page says it shows other goods");
            rig.open(GOODS);
            assert!(rig.shell("dumpsys activity top").text().contains(GOODS), "the next link is right");
        }),
        (Fault::PriceChanging, |rig, fault| {
            rig.sim.set_fault(fault);
            rig.open(GOODS);
            assert_ne!(price(&rig.dump().text()), price(&rig.dump().text()), "two looks, two prices");
        }),
        (Fault::LazyPrices { looks: 1 }, |rig, fault| {
            rig.sim.set_fault(fault);
            rig.open(GOODS);
            assert_eq!(price(&rig.dump().text()), None, "the first look has no price");
            assert!(price(&rig.dump().text()).is_some(), "the second has");
        }),
        (Fault::CaptchaOnGoods, |rig, fault| wall(rig, fault, "安全验证")),
        (Fault::RiskNotice, |rig, fault| wall(rig, fault, "账户存在风险")),
        (Fault::RealName, |rig, fault| wall(rig, fault, "实名认证提示")),
        (Fault::LoginWall, |rig, fault| wall(rig, fault, "手机号登录")),
        (Fault::NetworkError, |rig, fault| {
            wall(rig, fault, "网络异常");
            rig.sim.clear_faults();
            let (x, y) = centre(&rig.dump().text(), "点击重试").expect("a button to try again");
            rig.shell(&format!("input tap {x} {y}"));
            assert_eq!(rig.sim.screen_name(), format!("goods:{GOODS}"), "works once the network does");
        }),
        (Fault::ScreenLocked, |rig, fault| {
            rig.sim.set_fault(fault);
            assert!(rig.dump().err.contains("null root node"), "a dark screen has no tree");
            assert!(rig.shell("dumpsys power").text().contains("mWakefulness=Asleep"), "it says it sleeps");
            rig.shell("input keyevent 224");
            assert!(rig.dump().text().contains("keyguard"), "waking leads to the keyguard only");
        }),
    ]
}

fn wall(rig: &Rig, fault: Fault, says: &str) {
    rig.sim.set_fault(fault);
    rig.open(GOODS);
    assert!(rig.dump().text().contains(says), "the page says {says}");
    assert!(!rig.shell("dumpsys activity top").text().contains(GOODS), "and no goods is on top");
    let taps = |rig: &Rig| rig.sim.screen_name();
    let before = taps(rig);
    for y in (300..2300).step_by(100) {
        rig.sim.screen_name().eq(&before).then(|| rig.shell(&format!("input tap 540 {y}")));
    }
    assert_eq!(rig.sim.screen_name(), before, "no touch passes it");
}

fn price(xml: &str) -> Option<String> {
    let at = xml.split("content-desc=\"").skip(1).filter_map(|rest| rest.split('"').next());
    at.into_iter().find(|desc| desc.starts_with('¥') && desc.ends_with("发起拼单")).map(str::to_owned)
}

fn strict(xml: &str) -> Result<(), quick_xml::Error> {
    let mut reader = quick_xml::Reader::from_str(xml);
    loop {
        if reader.read_event()? == quick_xml::events::Event::Eof {
            return Ok(());
        }
    }
}

/// Centre of the first node whose text or description is that.
fn centre(xml: &str, says: &str) -> Option<(i32, i32)> {
    let labels = [format!("text=\"{says}\""), format!("content-desc=\"{says}\"")];
    let node = xml.split("<node ").find(|node| labels.iter().any(|label| node.contains(label.as_str())))?;
    let bounds = node.split("bounds=\"").nth(1)?.split('"').next()?;
    let numbers: Vec<i32> = bounds.split(['[', ']', ',']).filter_map(|one| one.parse().ok()).collect();
    Some(((numbers[0] + numbers[2]) / 2, (numbers[1] + numbers[3]) / 2))
}

async fn show(table: Vec<(Fault, Effect)>) {
    for (fault, effect) in table {
        // A phone each: what one fault leaves behind must not explain another.
        let rig = Rig::new().await;
        effect(&rig, fault);
        assert_eq!((rig.sim.orders_created(), rig.sim.payments_accepted()), (0, 0), "{fault:?} cost nothing");
        rig.sim.clear_faults();
        rig.until("the phone is well again once the fault is cleared", || {
            rig.adb.connect(&rig.sim);
            rig.adb.state(&rig.sim) == "device" && rig.shell("echo well").text() == "well\n"
        });
        rig.sim.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_dump() {
    show(dumps()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_picture() {
    show(pictures()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_the_wire() {
    show(wires()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_the_app() {
    show(app()).await;
}

#[test]
fn every_fault_has_its_row() {
    let kind = |fault: &Fault| format!("{fault:?}").split([' ', '{']).next().unwrap_or_default().to_owned();
    let shown: BTreeSet<String> = [dumps(), pictures(), wires(), app()].concat().iter().map(|(fault, _)| kind(fault)).collect();
    let all: BTreeSet<String> = Fault::samples().iter().map(|(fault, _)| kind(fault)).collect();
    assert_eq!(shown, all, "a fault nobody has shown may do nothing at all");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_begins_and_ends_faults_while_a_client_works() {
    let rig = Rig::new().await;
    rig.sim.play(FaultPlan {
        rules: vec![
            FaultRule::at(Moment::Dump, 2, Fault::NullRoot { times: 1 }),
            FaultRule::at(Moment::Dump, 4, Fault::NeverIdle),
            FaultRule::at(Moment::Action, 1, Fault::Clear),
        ],
        seed: 1,
    });
    let good: Vec<bool> = (0..4).map(|_| rig.whole_tree()).collect();
    assert_eq!(good, [true, false, true, false], "each begins at its moment");
    rig.shell("input keyevent 224");
    assert!(rig.whole_tree(), "and an action ended them");
    rig.sim.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scenario_can_be_driven_with_adb_alone() {
    let scenario = Scenario::named("unpaid_order").expect("a shipped scenario");
    let rig = Rig { adb: Adb::new(), sim: phone(SimConfig::default().with_scenario(scenario)).await };
    rig.adb.connect(&rig.sim);
    rig.adb.wait_for_state(&rig.sim, "device");
    rig.shell(&format!("am start -a android.intent.action.VIEW -d 'https://mobile.yangkeduo.com/orders.html?type=1' -p {PDD}"));
    let said = rig.dump().text();
    let cards = said.matches("去支付").count();
    assert_eq!((cards, rig.sim.orders().len(), rig.sim.orders_created()), (2, 4, 0), "two of four orders are unpaid, and none is ours");
    rig.sim.stop().await;
}
