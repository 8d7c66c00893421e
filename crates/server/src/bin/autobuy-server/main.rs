//! `autobuy-server`: serves, or does one administrator's call on the database file and ends. Decides nothing itself.

mod account;
mod cli;
mod log;
mod out;
mod task;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use cmautobuy_server::{Config, FIRST_ADMIN, Server, SystemClock, Verdict};
use tokio::net::TcpListener;

use cli::{Cli, Command, TaskCommand};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            out::error(&*error);
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<(), Box<dyn Error>> {
    let mut config = match &cli.config {
        Some(path) => Config::from_file(path)?,
        None => Config::default(),
    };
    if let Some(data_dir) = cli.data_dir {
        config.data_dir = data_dir;
    }
    match cli.command {
        Command::Serve { listen } => {
            if let Some(listen) = listen {
                config.listen = listen;
            }
            serve(config)
        }
        Command::Backup { file } => out::json(&open(config)?.backup(&file)?),
        Command::Restore { file } => restore(config, &file),
        Command::Prune => out::json(&open(config)?.prune()?),
        Command::Doctor { json } => doctor(&config, json),
        Command::Task(TaskCommand::Template { language }) => task::template(language),
        Command::Task(command) => task::run(&open(config)?, command),
        Command::User(command) => account::user(&open(config)?, command),
        Command::Device(command) => account::device(&open(config)?, command),
        Command::Audit { target, page } => {
            out::json(&open(config)?.admin().audit(target.as_deref(), page.cursor.as_deref(), Some(page.limit))?)
        }
    }
}

/// Opens the database. A first start's password goes to the terminal once, never through tracing (D6).
fn open(config: Config) -> Result<Server, Box<dyn Error>> {
    let mut server = Server::open(config, Arc::new(SystemClock))?;
    if let Some(password) = server.first_admin_password() {
        out::first_admin(FIRST_ADMIN, &password)?;
    }
    Ok(server)
}

fn serve(config: Config) -> Result<(), Box<dyn Error>> {
    let _logs = log::start(&config.data_dir, &config.log)?;
    let (listen, scheme) = (config.listen, if config.tls.is_some() { "https" } else { "http" });
    let server = open(config)?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind(listen).await.map_err(|error| format!("listen on {listen} ({error}); choose another --listen"))?;
        let address = listener.local_addr()?;
        server.may_serve(address)?;
        let told = told_to_stop()?;
        tracing::info!(%address, server_id = %server.server_id(), "serving");
        out::line(&format!("listening on {scheme}://{address}"))?;
        let stop = async {
            told.await;
            tracing::info!("stopping");
        };
        Ok(server.serve(listener, stop).await?)
    })
}

/// Ctrl-C, or what a service manager sends. Heard from the moment this returns.
#[cfg(unix)]
fn told_to_stop() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupted, mut ended) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = ended.recv() => {}
        }
    })
}

/// Ctrl-C, a closed console, or a machine that shuts down. Heard from the moment this returns.
#[cfg(windows)]
fn told_to_stop() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::windows::{ctrl_c, ctrl_close, ctrl_shutdown};
    let (mut interrupted, mut closed, mut shut_down) = (ctrl_c()?, ctrl_close()?, ctrl_shutdown()?);
    Ok(async move {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = closed.recv() => {}
            _ = shut_down.recv() => {}
        }
    })
}

fn restore(config: Config, file: &Path) -> Result<(), Box<dyn Error>> {
    let restored = Server::restore(config, Arc::new(SystemClock), file)?;
    out::json(&restored)?;
    let taken = restored.backed_up_at.map_or_else(|| "an unknown time".to_owned(), |at| at.to_string());
    out::line(&format!(
        "Restored to {taken}. Nothing the server learned after that is there: look through the orders made since, and send no list of tasks \
         from after it again before that. Everybody must log in anew."
    ))?;
    Ok(())
}

fn doctor(config: &Config, as_json: bool) -> Result<(), Box<dyn Error>> {
    let checks = Server::doctor(config, &SystemClock);
    if as_json {
        out::json(&checks)?;
    } else {
        out::checks(&checks)?;
    }
    let failed = checks.iter().filter(|check| check.verdict == Verdict::Fail).count();
    if failed == 0 { Ok(()) } else { Err(format!("{failed} of {} checks failed", checks.len()).into()) }
}
