//! The table, the ratios and the verdict.

use std::fmt;

use crate::drive::{Call, Rate, Rates};
use crate::{DEVICES, Pace};

const GOAL_MS: f64 = 5.0;

/// Both sides at one crowd and one size of the tables.
pub(crate) struct Point {
    pub(crate) finished: u64,
    pub(crate) crowd: usize,
    pub(crate) ours: Rates,
    pub(crate) peer: Option<Rates>,
}

impl Point {
    fn ours(&self, call: Call) -> Option<&Rate> {
        self.ours.of(call)
    }

    fn peer(&self, call: Call) -> Option<&Rate> {
        self.peer.as_ref().and_then(|peer| peer.of(call))
    }

    /// Claims a second, ours over the peer's.
    fn ratio(&self) -> Option<f64> {
        Some(self.ours(Call::Claim)?.per_s() / self.peer(Call::Claim)?.per_s())
    }
}

fn cell(rate: Option<&Rate>) -> String {
    rate.map_or_else(
        || format!("{:>8} {:>9} {:>9}", "-", "-", "-"),
        |rate| format!("{:>8.0} {:>9.2} {:>9.2}", rate.per_s(), rate.quantile_ms(0.5), rate.quantile_ms(0.99)),
    )
}

fn times(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| format!("{:>7}", "-"), |ratio| format!("{ratio:>6.2}x"))
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ours, peer) = (cell(self.ours(Call::Claim)), cell(self.peer(Call::Claim)));
        write!(f, "{:>8} {:>8}  {ours}  {peer}  {}", self.finished, self.crowd, times(self.ratio()))
    }
}

#[derive(Default)]
pub(crate) struct Report {
    pub(crate) closed: Vec<Point>,
    pub(crate) paced: Vec<(Pace, Point)>,
}

impl Report {
    pub(crate) fn print(&self) {
        let head = "    /s    P50 ms    P99 ms";
        println!("\nBoth sides: HTTP/1.1 over loopback, one kept connection a device, fsync on every commit, client on the same machine.");
        println!(
            "Ours is the whole server, with request bodies and log lines. The peer is the same claim behind an HTTP front with neither:"
        );
        println!(
            "PostgreSQL, token check and SELECT ... FOR UPDATE SKIP LOCKED, prepared, two pipelined round trips, one connection a device."
        );
        println!("\nClaims, closed loop");
        println!("finished  devices   ours{head}   peer{head}   ratio");
        for point in &self.closed {
            println!("{point}");
        }
        println!("\nEvery call of ours, closed loop, at the most finished tasks");
        println!("devices        call  {head}");
        let most = self.closed.iter().map(|point| point.finished).max();
        for point in self.closed.iter().filter(|point| Some(point.finished) == most) {
            for (call, name) in [
                (Call::Claim, "claim"),
                (Call::Start, "start"),
                (Call::RunBeat, "run heartbeat"),
                (Call::Beat, "device heartbeat"),
                (Call::Result, "result"),
            ] {
                println!("{:>7} {name:>18} {}", point.crowd, cell(point.ours(call)));
            }
        }
        for (pace, point) in &self.paced {
            println!(
                "\nPaced: {DEVICES} devices, each about a task in {} s (ours: claim, start, run heartbeat, result; peer: claim, finish)",
                pace.period.as_secs_f32()
            );
            println!("{:>10} {}   {}", "ours claim", cell(point.ours(Call::Claim)), cell(point.ours(Call::Result)));
            println!("{:>10} {}   {}", "peer claim", cell(point.peer(Call::Claim)), cell(point.peer(Call::Result)));
            println!("{:>10} {:>26}   {:>28}", "", "claim: /s, P50, P99", "result: /s, P50, P99");
        }
        println!("\nCost of a claim over finished tasks, {DEVICES} devices (1 = with the fewest finished)");
        for (name, is_ours) in [("ours", true), ("peer", false)] {
            let costs = self.costs(is_ours);
            let first = costs.first().map_or(f64::NAN, |(_, cost)| *cost);
            let cells: Vec<_> = costs.iter().map(|(finished, cost)| format!("{finished}: {cost:.0} us ({:.2})", cost / first)).collect();
            println!("{name:>10} {}", cells.join("   "));
        }
        println!();
    }

    /// Finished tasks, microseconds a claim.
    fn costs(&self, is_ours: bool) -> Vec<(u64, f64)> {
        let crowded = self.closed.iter().filter(|point| point.crowd == DEVICES);
        let rate = |point: &Point| if is_ours { point.ours(Call::Claim).cloned() } else { point.peer(Call::Claim).cloned() };
        crowded.filter_map(|point| Some((point.finished, 1e6 / rate(point)?.per_s()))).collect()
    }

    /// Says what was missed.
    pub(crate) fn verdict(&self) -> bool {
        let mut is_fine = true;
        let mut judge = |fine: bool, what: String| {
            println!("{} {what}", if fine { "met   " } else { "MISSED" });
            is_fine &= fine;
        };
        for (pace, point) in self.paced.iter().filter(|(pace, _)| pace.is_judged) {
            let p99 = |rate: Option<&Rate>| rate.map(|rate| rate.quantile_ms(0.99));
            let every = pace.period.as_secs_f32();
            if let Some(ours) = p99(point.ours(Call::Claim)) {
                judge(ours < GOAL_MS, format!("claim P99 under {GOAL_MS} ms at {DEVICES} devices, a task in {every} s each: {ours:.2} ms"));
                if let Some(peer) = p99(point.peer(Call::Claim)) {
                    judge(ours < peer, format!("claim P99 ahead of the peer at that pace: {ours:.2} ms to {peer:.2} ms"));
                }
            }
        }
        for point in &self.closed {
            if let Some(ratio) = point.ratio() {
                judge(
                    ratio > 1.0,
                    format!("ahead of the peer with {} devices and {} finished tasks: {ratio:.2}x", point.crowd, point.finished),
                );
            }
        }
        is_fine
    }
}
