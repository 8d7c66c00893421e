//! The phone's shell: runs what [`parse`] understood, against the [`Phone`]. It knows no ADB
//! packet; output goes to sinks.

mod agent;
mod android;
mod dump;
mod dumpsys;
mod parse;
mod tools;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use crate::phone::Phone;
use parse::{Command, Joint, List, Piece, Pipeline, Redirect, Target, Word};

/// Piece of output on its way to the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Output {
    Out(Vec<u8>),
    Err(Vec<u8>),
}

/// Where a command's bytes go.
#[derive(Debug, Clone)]
enum Sink {
    Out(mpsc::UnboundedSender<Output>),
    Err(mpsc::UnboundedSender<Output>),
    Buffer(Arc<Mutex<Vec<u8>>>),
    File(String),
    Null,
}

/// What one command sees: input, and two places to write.
#[derive(Debug, Clone)]
struct Io {
    input: Arc<[u8]>,
    out: Sink,
    err: Sink,
}

/// A shell process.
#[derive(Debug, Clone)]
pub(crate) struct Shell {
    phone: Arc<Phone>,
    variables: HashMap<String, String>,
    status: i32,
    pid: u32,
    /// Whether `/dev/tty` can be opened: not under `shell,v2,raw`.
    tty: bool,
}

enum Flow {
    Go,
    Exit,
}

type Running<'a> = Pin<Box<dyn Future<Output = Flow> + Send + 'a>>;

impl Io {
    fn say(&self, phone: &Phone, text: impl AsRef<[u8]>) {
        self.out.write(phone, text.as_ref());
    }
    fn complain(&self, phone: &Phone, text: impl AsRef<[u8]>) {
        self.err.write(phone, text.as_ref());
    }
}

impl Sink {
    fn write(&self, phone: &Phone, bytes: &[u8]) {
        match self {
            // A peer that hung up reads nothing more; the command itself goes on.
            Sink::Out(to) => drop(to.send(Output::Out(bytes.to_vec()))),
            Sink::Err(to) => drop(to.send(Output::Err(bytes.to_vec()))),
            Sink::Buffer(to) => to.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes),
            Sink::File(path) => {
                phone.append_file(path, bytes);
            }
            Sink::Null => {}
        }
    }
}

impl Shell {
    pub(crate) fn new(phone: Arc<Phone>, tty: bool) -> Self {
        let pid = phone.next_pid();
        let variables = [("HOME", "/"), ("PATH", "/system/bin"), ("TMPDIR", "/data/local/tmp"), ("USER", "shell")];
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { phone, variables, status: 0, pid, tty }
    }

    /// Runs one command line; returns its exit status and whether `exit` was said.
    pub(crate) async fn run(&mut self, source: &str, to: &mpsc::UnboundedSender<Output>) -> (i32, bool) {
        let io = Io { input: Arc::from([]), out: Sink::Out(to.clone()), err: Sink::Err(to.clone()) };
        let list = match parse::parse(source) {
            Ok(list) => list,
            Err(error) => {
                io.complain(&self.phone, format!("/system/bin/sh: {error}\n"));
                self.status = 1;
                return (1, false);
            }
        };
        let flow = self.list(&list, &io).await;
        (self.status, matches!(flow, Flow::Exit))
    }

    fn list<'a>(&'a mut self, list: &'a List, io: &'a Io) -> Running<'a> {
        Box::pin(async move {
            for (joint, pipeline) in &list.0 {
                let go = match joint {
                    Joint::Then => true,
                    Joint::And => self.status == 0,
                    Joint::Or => self.status != 0,
                };
                if go && pipeline.background {
                    let (mut child, own, io) = (self.clone(), pipeline.clone(), io.clone());
                    tokio::spawn(async move { child.pipeline(&own, &io).await });
                    self.status = 0;
                    continue;
                }
                if go && matches!(self.pipeline(pipeline, io).await, Flow::Exit) {
                    return Flow::Exit;
                }
            }
            Flow::Go
        })
    }

    async fn pipeline(&mut self, pipeline: &Pipeline, io: &Io) -> Flow {
        let last = pipeline.commands.len() - 1;
        let mut input = io.input.clone();
        for (at, command) in pipeline.commands.iter().enumerate() {
            if at == last {
                let own = Io { input, out: io.out.clone(), err: io.err.clone() };
                let flow = if last > 0 { self.clone_run(command, &own).await } else { self.command(command, &own).await };
                if pipeline.negated {
                    self.status = i32::from(self.status == 0);
                }
                return flow;
            }
            let buffer = Arc::new(Mutex::new(Vec::new()));
            let own = Io { input, out: Sink::Buffer(buffer.clone()), err: io.err.clone() };
            self.clone_run(command, &own).await;
            let bytes = std::mem::take(&mut *buffer.lock().unwrap_or_else(PoisonError::into_inner));
            input = Arc::from(bytes);
        }
        Flow::Go
    }

    /// In a child: variables and `exit` stay there, the status comes back.
    async fn clone_run(&mut self, command: &Command, io: &Io) -> Flow {
        let mut child = self.clone();
        child.command(command, io).await;
        self.status = child.status;
        Flow::Go
    }

    async fn command(&mut self, command: &Command, io: &Io) -> Flow {
        match command {
            Command::Group { list, redirects, own } => {
                let Some(io) = self.redirected(redirects, io).await else {
                    return Flow::Go;
                };
                if *own {
                    let mut child = self.clone();
                    child.list(list, &io).await;
                    self.status = child.status;
                    Flow::Go
                } else {
                    self.list(list, &io).await
                }
            }
            Command::Simple { assignments, words, redirects } => {
                let mut arguments = Vec::new();
                for word in words {
                    arguments.extend(self.expand(word, io).await);
                }
                for (name, word) in assignments {
                    let value = self.expand_one(word, io).await;
                    self.variables.insert(name.clone(), value);
                }
                let Some(io) = self.redirected(redirects, io).await else {
                    return Flow::Go;
                };
                if arguments.is_empty() {
                    self.status = 0;
                    return Flow::Go;
                }
                if arguments[0] == "exit" {
                    self.status = arguments.get(1).and_then(|code| code.parse().ok()).unwrap_or(self.status) & 0xff;
                    return Flow::Exit;
                }
                self.status = self.builtin(&arguments, &io).await;
                Flow::Go
            }
        }
    }

    async fn builtin(&mut self, arguments: &[String], io: &Io) -> i32 {
        match arguments[0].as_str() {
            "sh" | "/system/bin/sh" if arguments.get(1).is_some_and(|flag| flag == "-c") => {
                let Some(source) = arguments.get(2) else {
                    return 2;
                };
                match parse::parse(source) {
                    Ok(list) => {
                        let mut child = self.clone();
                        child.pid = self.phone.next_pid();
                        child.list(&list, io).await;
                        child.status
                    }
                    Err(error) => {
                        io.complain(&self.phone, format!("sh: {error}\n"));
                        1
                    }
                }
            }
            "export" => {
                for pair in &arguments[1..] {
                    if let Some((name, value)) = pair.split_once('=') {
                        self.variables.insert(name.to_owned(), value.to_owned());
                    }
                }
                0
            }
            "cd" | "set" | "umask" | "trap" | "wait" => 0,
            "exec" | "nohup" | "command" | "busybox" | "toybox" if arguments.len() > 1 => Box::pin(self.builtin(&arguments[1..], io)).await,
            "screencap" => android::screencap(&self.phone, &arguments[1..], io).await,
            "app_process" | "app_process64" => {
                let classes = self.variables.get("CLASSPATH").cloned().unwrap_or_default();
                agent::run(&self.phone, &classes, &arguments[1..], io).await
            }
            "uiautomator" => dump::run(&self.phone, arguments, io, self.tty).await,
            _ => {
                if let Some(status) = android::run(&self.phone, arguments, io) {
                    return status;
                }
                if let Some(status) = tools::run(&self.phone, arguments, io).await {
                    return status;
                }
                let name = &arguments[0];
                let problem = if name.contains('/') { "No such file or directory" } else { "inaccessible or not found" };
                io.complain(&self.phone, format!("/system/bin/sh: {name}: {problem}\n"));
                127
            }
        }
    }

    /// The command's own sinks; `None` (status 1) when a file cannot be opened.
    async fn redirected(&mut self, redirects: &[Redirect], io: &Io) -> Option<Io> {
        let mut own = io.clone();
        for redirect in redirects {
            let sink = match &redirect.target {
                Target::Copy(1) => own.out.clone(),
                Target::Copy(2) => own.err.clone(),
                Target::Copy(_) => continue,
                Target::Input(word) => {
                    let path = self.expand_one(word, io).await;
                    let bytes = if path == "/dev/null" { Some(Vec::new()) } else { self.phone.read_file(&path) };
                    let Some(bytes) = bytes else {
                        return self.cannot(io, &path, "No such file or directory");
                    };
                    own.input = Arc::from(bytes);
                    continue;
                }
                Target::File(word) | Target::Append(word) => {
                    let path = self.expand_one(word, io).await;
                    match path.as_str() {
                        "/dev/null" => Sink::Null,
                        "/dev/stdout" => own.out.clone(),
                        "/dev/stderr" => own.err.clone(),
                        _ => {
                            let append = matches!(redirect.target, Target::Append(_));
                            let opened = if append { self.phone.append_file(&path, &[]) } else { self.phone.write_file(&path, Vec::new()) };
                            if !opened {
                                return self.cannot(io, &path, "Permission denied");
                            }
                            Sink::File(path)
                        }
                    }
                }
            };
            if redirect.fd == 2 {
                own.err = sink;
            } else {
                own.out = sink;
            }
        }
        Some(own)
    }

    fn cannot(&mut self, io: &Io, path: &str, why: &str) -> Option<Io> {
        io.complain(&self.phone, format!("/system/bin/sh: can't open {path}: {why}\n"));
        self.status = 1;
        None
    }

    fn variable(&self, name: &str) -> String {
        let (name, default) = name.split_once(":-").map_or((name, ""), |(name, default)| (name, default));
        let value = match name {
            "?" => self.status.to_string(),
            "$" => self.pid.to_string(),
            "#" => "0".to_owned(),
            "0" => "sh".to_owned(),
            other => self.variables.get(other).cloned().unwrap_or_default(),
        };
        if value.is_empty() { default.to_owned() } else { value }
    }

    async fn piece(&mut self, piece: &Piece, io: &Io) -> (String, bool) {
        match piece {
            Piece::Literal { text, quoted: _ } => (text.clone(), true),
            Piece::Variable { name, quoted } => (self.variable(name), *quoted),
            Piece::Output { list, quoted } => {
                let buffer = Arc::new(Mutex::new(Vec::new()));
                let own = Io { input: io.input.clone(), out: Sink::Buffer(buffer.clone()), err: io.err.clone() };
                let mut child = self.clone();
                child.list(list, &own).await;
                self.status = child.status;
                let bytes = std::mem::take(&mut *buffer.lock().unwrap_or_else(PoisonError::into_inner));
                (String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned(), *quoted)
            }
        }
    }

    /// One word to its fields: unquoted variables split at spaces and vanish when empty.
    async fn expand(&mut self, word: &Word, io: &Io) -> Vec<String> {
        let mut fields: Vec<String> = Vec::new();
        let mut open = false;
        for piece in &word.0 {
            let (text, whole) = self.piece(piece, io).await;
            if whole {
                if !open {
                    fields.push(String::new());
                    open = true;
                }
                if let Some(field) = fields.last_mut() {
                    field.push_str(&text);
                }
                continue;
            }
            if text.starts_with(char::is_whitespace) {
                open = false;
            }
            for part in text.split_whitespace() {
                if !open {
                    fields.push(String::new());
                }
                if let Some(field) = fields.last_mut() {
                    field.push_str(part);
                }
                open = false;
            }
            open = !text.is_empty() && !text.ends_with(char::is_whitespace);
        }
        fields
    }

    async fn expand_one(&mut self, word: &Word, io: &Io) -> String {
        let mut out = String::new();
        for piece in &word.0 {
            out.push_str(&self.piece(piece, io).await.0);
        }
        out
    }
}

#[cfg(test)]
mod tests;
