//! The collect flow against a scripted phone: what the simulated one does not do to us.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::{N, abandon_popup, bottom_bar, goods_page, group, image_chip, name_row, screen, sheet, text, text_chip};
use async_trait::async_trait;
use cmautobuy_device::fake::{FakePage, FakePhone, Performed};
use cmautobuy_device::{Capture, Key, PhoneError, Point};
use cmautobuy_pdd::{CollectContext, CollectError, CollectTask, FlowClock, RulePack, Step, StepGate, Stop, Verdict, collect};
use cmautobuy_protocol::WireTime;
use cmautobuy_protocol::pdd_data::PddData;

const ID: &str = "600100200300";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    Launcher,
    Goods,
    Sheet,
    Abandon,
    Layer,
    Strange,
}

#[derive(Clone)]
struct Color {
    name: &'static str,
    /// What the header shows with it chosen.
    header: Vec<&'static str>,
    /// A touch does nothing.
    dead: bool,
}

fn color(name: &'static str, header: &[&'static str]) -> Color {
    Color { name, header: header.to_vec(), dead: false }
}

/// One goods with colours as pictures and sizes as texts; a touch on a chosen chip undoes it, as on the real sheet.
#[derive(Clone)]
struct Shop {
    at: At,
    shown_id: Option<&'static str>,
    colors: Vec<Color>,
    chosen: Option<usize>,
    /// Choosing shows the header only after so many pauses.
    header_delay: u32,
    waited: u32,
    row: Option<&'static str>,
    row_works: bool,
    layer_first: bool,
    abandon: bool,
    price_line: &'static str,
    /// Sizes first and colours below the fold.
    colors_below: bool,
    scrolled: bool,
    page_scrolled: bool,
    touched_twice: bool,
}

impl Shop {
    fn new(colors: Vec<Color>) -> Shop {
        Shop {
            at: At::Launcher,
            shown_id: Some(ID),
            colors,
            chosen: None,
            header_delay: 0,
            waited: 0,
            row: Some("选择规格"),
            row_works: true,
            layer_first: false,
            abandon: true,
            price_line: "¥19.9起",
            colors_below: false,
            scrolled: false,
            page_scrolled: false,
            touched_twice: false,
        }
    }

    fn page(&self) -> FakePage {
        let xml = match self.at {
            At::Launcher => return FakePage::of("com.android.launcher3", ".Launcher", screen([])),
            // Every goods page is longer than the screen.
            At::Goods if self.page_scrolled => goods_page("", "", None),
            At::Goods => goods_page("测试保温杯", self.price_line, self.row),
            At::Sheet => self.sheet(),
            At::Abandon => abandon_popup(),
            At::Layer => screen([
                group((100, 600, 980, 1600)).child(text("红包雨", (200, 700, 800, 800))),
                group((900, 620, 980, 700)).desc("关闭弹窗").click(),
            ]),
            At::Strange => screen([text("正在装修", (100, 900, 900, 960))]),
        };
        let page = FakePage::pdd(xml);
        match self.shown_id {
            Some(id) if self.at != At::Launcher => page.with_goods(id),
            Some(_) | None => page,
        }
    }

    fn sheet(&self) -> String {
        let header: Vec<&str> = match self.chosen {
            Some(at) if self.waited >= self.header_delay => self.colors[at].header.clone(),
            Some(_) | None => vec!["¥19.9-59.9"],
        };
        let selected = self.chosen.map_or("请选择：颜色 尺码".to_owned(), |at| format!("已选: #{}", self.colors[at].name));
        let chips = |top: i32| -> Vec<N> {
            let chip = |(at, one): (usize, &Color)| image_chip(one.name, one.name, self.chosen == Some(at), (35 + at as i32 * 346, top));
            std::iter::once(name_row("颜色", top - 107)).chain(self.colors.iter().enumerate().map(chip)).collect()
        };
        let sizes = |top: i32| {
            vec![
                name_row("尺码", top),
                text_chip("M码", None, false, (35, top + 107, 190)),
                text_chip("L码", None, false, (220, top + 107, 380)),
            ]
        };
        let rows = match (self.colors_below, self.scrolled) {
            (false, _) => [chips(979), sizes(1450)].concat(),
            (true, false) => [sizes(872), vec![text("说明", (35, 1200, 200, 1260)), text("详情", (35, 2060, 400, 2118))]].concat(),
            (true, true) => chips(1500),
        };
        sheet(&header, &selected, rows)
    }

    fn chips_top(&self) -> i32 {
        if self.colors_below { 1500 } else { 979 }
    }

    fn done(&mut self, action: &Performed) {
        match action {
            Performed::OpenGoods(_) => self.at = if self.layer_first { At::Layer } else { At::Goods },
            Performed::Key(Key::Home) => self.at = At::Launcher,
            Performed::Key(Key::Back | Key::Wakeup) | Performed::TypeQuantity(_) | Performed::OpenOrders(_) => {}
            Performed::Tap(at) => self.tap(*at),
            Performed::Swipe { from, to, .. } => {
                if self.at == At::Goods {
                    self.page_scrolled = from.y > to.y;
                }
                if self.at == At::Sheet && self.colors_below && (from.y - to.y).abs() > (from.x - to.x).abs() {
                    self.scrolled = from.y > to.y;
                }
            }
        }
    }

    fn tap(&mut self, at: Point) {
        let inside = |l: i32, t: i32, r: i32, b: i32| at.x >= l && at.x < r && at.y >= t && at.y < b;
        match self.at {
            At::Goods if inside(0, 1520, 1080, 1660) && self.row_works => self.at = At::Sheet,
            At::Goods | At::Launcher | At::Strange => {}
            At::Layer => {
                if inside(900, 620, 980, 700) {
                    self.layer_first = false;
                    self.at = At::Goods;
                }
            }
            At::Abandon => {
                assert!(!inside(168, 1307, 911, 1436), "继续支付 must never be touched");
                if inside(171, 1477, 909, 1543) {
                    self.at = At::Goods;
                }
            }
            At::Sheet => {
                if inside(979, 242, 1051, 314) {
                    self.at = if self.abandon { At::Abandon } else { At::Goods };
                    return;
                }
                let top = self.chips_top();
                assert!(at.y < 2118, "nothing below the payment row is ever touched");
                for index in 0..self.colors.len() {
                    let left = 35 + index as i32 * 346;
                    if inside(left, top + 306, left + 317, top + 413) && !self.colors[index].dead {
                        self.waited = 0;
                        if self.chosen == Some(index) {
                            self.touched_twice = true;
                            self.chosen = None;
                        } else {
                            self.chosen = Some(index);
                        }
                    }
                }
            }
        }
    }
}

/// Real monotonic time for the guard's ages, free pauses, and a page that may change while waiting.
struct TestClock {
    shop: Arc<Mutex<Shop>>,
    phone: Arc<FakePhone>,
}

#[async_trait]
impl FlowClock for TestClock {
    fn now(&self) -> WireTime {
        "2026-08-06T08:00:00.000Z".parse().expect("a wire time")
    }
    fn instant(&self) -> Instant {
        Instant::now()
    }
    async fn pause(&self, _time: Duration) {
        let page = {
            let mut shop = self.shop.lock().expect("no test panics while holding it");
            shop.waited += 1;
            shop.page()
        };
        self.phone.show(page);
        tokio::task::yield_now().await;
    }
}

#[derive(Default)]
struct Open {
    refuse_actions_after: Option<(usize, Stop)>,
    asked: Mutex<usize>,
}

#[async_trait]
impl StepGate for Open {
    async fn step(&self, _step: Step) -> Result<(), Stop> {
        Ok(())
    }
    async fn before_action(&self) -> Result<(), Stop> {
        let mut asked = self.asked.lock().expect("no test panics while holding it");
        *asked += 1;
        match self.refuse_actions_after {
            Some((after, stop)) if *asked > after => Err(stop),
            Some(_) | None => Ok(()),
        }
    }
    async fn captured(&self, _step: Step, _capture: &Capture) {}
}

struct Run {
    result: Result<PddData, CollectError>,
    phone: Arc<FakePhone>,
    shop: Shop,
}

async fn run_with(shop: Shop, gate: Open, prepare: impl FnOnce(&FakePhone)) -> Run {
    let shop = Arc::new(Mutex::new(shop));
    let first = shop.lock().expect("fresh").page();
    let model = Arc::clone(&shop);
    let phone = Arc::new(FakePhone::new("FAKE0001", first).reacting(move |action| {
        let mut shop = model.lock().expect("no test panics while holding it");
        shop.done(action);
        Some(shop.page())
    }));
    prepare(&phone);
    let clock = TestClock { shop: Arc::clone(&shop), phone: Arc::clone(&phone) };
    let rules = RulePack::builtin();
    let ctx = CollectContext { phone: &*phone, rules: &rules, clock: &clock, gate: &gate };
    let task = CollectTask { goods_id: ID.parse().expect("digits"), client_id: "client-1".into() };
    let result = collect(&ctx, &task).await;
    let shop = shop.lock().expect("the run is over").clone();
    Run { result, phone, shop }
}

async fn run(shop: Shop) -> Run {
    run_with(shop, Open::default(), |_| {}).await
}

fn prices(data: &PddData, key: &str) -> Vec<(String, Option<u64>, Option<u64>)> {
    let mut seen: Vec<(String, Option<u64>, Option<u64>)> =
        data.skus.iter().map(|sku| (sku.options[key].clone(), sku.price_cent, sku.list_price_cent)).collect();
    seen.dedup();
    seen
}

fn taps(phone: &FakePhone) -> usize {
    phone.performed().iter().filter(|done| matches!(done, Performed::Tap(_))).count()
}

fn two_colors() -> Vec<Color> {
    vec![color("雾蓝", &["¥19.9", "¥25.9"]), color("豆沙", &["最后3件 ¥29"])]
}

#[tokio::test]
async fn a_plain_run() {
    let run = run(Shop::new(two_colors())).await;
    let data = run.result.expect("a plain page reads");
    assert_eq!(data.validate(), Ok(()), "the document must be storable");
    let want = [("雾蓝".to_owned(), Some(1_990), Some(2_590)), ("豆沙".to_owned(), Some(2_900), Some(2_900))];
    assert_eq!(prices(&data, "color"), want, "one price per colour; two in the header give the list price");
    let keys: Vec<(&str, usize)> = data.dimensions.iter().map(|d| (d.key.as_str(), d.values.len())).collect();
    assert_eq!(keys, [("color", 2), ("size", 2)], "the sizes are read without being touched");
    assert_eq!(data.skus.len(), 4, "colours by sizes");
    assert_eq!((data.source.client_id.as_str(), data.source.device_address.as_str()), ("client-1", "FAKE0001"), "where it comes from");
    assert_eq!(run.shop.at, At::Goods, "the sheet is closed, 继续支付 untouched");
    // The row, two colours, the X, 先去逛逛.
    assert_eq!(taps(&run.phone), 5, "no touch beyond what is needed: {:?}", run.phone.performed());
}

#[tokio::test]
async fn a_chosen_colour_is_not_touched_again() {
    let mut shop = Shop::new(two_colors());
    shop.chosen = Some(0);
    shop.abandon = false;
    let run = run(shop).await;
    let data = run.result.expect("reads");
    assert!(!run.shop.touched_twice, "a second touch would undo the choice");
    assert_eq!(prices(&data, "color")[0].1, Some(1_990), "its price is read as it stands");
    assert_eq!(taps(&run.phone), 3, "the row, the other colour, the X: {:?}", run.phone.performed());
}

#[tokio::test]
async fn colours_without_a_price_keep_none() {
    let mut dead = color("豆沙", &["¥29"]);
    dead.dead = true;
    let rows: [(&str, Color); 4] = [
        ("cannot be chosen", dead),
        ("still a range", color("豆沙", &["¥19.9-59.9"])),
        ("no amount", color("豆沙", &["暂无报价"])),
        ("three amounts", color("豆沙", &["¥1", "¥2", "¥3"])),
    ];
    for (name, second) in rows {
        let run = run(Shop::new(vec![color("雾蓝", &["¥19.9"]), second])).await;
        let data = run.result.unwrap_or_else(|why| panic!("a missing price does not stop the run: {name}: {why}"));
        for sku in data.skus.iter().filter(|sku| sku.options["color"] == "豆沙") {
            let empty = (sku.price_cent, sku.list_price_cent, sku.raw_price.clone(), sku.price_observed_at.len());
            assert_eq!(empty, (None, None, None, 0), "03 §8.1: {name}");
            assert!(sku.available, "a missing price says nothing about stock: {name}");
        }
        assert!(!run.shop.touched_twice, "{name}");
        // A chip that stays unchosen gets three touches in each of two rounds.
        assert!(taps(&run.phone) <= 10, "touches are bounded: {name}: {:?}", run.phone.performed());
    }
}

#[tokio::test]
async fn a_header_that_binds_late_is_waited_for() {
    let mut shop = Shop::new(two_colors());
    shop.header_delay = 4;
    let run = run(shop).await;
    let data = run.result.expect("reads");
    assert_eq!(prices(&data, "color")[0].1, Some(1_990), "the price is the chosen colour's, not the range before");
}

#[tokio::test]
async fn colours_below_the_fold_carry_the_price() {
    let mut shop = Shop::new(two_colors());
    shop.colors_below = true;
    let run = run(shop).await;
    let data = run.result.expect("reads");
    let keys: Vec<&str> = data.dimensions.iter().map(|d| d.key.as_str()).collect();
    assert_eq!(keys, ["size", "color"], "page order, found by looking through the whole sheet first");
    assert_eq!(data.skus.iter().filter(|sku| sku.price_cent.is_some()).count(), 4, "every combination of a priced colour");
    assert_eq!(taps(&run.phone), 5, "no size was touched: {:?}", run.phone.performed());
}

#[tokio::test]
async fn without_a_row_the_page_prices_one_sku() {
    let rows = [("certain", "¥19.9", Some(1_990)), ("button agrees", "¥19.92人付款", Some(1_990)), ("doubtful", "¥4162人付款", None)];
    for (name, line, want) in rows {
        let mut shop = Shop::new(Vec::new());
        shop.row = None;
        shop.price_line = line;
        let run = run(shop).await;
        let data = run.result.unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!((data.skus.len(), data.dimensions.len()), (1, 0), "one SKU without options: {name}");
        assert_eq!(data.skus[0].price_cent, want, "right or not at all: {name}");
        assert_eq!(taps(&run.phone), 0, "a buy button may order, so nothing is touched: {name}");
    }
}

#[tokio::test]
async fn a_known_layer_is_closed_and_an_unknown_page_goes_to_a_person() {
    let mut shop = Shop::new(two_colors());
    shop.layer_first = true;
    let cleared = run(shop).await;
    assert!(cleared.result.is_ok(), "a known layer is closed: {:?}", cleared.result);

    let mut shop = Shop::new(two_colors());
    shop.at = At::Strange;
    let left = run(shop).await;
    assert!(left.result.is_ok(), "from an unknown page the way is HOME and the link: {:?}", left.result);
    let home = left.phone.performed().iter().position(|done| matches!(done, Performed::Key(Key::Home)));
    assert_eq!(home, Some(0), "nothing on the unknown page was touched");

    let stuck = run_stuck().await;
    let error = stuck.result.expect_err("nobody knows this page");
    assert_eq!((error.code(), error.verdict()), ("UNKNOWN_SCREEN", Verdict::ManualReview), "{error}");
    let links = stuck.phone.performed().iter().filter(|done| matches!(done, Performed::OpenGoods(_))).count();
    assert_eq!((links, taps(&stuck.phone)), (2, 0), "one more try, then a person");
}

/// A phone whose page changes by actions alone.
struct Still;

#[async_trait]
impl FlowClock for Still {
    fn now(&self) -> WireTime {
        "2026-08-06T08:00:00.000Z".parse().expect("a wire time")
    }
    fn instant(&self) -> Instant {
        Instant::now()
    }
    async fn pause(&self, _time: Duration) {
        tokio::task::yield_now().await;
    }
}

async fn run_stuck() -> Run {
    let phone = Arc::new(FakePhone::new("FAKE0001", Shop::new(Vec::new()).page()).reacting(|done| match done {
        Performed::OpenGoods(_) => Some(Shop { at: At::Strange, ..Shop::new(Vec::new()) }.page()),
        Performed::Key(Key::Home) => Some(Shop::new(Vec::new()).page()),
        Performed::Key(Key::Back | Key::Wakeup)
        | Performed::Tap(_)
        | Performed::Swipe { .. }
        | Performed::TypeQuantity(_)
        | Performed::OpenOrders(_) => None,
    }));
    let rules = RulePack::builtin();
    let ctx = CollectContext { phone: &*phone, rules: &rules, clock: &Still, gate: &Open::default() };
    let task = CollectTask { goods_id: ID.parse().expect("digits"), client_id: "client-1".into() };
    let result = collect(&ctx, &task).await;
    Run { result, phone, shop: Shop::new(Vec::new()) }
}

#[tokio::test]
async fn another_goods_page_is_never_read() {
    for shown in [Some("999888777666"), None] {
        let mut shop = Shop::new(two_colors());
        shop.shown_id = shown;
        let run = run(shop).await;
        let error = run.result.expect_err("the id is checked, not the looks");
        assert_eq!((error.code(), error.verdict()), ("WRONG_GOODS", Verdict::Retry), "{error}");
        assert_eq!(taps(&run.phone), 0, "nothing is touched on another goods' page");
    }
}

#[tokio::test]
async fn a_row_that_opens_nothing_is_touched_three_times_at_most() {
    let mut shop = Shop::new(two_colors());
    shop.row_works = false;
    let run = run(shop).await;
    let error = run.result.expect_err("no sheet, no data");
    assert_eq!((error.code(), error.verdict()), ("NO_SKU_ENTRY", Verdict::ManualReview), "{error}");
    assert_eq!(taps(&run.phone), 3, "each on a look of its own");
}

#[tokio::test]
async fn old_looks_are_never_acted_on() {
    let run = run_with(Shop::new(two_colors()), Open::default(), |phone| phone.age_captures(Duration::from_secs(4))).await;
    let error = run.result.expect_err("every look is too old");
    assert_eq!(run.phone.performed(), [], "the guard let nothing through");
    assert_eq!(error.verdict(), Verdict::Retry, "a slow phone may be faster later: {error:?}");
}

#[tokio::test]
async fn a_phone_that_goes_away_ends_the_run() {
    let gone = || PhoneError::DeviceGone { serial: "FAKE0001".into() };
    let run = run_with(Shop::new(two_colors()), Open::default(), |phone| phone.fail_next(gone())).await;
    let error = run.result.expect_err("no phone, no data");
    assert_eq!((error.code(), error.verdict()), ("DEVICE_GONE", Verdict::Retry), "{error}");

    let run = run_with(Shop::new(two_colors()), Open::default(), |phone| phone.fail_next(PhoneError::PddMissing)).await;
    assert_eq!(run.result.expect_err("no app").verdict(), Verdict::ManualReview, "only a person can install it");
}

#[tokio::test]
async fn a_stop_is_obeyed_before_the_next_look_or_action() {
    for after in [0, 1, 3, 6, 10, 15, 20] {
        let gate = Open { refuse_actions_after: Some((after, Stop::LeaseLost)), ..Open::default() };
        let run = run_with(Shop::new(two_colors()), gate, |_| {}).await;
        let error = run.result.expect_err("stopped");
        assert_eq!((error.code(), error.verdict()), ("LEASE_LOST", Verdict::Stopped), "after {after}");
        assert!(run.phone.performed().len() <= after, "each action was asked for first: {after}");
    }
}

#[tokio::test]
async fn a_page_without_a_title_is_not_guessed() {
    let bare = screen(bottom_bar());
    let phone = FakePhone::new("FAKE0001", FakePage::pdd(bare).with_goods(ID));
    let rules = RulePack::builtin();
    let ctx = CollectContext { phone: &phone, rules: &rules, clock: &Still, gate: &Open::default() };
    let task = CollectTask { goods_id: ID.parse().expect("digits"), client_id: "client-1".into() };
    let error = collect(&ctx, &task).await.expect_err("a page that is not bound yet");
    assert_eq!((error.code(), error.verdict()), ("PAGE_UNREADABLE", Verdict::Retry), "{error}");
}

#[tokio::test]
async fn a_sheet_on_which_every_touch_is_forbidden_goes_to_a_person() {
    let names = ["马上抢款", "领券购买款"];
    let run = run(Shop::new(names.map(|name| color(name, &["¥19.9"])).to_vec())).await;
    let error = run.result.expect_err("not a sheet we know");
    assert_eq!((error.code(), error.verdict()), ("GUARD_REFUSED", Verdict::ManualReview), "{error}");
    assert_eq!(taps(&run.phone), 1, "only the row was touched: {:?}", run.phone.performed());

    let run = run_mixed().await;
    let data = run.result.expect("one odd chip costs only its own price");
    assert_eq!(
        prices(&data, "color").iter().map(|p| p.1).collect::<Vec<_>>(),
        [Some(1_990), None],
        "the guard's word is final for one chip"
    );
}

async fn run_mixed() -> Run {
    run(Shop::new(vec![color("雾蓝", &["¥19.9"]), color("马上抢款", &["¥29"])])).await
}

#[tokio::test]
async fn a_sheet_whose_choices_cannot_be_read_is_no_single_sku() {
    // The first chip's text looks like the submit button, so everything from it down is out of bounds.
    let run = run(Shop::new(vec![color("立即支付款", &["¥19.9"])])).await;
    let error = run.result.expect_err("请选择 without anything to choose from");
    assert_eq!((error.code(), error.verdict()), ("SHEET_UNREADABLE", Verdict::ManualReview), "{error}");
    assert_eq!(taps(&run.phone), 1, "only the row was touched: {:?}", run.phone.performed());
}
