//! The whole flow over real ADB against the simulated phone: every goods of its catalogue, and the pages that stop a run.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cmautobuy_device::{AdbKey, Capture, Phone, connect_direct};
use cmautobuy_pdd::{CollectContext, CollectError, CollectTask, FlowClock, RulePack, Step, StepGate, Stop, Verdict, collect};
use cmautobuy_phone_sim::{Catalogue, Fault, Goods, JournalKind, Sim, SimConfig, start};
use cmautobuy_protocol::WireTime;
use cmautobuy_protocol::pdd_data::PddData;

#[path = "faults/truth.rs"]
mod truth;

/// The machine's clock with pauses a tenth as long: the simulated phone needs no time to draw.
struct HastyClock;

#[async_trait]
impl FlowClock for HastyClock {
    fn now(&self) -> WireTime {
        WireTime::new(jiff::Timestamp::now())
    }
    fn instant(&self) -> Instant {
        Instant::now()
    }
    async fn pause(&self, time: Duration) {
        tokio::time::sleep(time / 10).await;
    }
}

#[derive(Default)]
struct Record {
    steps: Mutex<Vec<Step>>,
    looks: Mutex<Vec<(Step, bool)>>,
    stop_at: Option<(Step, Stop)>,
}

#[async_trait]
impl StepGate for Record {
    async fn step(&self, step: Step) -> Result<(), Stop> {
        self.steps.lock().expect("no test panics while holding it").push(step);
        match self.stop_at {
            Some((at, stop)) if at == step => Err(stop),
            Some(_) | None => Ok(()),
        }
    }
    async fn before_action(&self) -> Result<(), Stop> {
        Ok(())
    }
    async fn captured(&self, step: Step, capture: &Capture) {
        self.looks.lock().expect("no test panics while holding it").push((step, capture.screenshot.is_some()));
    }
}

async fn sim() -> Sim {
    start(SimConfig { dump_time: Duration::from_millis(8), ..SimConfig::default() }).await.expect("a free local port")
}

async fn run(sim: &Sim, goods_id: &str, gate: &Record) -> Result<PddData, CollectError> {
    let phone = connect_direct(sim.addr(), AdbKey::generate().expect("a key"));
    run_on(&*phone, goods_id, gate).await
}

async fn run_on(phone: &dyn Phone, goods_id: &str, gate: &Record) -> Result<PddData, CollectError> {
    let rules = RulePack::builtin();
    let ctx = CollectContext { phone, rules: &rules, clock: &HastyClock, gate };
    let task = CollectTask { goods_id: goods_id.parse().expect("catalogue ids are digits"), client_id: "client-test".into() };
    collect(&ctx, &task).await
}

fn assert_matches(goods: &Goods, data: &PddData) {
    assert_eq!(truth::differences(goods, data), Vec::<String>::new(), "what was read is what the catalogue says: {}", goods.title);
}

fn assert_harmless(sim: &Sim) {
    assert_eq!(sim.orders_created(), 0, "collecting never orders: {:?}", sim.journal());
    assert_eq!(sim.payments_accepted(), 0, "nothing is ever paid");
    for entry in sim.journal() {
        if let JournalKind::Tap { y, .. } = entry.kind {
            assert!(!(entry.screen.starts_with("sheet:") && y >= 2118), "nothing below the payment row is touched: {entry:?}");
            assert!(!entry.hit.contains("购买") && !entry.hit.contains("拼单"), "no buy button is touched: {entry:?}");
        }
    }
}

#[expect(clippy::print_stdout, reason = "what a run costs is worth a line in the log")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_goods_of_the_catalogue_reads_as_the_catalogue_says() {
    let sim = sim().await;
    let phone = connect_direct(sim.addr(), AdbKey::generate().expect("a key"));
    for goods in &Catalogue::builtin().goods {
        let gate = Record::default();
        let started = Instant::now();
        let result = run_on(&*phone, &goods.goods_id, &gate).await;
        let looks = gate.looks.lock().expect("the run is over").len();
        println!("{} {:>4} looks {:>6} ms {}", goods.goods_id, looks, started.elapsed().as_millis(), goods.title);
        match result {
            Ok(data) => {
                assert!(!goods.sold_out && !goods.removed, "a page without the goods gives no data: {}", goods.title);
                assert_matches(goods, &data);
                assert_eq!(sim.screen_name(), format!("goods:{}", goods.goods_id), "the run ends on the goods page, the sheet closed");
                let shots = gate.looks.lock().expect("the run is over").iter().filter(|(_, shot)| *shot).count();
                assert!(shots >= 1, "a run leaves pictures");
            }
            Err(error) => {
                let code = if goods.sold_out { "GOODS_SOLD_OUT" } else { "GOODS_REMOVED" };
                assert!(
                    goods.sold_out || goods.removed,
                    "these goods can be read: {}: {error} {error:?} on {}\n{:#?}",
                    goods.title,
                    sim.screen_name(),
                    sim.journal()
                );
                assert_eq!((error.code(), error.verdict()), (code, Verdict::Failed), "{}", goods.title);
            }
        }
        assert_harmless(&sim);
    }
    sim.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_that_stop_a_run() {
    let goods = Catalogue::builtin().goods[0].goods_id.clone();
    let rows = [
        ("captcha", Fault::CaptchaOnGoods, "RISK_WALL", Verdict::ManualReview),
        ("login", Fault::LoginWall, "LOGIN_WALL", Verdict::ManualReview),
        ("network", Fault::NetworkError, "NETWORK_PAGE", Verdict::Retry),
    ];
    for (name, fault, code, verdict) in rows {
        let sim = sim().await;
        sim.set_fault(fault);
        let gate = Record::default();
        let error = run(&sim, &goods, &gate).await.expect_err("no data behind such a page");
        assert_eq!((error.code(), error.verdict()), (code, verdict), "{name}: {error}");
        let taps = sim.journal().iter().filter(|e| matches!(e.kind, JournalKind::Tap { .. } | JournalKind::Swipe { .. })).count();
        assert_eq!(taps, 0, "nobody tries to get past it: {name}");
        assert!(gate.looks.lock().expect("the run is over").last().is_some_and(|(_, shot)| *shot), "the last look has a picture: {name}");
        assert_harmless(&sim);
        sim.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trouble_that_passes_is_survived() {
    let goods = Catalogue::builtin().goods[0].clone();
    let rows = [
        ("dumps killed", Fault::DumpExit137 { times: 2 }),
        ("no root", Fault::NullRoot { times: 2 }),
        ("half files", Fault::TruncatedXml { times: 2 }),
        ("notification texts", Fault::SystemUiNotification),
    ];
    for (name, fault) in rows {
        let sim = sim().await;
        sim.set_fault(fault);
        match run(&sim, &goods.goods_id, &Record::default()).await {
            Ok(data) => assert_matches(&goods, &data),
            Err(error) => panic!("must be survived: {name}: {error:?}"),
        }
        assert_harmless(&sim);
        sim.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_engine_can_stop_at_every_step() {
    let goods = Catalogue::builtin().goods[1].goods_id.clone();
    let sim = sim().await;
    for step in Step::ALL {
        for stop in [Stop::LeaseLost, Stop::CancelRequested, Stop::OperatorStop] {
            if step != Step::CollectSkus && stop != Stop::LeaseLost {
                continue;
            }
            let gate = Record { stop_at: Some((step, stop)), ..Record::default() };
            let error = run(&sim, &goods, &gate).await.expect_err("stopped");
            assert_eq!((error.code(), error.verdict()), (stop.code(), Verdict::Stopped), "at {step}");
            assert_eq!(gate.steps.lock().expect("the run is over").last(), Some(&step), "nothing begins after the stop");
        }
    }
    assert_harmless(&sim);
    // A sheet left open by a stopped run is no obstacle for the next one.
    let data = run(&sim, &goods, &Record::default()).await;
    assert!(data.is_ok(), "the next run opens its own link: {data:?}");
    sim.stop().await;
}
