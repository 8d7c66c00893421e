//! The model: one server that follows [`crate::spec`], two devices, a network that loses, repeats and reorders, crashes, a clock that jumps, an
//! administrator. Everything is bounded, so the checker visits every reachable state.

use std::collections::BTreeSet;

use stateright::{Model, Property};

use crate::client::{Client, Doing, Slip};
use crate::judge::{Case, Flaw, Witness, invariants};
use crate::spec::step::step;
use crate::spec::{Answer, Ask, Beat, Call, Device, DeviceNo, Report, Rules, State, Task, Time};

pub(crate) const DEVICES: usize = 2;

/// What an administrator may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Office {
    Cancel,
    Close { checked: bool },
}

/// Something that must be reachable, so that the model is not empty.
pub(crate) type Sight = (&'static str, fn(&World, &Scene) -> bool);

/// One focused model and its bounds.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    pub(crate) rules: Rules,
    /// Whether each task of the start is a purchase.
    pub(crate) tasks: &'static [bool],
    /// Tasks an administrator adds later.
    pub(crate) created: usize,
    pub(crate) office: &'static [Office],
    /// The clock stops here.
    pub(crate) last: Time,
    pub(crate) doing: [&'static [Doing]; DEVICES],
    /// Keys each device may make.
    pub(crate) keys: [u16; DEVICES],
    pub(crate) slips: &'static [Slip],
    pub(crate) crashes: u8,
    /// Requests that may arrive twice.
    pub(crate) copies: u8,
    /// Messages of one device under way at the same time.
    pub(crate) flying: usize,
    /// Whether device heartbeats are part of it; otherwise both devices are ready all the time.
    pub(crate) beats: bool,
    pub(crate) sights: &'static [Sight],
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Request {
    pub(crate) call: Call,
    pub(crate) sent: Time,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Reply {
    pub(crate) request: Request,
    pub(crate) answer: Answer,
    pub(crate) answered: Time,
}

/// Everything at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Scene {
    pub(crate) now: Time,
    pub(crate) server: State,
    pub(crate) clients: [Client; DEVICES],
    pub(crate) requests: BTreeSet<Request>,
    pub(crate) replies: BTreeSet<Reply>,
    pub(crate) crashes: u8,
    pub(crate) copies: u8,
    pub(crate) slipped: bool,
    pub(crate) witness: Witness,
    /// What the last call broke.
    pub(crate) flaw: Option<Flaw>,
}

/// What becomes of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Heard,
    Lost,
    /// It stays under way while other things happen.
    Slow,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Begin(DeviceNo, Doing),
    Resend(DeviceNo),
    ResendResult(DeviceNo, Report),
    /// The server handles a request; `copied` leaves it in the network.
    Deliver {
        request: Request,
        copied: bool,
        answer: Fate,
    },
    Lose(Request),
    Receive(Reply),
    Crash(DeviceNo),
    Tick,
    Office(Ask),
    Slip(DeviceNo, Slip),
    Beat(DeviceNo, u8),
}

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) setup: Setup,
}

impl World {
    fn serve(&self, scene: &mut Scene, call: &Call) -> Answer {
        let (after, answer) = step(&scene.server, &self.setup.rules, scene.now, call);
        let case = Case { rules: &self.setup.rules, now: scene.now, before: &scene.server, after: &after, call, answer: &answer };
        scene.flaw = scene.witness.judge(&case);
        scene.server = after;
        // How often a result came again is only counted: more than once tells nothing new and would never end.
        scene.server.results.values_mut().for_each(|stored| stored.duplicates = stored.duplicates.min(1));
        answer
    }

    fn has_room(&self, scene: &Scene, device: DeviceNo) -> bool {
        let requests = scene.requests.iter().filter(|request| request.call.device == device).count();
        let replies = scene.replies.iter().filter(|reply| reply.request.call.device == device).count();
        requests + replies < self.setup.flying
    }

    /// Only an answer that lets the phone be operated is measured from when it was asked for.
    fn is_timed(ask: &Ask) -> bool {
        matches!(ask, Ask::Start { .. } | Ask::Heartbeat { .. } | Ask::Resume { .. })
    }

    fn send(scene: &mut Scene, device: DeviceNo, ask: Ask) -> Option<()> {
        let sent = if Self::is_timed(&ask) { scene.now } else { 0 };
        let request = Request { call: Call { device, ask }, sent };
        let answered = scene.replies.iter().any(|reply| reply.request == request);
        (!answered && scene.requests.insert(request)).then_some(())
    }

    fn office(&self, scene: &Scene) -> Vec<Ask> {
        let mut asks = Vec::new();
        if scene.server.tasks.len() < self.setup.tasks.len() + self.setup.created {
            asks.push(Ask::Create { purchase: false });
        }
        for (task, row) in scene.server.tasks.iter().enumerate().filter(|(_, row)| !row.status.is_terminal()) {
            for office in self.setup.office {
                match office {
                    Office::Cancel if !row.cancel_requested => asks.push(Ask::Cancel { task }),
                    Office::Cancel => {}
                    Office::Close { checked } => asks.push(Ask::Close { task, version: row.version, checked: *checked }),
                }
            }
        }
        asks
    }
}

impl Model for World {
    type State = Scene;
    type Action = Action;

    fn init_states(&self) -> Vec<Scene> {
        let beat = |n: u8| Beat { at: 0, instance: 0, serial: n, ready: true };
        let device = |n: u8| Device { beat: (!self.setup.beats).then(|| beat(n)), rival: None };
        let server = State {
            tasks: self.setup.tasks.iter().map(|purchase| Task::new(*purchase)).collect(),
            devices: vec![device(0), device(1)],
            ..State::default()
        };
        vec![Scene {
            now: 0,
            server,
            clients: [Client::default(), Client::default()],
            requests: BTreeSet::new(),
            replies: BTreeSet::new(),
            crashes: self.setup.crashes,
            copies: self.setup.copies,
            slipped: false,
            witness: Witness::default(),
            flaw: None,
        }]
    }

    fn actions(&self, scene: &Scene, actions: &mut Vec<Action>) {
        for (device, client) in scene.clients.iter().enumerate() {
            if self.has_room(scene, device) {
                actions.extend(self.setup.doing[device].iter().map(|doing| Action::Begin(device, *doing)));
                if client.open.is_some() {
                    actions.push(Action::Resend(device));
                }
                actions.extend(client.outbox.iter().map(|report| Action::ResendResult(device, report.clone())));
            }
            // With nothing in memory a crash is no more than a lost answer.
            if scene.crashes > 0 && client.operates.is_some() {
                actions.push(Action::Crash(device));
            }
            if !scene.slipped {
                actions.extend(self.setup.slips.iter().map(|slip| Action::Slip(device, *slip)));
            }
            if self.setup.beats {
                // Only the first device was copied: it has two instances.
                actions.extend((0..=u8::from(device == 0)).map(|instance| Action::Beat(device, instance)));
            }
        }
        for request in &scene.requests {
            let deliver = |copied, answer| Action::Deliver { request: request.clone(), copied, answer };
            actions.extend([deliver(false, Fate::Heard), deliver(false, Fate::Lost), Action::Lose(request.clone())]);
            if scene.replies.is_empty() {
                actions.push(deliver(false, Fate::Slow));
            }
            if scene.copies > 0 {
                actions.push(deliver(true, Fate::Heard));
            }
        }
        actions.extend(scene.replies.iter().cloned().map(Action::Receive));
        actions.extend(self.office(scene).into_iter().map(Action::Office));
        if scene.now < self.setup.last {
            actions.push(Action::Tick);
        }
    }

    fn next_state(&self, last: &Scene, action: Action) -> Option<Scene> {
        let mut scene = last.clone();
        scene.flaw = None;
        match action {
            Action::Begin(device, doing) => {
                let ask = scene.clients[device].begin(device, doing, scene.now)?;
                if scene.clients[device].made > self.setup.keys[device] {
                    return None;
                }
                Self::send(&mut scene, device, ask)?;
            }
            Action::Resend(device) => {
                let ask = scene.clients[device].open.clone()?;
                Self::send(&mut scene, device, ask)?;
            }
            Action::ResendResult(device, report) => Self::send(&mut scene, device, Ask::Report(report))?,
            Action::Deliver { request, copied, answer: fate } => {
                let answer = self.serve(&mut scene, &request.call);
                if copied {
                    scene.copies -= 1;
                } else {
                    scene.requests.remove(&request);
                }
                match fate {
                    Fate::Heard => scene.clients[request.call.device].hear(&request.call.ask, request.sent, &answer, scene.now),
                    Fate::Lost => {}
                    Fate::Slow => {
                        let answered = if Self::is_timed(&request.call.ask) { scene.now } else { 0 };
                        scene.replies.insert(Reply { request, answer, answered });
                    }
                }
            }
            Action::Lose(request) => {
                scene.requests.remove(&request);
            }
            Action::Receive(reply) => {
                scene.replies.remove(&reply);
                let Reply { request: Request { call, sent }, answer, answered } = reply;
                scene.clients[call.device].hear(&call.ask, sent, &answer, answered);
            }
            Action::Crash(device) => {
                scene.crashes -= 1;
                scene.clients[device].crash();
                scene.replies.retain(|reply| reply.request.call.device != device);
            }
            Action::Tick => {
                scene.now += 1;
                for client in &mut scene.clients {
                    client.operates = client.operates.filter(|(_, until)| scene.now < *until);
                }
            }
            Action::Office(ask) => {
                self.serve(&mut scene, &Call { device: 0, ask });
            }
            Action::Slip(device, slip) => {
                let ask = scene.clients[device].slip(slip)?;
                self.serve(&mut scene, &Call { device, ask });
                scene.slipped = scene.server != last.server;
            }
            Action::Beat(device, instance) => {
                let serial = u8::try_from(device).unwrap_or(0);
                self.serve(&mut scene, &Call { device, ask: Ask::Beat { instance, predecessor: None, serial, ready: true } });
            }
        }
        Some(scene)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = invariants();
        all.extend([
            Property::always(ONE_OPERATES, |_, scene: &Scene| {
                let operating = |task| scene.clients.iter().filter(|client| client.operates(task, scene.now)).count();
                (0..scene.server.tasks.len()).all(|task| operating(task) <= 1)
            }),
            Property::always(ONE_SLOT, |_, scene: &Scene| {
                let held = |device| scene.server.tasks.iter().filter(|task| task.takes_slot_of(device, scene.now)).count();
                (0..DEVICES).all(|device| held(device) <= 1)
            }),
            Property::always(ONE_EXECUTION, |_, scene: &Scene| scene.server.executions.values().all(|times| *times == 1)),
            Property::always(NOTHING_LOST, |_, scene: &Scene| {
                let mut delivered = scene.clients.iter().flat_map(|client| &client.delivered);
                delivered.all(|key| scene.server.results.contains_key(key))
            }),
        ]);
        all.extend(self.setup.sights.iter().map(|(name, seen)| Property::sometimes(name, *seen)));
        all
    }
}

pub(crate) const ONE_OPERATES: &str = "at most one device operates a task";
pub(crate) const ONE_SLOT: &str = "a device never holds two tasks";
pub(crate) const ONE_EXECUTION: &str = "a generation is started once";
pub(crate) const NOTHING_LOST: &str = "a result is dropped from no outbox before the server has it";
