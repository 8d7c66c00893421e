//! The life of a task on the client: state, event, `next()`, lease and retry arithmetic.
//!
//! Pure: no I/O, and no clock of its own; time is an argument. Deciding where a task goes happens here and nowhere else.

mod backoff;
mod clock;
mod lease;
mod state;

pub use backoff::{Backoff, is_due};
pub use clock::{Clock, Mono};
pub use lease::{Lease, LeaseCell, LeaseState, LostReason, MAX_CLOCK_DRIFT, Running};
pub use state::{Event, Facts, IllegalTransition, TaskState, first_state, next};
