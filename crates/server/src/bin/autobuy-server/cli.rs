//! The command line. Passwords are read from standard input, never from an argument another user could see.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use cmautobuy_protocol::account::{Permission, UserKind};
use cmautobuy_protocol::auth::Role;
use cmautobuy_protocol::{DeviceId, ExecutionMode, IdempotencyKey, RemoteTaskId, ServerStatus, TaskType, WireTime};

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
    /// Copies the database to a new file while the server works, and reads the copy back.
    Backup { file: PathBuf },
    /// Puts a backup in the database's place. Stop every server first. Live purchases that had not ended wait for a person afterwards.
    Restore { file: PathBuf },
    /// Forgets keys and logins nobody can use any more; a serving server does so every hour.
    Prune,
    /// Looks at everything the server stands on and says what to do. Changes nothing.
    Doctor {
        /// For programs.
        #[arg(long)]
        json: bool,
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
    /// What administrators changed in accounts, newest first.
    Audit {
        /// Only of one `user:<id>` or `device:<id>`.
        #[arg(long)]
        target: Option<String>,
        #[command(flatten)]
        page: Page,
    },
}

/// Which page of a list.
#[derive(Debug, Args)]
pub(crate) struct Page {
    /// What the page before ended with.
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    #[arg(long, default_value_t = cmautobuy_server::DEFAULT_PAGE)]
    pub(crate) limit: u32,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Creates one task.
    Create(Box<NewTask>),
    /// Creates all tasks of a CSV or XLSX list, or none when any row is refused.
    Import {
        file: PathBuf,
        /// Check everything, keep nothing.
        #[arg(long)]
        dry_run: bool,
        /// Without it the file's bytes are the key: the same file sent twice makes its tasks once.
        #[arg(long)]
        key: Option<IdempotencyKey>,
    },
    /// Prints an empty list with all columns, to be saved as .csv.
    Template {
        #[arg(long, value_enum, default_value_t = Language::Zh)]
        language: Language,
    },
    /// Lists tasks, newest first.
    List(Box<Filter>),
    /// Shows one task with its events, executions and results.
    Show { id: RemoteTaskId },
    /// Cancels a task, or asks its device to stop.
    Cancel { id: RemoteTaskId },
    /// Ends a task whose device is lost; it never goes back to the queue.
    Close {
        id: RemoteTaskId,
        /// The version `task show` names.
        #[arg(long)]
        version: u64,
        /// Kept in the task's events.
        #[arg(long)]
        reason: String,
        /// A person looked through the order list; needed when an order may exist.
        #[arg(long)]
        order_checked: bool,
    },
    /// Lets a live purchase that a restore held go on.
    ReleaseHold {
        id: RemoteTaskId,
        /// The version `task show` names.
        #[arg(long)]
        version: u64,
        /// A person looked through the order list: it was not bought after the backup.
        #[arg(long)]
        order_checked: bool,
    },
    /// Puts the reference image of a PENDING task: a JPEG file.
    SetImage { id: RemoteTaskId, file: PathBuf },
    /// Removes the reference image of a PENDING task.
    RemoveImage { id: RemoteTaskId },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    Zh,
    En,
}

/// Which tasks to list; all conditions given must hold.
#[derive(Debug, Args)]
pub(crate) struct Filter {
    /// PENDING, CLAIMED, RUNNING, WAITING_CONFIRMATION, SUCCEEDED, FAILED or CANCELED.
    #[arg(long, value_parser = status)]
    pub(crate) status: Option<ServerStatus>,
    #[arg(long = "type", value_enum)]
    pub(crate) task_type: Option<Kind>,
    #[arg(long, value_enum)]
    pub(crate) mode: Option<Mode>,
    /// Who holds it or held it last.
    #[arg(long)]
    pub(crate) device: Option<DeviceId>,
    /// User name of who holds it or held it last.
    #[arg(long)]
    pub(crate) user: Option<String>,
    #[arg(long)]
    pub(crate) external_ref: Option<String>,
    #[arg(long)]
    pub(crate) goods_id: Option<String>,
    /// Part of the title.
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Created at this time or later, such as 2026-03-02T08:00:00.000Z.
    #[arg(long)]
    pub(crate) from: Option<WireTime>,
    /// Created before this time.
    #[arg(long)]
    pub(crate) before: Option<WireTime>,
    #[arg(long)]
    pub(crate) cancel_requested: Option<bool>,
    #[arg(long)]
    pub(crate) order_may_exist: Option<bool>,
    /// Kept from being claimed since a restore.
    #[arg(long)]
    pub(crate) held: Option<bool>,
    #[command(flatten)]
    pub(crate) page: Page,
}

fn status(text: &str) -> Result<ServerStatus, String> {
    ServerStatus::parse(&text.to_uppercase()).ok_or_else(|| {
        let known: Vec<_> = ServerStatus::ALL.iter().map(|status| status.as_str()).collect();
        format!("known: {}", known.join(", "))
    })
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
        #[arg(long, value_enum, default_value_t = KindName::Platform)]
        kind: KindName,
        /// Such as platform:self-operated-analytics:list.
        #[arg(long, value_parser = permission)]
        permission: Vec<Permission>,
    },
    /// Lists users by name.
    List {
        /// Part of the name.
        #[arg(long)]
        name: Option<String>,
        #[arg(long, value_enum)]
        kind: Option<KindName>,
        #[arg(long, value_enum)]
        role: Option<RoleName>,
        #[arg(long)]
        disabled: Option<bool>,
        #[command(flatten)]
        page: Page,
    },
    /// Shows a user with its permissions and warehouse grants.
    Show {
        #[arg(long)]
        name: String,
    },
    /// Changes kind, roles or permissions; each list given is the whole new one.
    Change {
        #[arg(long)]
        name: String,
        #[arg(long, value_enum)]
        kind: Option<KindName>,
        #[arg(long, value_enum)]
        role: Vec<RoleName>,
        #[arg(long, value_parser = permission)]
        permission: Vec<Permission>,
        /// Takes every permission away.
        #[arg(long, conflicts_with = "permission")]
        no_permission: bool,
    },
    /// Lets a user look at a warehouse of an account.
    Grant(Grant),
    /// Takes such a grant away.
    Revoke(Grant),
    /// Ends the user's logins and lets nobody in with this name.
    Disable {
        #[arg(long)]
        name: String,
    },
    Enable {
        #[arg(long)]
        name: String,
    },
    /// Ends every login of the user.
    EndSessions {
        #[arg(long)]
        name: String,
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

#[derive(Debug, Args)]
pub(crate) struct Grant {
    /// User name.
    #[arg(long)]
    pub(crate) name: String,
    #[arg(long)]
    pub(crate) account: String,
    #[arg(long)]
    pub(crate) warehouse: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum KindName {
    Platform,
    Customer,
}

impl From<KindName> for UserKind {
    fn from(name: KindName) -> Self {
        match name {
            KindName::Platform => Self::Platform,
            KindName::Customer => Self::Customer,
        }
    }
}

fn permission(text: &str) -> Result<Permission, String> {
    Permission::parse(text).ok_or_else(|| {
        let known: Vec<_> = Permission::ALL.iter().map(|permission| permission.as_str()).collect();
        format!("known permissions: {}", known.join(", "))
    })
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
    /// Lists devices with what they said last.
    List {
        /// Only this user's.
        #[arg(long)]
        user: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    Rename {
        #[arg(long)]
        device: DeviceId,
        #[arg(long)]
        name: String,
    },
    /// Logs the device out and lets it in no more; a task it runs stays RUNNING.
    Disable {
        #[arg(long)]
        device: DeviceId,
    },
    Enable {
        #[arg(long)]
        device: DeviceId,
    },
    /// Forgets which instance of the device was heard last, for a restart that cannot wait. Only when the old one is surely gone.
    ForgetInstance {
        #[arg(long)]
        device: DeviceId,
    },
}
