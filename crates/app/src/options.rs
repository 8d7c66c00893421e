//! How the program is started: flags shared by the window and the console.

use std::path::{Path, PathBuf};

use clap::Parser;

/// What a start needs to know.
#[derive(Debug, Clone)]
pub struct StartOptions {
    /// The writable folder (03 §2.1). Demo uses its own below it (D7).
    pub data_dir: PathBuf,
    pub demo: Option<DemoOptions>,
    /// Address of a phone's debugging port for this run, over the stored setting.
    pub phone: Option<String>,
    /// Tests and demo inject a credential store outside `data/` (D6): this file.
    pub secret_file: Option<PathBuf>,
    /// Begin claiming at once, without a press on Start.
    pub auto_start: bool,
    /// Log to the terminal as well (the console program).
    pub log_to_terminal: bool,
}

/// The whole product with no phone and no server (D15).
#[derive(Debug, Clone, Default)]
pub struct DemoOptions {
    /// Written once every sample task is settled; for `scripts/run` without a display.
    pub report: Option<PathBuf>,
}

/// The window's command line.
#[derive(Debug, Parser)]
#[command(name = "cmautobuy", version, about = "Pinduoduo collecting desk")]
struct WindowArgs {
    #[command(flatten)]
    common: CommonArgs,
}

/// Flags the window and the console share.
#[derive(Debug, Clone, clap::Args)]
pub struct CommonArgs {
    /// Run against a built-in server and a simulated phone.
    #[arg(long, global = true)]
    pub demo: bool,
    /// Write a report to this file once all sample tasks are settled (with --demo).
    #[arg(long, value_name = "FILE", requires = "demo", global = true)]
    pub demo_report: Option<PathBuf>,
    /// Data folder; default: `data` beside the program.
    #[arg(long, value_name = "DIR", env = "CMAUTOBUY_DATA_DIR", global = true)]
    pub data_dir: Option<PathBuf>,
    /// The phone for this run: 192.168.0.20:5555, adb:SERIAL, or adb:127.0.0.1:5037/SERIAL.
    #[arg(long, value_name = "ADDRESS", global = true)]
    pub phone: Option<String>,
    /// Keep secrets in this file instead of the system's credential store. For tests only: the file is not encrypted.
    #[arg(long, value_name = "FILE", env = "CMAUTOBUY_SECRET_FILE", hide = true, global = true)]
    pub secret_file: Option<PathBuf>,
}

impl CommonArgs {
    pub fn into_options(self) -> StartOptions {
        let root = self.data_dir.unwrap_or_else(default_data_dir);
        let demo = self.demo.then_some(DemoOptions { report: self.demo_report });
        // Demo has its own folder, so that it can never meet a real store (D7).
        let data_dir = if demo.is_some() { root.join("demo") } else { root };
        StartOptions {
            data_dir,
            auto_start: demo.is_some(),
            demo,
            phone: self.phone,
            secret_file: self.secret_file,
            log_to_terminal: false,
        }
    }
}

impl StartOptions {
    /// Reads the window's command line and environment; prints usage and exits on a wrong flag.
    pub fn from_env_and_args() -> Self {
        WindowArgs::parse().common.into_options()
    }
}

/// `data` beside the program once packaged; the checkout's `data` when run from a build folder (03 §2.1).
fn default_data_dir() -> PathBuf {
    let exe = std::env::current_exe().ok();
    let checkout = exe.as_deref().and_then(checkout_of);
    let beside = exe.as_deref().and_then(Path::parent).map(install_root);
    checkout.or(beside).unwrap_or_default().join("data")
}

/// The checkout a program built by cargo belongs to: the nearest parent that tracks `data/README.md` and a `Cargo.toml`.
fn checkout_of(exe: &Path) -> Option<PathBuf> {
    exe.ancestors().find(|dir| dir.join("Cargo.toml").is_file() && dir.join("data/README.md").is_file()).map(Path::to_path_buf)
}

/// The folder of the launcher: a program inside `app/` keeps its data outside it, so that an update may replace `app/`.
fn install_root(exe_dir: &Path) -> PathBuf {
    let in_app = exe_dir.file_name().is_some_and(|name| name.eq_ignore_ascii_case("app"));
    if in_app { exe_dir.parent().unwrap_or(exe_dir).to_path_buf() } else { exe_dir.to_path_buf() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_lies_beside_the_launcher() {
        for (exe_dir, want) in
            [("/d/CMAutoBuy/app", "/d/CMAutoBuy"), ("/d/CMAutoBuy/App", "/d/CMAutoBuy"), ("/d/CMAutoBuy", "/d/CMAutoBuy")]
        {
            assert_eq!(install_root(Path::new(exe_dir)), Path::new(want), "an update replaces app/ and must keep data/ (03 §2.3)");
        }
    }

    #[test]
    fn demo_never_opens_the_real_store() {
        let args = WindowArgs::parse_from(["cmautobuy", "--demo", "--data-dir", "/x/data"]);
        let options = args.common.into_options();
        assert_eq!(options.data_dir, Path::new("/x/data/demo"), "demo has its own folder (D7)");
        assert!(options.auto_start, "a newcomer sees the demo work without pressing anything");
    }
}
