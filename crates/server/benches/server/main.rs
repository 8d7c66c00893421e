//! `scripts/bench server`: how fast the server hands out tasks, next to PostgreSQL's `SELECT ... FOR UPDATE SKIP LOCKED` in the same run.
//!
//! Both sides are called the same way: HTTP/1.1 over loopback, one connection kept open per device, client and server on this machine.
//! Both check the token and claim in one transaction; ours is the whole server, with request bodies and log lines, the peer's front has neither.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the report is what this program is for")]

mod drive;
mod front;
mod http;
mod ours;
mod peer;
mod report;
mod seed;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use drive::{Call, Desk, Rates, paced, rounds};
use report::{Point, Report};

pub(crate) type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Most devices of a run.
pub(crate) const DEVICES: usize = 100;
const CROWDS: [usize; 3] = [1, 10, DEVICES];

struct Plan {
    pending: u64,
    /// Finished tasks in the tables, step by step; the last step gets the whole measurement.
    finished: &'static [u64],
    closed: Duration,
    warm_up: Duration,
    paces: [Pace; 2],
}

/// How often each device takes a task, and for how long that is watched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) period: Duration,
    time: Duration,
    /// The goal is one for this pace.
    pub(crate) is_judged: bool,
}

/// Still several times what a phone can do: reading one goods page takes it longer than this.
const DESK: Pace = Pace { period: Duration::from_secs(4), time: Duration::from_secs(60), is_judged: true };
/// What no hundred phones ask for: 800 writes a second.
const RUSH: Pace = Pace { period: Duration::from_millis(500), time: Duration::from_secs(30), is_judged: false };

const FULL: Plan = Plan {
    pending: 100_000,
    finished: &[0, 100_000, 1_000_000],
    closed: Duration::from_secs(8),
    warm_up: Duration::from_secs(2),
    paces: [DESK, RUSH],
};
const QUICK: Plan = Plan {
    pending: 40_000,
    finished: &[0, 20_000],
    closed: Duration::from_secs(2),
    warm_up: Duration::from_millis(300),
    paces: [Pace { time: Duration::from_secs(5), ..DESK }, Pace { time: Duration::from_secs(5), ..RUSH }],
};

struct Asked {
    quick: bool,
    dir: PathBuf,
    peer: Option<String>,
}

fn asked() -> Fallible<Asked> {
    let mut asked = Asked { quick: false, dir: std::env::temp_dir(), peer: None };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--quick" => asked.quick = true,
            "--dir" => asked.dir = value()?.into(),
            "--peer" => asked.peer = Some(value()?),
            // `cargo bench` always says so.
            "--bench" => {}
            _ => return Err(format!("unknown argument {arg}; known: --quick, --dir FOLDER, --peer CONNECTION").into()),
        }
    }
    Ok(asked)
}

fn main() -> Fallible<ExitCode> {
    let asked = asked()?;
    // The server formats its log lines as it would in the field; only the disk is spared.
    tracing_subscriber::fmt().json().with_max_level(tracing::Level::INFO).with_writer(std::io::sink).init();
    let plan = if asked.quick { QUICK } else { FULL };
    // One thread drives all devices, so that most of the machine is left to the two servers.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = tokio::task::LocalSet::new().block_on(&runtime, measure(&asked, &plan))?;
    report.print();
    if asked.quick {
        println!("quick: too small and too short to judge by");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(if report.verdict() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn measure(asked: &Asked, plan: &Plan) -> Fallible<Report> {
    let dir = tempfile::tempdir_in(&asked.dir)?;
    let ours = ours::Ours::new(dir.path())?;
    let peer = match &asked.peer {
        Some(connection) => Some(peer::Peer::new(connection).await?),
        None => None,
    };
    let mut report = Report::default();
    for (step, &finished) in plan.finished.iter().enumerate() {
        eprintln!("seeding: {} pending, {finished} finished", plan.pending);
        ours.seed(plan.pending, finished)?;
        if let Some(peer) = &peer {
            peer.seed(plan.pending, finished).await?;
        }
        // What seeding left for the kernel to write must not be charged to whoever is measured first.
        std::process::Command::new("sync").status()?;
        let server = ours.open()?;
        let front = match &peer {
            Some(peer) => Some(peer.open().await?),
            None => None,
        };
        let is_last = step + 1 == plan.finished.len();
        if is_last {
            // First, while all the pending tasks are there.
            for pace in plan.paces {
                let cycle = [Call::Claim, Call::Start, Call::RunBeat, Call::Result];
                let (desks, _) = rounds(server.desks(DEVICES).await?, &cycle, plan.warm_up).await?;
                let ours = paced(desks, &cycle, pace.period, pace.time).await?;
                let mut point = Point { finished, crowd: DEVICES, ours, peer: None };
                if let Some(front) = &front {
                    let cycle = [Call::Claim, Call::Result];
                    let (desks, _) = rounds(front.desks(DEVICES).await?, &cycle, plan.warm_up).await?;
                    point.peer = Some(paced(desks, &cycle, pace.period, pace.time).await?);
                }
                eprintln!("{point}");
                report.paced.push((pace, point));
            }
        }
        for crowd in CROWDS.into_iter().filter(|&crowd| is_last || crowd != 10) {
            let our_calls = [Call::Claim, Call::Start, Call::RunBeat, Call::Result, Call::Beat];
            let mut point = Point { finished, crowd, ours: closed(plan, server.desks(crowd).await?, &our_calls).await?, peer: None };
            if let Some(front) = &front {
                point.peer = Some(closed(plan, front.desks(crowd).await?, &[Call::Claim, Call::Result]).await?);
            }
            eprintln!("{point}");
            report.closed.push(point);
        }
        server.close()?;
        if let Some(front) = front {
            front.close()?;
        }
    }
    Ok(report)
}

async fn closed<D: Desk + 'static>(plan: &Plan, desks: Vec<D>, calls: &[Call]) -> Fallible<Rates> {
    let (desks, _) = rounds(desks, calls, plan.warm_up).await?;
    Ok(rounds(desks, calls, plan.closed).await?.1)
}
