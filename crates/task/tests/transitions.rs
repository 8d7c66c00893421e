//! Every state × event pair, for each kind of task, as one table a person can read against 03 §7.1.

use std::fmt::Write;

use cmautobuy_protocol::TaskType;
use cmautobuy_task::{Event, Facts, TaskState, first_state, next};

fn table(facts: Facts) -> String {
    let mut out = String::new();
    for event in Event::ALL {
        let moves: Vec<String> =
            TaskState::ALL.iter().filter_map(|state| next(*state, event, facts).ok().map(|to| format!("{state:?}->{to:?}"))).collect();
        writeln!(out, "{event:?}: {}", if moves.is_empty() { "-".to_owned() } else { moves.join(" ") }).expect("writing to a String");
    }
    out
}

const PLAIN: Facts = Facts { task_type: TaskType::Collect, marked: false, unsent: false };

#[test]
fn collect() {
    let want = "\
Reclaimed: Claimed->Claimed RetryWait->Claimed Failed->Claimed Cancelled->Claimed
RunStarted: Claimed->Running RetryWait->Running
PhoneUnreachable: Claimed->RetryWait
BadTaskData: Claimed->Failed
OperatorStopped: Claimed->Cancelled Running->Cancelled
ClaimLost: Claimed->Cancelled
ResultSaved: Running->ResultPending
RecoverableFailure: Running->RetryWait
NeedsPerson: Running->ManualReview
PermanentFailure: Running->Failed
Accepted: ResultPending->Succeeded
ResultRefused: ResultPending->ManualReview
RetriesExhausted: RetryWait->Failed
Recollect: ManualReview->Claimed Succeeded->Claimed Failed->Claimed Cancelled->Claimed
PersonDecidedFailed: ManualReview->Failed
CancelRequested: Running->Cancelled RetryWait->Cancelled ManualReview->Cancelled
EndedOnServerCancelled: Running->Cancelled RetryWait->Cancelled
EndedOnServerFailed: Running->Failed RetryWait->Failed
CrashRecovered: Running->RetryWait
";
    assert_eq!(table(PLAIN), want, "03 §7.1 for a collect task; every pair not listed is refused");
}

#[test]
fn purchase_without_mark() {
    let want = "\
Reclaimed: Claimed->Claimed RetryWait->Claimed Failed->Claimed Cancelled->Claimed
RunStarted: Claimed->Running
PhoneUnreachable: Claimed->RetryWait
BadTaskData: Claimed->Failed
OperatorStopped: Claimed->Cancelled Running->Cancelled
ClaimLost: Claimed->Cancelled
ResultSaved: Running->ResultPending
RecoverableFailure: Running->ManualReview
NeedsPerson: Running->ManualReview
PermanentFailure: Running->Failed
Accepted: ResultPending->Succeeded
ResultRefused: ResultPending->ManualReview
RetriesExhausted: RetryWait->Failed
Recollect: -
PersonDecidedFailed: ManualReview->Failed
CancelRequested: Running->Cancelled RetryWait->Cancelled ManualReview->Cancelled
EndedOnServerCancelled: Running->Cancelled RetryWait->Cancelled
EndedOnServerFailed: Running->Failed RetryWait->Failed
CrashRecovered: Running->Claimed
";
    let facts = Facts { task_type: TaskType::Purchase, ..PLAIN };
    assert_eq!(table(facts), want, "a purchase is never re-run by itself and never re-collected (03 §7.2, §7.3)");
}

#[test]
fn marked_purchase_never_runs_again() {
    let facts = Facts { task_type: TaskType::Purchase, marked: true, unsent: false };
    for state in TaskState::ALL {
        for event in Event::ALL {
            let to = next(state, event, facts);
            assert_ne!(to, Ok(TaskState::Running), "{state:?} x {event:?}: irreversible_action_at set means look, never buy (D10)");
            assert_ne!(to, Ok(TaskState::Claimed), "{state:?} x {event:?}: a marked task must not get back on the road to the buy button");
            assert_ne!(to, Ok(TaskState::Cancelled), "{state:?} x {event:?}: past the mark a cancel is ignored (D9)");
            assert_ne!(to, Ok(TaskState::RetryWait), "{state:?} x {event:?}: past the mark nothing is retried");
        }
    }
}

#[test]
fn unsent_outbox_forbids_recollect_only() {
    let unsent = Facts { unsent: true, ..PLAIN };
    for state in TaskState::ALL {
        for event in Event::ALL {
            let (with, without) = (next(state, event, unsent), next(state, event, PLAIN));
            if event == Event::Recollect {
                assert!(with.is_err(), "{state:?}: an unsent result must reach the server before the task is collected again (03 §7.1)");
            } else {
                assert_eq!(with, without, "{state:?} x {event:?}: nothing else depends on the outbox");
            }
        }
    }
}

#[test]
fn terminal_states_move_only_by_a_person_or_a_claim() {
    for state in TaskState::ALL.into_iter().filter(|s| s.is_terminal()) {
        for event in Event::ALL {
            let by_person_or_claim = matches!(event, Event::Recollect | Event::Reclaimed);
            assert!(
                next(state, event, PLAIN).is_err() || by_person_or_claim,
                "{state:?} x {event:?}: a late callback must not revive an ended task (03 §7.2)"
            );
        }
    }
}

#[test]
fn success_needs_the_servers_word() {
    for state in TaskState::ALL {
        for event in Event::ALL.into_iter().filter(|e| *e != Event::Accepted) {
            assert_ne!(
                next(state, event, PLAIN),
                Ok(TaskState::Succeeded),
                "{state:?} x {event:?}: only `accepted: true` makes success (03 §7.2)"
            );
        }
    }
    assert_eq!(first_state(), TaskState::Claimed, "there is no pending: a row is born claimed (03 §3.1)");
}
