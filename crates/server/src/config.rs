//! What a person may set, with bounds (T-205 §12). Reads no environment and opens nothing but the file it is given.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cmautobuy_protocol::AccessToken;
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
    /// Certificate and key for TLS; without them the server speaks plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Serve plain HTTP beyond this computer, for a TLS proxy in front. Off: such a listener is refused.
    pub allow_plain_http: bool,
    /// A file whose one line lets a Prometheus server read `/metrics` as its bearer token; without it an administrator's login is needed.
    pub metrics_token_file: Option<PathBuf>,
    /// Below this much free disk in the data folder `/readyz` says no: 256 MiB, 0..=1 TiB.
    pub min_free_bytes: u64,
    /// What is logged, in the syntax of `tracing`'s filters: `info`. The environment's `AUTOBUY_LOG` goes over it.
    pub log: String,
}

/// PEM files of the server's own certificate (chain, own one first) and its private key. Read at start and again on SIGHUP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("setting `{name}` is {given_s} s and must be {min_s} to {max_s} s")]
    OutOfBounds { name: &'static str, given_s: u64, min_s: u64, max_s: u64 },
    #[error("setting `min_free_mib` is {given} and must be at most {max}")]
    FreeFloor { given: u64, max: u64 },
    #[error("settings `tls_certificate` and `tls_key` belong together; only `{given}` is set")]
    HalfTls { given: &'static str },
    #[error("{} must hold one line of at least {MIN_TOKEN} visible characters; `openssl rand -hex 32` makes one", path.display())]
    WeakToken { path: PathBuf },
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

const MIN_TOKEN: usize = 32;
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const MIB: u64 = 1024 * 1024;
const MAX_FREE_FLOOR: u64 = 1024 * 1024 * MIB;

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
            tls: None,
            allow_plain_http: false,
            metrics_token_file: None,
            min_free_bytes: 256 * MIB,
            log: "info".to_owned(),
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
    tls_certificate: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    allow_plain_http: Option<bool>,
    metrics_token_file: Option<PathBuf>,
    min_free_mib: Option<u64>,
    log: Option<String>,
}

impl Config {
    /// The settings of a TOML file over the defaults. Every key is described in `docs/server.example.toml`; relative paths in it are relative
    /// to the folder the server is started in.
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
            tls: match (file.tls_certificate, file.tls_key) {
                (None, None) => None,
                (Some(certificate), Some(key)) => Some(TlsFiles { certificate, key }),
                (Some(_), None) => return Err(ConfigError::HalfTls { given: "tls_certificate" }),
                (None, Some(_)) => return Err(ConfigError::HalfTls { given: "tls_key" }),
            },
            allow_plain_http: file.allow_plain_http.unwrap_or(base.allow_plain_http),
            metrics_token_file: file.metrics_token_file,
            min_free_bytes: file.min_free_mib.map_or(base.min_free_bytes, |mib| mib.saturating_mul(MIB)),
            log: file.log.unwrap_or(base.log),
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
        if self.min_free_bytes > MAX_FREE_FLOOR {
            return Err(ConfigError::FreeFloor { given: self.min_free_bytes / MIB, max: MAX_FREE_FLOOR / MIB });
        }
        Ok(())
    }

    /// The token that lets `/metrics` be read.
    pub(crate) fn metrics_token(&self) -> Result<Option<AccessToken>, ConfigError> {
        let Some(path) = &self.metrics_token_file else { return Ok(None) };
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.clone(), source })?;
        let token = text.trim();
        if token.len() < MIN_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ConfigError::WeakToken { path: path.clone() });
        }
        Ok(Some(AccessToken::new(token)))
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
        std::fs::write(&path, "tls_key = \"key.pem\"\n").expect("write the settings");
        assert!(
            matches!(Config::from_file(&path), Err(ConfigError::HalfTls { given: "tls_key" })),
            "half a TLS must not become plain HTTP"
        );
    }

    const EXAMPLE: &str = include_str!("../../../docs/server.example.toml");

    fn load(text: &str) -> Config {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("server.toml");
        std::fs::write(&path, text).expect("write the settings");
        Config::from_file(&path).expect("the example must load")
    }

    #[test]
    fn the_example_settings_are_the_defaults_and_every_key_is_in_them() {
        assert_eq!(load(EXAMPLE), Config::default(), "using the example unchanged must change nothing");
        // A commented key is `# key = value` with nothing but that on the line.
        let all: String = EXAMPLE
            .lines()
            .map(|line| {
                line.strip_prefix("# ").filter(|rest| rest.split_once(" = ").is_some_and(|(k, _)| !k.contains(' '))).unwrap_or(line)
            })
            .map(|line| format!("{line}\n"))
            .collect();
        let table: toml::Table = all.parse().expect("with every comment taken off it is still TOML");
        let refusal = toml::from_str::<File>("no_such_key = 1").expect_err("unknown keys are refused").to_string();
        let known: Vec<&str> = refusal.split('`').skip(3).step_by(2).collect();
        assert!(known.len() > 8, "the refusal lists the keys this program knows: {refusal}");
        for key in known.iter().filter(|key| key.chars().all(|c| c.is_ascii_lowercase() || c == '_')) {
            assert!(table.contains_key(*key), "the example must describe `{key}`");
        }
        assert!(load(&all).tls.is_some(), "the commented TLS lines must be usable as they stand");
    }
}
