//! The simulated phone as a program, for `adb connect` by hand and for training.
//! It starts nothing but the library.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use cmautobuy_phone_sim::{Auth, Catalogue, Fault, SimConfig, start};

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
    let catalogue = match &options.catalogue {
        None => Catalogue::builtin(),
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
    tokio::signal::ctrl_c().await.map_err(|error| format!("cannot wait for Ctrl-C: {error}"))?;
    sim.stop().await;
    Ok(())
}
