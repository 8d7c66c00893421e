//! Devices that call, and how long it took them. It knows nothing of what they call.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Barrier;

use crate::Fallible;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Claim,
    Start,
    RunBeat,
    Result,
    Beat,
}

/// One device with its connection.
pub(crate) trait Desk {
    async fn call(&mut self, call: Call) -> Fallible<()>;
}

/// What was measured of one kind of call.
#[derive(Debug, Clone)]
pub(crate) struct Rate {
    pub(crate) call: Call,
    /// Sorted.
    pub(crate) took: Vec<Duration>,
    /// While at least one device had such a call under way.
    pub(crate) under_way: Duration,
}

impl Rate {
    pub(crate) fn per_s(&self) -> f64 {
        self.took.len() as f64 / self.under_way.as_secs_f64()
    }

    pub(crate) fn quantile_ms(&self, quantile: f64) -> f64 {
        let at = (self.took.len() as f64 * quantile) as usize;
        self.took.get(at.min(self.took.len().saturating_sub(1))).map_or(f64::NAN, |took| took.as_secs_f64() * 1000.0)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Rates(Vec<Rate>);

impl Rates {
    pub(crate) fn of(&self, call: Call) -> Option<&Rate> {
        self.0.iter().find(|rate| rate.call == call)
    }
}

/// What the devices of one measurement share.
struct Shared {
    calls: Vec<Call>,
    barrier: Barrier,
    began: Cell<Instant>,
    is_over: Cell<bool>,
    rates: RefCell<Vec<Rate>>,
}

fn empty(calls: &[Call]) -> Vec<Rate> {
    calls.iter().map(|&call| Rate { call, took: Vec::new(), under_way: Duration::ZERO }).collect()
}

/// Closed loop: all devices make the same call at once, as fast as they are answered, then all of them the next one. So each kind of call has
/// a rate of its own although a device must finish a task before it may claim another.
pub(crate) async fn rounds<D: Desk + 'static>(desks: Vec<D>, calls: &[Call], time: Duration) -> Fallible<(Vec<D>, Rates)> {
    let shared = Rc::new(Shared {
        calls: calls.to_vec(),
        barrier: Barrier::new(desks.len()),
        began: Cell::new(Instant::now()),
        is_over: Cell::new(false),
        rates: RefCell::new(empty(calls)),
    });
    let end = Instant::now() + time;
    let tasks: Vec<_> = desks.into_iter().map(|desk| tokio::task::spawn_local(in_rounds(desk, Rc::clone(&shared), end))).collect();
    let mut back = Vec::with_capacity(tasks.len());
    for task in tasks {
        back.push(task.await??);
    }
    Ok((back, sorted(shared.rates.take())))
}

async fn in_rounds<D: Desk>(mut desk: D, shared: Rc<Shared>, end: Instant) -> Fallible<D> {
    loop {
        for (at, &call) in shared.calls.iter().enumerate() {
            // The last to come is the first to go on: all run on one thread.
            if shared.barrier.wait().await.is_leader() {
                shared.began.set(Instant::now());
            }
            if shared.is_over.get() {
                return Ok(desk);
            }
            let began = Instant::now();
            // A failed call would leave the others waiting for ever, so it ends the program.
            if let Err(error) = desk.call(call).await {
                eprintln!("error: {call:?}: {error}");
                std::process::exit(2);
            }
            shared.rates.borrow_mut()[at].took.push(began.elapsed());
            if shared.barrier.wait().await.is_leader() {
                shared.rates.borrow_mut()[at].under_way += shared.began.get().elapsed();
                // Seen by the others only after the next barrier, which nobody has passed yet.
                shared.is_over.set(at + 1 == shared.calls.len() && Instant::now() >= end);
            }
        }
    }
}

/// Desk-like: each device makes all of `calls` in a row about once in `period`, at its own times.
pub(crate) async fn paced<D: Desk + 'static>(desks: Vec<D>, calls: &[Call], period: Duration, time: Duration) -> Fallible<Rates> {
    let (began, end) = (Instant::now(), Instant::now() + time);
    let tasks: Vec<_> = desks
        .into_iter()
        .map(|mut desk| {
            let calls = calls.to_vec();
            tokio::task::spawn_local(async move {
                let mut rates = empty(&calls);
                let mut at = Instant::now() + period.mul_f64(rand::random::<f64>());
                while at < end {
                    tokio::time::sleep_until(at.into()).await;
                    for rate in &mut rates {
                        let began = Instant::now();
                        desk.call(rate.call).await?;
                        rate.took.push(began.elapsed());
                    }
                    at += period.mul_f64(0.5 + rand::random::<f64>());
                }
                Fallible::Ok(rates)
            })
        })
        .collect();
    let mut all = empty(calls);
    for task in tasks {
        for (all, one) in all.iter_mut().zip(task.await??) {
            all.took.extend(one.took);
        }
    }
    for rate in &mut all {
        rate.under_way = began.elapsed();
    }
    Ok(sorted(all))
}

fn sorted(mut rates: Vec<Rate>) -> Rates {
    rates.iter_mut().for_each(|rate| rate.took.sort_unstable());
    Rates(rates)
}
