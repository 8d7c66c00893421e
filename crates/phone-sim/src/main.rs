//! The simulated phone as a program, for `adb connect` by hand and for training.
//! It starts nothing but the library.

use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use cmautobuy_phone_sim::{Auth, Catalogue, Fault, FaultPlan, Reach, Recording, Scenario, SimConfig, start};

/// A simulated phone with Pinduoduo on it. Connect with `adb connect <address>`.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// Where to listen. 5555 would show up as an emulator on every adb server of this computer.
    #[arg(long, default_value = "127.0.0.1:15555")]
    listen: SocketAddr,
    #[arg(long, default_value = "CMSIM0001")]
    serial: String,
    /// Who may connect.
    #[arg(long, value_enum, default_value_t = AuthOption::Open)]
    auth: AuthOption,
    /// How long one UI dump takes, in milliseconds.
    #[arg(long, default_value_t = 350)]
    dump_ms: u64,
    /// Another catalogue, in the format of data/catalogue.toml.
    #[arg(long)]
    catalogue: Option<PathBuf>,
    /// Leave Pinduoduo out.
    #[arg(long)]
    without_pdd: bool,
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Start with a misbehaviour; may be given several times.
    #[arg(long, value_enum)]
    fault: Vec<FaultOption>,
    /// A shipped scenario by name, or a scenario file. `--scenario list` prints the names.
    #[arg(long)]
    scenario: Option<String>,
    /// A random schedule of faults by this seed, in place of the scenario's own.
    #[arg(long)]
    random_faults: Option<u64>,
    /// Play a recorded run back instead of the model; see resources/phone-sim/README.md for the format.
    #[arg(long)]
    replay: Option<PathBuf>,
    /// Serve a page that shows the screen and takes taps, such as 127.0.0.1:15580.
    #[arg(long)]
    screen: Option<SocketAddr>,
    /// Serve the control call alone, such as 127.0.0.1:15581.
    #[arg(long)]
    control: Option<SocketAddr>,
    /// Let other computers reach --screen and --control.
    #[arg(long)]
    open_to_network: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AuthOption {
    Open,
    AllowAny,
    Deny,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FaultOption {
    HangDump,
    NeverIdle,
    StaleFile,
    Captcha,
    Login,
    Network,
    Locked,
    Notification,
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()))
        .with_writer(std::io::stderr)
        .init();
    match run(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            tracing::error!("{problem}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<(), String> {
    if options.scenario.as_deref() == Some("list") {
        for name in Scenario::names() {
            let about = Scenario::named(name).map(|one| one.about).unwrap_or_default();
            tracing::info!("{name}: {about}");
        }
        return Ok(());
    }
    let catalogue = match &options.catalogue {
        None => Catalogue::seeded(options.seed),
        Some(path) => {
            let text =
                std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}. Check the path.", path.display()))?;
            Catalogue::from_toml(&text).map_err(|error| format!("{} is no catalogue: {error}. See data/catalogue.toml.", path.display()))?
        }
    };
    let config = SimConfig {
        listen: options.listen,
        serial: options.serial,
        auth: match options.auth {
            AuthOption::Open => Auth::Open,
            AuthOption::AllowAny => Auth::AllowAny { ask: false },
            AuthOption::Deny => Auth::Deny,
        },
        dump_time: Duration::from_millis(options.dump_ms),
        catalogue,
        pdd_installed: !options.without_pdd,
        seed: options.seed,
        replay: options.replay.as_deref().map(recording).transpose()?,
        ..SimConfig::default()
    };
    let config = match &options.scenario {
        None => config,
        Some(wanted) => config.with_scenario(scenario(wanted)?),
    };
    let config = match options.random_faults {
        None => config,
        Some(seed) => SimConfig { plan: FaultPlan::random(seed), ..config },
    };
    let sim = start(config).await.map_err(|error| format!("cannot listen on {}: {error}. Choose another --listen.", options.listen))?;
    for fault in options.fault {
        sim.set_fault(match fault {
            FaultOption::HangDump => Fault::HangDump,
            FaultOption::NeverIdle => Fault::NeverIdle,
            FaultOption::StaleFile => Fault::StaleFile,
            FaultOption::Captcha => Fault::CaptchaOnGoods,
            FaultOption::Login => Fault::LoginWall,
            FaultOption::Network => Fault::NetworkError,
            FaultOption::Locked => Fault::ScreenLocked,
            FaultOption::Notification => Fault::SystemUiNotification,
        });
    }
    tracing::info!("listening; connect with: adb connect {}", sim.addr());
    let reach = if options.open_to_network { Reach::Network } else { Reach::ThisComputer };
    let cannot = |at: SocketAddr, error: std::io::Error| {
        format!("cannot serve on {at}: {error}. Choose a loopback address, or add --open-to-network.")
    };
    if let Some(at) = options.screen {
        let at = sim.serve_screen(at, reach).await.map_err(|error| cannot(at, error))?;
        tracing::info!("the screen is at http://{at}/");
    }
    if let Some(at) = options.control {
        let at = sim.serve_control(at, reach).await.map_err(|error| cannot(at, error))?;
        tracing::info!("the control call is at http://{at}/state");
    }
    tokio::signal::ctrl_c().await.map_err(|error| format!("cannot wait for Ctrl-C: {error}"))?;
    sim.stop().await;
    Ok(())
}

/// A shipped scenario, else a file.
fn scenario(wanted: &str) -> Result<Scenario, String> {
    if let Some(shipped) = Scenario::named(wanted) {
        return Ok(shipped);
    }
    let text = std::fs::read_to_string(wanted).map_err(|error| {
        format!("{wanted} is no shipped scenario and cannot be read: {error}. `--scenario list` prints the shipped ones.")
    })?;
    Scenario::from_toml(&text).map_err(|error| format!("{wanted} is no scenario: {}", chain(&error)))
}

fn recording(path: &Path) -> Result<Recording, String> {
    Recording::open(path).map_err(|error| format!("{} is no recording: {}", path.display(), chain(&error)))
}

fn chain(error: &dyn Error) -> String {
    let mut all = error.to_string();
    let mut source = error.source();
    while let Some(next) = source {
        all.push_str(": ");
        all.push_str(&next.to_string());
        source = next.source();
    }
    all
}
