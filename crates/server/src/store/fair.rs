//! A lock handed on in the order it was asked for. The standard lock may let one busy thread take it again and again; here an administrator's
//! write waits for one batch of calls, never for all of them. It knows nothing of databases.

use std::sync::{Condvar, Mutex, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Fair<T> {
    line: Mutex<Line>,
    moved: Condvar,
    value: Mutex<T>,
}

/// Numbers are drawn in order and served in order.
#[derive(Debug, Default)]
struct Line {
    next: u64,
    served: u64,
}

/// Serves the next in line, also when the holder panics.
struct Turn<'f, T>(&'f Fair<T>);

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        self.0.line.lock().unwrap_or_else(PoisonError::into_inner).served += 1;
        self.0.moved.notify_all();
    }
}

impl<T> Fair<T> {
    /// Runs `work` with the value when its turn comes. Blocks; never nest it.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = line.next;
        line.next += 1;
        while line.served != mine {
            line = self.moved.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
        drop(line);
        let _turn = Turn(self);
        work(&mut self.value.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
impl<T> Fair<T> {
    /// How many wait behind the one that has it.
    pub(crate) fn waiting(&self) -> u64 {
        let line = self.line.lock().expect("nobody panics with it");
        (line.next - line.served).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use super::*;

    #[test]
    fn turns_come_in_the_order_they_were_asked_for() {
        let fair = Arc::new(Fair::<Vec<u64>>::default());
        let mut threads = Vec::new();
        fair.with(|_| {
            for n in 0..8 {
                let other = Arc::clone(&fair);
                threads.push(std::thread::spawn(move || other.with(|seen| seen.push(n))));
                // The next thread starts only when this one has drawn its number.
                while fair.line.lock().expect("no panic holds it").next < n + 2 {
                    std::thread::yield_now();
                }
            }
        });
        threads.into_iter().for_each(|thread| thread.join().expect("a thread that only pushes"));
        assert_eq!(fair.with(|seen| seen.clone()), (0..8).collect::<Vec<_>>(), "nobody may overtake");
    }

    #[test]
    fn a_panic_hands_the_turn_on() {
        let fair = Fair::<u64>::default();
        let panicked = catch_unwind(AssertUnwindSafe(|| fair.with(|_| panic!("on purpose"))));
        assert!(panicked.is_err(), "the panic must reach the caller");
        assert_eq!(fair.with(|value| *value), 0, "the next in line must get the lock all the same");
    }
}
