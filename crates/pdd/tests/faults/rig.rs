//! One collect run over real ADB against the simulated phone, on a clock that is stopped.
//!
//! Both sides run in one thread. When neither has anything to do, the clock jumps to the next deadline, so the client keeps the deadlines
//! it ships with and a hung phone costs no real time. What is measured is that clock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cmautobuy_device::{AdbKey, Capture, Phone, connect_direct};
use cmautobuy_pdd::{CollectContext, CollectError, CollectTask, FlowClock, RulePack, Step, StepGate, Stop, collect};
use cmautobuy_phone_sim::{Catalogue, Fault, FaultPlan, Goods, JournalKind, Scenario, Sim, SimConfig, start};
use cmautobuy_protocol::WireTime;
use cmautobuy_protocol::pdd_data::PddData;

/// Real time after which a run that does not come back is a dead loop.
const STUCK: Duration = Duration::from_secs(120);
/// From here down is the payment row of the simulated sheet.
const PAYMENT_TOP: i32 = 2118;

/// What is played.
#[derive(Debug, Clone)]
pub(crate) struct Play {
    pub(crate) goods_id: String,
    pub(crate) seed: u64,
    pub(crate) dump_time: Duration,
    pub(crate) scenario: Scenario,
    pub(crate) plan: FaultPlan,
    pub(crate) installed: bool,
    /// Begins when the flow enters that step.
    pub(crate) at_step: Option<(Step, Trouble)>,
    /// Every fault ends after so long.
    pub(crate) passes: Option<Duration>,
    /// A run that may not last longer.
    pub(crate) budget: Duration,
    /// After a run without data: end every fault, and run again on the same connection.
    pub(crate) again: bool,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    Fault(Fault),
    /// A layer of `resources/phone-sim/popups.toml`.
    Layer(&'static str),
    /// A shipped scenario, from the start.
    Scenario(&'static str),
    NotInstalled,
}

/// What came of one run.
#[derive(Debug)]
pub(crate) struct Run {
    /// `None`: over the budget.
    pub(crate) result: Option<Result<PddData, CollectError>>,
    pub(crate) took: Duration,
}

#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) first: Run,
    /// The run after the faults were ended, when one was asked for and needed.
    pub(crate) second: Option<Run>,
    pub(crate) orders: u32,
    pub(crate) payments: u32,
    /// Touches no reader may make.
    pub(crate) forbidden: Vec<String>,
    pub(crate) story: Vec<String>,
}

impl Run {
    pub(crate) fn code(&self) -> &'static str {
        match &self.result {
            None => "OVER_BUDGET",
            Some(Ok(_)) => "DATA",
            Some(Err(error)) => error.code(),
        }
    }
}

/// The goods of the named shop and 200 more.
pub(crate) fn shop() -> &'static Catalogue {
    static SHOP: OnceLock<Catalogue> = OnceLock::new();
    SHOP.get_or_init(|| Catalogue::seeded(7))
}

pub(crate) fn goods(id: &str) -> &'static Goods {
    shop().get(id).expect("the rows name goods of the shop")
}

/// The stopped clock, pauses in full.
struct StoppedClock;

#[async_trait]
impl FlowClock for StoppedClock {
    fn now(&self) -> WireTime {
        WireTime::new(jiff::Timestamp::UNIX_EPOCH)
    }
    fn instant(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
    async fn pause(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

struct Watch<'a> {
    sim: &'a Sim,
    at_step: Mutex<Option<(Step, Trouble)>>,
    story: Mutex<Vec<String>>,
}

impl Watch<'_> {
    fn tell(&self, line: String) {
        self.story.lock().expect("nobody panics with it").push(line);
    }
}

#[async_trait]
impl StepGate for Watch<'_> {
    async fn step(&self, step: Step) -> Result<(), Stop> {
        self.tell(format!("step {step}"));
        let mut due = self.at_step.lock().expect("nobody panics with it");
        if let Some((_, trouble)) = due.take_if(|(at, _)| *at == step) {
            match trouble {
                Trouble::Fault(fault) => self.sim.set_fault(fault),
                Trouble::Scenario(_) | Trouble::NotInstalled => {}
                Trouble::Layer(name) => assert!(self.sim.raise_popup(name), "the rows name layers that exist: {name}"),
            }
        }
        Ok(())
    }
    async fn before_action(&self) -> Result<(), Stop> {
        Ok(())
    }
    async fn captured(&self, _step: Step, capture: &Capture) {
        self.tell(format!("look {} {}", capture.verdict, capture.foreground));
    }
}

fn key() -> Arc<AdbKey> {
    static KEY: OnceLock<Arc<AdbKey>> = OnceLock::new();
    KEY.get_or_init(|| Arc::new(AdbKey::generate().expect("a key can be made"))).clone()
}

fn rules() -> &'static RulePack {
    static RULES: OnceLock<RulePack> = OnceLock::new();
    RULES.get_or_init(RulePack::builtin)
}

/// Plays it on a runtime of its own.
pub(crate) fn play(play: &Play) -> Played {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
    runtime.block_on(async {
        let config = SimConfig {
            dump_time: play.dump_time,
            catalogue: shop().clone(),
            pdd_installed: play.installed,
            seed: play.seed,
            scenario: play.scenario.clone(),
            plan: play.plan.clone(),
            ..SimConfig::default()
        };
        let sim = start(config).await.expect("a free local port");
        let phone = connect_direct(sim.addr(), key());
        let watch = Watch { sim: &sim, at_step: Mutex::new(play.at_step), story: Mutex::default() };
        let passing = async {
            match play.passes {
                Some(after) => tokio::time::sleep(after).await,
                None => std::future::pending().await,
            }
            sim.clear_faults();
            std::future::pending::<()>().await;
        };
        let first = tokio::select! {
            first = run(&*phone, play, &watch) => first,
            () = passing => unreachable!("it never ends"),
        };
        let mut second = None;
        if play.again && !matches!(first.result, Some(Ok(_))) {
            sim.play(FaultPlan::default());
            sim.clear_faults();
            watch.tell("every fault ended".to_owned());
            second = Some(run(&*phone, play, &watch).await);
        }
        let mut story = watch.story.into_inner().expect("nobody panics with it");
        story.extend(sim.journal().iter().map(|entry| format!("{entry:?}")));
        let played =
            Played { first, second, orders: sim.orders_created(), payments: sim.payments_accepted(), forbidden: forbidden(&sim), story };
        drop(phone);
        sim.stop().await;
        played
    })
}

async fn run(phone: &dyn Phone, play: &Play, watch: &Watch<'_>) -> Run {
    let ctx = CollectContext { phone, rules: rules(), clock: &StoppedClock, gate: watch };
    let task = CollectTask { goods_id: play.goods_id.parse().expect("ids of the shop are digits"), client_id: "client-test".into() };
    let began = tokio::time::Instant::now();
    let result = tokio::time::timeout(play.budget, collect(&ctx, &task)).await.ok();
    Run { result, took: began.elapsed() }
}

fn forbidden(sim: &Sim) -> Vec<String> {
    let journal = sim.journal();
    let bad = journal.iter().filter(|entry| {
        let JournalKind::Tap { y, .. } = entry.kind else { return false };
        let below = entry.screen.starts_with("sheet:") && y >= PAYMENT_TOP;
        below || ["购买", "拼单", "继续支付", "提交订单"].iter().any(|word| entry.hit.contains(word))
    });
    bad.map(|entry| format!("{entry:?}")).collect()
}

/// Plays many on two threads and hands each to `done` as it ends.
pub(crate) fn play_all<K: Clone + Send + Sync + std::fmt::Debug + 'static>(plays: Vec<(K, Play)>, mut done: impl FnMut(K, &Play, Played)) {
    let many = plays.len();
    let plays = Arc::new(plays);
    let next = Arc::new(AtomicUsize::new(0));
    let (ended, ends) = mpsc::channel();
    for _ in 0..2 {
        let (plays, next, ended) = (Arc::clone(&plays), Arc::clone(&next), ended.clone());
        std::thread::spawn(move || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some((_, one)) = plays.get(at) else { break };
                if ended.send((at, play(one))).is_err() {
                    break;
                }
            }
        });
    }
    drop(ended);
    let mut missing: Vec<bool> = vec![true; many];
    for _ in 0..many {
        let Ok((at, played)) = ends.recv_timeout(STUCK) else {
            let stuck: Vec<_> = (0..next.load(Ordering::Relaxed).min(many)).filter(|at| missing[*at]).map(|at| &plays[at].0).collect();
            panic!("no run came back for {STUCK:?}; in a dead loop or panicked: {stuck:?}");
        };
        missing[at] = false;
        let (name, one) = &plays[at];
        done(name.clone(), one, played);
    }
}
