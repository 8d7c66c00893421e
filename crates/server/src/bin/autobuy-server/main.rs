//! `autobuy-server`: serves, or does one administrator's call on the database file and ends. Decides nothing itself.

mod cli;
mod log;
mod out;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use cmautobuy_protocol::admin::{AuthorizeDevice, CreateTask, CreateUser};
use cmautobuy_server::{Config, FIRST_ADMIN, Server, SystemClock};
use tokio::net::TcpListener;

use cli::{Cli, Command, DeviceCommand, TaskCommand, UserCommand};

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
        Command::Task(command) => task(&open(config)?, command),
        Command::User(command) => user(&open(config)?, command),
        Command::Device(command) => device(&open(config)?, command),
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
    let _logs = log::start(&config.data_dir)?;
    let listen = config.listen;
    if !listen.ip().is_loopback() {
        tracing::warn!(%listen, "listening beyond this computer without TLS; put a TLS proxy in front");
    }
    let server = open(config)?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind(listen).await.map_err(|error| format!("listen on {listen} ({error}); choose another --listen"))?;
        let address = listener.local_addr()?;
        tracing::info!(%address, server_id = %server.server_id(), "serving");
        out::line(&format!("listening on http://{address}"))?;
        let stop = async {
            // Without a way to be told to stop, the process still ends when it is killed; every answer was committed before it was sent.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
            tracing::info!("stopping");
        };
        Ok(server.serve(listener, stop).await?)
    })
}

fn task(server: &Server, command: TaskCommand) -> Result<(), Box<dyn Error>> {
    let admin = server.admin();
    match command {
        TaskCommand::Create(new) => {
            let asked = CreateTask {
                task_type: new.task_type.into(),
                execution_mode: new.mode.into(),
                goods_url: new.goods_url,
                title: new.title,
                target_color: new.color,
                target_size: new.size,
                price_cent: new.price_cent,
                max_price_cent: new.max_price_cent,
                quantity: new.quantity,
                priority: new.priority,
                external_ref: new.external_ref,
            };
            out::json(&admin.create_task(&asked, new.key.as_ref())?)
        }
        TaskCommand::List { cursor, limit } => out::tasks(&admin.list(cursor.as_deref(), Some(limit))?),
        TaskCommand::Show { id } => out::json(&admin.detail(id)?),
        TaskCommand::Cancel { id } => out::json(&admin.cancel(id)?),
    }
}

fn user(server: &Server, command: UserCommand) -> Result<(), Box<dyn Error>> {
    let admin = server.admin();
    match command {
        UserCommand::Create { name, role } => {
            let password = out::read_password()?;
            let roles = role.into_iter().map(Into::into).collect();
            out::json(&admin.create_user(&CreateUser { user_name: name, password, roles })?)
        }
        UserCommand::SetPassword { name } => Ok(admin.set_password(&name, &out::read_password()?)?),
    }
}

fn device(server: &Server, command: DeviceCommand) -> Result<(), Box<dyn Error>> {
    let admin = server.admin();
    match command {
        DeviceCommand::Authorize { device, user, name } => {
            let user_id = admin.user_id(&user)?.ok_or_else(|| format!("there is no user {user}; create it first"))?;
            Ok(admin.authorize_device(&AuthorizeDevice { device_id: device, user_id, name })?)
        }
        DeviceCommand::ForgetInstance { device } => Ok(admin.forget_instance(device)?),
    }
}
