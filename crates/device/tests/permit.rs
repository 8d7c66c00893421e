//! The order permit: every condition of D10 alone is enough to refuse it.

use std::time::{Duration, Instant};

use cmautobuy_device::fake::{FakePage, Performed};
use cmautobuy_device::guard::{Beat, Evidence, LiveBinding, Mark, Mode, NoPermit, check_submit, permit};
use cmautobuy_device::{
    Action, Capture, CaptureWant, ExtraPatterns, FakePhone, GoodsId, Phone, Point, Quantity, RefusedReason, Screen, ScreenSize, Verdict,
    check,
};

const SIZE: ScreenSize = ScreenSize { width: 1080, height: 2400, density_dpi: 440 };
const PDD: &str = "com.xunmeng.pinduoduo";
const ROW: &str = "使用某支付，更换支付方式";

fn node(bounds: [i32; 4], more: &str, text: &str, inner: &str) -> String {
    let [l, t, r, b] = bounds;
    format!("<node text=\"{text}\" class=\"v\" package=\"{PDD}\" {more} bounds=\"[{l},{t}][{r},{b}]\">{inner}</node>")
}

/// The sheet with two pieces of one colour at 35 each.
fn sheet() -> String {
    let clickable = "clickable=\"true\"";
    let field = node([470, 764, 556, 836], clickable, "2", "").replace("class=\"v\"", "class=\"android.widget.EditText\"");
    let stepper = node([393, 764, 468, 836], clickable, "减少数量", "") + &field + &node([558, 764, 633, 836], clickable, "增加数量", "");
    let chosen = node([400, 600, 1000, 650], "", "已选: #雾蓝 1.8m", "");
    let chips = node([35, 979, 352, 1392], "clickable=\"true\" selected=\"true\"", "雾蓝 ¥35", "")
        + &node([35, 1400, 352, 1500], "clickable=\"true\" selected=\"true\"", "1.8m", "")
        + &node([400, 1400, 700, 1500], clickable, "2.0m", "");
    let row = node([0, 2118, 1080, 2213], clickable, "", &node([223, 2138, 819, 2192], "", ROW, ""));
    let submit = node([334, 2213, 1080, 2354], clickable, "", &node([562, 2251, 851, 2316], "", "提交订单 ¥70", ""));
    let inner = stepper + &chosen + &chips + &row + &submit;
    format!("<hierarchy rotation=\"0\">{}</hierarchy>", node([0, 95, 1080, 2354], clickable, "", &inner))
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime").block_on(future)
}

/// The two pages that are looked at, and everything else as it must be.
struct Case {
    before: FakePage,
    now: FakePage,
    live: Mode,
    dry: bool,
    client: &'static str,
    bound_client: Option<&'static str>,
    bound_serial: &'static str,
    ceremony: bool,
    goods: &'static str,
    options: Vec<&'static str>,
    pieces: u16,
    max_pieces: u16,
    unit: u64,
    price: u64,
    tolerance: u64,
    highest: Option<u64>,
    rows: Vec<&'static str>,
    lease: Duration,
    beat_age: Option<Duration>,
    cancel: bool,
    unpaid: bool,
    mark: (bool, bool),
    look_age: Duration,
}

fn good() -> Case {
    let page = || FakePage::pdd(sheet()).with_goods("959747943297");
    Case {
        before: page(),
        now: page(),
        live: Mode::Live,
        dry: false,
        client: "client-1",
        bound_client: Some("client-1"),
        bound_serial: "S1",
        ceremony: true,
        goods: "959747943297",
        options: vec!["雾蓝", "1.8m"],
        pieces: 2,
        max_pieces: 5,
        unit: 3500,
        price: 3400,
        tolerance: 100,
        highest: Some(3500),
        rows: vec!["使用 #某支付，更换支付方式"],
        lease: Duration::from_secs(20),
        beat_age: Some(Duration::from_secs(5)),
        cancel: false,
        unpaid: true,
        mark: (true, true),
        look_age: Duration::from_secs(3),
    }
}

struct Outcome {
    phone: FakePhone,
    second: Capture,
    permit: Result<cmautobuy_device::guard::OrderPermit, NoPermit>,
    now: Instant,
}

fn decide(case: Case) -> Outcome {
    let phone = FakePhone::new("S1", case.before);
    let look = || run(phone.capture(&CaptureWant::anything().with_goods())).expect("a look");
    let first = look();
    phone.show(case.now);
    let second = look();
    let now = second.dump_ended + case.look_age;
    let goods = GoodsId::try_from(case.goods).expect("digits");
    let evidence = Evidence {
        first: &first,
        second: &second,
        mode: case.live,
        automation_dry_run: case.dry,
        client_id: case.client,
        live_enabled: case.bound_client.map(|client_id| LiveBinding {
            client_id,
            phone_serial: case.bound_serial,
            ceremony_recorded: case.ceremony,
        }),
        goods_id: &goods,
        options: &case.options,
        quantity: Quantity::new(case.pieces).expect("a small number"),
        max_quantity: case.max_pieces,
        unit_price_cent: case.unit,
        price_cent: case.price,
        price_tolerance_cent: case.tolerance,
        max_price_cent: case.highest,
        allowed_payment_rows: &case.rows,
        lease_left: case.lease,
        beat: case
            .beat_age
            .map(|age| Beat { answered_at: now.checked_sub(age).expect("the machine is up longer"), cancel_requested: case.cancel }),
        unpaid_orders_stored: case.unpaid,
        mark: Mark { in_database: case.mark.0, in_credential_store: case.mark.1 },
        now,
    };
    let permit = permit(evidence);
    Outcome { phone, second, permit, now }
}

fn both(change: impl Fn(&str) -> String) -> Case {
    let page = || FakePage::pdd(change(&sheet())).with_goods("959747943297");
    Case { before: page(), now: page(), ..good() }
}

#[test]
fn with_everything_in_order_one_tap_is_sent() {
    let outcome = decide(good());
    let permit = outcome.permit.expect("every condition holds, each at its very edge");
    assert_eq!(permit.total_cent(), 7000, "the amount on the button");
    let ticket = check_submit(outcome.second, permit, SIZE, &ExtraPatterns::none(), outcome.now).expect("the permit opens this one tap");
    run(outcome.phone.act(ticket)).expect("fresh enough: the fake's clock has barely moved");
    assert_eq!(outcome.phone.performed(), [Performed::Tap(Point { x: 706, y: 2283 })], "the middle of the submit text");
}

#[test]
fn each_condition_alone_refuses() {
    let swap = |from: &'static str, to: &'static str| both(move |xml| xml.replace(from, to));
    let rows: Vec<(&str, Case, NoPermit)> = vec![
        ("dry run task", Case { live: Mode::DryRun, ..good() }, NoPermit::NotLive),
        ("dry run client", Case { dry: true, ..good() }, NoPermit::AutomationDryRun),
        ("not enabled", Case { bound_client: None, ..good() }, NoPermit::NotEnabledHere),
        ("enabled for another client", Case { bound_client: Some("client-2"), ..good() }, NoPermit::NotEnabledHere),
        ("enabled for another phone", Case { bound_serial: "S2", ..good() }, NoPermit::NotEnabledHere),
        ("no client id", Case { client: "", bound_client: Some(""), ..good() }, NoPermit::NotEnabledHere),
        ("no ceremony", Case { ceremony: false, ..good() }, NoPermit::CeremonyMissing),
        ("bad verdict", Case { now: good().now.with_verdict(Verdict::TreeStale), ..good() }, NoPermit::LooksUnusable),
        ("bad verdict before", Case { before: good().now.with_verdict(Verdict::Popup), ..good() }, NoPermit::LooksUnusable),
        ("old look", Case { look_age: Duration::from_millis(3001), ..good() }, NoPermit::LookTooOld),
        ("price changed between", Case { before: both(|x| x.replace("¥70", "¥69")).now, ..good() }, NoPermit::LooksDisagree),
        ("choice changed between", Case { before: both(|x| x.replace("#雾蓝", "#雾灰")).now, ..good() }, NoPermit::LooksDisagree),
        ("button moved between", Case { before: both(|x| x.replace("562,2251", "560,2251")).now, ..good() }, NoPermit::LooksDisagree),
        ("no submit button", swap("提交订单 ¥70", "选好了"), NoPermit::SheetUnreadable("the submit button")),
        ("a button that pays", swap("提交订单 ¥70", "提交并支付 ¥70"), NoPermit::SheetUnreadable("the submit button")),
        ("pay at once", swap("提交订单 ¥70", "立即支付 ¥70"), NoPermit::SheetUnreadable("the submit button")),
        ("two submit buttons", swap("2.0m", "提交订单 ¥70"), NoPermit::SheetUnreadable("the submit button")),
        ("no amount", swap("提交订单 ¥70", "提交订单"), NoPermit::SheetUnreadable("the amount")),
        ("no payment row", swap(ROW, "某支付"), NoPermit::SheetUnreadable("the payment row")),
        ("no quantity", swap("增加数量", "加"), NoPermit::SheetUnreadable("the quantity")),
        ("quantity no number", swap("text=\"2\"", "text=\"两\""), NoPermit::SheetUnreadable("the quantity")),
        ("no chosen line", swap("已选:", "共"), NoPermit::SheetUnreadable("what is chosen")),
        ("other goods", Case { goods: "1234567", ..good() }, NoPermit::OtherGoods { found: Some("959747943297".to_owned()) }),
        ("no options", Case { options: Vec::new(), ..good() }, NoPermit::NoOptions),
        ("another option", Case { options: vec!["雾灰"], ..good() }, NoPermit::OptionNotChosen { value: "雾灰".to_owned() }),
        ("chosen by the line only", swap("selected=\"true\"", ""), NoPermit::OptionNotChosen { value: "雾蓝".to_owned() }),
        ("a longer name", swap("雾蓝 ¥35", "雾蓝加厚"), NoPermit::OptionNotChosen { value: "雾蓝".to_owned() }),
        ("another quantity", Case { pieces: 3, ..good() }, NoPermit::OtherQuantity { found: 2 }),
        ("too many", Case { max_pieces: 1, ..good() }, NoPermit::TooManyPieces),
        ("no highest price", Case { highest: None, ..good() }, NoPermit::NoHighestPrice),
        ("above the highest", Case { highest: Some(3499), ..good() }, NoPermit::TooExpensive { cent: 3500 }),
        ("dearer than tolerated", Case { price: 3399, ..good() }, NoPermit::PriceMoved { cent: 3500 }),
        ("cheaper than tolerated", Case { price: 3601, ..good() }, NoPermit::PriceMoved { cent: 3500 }),
        ("total above the pieces", swap("提交订单 ¥70", "提交订单 ¥70.01"), NoPermit::TotalTooHigh { cent: 7001 }),
        ("nothing to pay", swap("提交订单 ¥70", "提交订单 ¥0"), NoPermit::TotalIsZero),
        (
            "row not allowed",
            Case { rows: vec!["别的支付"], ..good() },
            NoPermit::PaymentRowNotAllowed { row: "使用某支付更换支付方式".to_owned() },
        ),
        (
            "empty allow list",
            Case { rows: vec![""], ..good() },
            NoPermit::PaymentRowNotAllowed { row: "使用某支付更换支付方式".to_owned() },
        ),
        ("a balance on screen", swap("2.0m", "使用余额"), NoPermit::ForbiddenWord { word: "余额" }),
        ("pay later on screen", swap("2.0m", "先 用 后 付"), NoPermit::ForbiddenWord { word: "先用后付" }),
        ("short lease", Case { lease: Duration::from_millis(19_999), ..good() }, NoPermit::LeaseShort),
        ("no beat", Case { beat_age: None, ..good() }, NoPermit::NoFreshBeat),
        ("old beat", Case { beat_age: Some(Duration::from_millis(5001)), ..good() }, NoPermit::NoFreshBeat),
        ("cancelled", Case { cancel: true, ..good() }, NoPermit::CancelRequested),
        ("unpaid list unknown", Case { unpaid: false, ..good() }, NoPermit::UnpaidNotStored),
        ("mark not in the database", Case { mark: (false, true), ..good() }, NoPermit::MarkMissing),
        ("mark not in the credential store", Case { mark: (true, false), ..good() }, NoPermit::MarkMissing),
    ];
    for (name, case, want) in rows {
        let got = decide(case).permit.map(|permit| permit.total_cent());
        assert_eq!(got, Err(want), "row {name}");
    }
}

#[test]
fn a_permit_is_for_its_own_look_and_never_for_a_payment() {
    let reason = |outcome: Outcome, capture: Option<Capture>, later: Duration| {
        let capture = capture.unwrap_or(outcome.second);
        let permit = outcome.permit.expect("every condition holds");
        check_submit(capture, permit, SIZE, &ExtraPatterns::none(), outcome.now + later).map(|_| ()).map_err(|refused| refused.reason)
    };
    let outcome = decide(good());
    let newer = run(outcome.phone.capture(&CaptureWant::anything())).expect("a look");
    assert_eq!(reason(outcome, Some(newer), Duration::ZERO), Err(RefusedReason::PermitForAnotherLook), "a newer look needs a newer permit");

    let other = run(FakePhone::new("S1", good().now).capture(&CaptureWant::anything())).expect("a look");
    assert_eq!(reason(decide(good()), Some(other), Duration::ZERO), Err(RefusedReason::PermitForAnotherLook), "another phone of that name");

    let late = reason(decide(good()), None, Duration::from_millis(1));
    assert!(matches!(late, Err(RefusedReason::TooOld { .. })), "3 s and no longer: {late:?}");

    // The payment row covers the button, as when the sheet is drawn wrongly.
    let covering = both(|xml| xml.replace("[0,2118][1080,2213]", "[0,2118][1080,2354]"));
    let covered = reason(decide(covering), None, Duration::ZERO);
    assert!(matches!(covered, Err(RefusedReason::PaymentNode { .. })), "there is no permit for what pays: {covered:?}");

    let outcome = decide(good());
    let at = Point { x: 706, y: 2283 };
    let node = outcome.second.tree.deepest_at(at).expect("the button").id();
    let plain = check(outcome.second, Screen::SkuSheet, Action::Tap { node, at }, SIZE, &ExtraPatterns::none(), outcome.now);
    let plain = plain.map(|_| ()).map_err(|refused| refused.reason);
    assert!(matches!(plain, Err(RefusedReason::SubmitNode { .. })), "without handing the permit over nothing is open: {plain:?}");
}
