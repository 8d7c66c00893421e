//! How often a name may be tried from one address, and how often an address may try at all. In memory only: a restart forgives.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use cmautobuy_protocol::WireTime;

/// Logins of one name from one address in one window.
pub(crate) const MOST: u32 = 10;
/// Logins from one address in one window, whatever the names.
pub(crate) const MOST_PER_ADDRESS: u32 = 60;
/// Length of the window in milliseconds.
pub(crate) const WINDOW_MS: i64 = 60_000;
/// Above this many remembered names, old windows are dropped; when all are new, further names share one window.
const REMEMBERED: usize = 10_000;

/// Whose tries are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Counted {
    /// No address is a router driven in the same process.
    Name(String, Option<IpAddr>),
    Address(IpAddr),
    /// Everybody there is no room to remember.
    Rest,
}

#[derive(Debug, Default)]
pub(crate) struct LoginLimit(Mutex<HashMap<Counted, Window>>);

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
        let mut count = |who: Counted, most: u32| {
            let who = if windows.len() < REMEMBERED || windows.contains_key(&who) { who } else { Counted::Rest };
            let window = windows.entry(who).or_insert(Window { began: now, tries: 0 });
            if is_over(window) {
                *window = Window { began: now, tries: 0 };
            }
            window.tries = window.tries.saturating_add(1);
            window.tries <= most
        };
        let address_may = peer.is_none_or(|peer| count(Counted::Address(peer), MOST_PER_ADDRESS));
        count(Counted::Name(user_name.to_lowercase(), peer), MOST) && address_may
    }

    /// A right password forgives the wrong ones before it.
    pub(crate) fn forgive(&self, user_name: &str, peer: Option<IpAddr>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&Counted::Name(user_name.to_lowercase(), peer));
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

    #[test]
    fn an_address_is_limited_whatever_names_it_tries() {
        let limit = LoginLimit::default();
        let at = |ms: i64| WireTime::from_unix_ms(1_800_000_000_000 + ms).expect("a time in range");
        let (here, there) = (Some(IpAddr::from([10, 0, 0, 1])), Some(IpAddr::from([10, 0, 0, 2])));
        for n in 0..MOST_PER_ADDRESS {
            assert!(limit.may_try(&format!("user {n}"), here, at(0)), "try {n} is inside the address's limit");
        }
        assert!(!limit.may_try("one more", here, at(1)), "guessing one password for many names is slowed down too");
        assert!(limit.may_try("one more", there, at(1)), "another address must not suffer");
    }

    #[test]
    fn a_flood_of_names_takes_bounded_memory_and_is_slowed_down() {
        let limit = LoginLimit::default();
        let at = WireTime::from_unix_ms(1_800_000_000_000).expect("a time in range");
        let let_in = (0..REMEMBERED + 500).filter(|n| limit.may_try(&format!("user {n}"), None, at)).count();
        assert!(let_in <= REMEMBERED + MOST as usize, "names there is no room for share one small allowance, not {let_in}");
        assert!(limit.0.lock().expect("a free lock").len() <= REMEMBERED + 1, "and what is remembered stays bounded");
    }
}
