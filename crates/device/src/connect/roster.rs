//! From transports to phones: a phone on a cable and on Wi-Fi at once is one phone with two roads.
//!
//! Pure: lists in, phones and changes out.

use std::collections::HashMap;

use crate::adb::{ListedDevice, ListedState};
use crate::connect::host::mdns_serial;

/// A phone as a person sees it, with every road to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenPhone {
    /// `ro.serialno` once it could be read, else the best guess from the transport's name.
    pub serial: String,
    pub model: Option<String>,
    /// Best first; never empty.
    pub roads: Vec<ListedDevice>,
}

impl SeenPhone {
    /// The road to use: ready before not ready, cable before Wi-Fi.
    pub fn best(&self) -> &ListedDevice {
        &self.roads[0]
    }

    pub fn state(&self) -> &ListedState {
        &self.best().state
    }

    pub fn is_ready(&self) -> bool {
        *self.state() == ListedState::Device
    }
}

/// What happened between two lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Plugged {
        serial: String,
        state: ListedState,
    },
    Unplugged {
        serial: String,
    },
    State {
        serial: String,
        from: ListedState,
        to: ListedState,
    },
    /// One phone is now reachable in this many ways.
    Roads {
        serial: String,
        roads: usize,
    },
}

/// Lower is better.
fn rank(road: &ListedDevice) -> (u8, bool) {
    let state = match road.state {
        ListedState::Device => 0,
        ListedState::Unauthorized => 1,
        ListedState::NoPermissions => 2,
        ListedState::Offline => 3,
        ListedState::Other(_) => 4,
    };
    (state, is_network(&road.serial))
}

pub(crate) fn is_network(serial: &str) -> bool {
    serial.contains("._adb") || serial.parse::<std::net::SocketAddr>().is_ok() || serial.rsplit_once(':').is_some()
}

/// What the transport's own name tells of the phone behind it.
fn guess(road: &ListedDevice) -> &str {
    mdns_serial(&road.serial).filter(|_| road.serial.contains("._adb")).unwrap_or(&road.serial)
}

/// Groups transports by phone. `serialno` holds what phones said of themselves, by transport name.
pub(crate) fn fold(list: &[ListedDevice], serialno: &HashMap<String, String>) -> Vec<SeenPhone> {
    let mut phones: Vec<SeenPhone> = Vec::new();
    for road in list {
        let serial = serialno.get(&road.serial).map_or_else(|| guess(road), String::as_str);
        // Cheap phones share one serial number: a second cable is a second phone, whatever it says.
        let fits = |phone: &&mut SeenPhone| {
            let both_on_cables = || !is_network(&road.serial) && phone.roads.iter().any(|other| !is_network(&other.serial));
            phone.serial == serial && !both_on_cables()
        };
        match phones.iter_mut().find(fits) {
            Some(phone) => phone.roads.push(road.clone()),
            None => phones.push(SeenPhone { serial: serial.to_owned(), model: None, roads: vec![road.clone()] }),
        }
    }
    for phone in &mut phones {
        phone.roads.sort_by_key(rank);
        phone.model = phone.roads.iter().find_map(|road| road.model.clone());
    }
    phones
}

/// What a person would be told, in the order of `after`, the vanished last.
pub fn changes(before: &[SeenPhone], after: &[SeenPhone]) -> Vec<Change> {
    let mut out = Vec::new();
    for phone in after {
        let serial = || phone.serial.clone();
        match before.iter().find(|old| old.serial == phone.serial) {
            None => out.push(Change::Plugged { serial: serial(), state: phone.state().clone() }),
            Some(old) => {
                if old.state() != phone.state() {
                    out.push(Change::State { serial: serial(), from: old.state().clone(), to: phone.state().clone() });
                }
                if old.roads.len() != phone.roads.len() {
                    out.push(Change::Roads { serial: serial(), roads: phone.roads.len() });
                }
            }
        }
    }
    let gone = before.iter().filter(|old| !after.iter().any(|phone| phone.serial == old.serial));
    out.extend(gone.map(|old| Change::Unplugged { serial: old.serial.clone() }));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn road(serial: &str, state: ListedState) -> ListedDevice {
        ListedDevice { serial: serial.to_owned(), state, model: None, product: None, usb: None, transport_id: None }
    }

    #[test]
    fn two_transports_of_one_phone_are_one_phone() {
        let list = [
            road("10.0.0.2:5555", ListedState::Device),
            road("R58M123", ListedState::Device),
            road("adb-R58M123-AbCdEf._adb-tls-connect._tcp", ListedState::Offline),
            road("OTHER", ListedState::Unauthorized),
        ];
        let known = HashMap::from([("10.0.0.2:5555".to_owned(), "R58M123".to_owned())]);
        let phones = fold(&list, &known);
        assert_eq!(phones.len(), 2, "three roads of one phone and one other phone: {phones:?}");
        assert_eq!(phones[0].serial, "R58M123", "a phone is called by its own serial");
        let roads: Vec<&str> = phones[0].roads.iter().map(|road| road.serial.as_str()).collect();
        assert_eq!(
            roads,
            ["R58M123", "10.0.0.2:5555", "adb-R58M123-AbCdEf._adb-tls-connect._tcp"],
            "the cable is steadier than Wi-Fi, and what does not work comes last"
        );
        assert!(phones[0].is_ready() && !phones[1].is_ready(), "a phone is as ready as its best road");
    }

    #[test]
    fn an_unknown_serial_is_not_guessed_together() {
        let list = [road("10.0.0.2:5555", ListedState::Offline), road("10.0.0.3:5555", ListedState::Offline)];
        assert_eq!(fold(&list, &HashMap::new()).len(), 2, "two addresses are two phones until one says otherwise");
    }

    #[test]
    fn two_cables_are_two_phones() {
        let list = [road("0123456789ABCDEF", ListedState::Device), road("0123456789ABCDEF", ListedState::Device)];
        assert_eq!(fold(&list, &HashMap::new()).len(), 2, "cheap phones share a serial; one must not hide the other");
    }

    #[test]
    fn changes_are_what_a_person_would_say() {
        let of = |list: &[ListedDevice]| fold(list, &HashMap::new());
        let plug = |serial: &str, state| Change::Plugged { serial: serial.to_owned(), state };
        type Row = (&'static str, Vec<ListedDevice>, Vec<ListedDevice>, Vec<Change>);
        let rows: Vec<Row> = vec![
            ("plugged", vec![], vec![road("A", ListedState::Unauthorized)], vec![plug("A", ListedState::Unauthorized)]),
            (
                "allowed",
                vec![road("A", ListedState::Unauthorized)],
                vec![road("A", ListedState::Device)],
                vec![Change::State { serial: "A".into(), from: ListedState::Unauthorized, to: ListedState::Device }],
            ),
            ("unplugged", vec![road("A", ListedState::Device)], vec![], vec![Change::Unplugged { serial: "A".into() }]),
            (
                "swapped",
                vec![road("A", ListedState::Device)],
                vec![road("B", ListedState::Device)],
                vec![plug("B", ListedState::Device), Change::Unplugged { serial: "A".into() }],
            ),
            (
                "second road",
                vec![road("A", ListedState::Device)],
                vec![road("A", ListedState::Device), road("adb-A-x._adb-tls-connect._tcp", ListedState::Device)],
                vec![Change::Roads { serial: "A".into(), roads: 2 }],
            ),
            ("nothing", vec![road("A", ListedState::Offline)], vec![road("A", ListedState::Offline)], vec![]),
        ];
        for (name, before, after, want) in rows {
            assert_eq!(changes(&of(&before), &of(&after)), want, "row {name}");
        }
    }
}
