//! What a person may set, with bounds (T-205 §12). Reads no environment and opens nothing but the file it is given.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

/// Settings of one server. [`Config::default`] is safe to run as it is: loopback only, T-205's times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Folder of the database and the logs; made when missing.
    pub data_dir: PathBuf,
    pub listen: SocketAddr,
    /// From `claim-next` to `start`: 10 min, 1..=60 min.
    pub claim_lease: Duration,
    /// Between two run heartbeats: 90 s, 30 s..=10 min.
    pub run_lease: Duration,
    /// How long a device heartbeat keeps the device ready: 120 s, 30 s..=10 min.
    pub heartbeat_ttl: Duration,
    /// Life of an access token: 1 h, 1 min..=24 h.
    pub access_ttl: Duration,
    /// Life of a refresh token: 30 days, 1 h..=365 days.
    pub refresh_ttl: Duration,
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("setting `{name}` is {given_s} s and must be {min_s} to {max_s} s")]
    OutOfBounds { name: &'static str, given_s: u64, min_s: u64, max_s: u64 },
    #[error("read settings file {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("understand settings file {}", path.display())]
    Parse {
        path: PathBuf,
        #[source]
        source: toml::de::Error,
    },
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("server-data"),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8787)),
            claim_lease: Duration::from_secs(10 * MINUTE),
            run_lease: Duration::from_secs(90),
            heartbeat_ttl: Duration::from_secs(2 * MINUTE),
            access_ttl: Duration::from_secs(HOUR),
            refresh_ttl: Duration::from_secs(30 * DAY),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    data_dir: Option<PathBuf>,
    listen: Option<SocketAddr>,
    claim_lease_s: Option<u64>,
    run_lease_s: Option<u64>,
    heartbeat_ttl_s: Option<u64>,
    access_ttl_s: Option<u64>,
    refresh_ttl_s: Option<u64>,
}

impl Config {
    /// The settings of a TOML file over the defaults. Keys: `data_dir`, `listen`, `claim_lease_s`, `run_lease_s`, `heartbeat_ttl_s`,
    /// `access_ttl_s`, `refresh_ttl_s`.
    ///
    /// # Errors
    /// [`ConfigError`] when the file cannot be read, holds an unknown key, or a value is out of bounds.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let file: File = toml::from_str(&text).map_err(|source| ConfigError::Parse { path: path.to_owned(), source })?;
        let base = Self::default();
        let seconds = |given: Option<u64>, or: Duration| given.map_or(or, Duration::from_secs);
        let config = Self {
            data_dir: file.data_dir.unwrap_or(base.data_dir),
            listen: file.listen.unwrap_or(base.listen),
            claim_lease: seconds(file.claim_lease_s, base.claim_lease),
            run_lease: seconds(file.run_lease_s, base.run_lease),
            heartbeat_ttl: seconds(file.heartbeat_ttl_s, base.heartbeat_ttl),
            access_ttl: seconds(file.access_ttl_s, base.access_ttl),
            refresh_ttl: seconds(file.refresh_ttl_s, base.refresh_ttl),
        };
        config.validate()?;
        Ok(config)
    }

    /// # Errors
    /// [`ConfigError::OutOfBounds`] names the first duration outside its bounds (T-205 §12).
    pub fn validate(&self) -> Result<(), ConfigError> {
        let bounds = [
            ("claim_lease", self.claim_lease, MINUTE, 60 * MINUTE),
            ("run_lease", self.run_lease, 30, 10 * MINUTE),
            ("heartbeat_ttl", self.heartbeat_ttl, 30, 10 * MINUTE),
            ("access_ttl", self.access_ttl, MINUTE, DAY),
            ("refresh_ttl", self.refresh_ttl, HOUR, 365 * DAY),
        ];
        for (name, given, min_s, max_s) in bounds {
            if given < Duration::from_secs(min_s) || given > Duration::from_secs(max_s) {
                return Err(ConfigError::OutOfBounds { name, given_s: given.as_secs(), min_s, max_s });
            }
        }
        Ok(())
    }

    /// The database file inside [`Self::data_dir`].
    pub fn database(&self) -> PathBuf {
        self.data_dir.join("server.sqlite3")
    }
}

/// Whole milliseconds of a bounded duration, for adding to a time.
pub(crate) fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t205_12_durations_have_defaults_and_bounds() {
        let fine = Config::default();
        fine.validate().expect("the defaults must be inside the bounds");
        let (claim, run, ttl) = (fine.claim_lease.as_secs(), fine.run_lease.as_secs(), fine.heartbeat_ttl.as_secs());
        assert_eq!((claim, run, ttl), (600, 90, 120), "T-205 §12 names 10 min, 90 s and 2 min");
        let rows: [(&str, Config, bool); 8] = [
            ("claim below", Config { claim_lease: Duration::from_secs(59), ..fine.clone() }, false),
            ("claim lowest", Config { claim_lease: Duration::from_secs(60), ..fine.clone() }, true),
            ("claim above", Config { claim_lease: Duration::from_secs(3601), ..fine.clone() }, false),
            ("run below", Config { run_lease: Duration::from_secs(29), ..fine.clone() }, false),
            ("run highest", Config { run_lease: Duration::from_secs(600), ..fine.clone() }, true),
            ("ttl above", Config { heartbeat_ttl: Duration::from_secs(601), ..fine.clone() }, false),
            ("access zero", Config { access_ttl: Duration::ZERO, ..fine.clone() }, false),
            ("refresh below", Config { refresh_ttl: Duration::from_secs(1), ..fine.clone() }, false),
        ];
        for (name, config, ok) in rows {
            assert_eq!(config.validate().is_ok(), ok, "row `{name}`: bounds keep a typo from making leases useless");
        }
    }

    #[test]
    fn a_settings_file_goes_over_the_defaults_and_refuses_unknown_keys() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("server.toml");
        std::fs::write(&path, "listen = \"127.0.0.1:9\"\nrun_lease_s = 45\n").expect("write the settings");
        let config = Config::from_file(&path).expect("known keys must be read");
        assert_eq!(config.run_lease, Duration::from_secs(45), "the file's value must win");
        assert_eq!(config.claim_lease, Config::default().claim_lease, "what the file does not say stays as it was");
        std::fs::write(&path, "run_lease = 45\n").expect("write the settings");
        assert!(Config::from_file(&path).is_err(), "a misspelt key must be refused, not ignored");
        std::fs::write(&path, "run_lease_s = 5\n").expect("write the settings");
        assert!(Config::from_file(&path).is_err(), "a value out of bounds must be refused at load");
    }
}
