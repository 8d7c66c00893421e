//! What goes to the terminal. The only place of the program that writes to standard output.

use std::error::Error;
use std::io::{self, BufRead, IsTerminal, Write};

use cmautobuy_protocol::Password;
use cmautobuy_protocol::admin::TaskPage;
use cmautobuy_server::{Check, Verdict};
use serde::Serialize;

pub(crate) fn line(text: &str) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{text}")
}

pub(crate) fn json(value: &impl Serialize) -> Result<(), Box<dyn Error>> {
    Ok(line(&serde_json::to_string_pretty(value)?)?)
}

pub(crate) fn tasks(page: &TaskPage) -> Result<(), Box<dyn Error>> {
    for task in &page.tasks {
        let title = task.title.as_deref().unwrap_or("-");
        line(&format!("{}  {:<20}  {:<8}  {}  {title}", task.task_id, task.status.as_str(), task.task_type.as_str(), task.goods_id))?;
    }
    if let Some(next) = &page.next {
        line(&format!("more: --cursor {next}"))?;
    }
    Ok(())
}

pub(crate) fn checks(checks: &[Check]) -> Result<(), Box<dyn Error>> {
    for check in checks {
        let verdict = match check.verdict {
            Verdict::Ok => "ok  ",
            Verdict::Warn => "WARN",
            Verdict::Fail => "FAIL",
        };
        line(&format!("{verdict}  {:<14}  {}", check.name, check.says))?;
    }
    Ok(())
}

/// The one time this password is ever shown (D6). To standard error, so that it does not mix with an answer.
pub(crate) fn first_admin(name: &str, password: &Password) -> io::Result<()> {
    let mut terminal = io::stderr().lock();
    writeln!(terminal, "First start. Administrator: {name}  password: {}", password.reveal())?;
    writeln!(terminal, "It is not shown again; to set another: autobuy-server user set-password --name {name}")
}

/// The error with its causes, one a line; a refusal's sentence already says the next step.
pub(crate) fn error(error: &dyn Error) {
    let mut terminal = io::stderr().lock();
    let mut cause = Some(error);
    let mut lead = "error: ";
    while let Some(error) = cause {
        // There is nobody left to tell when standard error is closed.
        if writeln!(terminal, "{lead}{error}").is_err() {
            return;
        }
        lead = "  because: ";
        cause = error.source();
    }
}

/// One line of standard input.
pub(crate) fn read_password() -> io::Result<Password> {
    let input = io::stdin();
    if input.is_terminal() {
        writeln!(io::stderr().lock(), "password (shown while typed; pipe it in to hide it):")?;
    }
    let mut text = String::new();
    input.lock().read_line(&mut text)?;
    Ok(Password::new(text.trim_end_matches(['\r', '\n'])))
}
