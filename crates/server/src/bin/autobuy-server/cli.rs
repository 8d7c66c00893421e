//! The command line. Passwords are read from standard input, never from an argument another user could see.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use cmautobuy_protocol::auth::Role;
use cmautobuy_protocol::{DeviceId, ExecutionMode, IdempotencyKey, RemoteTaskId, TaskType};

/// CMAutoBuy's companion server.
#[derive(Debug, Parser)]
#[command(name = "autobuy-server", version)]
pub(crate) struct Cli {
    /// Folder of the database and the logs.
    #[arg(long, global = true, env = "AUTOBUY_SERVER_DATA")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Settings file (TOML).
    #[arg(long, global = true)]
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Answers clients until Ctrl-C.
    Serve {
        /// Address to listen on.
        #[arg(long)]
        listen: Option<SocketAddr>,
    },
    /// Tasks.
    #[command(subcommand)]
    Task(TaskCommand),
    /// Users.
    #[command(subcommand)]
    User(UserCommand),
    /// Devices.
    #[command(subcommand)]
    Device(DeviceCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Creates one task.
    Create(Box<NewTask>),
    /// Lists tasks, newest first.
    List {
        #[arg(long)]
        cursor: Option<String>,
        #[arg(long, default_value_t = cmautobuy_server::DEFAULT_PAGE)]
        limit: u32,
    },
    /// Shows one task with its events, executions and results.
    Show { id: RemoteTaskId },
    /// Cancels a task, or asks its device to stop.
    Cancel { id: RemoteTaskId },
}

#[derive(Debug, Args)]
pub(crate) struct NewTask {
    #[arg(long)]
    pub(crate) goods_url: String,
    #[arg(long = "type", value_enum, default_value_t = Kind::Collect)]
    pub(crate) task_type: Kind,
    #[arg(long, value_enum, default_value_t = Mode::DryRun)]
    pub(crate) mode: Mode,
    #[arg(long)]
    pub(crate) title: Option<String>,
    #[arg(long)]
    pub(crate) color: Option<String>,
    #[arg(long)]
    pub(crate) size: Option<String>,
    #[arg(long)]
    pub(crate) price_cent: Option<u64>,
    #[arg(long)]
    pub(crate) max_price_cent: Option<u64>,
    #[arg(long)]
    pub(crate) quantity: Option<u32>,
    #[arg(long, default_value_t = 0)]
    pub(crate) priority: i64,
    /// The caller's own number; unique, and required for a purchase.
    #[arg(long)]
    pub(crate) external_ref: Option<String>,
    /// Repeating the command with the same key creates nothing twice.
    #[arg(long)]
    pub(crate) key: Option<IdempotencyKey>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Kind {
    Collect,
    Purchase,
}

impl From<Kind> for TaskType {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Collect => Self::Collect,
            Kind::Purchase => Self::Purchase,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Mode {
    DryRun,
    Live,
}

impl From<Mode> for ExecutionMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::DryRun => Self::DryRun,
            Mode::Live => Self::Live,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Creates a user; the password is read from standard input.
    Create {
        #[arg(long)]
        name: String,
        #[arg(long, value_enum, required = true)]
        role: Vec<RoleName>,
    },
    /// Sets a new password, read from standard input, and ends the user's logins.
    SetPassword {
        #[arg(long)]
        name: String,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum RoleName {
    Admin,
    Buyer,
    Reviewer,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Admin => Self::Admin,
            RoleName::Buyer => Self::Buyer,
            RoleName::Reviewer => Self::Reviewer,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeviceCommand {
    /// Lets a device work for a user.
    Authorize {
        #[arg(long)]
        device: DeviceId,
        /// User name.
        #[arg(long)]
        user: String,
        /// What people call this computer.
        #[arg(long)]
        name: String,
    },
    /// Forgets which instance of the device was heard last, for a restart that cannot wait. Only when the old one is surely gone.
    ForgetInstance {
        #[arg(long)]
        device: DeviceId,
    },
}
