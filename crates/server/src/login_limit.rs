//! How often a name may be tried from one address. In memory only: a restart forgives.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use cmautobuy_protocol::WireTime;

/// Logins of one name from one address in one window.
pub(crate) const MOST: u32 = 10;
/// Length of the window in milliseconds.
pub(crate) const WINDOW_MS: i64 = 60_000;
/// Above this many remembered names, old windows are dropped.
const REMEMBERED: usize = 10_000;

/// `None` is a caller without an address: a router driven in the same process.
type From = (String, Option<IpAddr>);

#[derive(Debug, Default)]
pub(crate) struct LoginLimit(Mutex<HashMap<From, Window>>);

#[derive(Debug, Clone, Copy)]
struct Window {
    began: WireTime,
    tries: u32,
}

impl LoginLimit {
    /// Counts a try; `false` when there were too many in this window.
    pub(crate) fn may_try(&self, user_name: &str, peer: Option<IpAddr>, now: WireTime) -> bool {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |window: &Window| now.ms_since(window.began) >= WINDOW_MS || now < window.began;
        if windows.len() >= REMEMBERED {
            windows.retain(|_, window| !is_over(window));
        }
        let window = windows.entry((user_name.to_lowercase(), peer)).or_insert(Window { began: now, tries: 0 });
        if is_over(window) {
            *window = Window { began: now, tries: 0 };
        }
        window.tries = window.tries.saturating_add(1);
        window.tries <= MOST
    }

    /// A right password forgives the wrong ones before it.
    pub(crate) fn forgive(&self, user_name: &str, peer: Option<IpAddr>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&(user_name.to_lowercase(), peer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_limited_per_address_and_window() {
        let limit = LoginLimit::default();
        let at = |ms| WireTime::from_unix_ms(1_800_000_000_000 + ms).expect("a time in range");
        for n in 1..=MOST {
            assert!(limit.may_try("Ann", None, at(0)), "try {n} is inside the limit");
        }
        assert!(!limit.may_try("ann", None, at(1)), "upper and lower case are one name, and its tries are used up");
        assert!(limit.may_try("bob", None, at(1)), "another name must not suffer");
        assert!(limit.may_try("ann", Some(IpAddr::from([10, 0, 0, 1])), at(1)), "another address must not suffer");
        assert!(limit.may_try("ann", None, at(WINDOW_MS)), "a new window starts empty");
    }
}
