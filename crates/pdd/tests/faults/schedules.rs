//! Random schedules of faults over a collect run: the truth or a typed error, in time, and never an order.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use cmautobuy_pdd::Verdict;
use cmautobuy_phone_sim::{FaultPlan, Scenario};

use crate::rig::{Play, Played, play_all, shop};
use crate::truth::differences;

/// The flow's own limit is 15 minutes; the look that goes over it and the last picture come on top.
const BUDGET: Duration = Duration::from_secs(16 * 60);
const DEFAULT: u64 = 150;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn schedule(seed: u64) -> Play {
    let goods = &shop().goods;
    Play {
        goods_id: goods[(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) as usize % goods.len()].goods_id.clone(),
        seed,
        dump_time: Duration::from_millis(350),
        scenario: Scenario::default(),
        plan: FaultPlan::random(seed),
        installed: true,
        at_step: None,
        passes: None,
        budget: BUDGET,
        again: false,
    }
}

/// What is wrong with how a schedule ended.
fn wrong(play: &Play, played: &Played) -> Vec<String> {
    let mut wrong = Vec::new();
    let goods = crate::rig::goods(&play.goods_id);
    match &played.first.result {
        None => wrong.push(format!("over the budget of {BUDGET:?}")),
        Some(Ok(_)) if goods.sold_out || goods.removed => wrong.push("data of goods that cannot be had".to_owned()),
        Some(Ok(data)) => wrong.extend(differences(goods, data)),
        Some(Err(error)) => {
            if !crate::CODES.contains(&error.code()) {
                wrong.push(format!("a code the engine does not know: {}", error.code()));
            }
            if error.verdict() == Verdict::Stopped {
                wrong.push("stopped although nobody asked for it".to_owned());
            }
            let gone = matches!(error.code(), "GOODS_SOLD_OUT" | "GOODS_REMOVED");
            if gone && !(goods.sold_out || goods.removed) && !format!("{:?}", play.plan).contains("WrongGoods") {
                wrong.push(format!("{} of goods that can be had", error.code()));
            }
        }
    }
    if (played.orders, played.payments) != (0, 0) {
        wrong.push(format!("{} orders, {} payments", played.orders, played.payments));
    }
    wrong.extend(played.forbidden.iter().map(|touch| format!("a forbidden touch: {touch}")));
    wrong
}

#[expect(clippy::print_stdout, reason = "what the schedules came to belongs in the log")]
#[test]
fn random_schedules_end_in_the_truth_or_in_a_typed_error() {
    let (from, many) = (number("CMAUTOBUY_SCHEDULE_FROM", 1), number("CMAUTOBUY_SCHEDULES", DEFAULT));
    let began = Instant::now();
    let mut ends: BTreeMap<String, u64> = BTreeMap::new();
    let mut longest = Duration::ZERO;
    let mut findings = Vec::new();
    let plays = (from..from + many).map(|seed| (seed, schedule(seed))).collect();
    play_all(plays, |seed, play, played| {
        *ends.entry(played.first.code().to_owned()).or_default() += 1;
        longest = longest.max(played.first.took);
        let wrong = wrong(play, &played);
        if std::env::var_os("CMAUTOBUY_SCHEDULE_STORY").is_some() || many == 1 {
            println!(
                "{seed} {} {:?} {:?}\n{:#?}\n{:?}",
                played.first.code(),
                played.first.took,
                play.plan.rules,
                played.story,
                played.first.result
            );
        }
        if !wrong.is_empty() {
            let line = format!("CMAUTOBUY_SCHEDULE_FROM={seed} CMAUTOBUY_SCHEDULES=1  {} {:?}: {wrong:?}", play.goods_id, play.plan.rules);
            println!("{line}");
            findings.push(line);
        }
    });
    println!("{many} schedules from seed {from} in {:?}, the longest run {longest:?}: {ends:?}", began.elapsed());
    assert!(findings.is_empty(), "a schedule must end in the truth or in a typed error; play one again with:\n{}", findings.join("\n"));
}
