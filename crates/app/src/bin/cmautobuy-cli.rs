//! The console: the same house as the window, for a desk without a display and for tests.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a console program talks to its terminal")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use cmautobuy_app::view::{LoginForm, Overview, TaskQuery, TaskStateView, WorkMode};
use cmautobuy_app::{App, CommonArgs, Problem, Report};

#[derive(Debug, Parser)]
#[command(name = "cmautobuy-cli", version, about = "Pinduoduo collecting desk, console")]
struct Args {
    #[command(flatten)]
    common: CommonArgs,
    /// Language of messages: zh or en.
    #[arg(long, default_value = "zh", value_parser = ["zh", "en"], global = true)]
    lang: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Claim and run tasks until interrupted; with --once, until there is nothing left to do.
    Run {
        #[arg(long)]
        once: bool,
        /// Give up with --once after this many seconds.
        #[arg(long, default_value_t = 600)]
        within_seconds: u64,
    },
    /// Show lights, counts and the newest tasks.
    Status,
    /// Check data folder, database, login, server, phone and Pinduoduo, with the next step for each.
    Doctor {
        /// Do what can be done without a person: start adb, reconnect, turn animations off.
        #[arg(long, conflicts_with = "undo")]
        fix: bool,
        /// Give the phone's animations back as they were before --fix.
        #[arg(long)]
        undo: bool,
    },
    /// List phones: seen now through our adb, announced in the network, and remembered.
    Phones,
    /// Pair with a phone by the address and the six digits of its pairing window.
    Pair { address: String, code: String },
    /// Log in to a server; the password is read from CMAUTOBUY_PASSWORD or the terminal.
    Login {
        #[arg(long)]
        server: String,
        #[arg(long)]
        user: String,
    },
    /// Print this installation's device id, to be authorised on the server.
    Device,
    /// Collect an ended collect task once more, by its number on the server.
    Recollect { task: String },
    /// Print a demo report as a table; fails unless every task ended as expected.
    DemoTable { report: PathBuf },
}

fn say(problem: &Problem, lang: &str) {
    let sentence = if lang == "en" { &problem.en } else { &problem.zh };
    eprintln!("[{}] {} {}", problem.code, sentence.cause, sentence.next_step);
    if !problem.detail.is_empty() {
        eprintln!("    {}", problem.detail);
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let lang = args.lang.clone();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(go(args)) {
        Ok(code) => code,
        Err(problem) => {
            say(&problem, &lang);
            ExitCode::FAILURE
        }
    }
}

async fn go(args: Args) -> Result<ExitCode, Problem> {
    if let Command::DemoTable { report } = &args.command {
        return demo_table(report);
    }
    let running = matches!(args.command, Command::Run { .. });
    let mut options = args.common.into_options();
    options.log_to_terminal = running;
    options.auto_start &= running;
    let app = App::start(options).await?;
    let done = match &args.command {
        Command::Run { once, within_seconds } => run(&app, *once, Duration::from_secs(*within_seconds), &args.lang).await,
        Command::Status => {
            app.settle_lights(Duration::from_secs(5)).await;
            status(&app, &args.lang).await
        }
        Command::Doctor { fix, undo } => doctor(&app, &args.lang, *fix, *undo).await,
        Command::Phones => phones(&app, &args.lang).await,
        Command::Pair { address, code } => app.pair_phone(address, code).await.map(|()| ExitCode::SUCCESS),
        Command::Login { server, user } => login(&app, server, user).await,
        Command::Device => app.overview().await.map(|overview| {
            println!("{}", overview.device_id);
            ExitCode::SUCCESS
        }),
        Command::Recollect { task } => app.recollect_remote(task).await.map(|()| ExitCode::SUCCESS),
        Command::DemoTable { .. } => Ok(ExitCode::SUCCESS),
    };
    app.shutdown().await;
    done
}

fn demo_table(path: &PathBuf) -> Result<ExitCode, Problem> {
    let unreadable = |error: &dyn std::error::Error| cmautobuy_app::problem::Kind::NotFound.with(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| unreadable(&e))?;
    let report: Report = serde_json::from_str(&text).map_err(|e| unreadable(&e))?;
    print!("{}", report.table());
    Ok(if report.all_as_expected { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn run(app: &App, once: bool, within: Duration, lang: &str) -> Result<ExitCode, Problem> {
    app.start_work().await?;
    let mut changes = app.changes();
    let over = tokio::time::sleep(within);
    tokio::pin!(over);
    loop {
        let overview = app.overview().await?;
        if once {
            if overview.work == WorkMode::RetryPaused {
                if let Some(problem) = &overview.work_problem {
                    say(problem, lang);
                }
                return Ok(ExitCode::FAILURE);
            }
            if is_done(&overview) && app.nothing_to_claim() {
                return status(app, lang).await;
            }
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return Ok(ExitCode::SUCCESS) },
            _ = tokio::signal::ctrl_c() => return Ok(ExitCode::SUCCESS),
            () = &mut over, if once => {
                eprintln!("not done within {} s", within.as_secs());
                status(app, lang).await?;
                return Ok(ExitCode::FAILURE);
            }
        }
    }
}

/// Nothing runs, waits or is unsent.
fn is_done(overview: &Overview) -> bool {
    let open =
        |state| matches!(state, TaskStateView::Claimed | TaskStateView::Running | TaskStateView::ResultPending | TaskStateView::RetryWait);
    overview.outbox_waiting == 0 && !overview.counts.iter().any(|c| c.count > 0 && open(c.state))
}

async fn status(app: &App, lang: &str) -> Result<ExitCode, Problem> {
    let overview = app.overview().await?;
    println!("CMAutoBuy {}  data {}", overview.version, overview.data_dir);
    for (name, light) in
        [("server", &overview.server), ("phone", &overview.phone), ("pinduoduo", &overview.pinduoduo), ("outbox", &overview.outbox)]
    {
        println!("{name:<10} {:<6} {}", format!("{:?}", light.level).to_lowercase(), light.subject);
        if let Some(problem) = &light.problem {
            say(problem, lang);
        }
    }
    let page = app.task_list(TaskQuery { limit: 20, ..TaskQuery::default() }).await?;
    for item in page.items {
        let price = item.price_cent.map_or_else(|| "-".to_owned(), |c| format!("¥{}.{:02}", c / 100, c % 100));
        let short = &item.remote_task_id[item.remote_task_id.len().saturating_sub(8)..];
        let state = format!("{:?}", item.state);
        println!("{short}  {state:<14} {price:>10}  {}", item.title.or(item.goods_id).unwrap_or_default());
    }
    Ok(ExitCode::SUCCESS)
}

async fn phones(app: &App, lang: &str) -> Result<ExitCode, Problem> {
    let list = app.phones().await?;
    for phone in list.phones {
        let now = phone.state.as_deref().unwrap_or("-");
        println!("{:<24} {:<12} {:<18} {}", phone.serial, now, phone.model, phone.roads.join("  "));
    }
    for problem in &list.problems {
        say(problem, lang);
    }
    Ok(ExitCode::SUCCESS)
}

async fn doctor(app: &App, lang: &str, fix: bool, undo: bool) -> Result<ExitCode, Problem> {
    app.settle_lights(Duration::from_secs(8)).await;
    if fix {
        for done in app.doctor_fix().await? {
            println!("+ {done}");
        }
    }
    if undo {
        println!("{}", if app.doctor_undo().await? { "+ animations given back" } else { "nothing was changed" });
        return Ok(ExitCode::SUCCESS);
    }
    let findings = app.doctor().await?;
    let mut code = ExitCode::SUCCESS;
    for finding in findings {
        let mark = match (&finding.problem, finding.advice) {
            (None, _) => "✓",
            (Some(_), true) => "!",
            (Some(_), false) => "✗",
        };
        println!("{mark} {:?}  {}{}", finding.check, finding.subject, if finding.fixable { "(--fix)" } else { "" });
        if let Some(problem) = &finding.problem {
            say(problem, lang);
            if !finding.advice {
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

async fn login(app: &App, server: &str, user: &str) -> Result<ExitCode, Problem> {
    let password = match std::env::var("CMAUTOBUY_PASSWORD") {
        Ok(password) => password,
        Err(_) => {
            eprint!("password: ");
            let mut line = String::new();
            let _ = std::io::stdin().read_line(&mut line);
            line.trim_end_matches(['\r', '\n']).to_owned()
        }
    };
    app.login(LoginForm { base_url: server.to_owned(), user_name: user.to_owned(), password }).await?;
    println!("logged in as {user}");
    Ok(ExitCode::SUCCESS)
}
