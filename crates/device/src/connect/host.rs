//! What an adb server itself can do: join and leave phones over Wi-Fi, pair by code, discover, reconnect.
//!
//! Asked over its socket, not through the program: a pairing code on a command line can be read by every program of the computer.

use std::net::SocketAddr;
use std::time::Duration;

use crate::adb::{AdbError, ListedDevice, answers, wire};
use crate::connect::ConnectError;
use crate::connect::program::shortened;

const QUICK: Duration = Duration::from_secs(5);
/// adb itself gives a phone ten seconds to answer.
const JOIN: Duration = Duration::from_secs(15);
/// The pairing window of a phone waits for a person, the pairing itself takes two round trips.
const PAIR: Duration = Duration::from_secs(30);
/// What an adb of before version 31 says to a request it does not know.
const UNKNOWN: [&str; 3] = ["unknown host service", "unknown command", "unsupported"];

/// How joining a phone over TCP ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    Connected,
    Already,
    /// The phone asks its owner; it becomes ready by itself after Allow (facts/adb C5).
    WaitsForAllow,
}

/// What a phone announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscoveredKind {
    /// `_adb-tls-pairing._tcp`: its pairing window is open now.
    Pairing,
    /// `_adb-tls-connect._tcp`: wireless debugging is on, paired computers may connect.
    WirelessDebugging,
    /// `_adb._tcp`: the old open port.
    Plain,
}

/// A phone that announces itself in the local network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovered {
    pub name: String,
    pub kind: DiscoveredKind,
    pub address: SocketAddr,
}

impl Discovered {
    /// The serial inside names such as `adb-R58M123-AbCdEf`.
    pub fn serial(&self) -> Option<&str> {
        mdns_serial(&self.name)
    }
}

/// The phone's own serial in the name it announces: `adb-SERIAL-random`, with or without a service behind.
pub(crate) fn mdns_serial(name: &str) -> Option<&str> {
    let bare = name.split("._adb").next()?.split(" (").next()?;
    let (serial, _) = bare.strip_prefix("adb-")?.rsplit_once('-')?;
    (!serial.is_empty()).then_some(serial)
}

/// A running adb server, ours or one the operator named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdbHost {
    server: SocketAddr,
}

impl AdbHost {
    pub fn new(server: SocketAddr) -> AdbHost {
        AdbHost { server }
    }

    pub fn address(&self) -> SocketAddr {
        self.server
    }

    /// Its protocol number, for example 41.
    ///
    /// # Errors
    /// [`ConnectError::Server`].
    pub async fn version(&self) -> Result<u32, ConnectError> {
        let text = self.ask("host:version", QUICK).await?;
        u32::from_str_radix(text.trim(), 16).map_err(|_| ConnectError::Server(AdbError::Protocol(format!("version {text:?}"))))
    }

    /// # Errors
    /// [`ConnectError::Server`].
    pub async fn devices(&self) -> Result<Vec<ListedDevice>, ConnectError> {
        Ok(answers::devices(&self.ask("host:devices-l", QUICK).await?))
    }

    /// Joins a phone whose debugging port is known.
    ///
    /// # Errors
    /// [`ConnectError::NotJoined`] with adb's words; adb answers OKAY to a failure too.
    pub async fn join(&self, phone: SocketAddr) -> Result<Joined, ConnectError> {
        let said = self.ask(&format!("host:connect:{phone}"), JOIN).await?;
        joined(&said).ok_or_else(|| ConnectError::NotJoined { address: phone.to_string(), said: shortened(said.trim()) })
    }

    /// Forgets a phone joined over TCP; one that is not joined is forgotten already.
    ///
    /// # Errors
    /// [`ConnectError::Server`].
    pub async fn leave(&self, phone: &str) -> Result<(), ConnectError> {
        match self.ask(&format!("host:disconnect:{phone}"), QUICK).await {
            Ok(_) => Ok(()),
            Err(ConnectError::Server(AdbError::Refused(said))) if said.contains("no such device") => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Pairs with the six digits of "pair device with pairing code". `phone` is the address in that window, not the debugging port.
    ///
    /// # Errors
    /// [`ConnectError::Unsupported`] with an adb before 30, [`ConnectError::PairingRefused`] with adb's words.
    pub async fn pair(&self, phone: SocketAddr, code: &str) -> Result<(), ConnectError> {
        if code.is_empty() || !code.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ConnectError::PairingRefused { said: "the code is six digits".to_owned() });
        }
        let said = match self.ask(&format!("host:pair:{code}:{phone}"), PAIR).await {
            Ok(said) => said,
            Err(ConnectError::Server(AdbError::Refused(said))) if is_unknown(&said) => {
                return Err(ConnectError::Unsupported { what: "pair by code", said });
            }
            Err(ConnectError::Server(AdbError::Refused(said))) => said,
            Err(error) => return Err(error),
        };
        if said.starts_with("Successfully paired") { Ok(()) } else { Err(ConnectError::PairingRefused { said: shortened(said.trim()) }) }
    }

    /// Phones that announce themselves in the local network.
    ///
    /// # Errors
    /// [`ConnectError::Unsupported`] with an adb without mDNS.
    pub async fn discover(&self) -> Result<Vec<Discovered>, ConnectError> {
        match self.ask("host:mdns:services", QUICK).await {
            Ok(text) => Ok(discovered(&text)),
            Err(ConnectError::Server(AdbError::Refused(said))) => Err(ConnectError::Unsupported { what: "discover phones", said }),
            Err(error) => Err(error),
        }
    }

    /// Kicks transports that are offline; they come back by themselves.
    ///
    /// # Errors
    /// [`ConnectError::Server`].
    pub async fn reconnect_offline(&self) -> Result<(), ConnectError> {
        self.ask("host:reconnect-offline", QUICK).await.map(drop)
    }

    pub(crate) async fn ask(&self, question: &str, limit: Duration) -> Result<String, ConnectError> {
        wire::ask(self.server, question, limit).await.map_err(ConnectError::Server)
    }
}

fn is_unknown(said: &str) -> bool {
    let lower = said.to_ascii_lowercase();
    UNKNOWN.iter().any(|word| lower.contains(word))
}

fn joined(said: &str) -> Option<Joined> {
    let said = said.trim();
    if said.starts_with("already connected") {
        Some(Joined::Already)
    } else if said.starts_with("connected to") {
        Some(Joined::Connected)
    } else if said.starts_with("failed to authenticate") {
        Some(Joined::WaitsForAllow)
    } else {
        None
    }
}

/// `name TAB service TAB address`; a line we cannot read is somebody else's.
fn discovered(text: &str) -> Vec<Discovered> {
    let one = |line: &str| {
        let mut fields = line.split('\t').map(str::trim).filter(|field| !field.is_empty());
        let (name, service, address) = (fields.next()?, fields.next()?, fields.next()?);
        let kind = match service.trim_end_matches('.') {
            "_adb-tls-pairing._tcp" => DiscoveredKind::Pairing,
            "_adb-tls-connect._tcp" => DiscoveredKind::WirelessDebugging,
            "_adb._tcp" => DiscoveredKind::Plain,
            _ => return None,
        };
        Some(Discovered { name: name.to_owned(), kind, address: address.parse().ok()? })
    };
    text.lines().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_to_connect() {
        let rows = [
            ("fresh", "connected to 10.0.0.2:5555", Some(Joined::Connected)),
            ("again", "already connected to 10.0.0.2:5555", Some(Joined::Already)),
            ("asks", "failed to authenticate to 10.0.0.2:5555", Some(Joined::WaitsForAllow)),
            ("closed", "failed to connect to '10.0.0.2:5555': Connection refused", None),
            ("no route", "cannot connect to 10.0.0.2:5555: No route to host", None),
            ("empty", "", None),
        ];
        for (name, said, want) in rows {
            assert_eq!(joined(said), want, "row {name}: adb says OKAY to all of these, so the words decide");
        }
    }

    #[test]
    fn announcements() {
        let text = "adb-R58M123-AbCdEf\t_adb-tls-connect._tcp\t192.168.1.5:37211\n\
                    adb-R58M123-AbCdEf\t_adb-tls-pairing._tcp.\t192.168.1.5:41001\n\
                    adb-OLD\t_adb._tcp\t192.168.1.6:5555\n\
                    tv\t_googlecast._tcp\t192.168.1.7:8009\n\
                    half\t_adb._tcp\n";
        let found = discovered(text);
        let kinds: Vec<DiscoveredKind> = found.iter().map(|one| one.kind).collect();
        assert_eq!(
            kinds,
            [DiscoveredKind::WirelessDebugging, DiscoveredKind::Pairing, DiscoveredKind::Plain],
            "only phones, and all of them"
        );
        assert_eq!(found[0].serial(), Some("R58M123"), "the phone is known by its serial, whatever port it has today");
        assert_eq!(found[2].serial(), None, "no guess where there is no serial");
        assert_eq!(
            mdns_serial("adb-A-B-xyz (2)._adb-tls-connect._tcp"),
            Some("A-B"),
            "serials hold dashes and names get a counter (facts A9)"
        );
    }
}
