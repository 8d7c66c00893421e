//! The configurations: each small enough to be searched completely, each about one part of the rules.

use crate::client::{Doing, Slip};
use crate::spec::{Answer, End, No, Rules, Status, Time};
use crate::world::{Office, Scene, Setup, Sight, World};

/// Ticks instead of minutes: a claim lives two, a run one.
const RULES: Rules = Rules { claim_lease: 2, run_lease: 1, heartbeat_ttl: 1_000, released_for: 2, broken: None };
const COLLECT: bool = false;
const PURCHASE: bool = true;

const EMPTY: Setup = Setup {
    name: "",
    rules: RULES,
    tasks: &[COLLECT],
    created: 0,
    office: &[],
    last: 2,
    doing: [&[], &[]],
    keys: [0, 0],
    slips: &[],
    crashes: 0,
    copies: 1,
    flying: 2,
    beats: false,
    sights: &[],
};

fn answered(scene: &Scene, seen: impl Fn(&Answer) -> bool) -> bool {
    scene.replies.iter().any(|reply| seen(&reply.answer))
}

fn refused(scene: &Scene, no: No) -> bool {
    answered(scene, |answer| matches!(answer, Answer::No(said, _) if *said == no))
}

fn ended(scene: &Scene, status: Status) -> bool {
    scene.server.tasks.iter().any(|task| task.status == status)
}

fn ran_out(scene: &Scene, status: Status) -> bool {
    let is_over = |lease: Time| lease <= scene.now;
    scene.server.tasks.iter().any(|task| task.status == status && task.lease.is_some_and(is_over))
}

const SUCCEEDS: Sight = ("a task succeeds", |_, scene| ended(scene, Status::Succeeded));
const FAILS: Sight = ("a task fails", |_, scene| ended(scene, Status::Failed));
const CANCELED: Sight = ("a task is cancelled", |_, scene| ended(scene, Status::Canceled));
const WAITS: Sight = ("a task waits for a person", |_, scene| ended(scene, Status::Waiting));
const CLAIM_EXPIRES: Sight = ("a claim runs out", |_, scene| ran_out(scene, Status::Claimed));
const RUN_EXPIRES: Sight = ("a run lease runs out", |_, scene| ran_out(scene, Status::Running));
const RECLAIMED: Sight = ("a task is claimed twice", |_, scene| scene.server.tasks.iter().any(|task| task.generation == 2));
const REPLAY_EXPIRES: Sight = ("a replay comes too late", |_, scene| refused(scene, No::ClaimReplayExpired));
const NO_TASK: Sight = ("there is no task", |_, scene| answered(scene, |answer| *answer == Answer::NoTask));
const NO_TASK_STAYS: Sight = ("there is no task although one is pending", |_, scene| {
    answered(scene, |answer| *answer == Answer::NoTask) && ended(scene, Status::Pending)
});
const LEASE_REFUSED: Sight = ("a call comes after its lease", |_, scene| refused(scene, No::LeaseExpired));
const LATE: Sight = ("a result is late", |_, scene| scene.server.results.values().any(|stored| stored.late));
const DUPLICATE: Sight = ("a result comes twice", |_, scene| scene.server.results.values().any(|stored| stored.duplicates > 0));
const BUSY: Sight = ("a device is busy", |_, scene| refused(scene, No::DeviceBusy));
const BOTH_OPERATE: Sight = ("both devices operate, each its own task", |_, scene| {
    scene.clients.iter().all(|client| client.operates.is_some_and(|(_, until)| scene.now < until))
});
const OPERATES: Sight = ("a device operates", |_, scene| scene.clients.iter().any(|client| client.operates.is_some()));
const ACK_PENDING: Sight = ("a cancel waits for its acknowledgement", |_, scene| {
    scene.server.tasks.iter().any(|task| task.cancel_requested && task.status.is_open())
});
const RECOLLECTS: Sight = ("a finished task is looked at again", |_, scene| scene.server.tasks.iter().any(|task| task.recollecting));
const IN_USE: Sight = ("a device is in use", |_, scene| refused(scene, No::DeviceInUse));
const NOT_READY: Sight = ("a device is not ready", |_, scene| refused(scene, No::DeviceNotReady));
const MARKED: Sight = ("an order may exist", |_, scene| scene.server.tasks.iter().any(|task| task.order_may_exist));
const MARKED_CANCEL: Sight = ("a cancel meets an order that may exist", |_, scene| {
    scene.server.tasks.iter().any(|task| task.order_may_exist && task.cancel_requested && !task.status.is_terminal())
});

use Doing::{Ack, Claim, Heartbeat, Recollect, Release, Report, Resume, Start};

const BEAT: Doing = Heartbeat { placing: false };
const PLACE: Doing = Heartbeat { placing: true };

/// Who gets which task: replays, 204, release, claims that run out.
pub(crate) fn claim() -> Setup {
    Setup {
        name: "claim",
        last: 2,
        created: 1,
        doing: [&[Claim, Release], &[Claim]],
        keys: [3, 1],
        slips: &[Slip::Key],
        sights: &[RECLAIMED, CLAIM_EXPIRES, REPLAY_EXPIRES, NO_TASK, NO_TASK_STAYS],
        ..EMPTY
    }
}

/// One task from claim through start and heartbeats to a lost lease, with a second device after it.
pub(crate) fn run() -> Setup {
    Setup {
        name: "run",
        rules: Rules { claim_lease: 1, run_lease: 2, ..RULES },
        last: 2,
        doing: [&[Claim, Start, BEAT, Resume], &[Claim]],
        keys: [3, 1],
        crashes: 1,
        sights: &[OPERATES, RUN_EXPIRES, CLAIM_EXPIRES, RECLAIMED, LEASE_REFUSED],
        copies: 0,
        ..EMPTY
    }
}

/// Two devices that both run, and claim what the other lost before its start.
pub(crate) fn steal() -> Setup {
    Setup {
        name: "steal",
        rules: Rules { claim_lease: 1, run_lease: 1, ..RULES },
        tasks: &[COLLECT, COLLECT],
        last: 2,
        doing: [&[Claim, Start], &[Claim, Start]],
        keys: [2, 2],
        copies: 0,
        flying: 2,
        crashes: 1,
        sights: &[BOTH_OPERATE, RECLAIMED, LEASE_REFUSED],
        slips: &[Slip::Token, Slip::Version, Slip::Again],
        ..EMPTY
    }
}

/// One device, two tasks, one slot.
pub(crate) fn slot() -> Setup {
    Setup {
        name: "slot",
        tasks: &[COLLECT, COLLECT],
        last: 1,
        doing: [&[Claim, Start, Resume, Report(End::ManualReview)], &[]],
        keys: [4, 0],
        slips: &[Slip::Forgetful],
        copies: 0,
        sights: &[BUSY, WAITS],
        flying: 1,
        ..EMPTY
    }
}

/// An administrator cancels and closes while the device works.
pub(crate) fn cancel() -> Setup {
    Setup {
        name: "cancel",
        office: &[Office::Cancel, Office::Close { checked: false }],
        last: 1,
        doing: [&[Claim, Start, BEAT, Ack, Report(End::Cancelled), Report(End::Succeeded)], &[]],
        keys: [3, 0],
        slips: &[Slip::Ack],
        copies: 1,
        crashes: 0,
        sights: &[ACK_PENDING, CANCELED, FAILS, SUCCEEDS, LATE],
        ..EMPTY
    }
}

/// Results: late, twice, from an old claim, from an old attempt.
pub(crate) fn results() -> Setup {
    Setup {
        name: "results",
        rules: Rules { claim_lease: 1, ..RULES },
        last: 1,
        doing: [&[Claim, Start, Resume, Report(End::Failed), Report(End::ManualReview)], &[Claim]],
        keys: [3, 1],
        crashes: 0,
        sights: &[FAILS, WAITS, LATE, DUPLICATE, RECLAIMED],
        copies: 0,
        ..EMPTY
    }
}

/// A finished task is looked at again.
pub(crate) fn recollect() -> Setup {
    Setup {
        name: "recollect",
        last: 1,
        doing: [&[Claim, Start, BEAT, Recollect, Report(End::Succeeded)], &[]],
        keys: [3, 0],
        crashes: 0,
        sights: &[SUCCEEDS, RECOLLECTS, DUPLICATE, LATE],
        copies: 0,
        ..EMPTY
    }
}

/// D10: from `placing_order` on an order may exist.
pub(crate) fn order() -> Setup {
    Setup {
        name: "order",
        tasks: &[PURCHASE],
        office: &[Office::Cancel, Office::Close { checked: false }, Office::Close { checked: true }],
        last: 1,
        doing: [&[Claim, Start, PLACE, BEAT, Ack, Report(End::Cancelled)], &[]],
        keys: [3, 0],
        sights: &[MARKED, MARKED_CANCEL, CANCELED, WAITS, FAILS],
        copies: 0,
        flying: 2,
        crashes: 1,
        ..EMPTY
    }
}

/// D19: heartbeats; the first device's folder was copied, so it has two instances.
pub(crate) fn devices() -> Setup {
    Setup {
        name: "devices",
        rules: Rules { heartbeat_ttl: 1, ..RULES },
        beats: true,
        last: 2,
        doing: [&[Claim, Start], &[Claim]],
        keys: [1, 1],
        copies: 0,
        flying: 1,
        sights: &[IN_USE, NOT_READY, RECLAIMED],
        ..EMPTY
    }
}

pub(crate) const ALL: [fn() -> Setup; 9] = [claim, run, steal, slot, cancel, results, recollect, order, devices];

/// The model as it is, or with one rule left out.
pub(crate) fn world(setup: fn() -> Setup, broken: Option<crate::spec::Mutation>) -> World {
    let mut setup = setup();
    setup.rules.broken = broken;
    World { setup }
}
