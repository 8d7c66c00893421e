//! The phone over a link that answers from a table.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use crate::adb::AdbError;
use crate::adb::link::{Link, ShellOutput};
use crate::adb::phone::AdbPhone;
use crate::capture::{Capture, CaptureWant, Verdict};
use crate::error::PhoneError;
use crate::guard::{Action, ExtraPatterns, GoodsId, Key, OrderList, Quantity, RefusedReason, Screen, Ticket, check};
use crate::phone::{Phone, ScreenSize};
use crate::tree::Point;

const FOCUS: &str = "dumpsys window | grep mCurrentFocus";
const PDD: &str = "  mCurrentFocus=Window{1 u0 com.xunmeng.pinduoduo/.activity.NewPageActivity}\n";
const TREE: &str = "<hierarchy rotation=\"0\"><node text=\"x\" package=\"com.xunmeng.pinduoduo\" clickable=\"true\" \
                    bounds=\"[0,0][100,100]\"/></hierarchy>";
const SIZE: ScreenSize = ScreenSize { width: 1080, height: 2400, density_dpi: 440 };

type Answer = Result<ShellOutput, AdbError>;

fn out(code: u8, stdout: &str, stderr: &str) -> Answer {
    Ok(ShellOutput { code, stdout: stdout.into(), stderr: stderr.into() })
}

/// Answers by the start of the command; the last answer of a row repeats.
#[derive(Debug, Default)]
struct Script {
    rows: Mutex<Vec<(&'static str, VecDeque<Answer>)>>,
    asked: Mutex<Vec<String>>,
}

#[derive(Debug, Clone, Default)]
struct ScriptedLink(Arc<Script>);

impl ScriptedLink {
    fn on(self, start: &'static str, answers: impl IntoIterator<Item = Answer>) -> ScriptedLink {
        self.0.rows.lock().expect("lock").push((start, answers.into_iter().collect()));
        self
    }

    /// The commands sent that start so.
    fn sent(&self, start: &str) -> Vec<String> {
        self.0.asked.lock().expect("lock").iter().filter(|cmd| cmd.starts_with(start)).cloned().collect()
    }
}

#[async_trait]
impl Link for ScriptedLink {
    fn serial(&self) -> &str {
        "S1"
    }

    async fn shell(&self, cmd: &str, _limit: Duration) -> Result<ShellOutput, AdbError> {
        self.0.asked.lock().expect("lock").push(cmd.to_owned());
        let mut rows = self.0.rows.lock().expect("lock");
        let Some((_, answers)) = rows.iter_mut().find(|(start, _)| cmd.starts_with(start)) else {
            return out(127, "", "sh: not found");
        };
        if answers.len() > 1 {
            return answers.pop_front().expect("more than one");
        }
        match answers.front() {
            Some(Ok(output)) => Ok(output.clone()),
            _ => answers.pop_front().unwrap_or(Err(AdbError::BrokeOff)),
        }
    }

    async fn exec(&self, cmd: &str, limit: Duration) -> Result<Vec<u8>, AdbError> {
        Ok(self.shell(cmd, limit).await?.stdout)
    }
}

fn with_dumps(dumps: impl IntoIterator<Item = Answer>) -> ScriptedLink {
    ScriptedLink::default().on(FOCUS, [out(0, PDD, "")]).on("f=/data/local/tmp/u_", dumps)
}

async fn look(phone: &AdbPhone<ScriptedLink>) -> Result<Capture, PhoneError> {
    phone.capture(&CaptureWant::anything()).await
}

#[tokio::test]
async fn dumps() {
    let idle = || out(1, "", "ERROR: could not get idle state.\ncat: no such file");
    let root = || out(1, "", "ERROR: null root node returned by UiTestAutomationBridge.");
    let killed = || out(137, "", "");
    let cut = || out(0, &TREE[..60], "");
    let taken = || out(1, "", "IllegalStateException: UiAutomationService already registered!");
    // name, answers, outcome, dumps made
    let rows: Vec<(&str, Vec<Answer>, &str, usize)> = vec![
        ("first time", vec![out(0, TREE, "UI hierchary dumped to: x")], "ok", 1),
        ("valid xml with a bad code", vec![out(137, TREE, "")], "ok", 1),
        ("linker warning", vec![out(0, TREE, "WARNING: linker: unused DT entry")], "ok", 1),
        ("killed once", vec![killed(), out(0, TREE, "")], "ok", 2),
        ("killed always", vec![killed()], "DUMP_FAILED", 3),
        ("half a file once", vec![cut(), out(0, TREE, "")], "ok", 2),
        ("half a file always", vec![cut()], "DUMP_FAILED", 3),
        ("idle after compressing", vec![idle(), out(0, TREE, "")], "ok", 2),
        ("never idle", vec![idle()], "never_idle", 2),
        ("root once missing", vec![root(), out(0, TREE, "")], "ok", 2),
        ("no root", vec![root()], "tree_empty", 4),
        ("an abandoned dump of ours", vec![taken(), out(0, TREE, "")], "ok", 2),
        ("another program", vec![taken()], "ACCESSIBILITY_TAKEN", 2),
        ("link lost", vec![Err(AdbError::BrokeOff)], "DEVICE_GONE", 1),
        ("link hangs", vec![Err(AdbError::Timeout)], "TIMEOUT", 1),
    ];
    for (name, answers, want, made) in rows {
        let link = with_dumps(answers).on("ps -A", [out(0, "shell 1 2 com.github.uiautomator\n", "")]);
        let got = match look(&AdbPhone::new(link.clone())).await {
            Ok(capture) => capture.verdict.as_str(),
            Err(error) => error.code(),
        };
        assert_eq!(got, want, "row {name}");
        let sent = link.sent("f=");
        assert_eq!(sent.len(), made, "row {name}: attempts");
        let files: std::collections::HashSet<&str> = sent.iter().filter_map(|cmd| cmd.split(';').next()).collect();
        assert_eq!(files.len(), sent.len(), "row {name}: a file of its own for every attempt (facts 0.7)");
        let compressed = sent.iter().filter(|cmd| cmd.contains("--compressed")).count();
        assert_eq!(compressed, usize::from(name.contains("idle")), "row {name}: one compressed retry and no more");
        let stopped = !link.sent("pkill").is_empty();
        let wanted = ["an abandoned dump of ours", "another program", "link hangs"].contains(&name);
        assert_eq!(stopped, wanted, "row {name}: abandoned dumps are stopped on the phone");
    }
}

#[tokio::test]
async fn verdicts() {
    let other = "mCurrentFocus=Window{1 u0 com.tencent.mm/.ui.Pay}";
    let foreign = TREE.replace("com.xunmeng.pinduoduo", "com.android.permissioncontroller");
    type Row<'a> = (&'a str, &'a [&'a str], &'a str, Option<&'a str>, Verdict);
    let rows: [Row<'_>; 5] = [
        ("plain", &[PDD], TREE, Some("com.xunmeng.pinduoduo"), Verdict::Ok),
        ("focus moved while dumping", &[PDD, other], TREE, None, Verdict::TreeStale),
        ("dump of another window", &[PDD], &foreign, None, Verdict::TreeStale),
        ("other app", &[other], TREE, Some("com.xunmeng.pinduoduo"), Verdict::WrongApp),
        ("any app", &[other], TREE, None, Verdict::Ok),
    ];
    for (name, focus, xml, expect, want) in rows {
        let link = ScriptedLink::default().on(FOCUS, focus.iter().map(|text| out(0, text, ""))).on("f=", [out(0, xml, "")]);
        let wanted = CaptureWant { expect_package: expect.map(str::to_owned), ..CaptureWant::default() };
        let capture = AdbPhone::new(link).capture(&wanted).await.expect("a look");
        assert_eq!(capture.verdict, want, "row {name}");
        assert_eq!(&*capture.xml, xml.as_bytes(), "row {name}: the dump is kept as it came");
    }
}

#[tokio::test]
async fn foreground_falls_back_to_the_resumed_activity() {
    let link = ScriptedLink::default()
        .on(FOCUS, [out(0, "  mCurrentFocus=null\n", "")])
        .on("dumpsys activity activities", [out(0, "  topResumedActivity=ActivityRecord{a u0 com.x/.Y t3}", "")]);
    let foreground = AdbPhone::new(link).foreground().await.expect("an answer");
    assert_eq!(foreground.to_string(), "com.x/.Y", "null focus during a transition");
    let nothing = AdbPhone::new(ScriptedLink::default()).foreground().await.expect("an answer");
    assert_eq!(nothing.package, "", "nothing in front is not an error, and matches no app");
}

fn ticket(capture: Capture, screen: Screen, action: Action) -> Ticket {
    let now = capture.dump_ended;
    check(capture, screen, action, SIZE, &ExtraPatterns::none(), now).expect("allowed")
}

fn tap(capture: Capture) -> Ticket {
    let node = capture.tree.nodes().next().expect("a node").id();
    ticket(capture, Screen::Goods, Action::Tap { node, at: Point { x: 50, y: 60 } })
}

#[tokio::test]
async fn actions_become_commands() {
    let link = with_dumps([out(0, TREE, "")]).on("input", [out(0, "", "")]).on("am start", [out(0, "Starting: Intent", "")]);
    let phone = AdbPhone::new(link.clone());
    let goods = GoodsId::try_from("959747943297").expect("digits");
    let swipe = Action::Swipe { from: Point { x: 500, y: 1800 }, to: Point { x: 500, y: 600 }, duration_ms: 300 };
    let rows = [
        (swipe, "input swipe 500 1800 500 600 300"),
        (
            Action::OpenOrders(OrderList::Unpaid),
            "am start -a android.intent.action.VIEW -d 'pinduoduo://com.xunmeng.pinduoduo/orders.html?type=1' -p com.xunmeng.pinduoduo",
        ),
        (Action::Key(Key::Home), "input keyevent 3"),
        (Action::Key(Key::Back), "input keyevent 4"),
        (Action::Key(Key::Wakeup), "input keyevent 224"),
        (
            Action::OpenGoods(goods),
            "am start -a android.intent.action.VIEW -d 'https://mobile.yangkeduo.com/goods.html?goods_id=959747943297' \
             -p com.xunmeng.pinduoduo",
        ),
    ];
    for (action, want) in rows {
        let capture = look(&phone).await.expect("a look");
        phone.act(ticket(capture, Screen::Goods, action)).await.expect("done");
        assert_eq!(link.sent(want).len(), 1, "exactly one {want}");
    }
    phone.act(tap(look(&phone).await.expect("a look"))).await.expect("done");
    assert_eq!(link.sent("input tap"), ["input tap 50 60"], "one tap");
}

#[tokio::test]
async fn refused_touches_and_missing_apps() {
    let miui = "java.lang.SecurityException: Injecting to another application requires INJECT_EVENTS permission";
    let link = with_dumps([out(0, TREE, "")]).on("input", [out(255, "", miui)]);
    let phone = AdbPhone::new(link.clone());
    let error = phone.act(tap(look(&phone).await.expect("a look"))).await.expect_err("rejected");
    assert_eq!(error.code(), "INPUT_REFUSED", "{error}");
    assert!(error.next_step().contains("Security settings"), "the operator is told which switch");
    assert!(!error.is_recoverable(), "trying again does not turn the switch on");

    let rows = [
        ("Error: Activity not started, unable to resolve Intent { .. }", 0, "PDD_MISSING"),
        ("Error type 3\nError: Activity class {x} does not exist.", 1, "PDD_MISSING"),
        ("Error: something else", 0, "BAD_ANSWER"),
        ("", 1, "BAD_ANSWER"),
    ];
    for (text, code, want) in rows {
        let link = with_dumps([out(0, TREE, "")]).on("am start", [out(code, "Starting: Intent { }", text)]);
        let phone = AdbPhone::new(link);
        let capture = look(&phone).await.expect("a look");
        let goods = GoodsId::try_from("123456").expect("digits");
        let error = phone.act(ticket(capture, Screen::Home, Action::OpenGoods(goods))).await.expect_err("not opened");
        assert_eq!(error.code(), want, "am start said {text:?}: {error}");
    }
    let warned = "Warning: Activity not started, its current task has been brought to the front";
    let link = with_dumps([out(0, TREE, "")]).on("am start", [out(0, warned, "")]);
    let goods = GoodsId::try_from("123456").expect("digits");
    let phone = AdbPhone::new(link);
    let capture = look(&phone).await.expect("a look");
    phone.act(ticket(capture, Screen::Home, Action::OpenGoods(goods))).await.expect("a warning is fine");
}

#[tokio::test]
async fn nothing_is_sent_when_the_foreground_moved() {
    let pay = "mCurrentFocus=Window{1 u0 com.tencent.mm/.ui.Pay}";
    let link = ScriptedLink::default()
        .on(FOCUS, [out(0, PDD, ""), out(0, PDD, ""), out(0, pay, "")])
        .on("f=", [out(0, TREE, "")])
        .on("input", [out(0, "", "")]);
    let phone = AdbPhone::new(link.clone());
    let error = phone.act(tap(look(&phone).await.expect("a look"))).await.expect_err("moved");
    assert!(matches!(&error, PhoneError::GuardRefused(r) if matches!(r.reason, RefusedReason::ForegroundChanged { .. })), "{error}");
    assert!(link.sent("input").is_empty(), "no touch may follow a changed foreground (D10)");
}

#[tokio::test]
async fn facts_and_small_questions() {
    let link = ScriptedLink::default()
        .on("getprop ro.product.model", [out(0, "Mi 10\n", "")])
        .on("getprop ro.product.manufacturer", [out(0, "Xiaomi\n", "")])
        .on("getprop ro.build.version.release", [out(0, "14\n", "")])
        .on("getprop ro.build.version.sdk", [out(0, "34\n", "")])
        .on("wm size", [out(0, "Physical size: 1440x3200\nOverride size: 1080x2400\n", "")])
        .on("wm density", [out(0, "Physical density: 440\n", "")])
        .on("dumpsys package com.xunmeng.pinduoduo", [out(0, "  versionName=7.50.0\n", ""), out(0, "Unable to find package", "")])
        .on("date +%s", [out(0, "1780000000\n", "")])
        .on("screencap", [out(0, "no picture", "")])
        .on("dumpsys activity top", [out(0, "goods_id=959747943297", "")]);
    let phone = AdbPhone::new(link);
    let facts = phone.facts().await.expect("answers");
    assert_eq!((facts.model.as_str(), facts.sdk, facts.screen), ("Mi 10", 34, SIZE), "facts");
    assert_eq!(facts.pdd_version.as_deref(), Some("7.50.0"), "installed");
    assert_eq!(phone.facts().await.expect("answers").pdd_version, None, "not installed");
    assert_eq!(phone.clock().await.expect("a time"), 1_780_000_000_000, "milliseconds");
    assert_eq!(phone.goods_on_top().await.expect("text").as_deref(), Some("959747943297"), "goods");
    assert_eq!(phone.screenshot().await.expect_err("no png").code(), "BAD_ANSWER", "half a picture is not a picture");
}

#[tokio::test]
async fn digits_replace_what_the_quantity_field_holds() {
    let node = |what: &str, bounds: &str| format!("<node package=\"com.xunmeng.pinduoduo\" {what} bounds=\"{bounds}\"/>");
    let xml = format!(
        "<hierarchy>{}{}{}</hierarchy>",
        node("content-desc=\"减少数量\"", "[100,100][200,200]"),
        node("class=\"android.widget.EditText\" text=\"1\" focused=\"true\"", "[200,100][300,200]"),
        node("content-desc=\"增加数量\"", "[300,100][400,200]"),
    );
    let link = with_dumps([out(0, &xml, "")]).on("input", [out(0, "", "")]);
    let phone = AdbPhone::new(link.clone());
    let capture = look(&phone).await.expect("a look");
    let node = capture.tree.nodes().nth(1).expect("the field").id();
    let quantity = Quantity::new(12).expect("a small number");
    phone.act(ticket(capture, Screen::SkuSheet, Action::TypeQuantity { node, quantity })).await.expect("done");
    assert_eq!(link.sent("input"), ["input keyevent 123 67 67 67 67 && input text 12"], "one command, digits only");
}

#[tokio::test]
async fn a_capture_holds_together() {
    let picture = |shade: u8| {
        let mut png = std::io::Cursor::new(Vec::new());
        image::RgbImage::from_pixel(4, 4, image::Rgb([shade; 3])).write_to(&mut png, image::ImageFormat::Png).expect("encoded");
        Ok(ShellOutput { code: 0, stdout: png.into_inner(), stderr: Vec::new() })
    };
    for (shade, want) in [(200, Verdict::Ok), (0, Verdict::SecureOrBlack)] {
        let link = with_dumps([out(0, TREE, "")])
            .on("screencap", [picture(shade)])
            .on("dumpsys activity top", [out(0, "ACTIVITY com.xunmeng.pinduoduo/.a goods_id=959747943297", "")]);
        let phone = AdbPhone::new(link.clone());
        let capture = phone.capture(&CaptureWant::anything().with_screenshot().with_goods()).await.expect("a look");
        assert_eq!(capture.verdict, want, "a screen of shade {shade}");
        assert_eq!(capture.goods_id.as_deref(), Some("959747943297"), "the goods of the same look");
        let screenshot = capture.screenshot.as_ref().expect("a picture was asked for");
        assert!(screenshot.skew_ms >= 0, "the picture is taken after the dump");
        assert_eq!(capture.tree.len(), 1, "the tree is kept even under a black picture: it may be read, not acted on");
        let plain = look(&phone).await.expect("a look");
        assert!(plain.goods_id.is_none() && plain.screenshot.is_none(), "what was not asked for costs nothing");
        assert_eq!(link.sent("dumpsys activity top").len(), 1, "and is not fetched");
        assert!(capture.id < plain.id, "captures are numbered in the order they were taken");
    }
}
