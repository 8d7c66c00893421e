//! The life of a task on the server (T-205, D2-D4) as one pure function. It reads no clock, checks no owner and writes nothing: whether the
//! caller may cause an event is decided in `work`, what the event does to the status only here.

use cmautobuy_protocol::ServerStatus;
use cmautobuy_protocol::result::Disposition;

/// Everything that can happen to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LifeEvent {
    /// A device took it (T-205 §5).
    Claim,
    /// The claim ran out and another claim found it (T-205 §5).
    ClaimExpired,
    Start,
    Resume,
    /// A finished collect task is looked at again; the status stays (D4).
    Recollect,
    Release,
    /// An administrator's cancel: at once before the start, a request after it (T-205 §10).
    Cancel,
    CancelAck,
    /// A result of the current generation's highest attempt (D3).
    Settle(Disposition),
    /// D4 close.
    AdminClose,
    /// The database was put back to an earlier state: a claim is taken back, what was started stays (D7).
    Restore,
    /// An administrator looked at what a restore held (D7).
    ReleaseHold,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a task that is {status} cannot take the event {event:?}")]
pub(crate) struct IllegalTransition {
    pub(crate) status: ServerStatus,
    pub(crate) event: LifeEvent,
}

/// # Errors
/// [`IllegalTransition`] when the event means nothing in this status. Terminal states never regress (T-205 §11).
pub(crate) fn next(status: ServerStatus, event: LifeEvent) -> Result<ServerStatus, IllegalTransition> {
    use ServerStatus::{Canceled, Claimed, Failed, Pending, Running, Succeeded, WaitingConfirmation};
    let illegal = Err(IllegalTransition { status, event });
    match (status, event) {
        (Pending, LifeEvent::Claim) => Ok(Claimed),
        (Claimed, LifeEvent::ClaimExpired | LifeEvent::Release) => Ok(Pending),
        (Claimed, LifeEvent::Start) => Ok(Running),
        (Pending | Claimed, LifeEvent::Cancel) => Ok(Canceled),
        (Running | WaitingConfirmation, LifeEvent::Cancel) => Ok(status),
        (Running | WaitingConfirmation, LifeEvent::Resume) => Ok(Running),
        (Running | WaitingConfirmation, LifeEvent::CancelAck) => Ok(Canceled),
        (Running | WaitingConfirmation, LifeEvent::AdminClose) => Ok(Failed),
        (Succeeded | Failed | Canceled, LifeEvent::Recollect) => Ok(status),
        (Pending | Claimed, LifeEvent::Restore) => Ok(Pending),
        (Running | WaitingConfirmation, LifeEvent::Restore) => Ok(status),
        (Pending | Running | WaitingConfirmation, LifeEvent::ReleaseHold) => Ok(status),
        (Claimed | Running | WaitingConfirmation, LifeEvent::Settle(disposition)) => Ok(match disposition {
            Disposition::Succeeded => Succeeded,
            Disposition::Failed => Failed,
            Disposition::Cancelled => Canceled,
            Disposition::ManualReview => WaitingConfirmation,
        }),
        (
            Pending,
            LifeEvent::ClaimExpired
            | LifeEvent::Start
            | LifeEvent::Resume
            | LifeEvent::Recollect
            | LifeEvent::Release
            | LifeEvent::CancelAck
            | LifeEvent::Settle(_)
            | LifeEvent::AdminClose,
        ) => illegal,
        (
            Claimed,
            LifeEvent::Claim
            | LifeEvent::Resume
            | LifeEvent::Recollect
            | LifeEvent::CancelAck
            | LifeEvent::AdminClose
            | LifeEvent::ReleaseHold,
        ) => illegal,
        (
            Running | WaitingConfirmation,
            LifeEvent::Claim | LifeEvent::ClaimExpired | LifeEvent::Start | LifeEvent::Recollect | LifeEvent::Release,
        ) => illegal,
        (
            Succeeded | Failed | Canceled,
            LifeEvent::Claim
            | LifeEvent::ClaimExpired
            | LifeEvent::Start
            | LifeEvent::Resume
            | LifeEvent::Release
            | LifeEvent::Cancel
            | LifeEvent::CancelAck
            | LifeEvent::Settle(_)
            | LifeEvent::AdminClose
            | LifeEvent::Restore
            | LifeEvent::ReleaseHold,
        ) => illegal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows are events, columns `P C R W S F X`: the status after, `.` for illegal.
    const TABLE: [(LifeEvent, &str); 15] = [
        (LifeEvent::Claim, "C......"),
        (LifeEvent::ClaimExpired, ".P....."),
        (LifeEvent::Start, ".R....."),
        (LifeEvent::Resume, "..RR..."),
        (LifeEvent::Recollect, "....SFX"),
        (LifeEvent::Release, ".P....."),
        (LifeEvent::Cancel, "XXRW..."),
        (LifeEvent::CancelAck, "..XX..."),
        (LifeEvent::Settle(Disposition::Succeeded), ".SSS..."),
        (LifeEvent::Settle(Disposition::Failed), ".FFF..."),
        (LifeEvent::Settle(Disposition::Cancelled), ".XXX..."),
        (LifeEvent::Settle(Disposition::ManualReview), ".WWW..."),
        (LifeEvent::AdminClose, "..FF..."),
        (LifeEvent::Restore, "PPRW..."),
        (LifeEvent::ReleaseHold, "P.RW..."),
    ];

    fn letter(status: ServerStatus) -> char {
        match status {
            ServerStatus::Pending => 'P',
            ServerStatus::Claimed => 'C',
            ServerStatus::Running => 'R',
            ServerStatus::WaitingConfirmation => 'W',
            ServerStatus::Succeeded => 'S',
            ServerStatus::Failed => 'F',
            ServerStatus::Canceled => 'X',
        }
    }

    #[test]
    fn t205_11_every_status_and_event_has_its_answer() {
        for (event, row) in TABLE {
            for (&status, wanted) in ServerStatus::ALL.iter().zip(row.chars()) {
                let got = next(status, event).map_or('.', letter);
                assert_eq!(got, wanted, "{status} + {event:?} must follow T-205 §6-§11 and D3-D4");
            }
        }
    }

    #[test]
    fn t205_11_terminal_states_never_regress() {
        for (event, _) in TABLE {
            for &status in ServerStatus::ALL.iter().filter(|s| s.is_terminal()) {
                let after = next(status, event).unwrap_or(status);
                assert_eq!(after, status, "{event:?} must leave the terminal {status} as it is");
            }
        }
    }

    #[test]
    fn t205_8_a_running_task_never_goes_back_to_the_queue() {
        for (event, _) in TABLE {
            let after = next(ServerStatus::Running, event);
            assert_ne!(after, Ok(ServerStatus::Pending), "{event:?} must not re-queue a task a lost device may still be working on");
        }
    }
}
