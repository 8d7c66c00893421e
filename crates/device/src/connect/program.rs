//! The adb program: where it is, how old it is, and running it without ever waiting for ever.
//!
//! What it prints is decoded from UTF-8 or GBK, since a Chinese Windows answers in its own code page. It is never run without
//! our port: an adb that is told nothing starts a server on 5037 (facts/adb A10).

use std::env;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::adb::text;
use crate::connect::ConnectError;

/// Printing a version takes milliseconds; a virus scanner looking at a new exe takes seconds.
const VERSION_LIMIT: Duration = Duration::from_secs(10);
/// Kept of what adb printed.
const SAID_CHARS: usize = 2000;

#[cfg(windows)]
const NAME: &str = "adb.exe";
#[cfg(not(windows))]
const NAME: &str = "adb";

/// Where an adb program may be, best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdbPlaces {
    /// Named by the operator: this one or none.
    pub chosen: Option<PathBuf>,
    pub candidates: Vec<PathBuf>,
}

impl AdbPlaces {
    /// Beside our own program, then the Android SDK, then the search path.
    pub fn of_this_computer(chosen: Option<PathBuf>, program_folder: Option<&Path>) -> AdbPlaces {
        let bundled = program_folder
            .into_iter()
            .flat_map(|folder| [folder.join("resources").join("adb").join(NAME), folder.join("adb").join(NAME), folder.join(NAME)]);
        let sdk = ["ANDROID_HOME", "ANDROID_SDK_ROOT"]
            .into_iter()
            .filter_map(env::var_os)
            .map(|root| PathBuf::from(root).join("platform-tools").join(NAME));
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::split_paths(&path).filter(|folder| folder.is_absolute()).map(|folder| folder.join(NAME));
        AdbPlaces { chosen, candidates: bundled.chain(sdk).chain(path).collect() }
    }
}

/// What `adb version` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdbVersion {
    /// The number client and server compare, for example 41.
    pub protocol: u32,
    /// Of the platform tools, for example `36.0.0-13206524`.
    pub release: String,
}

impl AdbVersion {
    /// First number of the release; 0 when unknown.
    pub fn major(&self) -> u32 {
        self.release.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }

    pub(crate) fn parse(text: &str) -> Option<AdbVersion> {
        let first = text.lines().find_map(|line| line.trim().strip_prefix("Android Debug Bridge version "))?;
        let protocol = first.trim().rsplit('.').next()?.parse().ok()?;
        let release = text.lines().find_map(|line| line.trim().strip_prefix("Version ")).unwrap_or_default();
        Some(AdbVersion { protocol, release: release.trim().to_owned() })
    }
}

/// An adb program on this computer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdbProgram {
    path: PathBuf,
}

impl AdbProgram {
    /// The first that is there.
    ///
    /// # Errors
    /// [`ConnectError::NoAdb`] with the places looked at.
    pub fn find(places: &AdbPlaces) -> Result<AdbProgram, ConnectError> {
        let looked: Vec<&PathBuf> = match &places.chosen {
            // A wrong path must be told, not papered over with another adb.
            Some(chosen) => vec![chosen],
            None => places.candidates.iter().collect(),
        };
        match looked.iter().find(|path| path.is_file()) {
            Some(path) => Ok(AdbProgram { path: (*path).clone() }),
            None => {
                Err(ConnectError::NoAdb { looked: looked.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ") })
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// # Errors
    /// [`ConnectError::AdbFailed`] with what it printed, [`ConnectError::Timeout`].
    pub async fn version(&self) -> Result<AdbVersion, ConnectError> {
        let mut command = self.command(super::PRIVATE_PORT);
        command.arg("version");
        let said = said(command, "tell its version", VERSION_LIMIT).await?;
        AdbVersion::parse(&said).ok_or(ConnectError::AdbFailed { what: "tell its version", said })
    }

    /// A command of this program that can only ever mean the server on `port`.
    pub(crate) fn command(&self, port: u16) -> Command {
        let mut command = quiet(&self.path);
        command.arg("-P").arg(port.to_string());
        command.env("ANDROID_ADB_SERVER_PORT", port.to_string());
        // Each of these would send us to another server or another phone.
        for name in ["ADB_SERVER_SOCKET", "ANDROID_ADB_SERVER_ADDRESS", "ANDROID_SERIAL", "ADB_TRACE"] {
            command.env_remove(name);
        }
        // Discovery without Apple's Bonjour, where this adb has it.
        command.env("ADB_MDNS_OPENSCREEN", "1");
        command
    }
}

/// A program without window and without input that dies with its handle.
pub(crate) fn quiet(path: &Path) -> Command {
    let mut command = Command::new(path);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    #[cfg(windows)]
    {
        const CREATE_NO_WINDOW: u32 = 0x0800_0000;
        command.creation_flags(CREATE_NO_WINDOW);
    }
    command
}

/// Runs to the end: stdout when it succeeded, else an error with both streams, stderr first.
pub(crate) async fn said(mut command: Command, what: &'static str, limit: Duration) -> Result<String, ConnectError> {
    let output = match tokio::time::timeout(limit, command.output()).await {
        Err(_) => return Err(ConnectError::Timeout { what, limit }),
        Ok(Err(error)) => return Err(ConnectError::AdbFailed { what, said: error.to_string() }),
        Ok(Ok(output)) => output,
    };
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let both = format!("{}\n{}\n{}", output.status, text(&output.stderr).trim(), text(&output.stdout).trim());
    Err(ConnectError::AdbFailed { what, said: shortened(both.trim()) })
}

pub(crate) fn shortened(said: &str) -> String {
    said.chars().take(SAID_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let rows = [
            ("debian", "Android Debug Bridge version 1.0.41\nVersion 29.0.6-debian\nInstalled as /usr/bin/adb\n", Some((41, 29))),
            ("google", "Android Debug Bridge version 1.0.41\r\nVersion 36.0.0-13206524\r\nInstalled as C:\\a\\adb.exe\r\n", Some((41, 36))),
            ("old", "Android Debug Bridge version 1.0.31\n", Some((31, 0))),
            ("not adb", "hello", None),
            ("cut", "Android Debug Bridge version ", None),
        ];
        for (name, said, want) in rows {
            let got = AdbVersion::parse(said).map(|version| (version.protocol, version.major()));
            assert_eq!(got, want, "row {name}: a clash is found by these numbers");
        }
    }

    #[test]
    fn a_chosen_path_is_the_only_one() {
        let here = env::current_exe().expect("a running test has a file");
        let places = AdbPlaces { chosen: None, candidates: vec![PathBuf::from("/nowhere/adb"), here.clone()] };
        assert_eq!(AdbProgram::find(&places).expect("the second is there").path(), here, "the first that exists is taken");
        let wrong = AdbPlaces { chosen: Some(PathBuf::from("/nowhere/adb")), ..places };
        let error = AdbProgram::find(&wrong).expect_err("the operator named one that is not there");
        assert_eq!(error.code(), "ADB_MISSING", "another adb must not be used silently");
        assert!(error.to_string().contains("/nowhere/adb"), "the place looked at is named: {error}");
    }
}
