//! The few toybox commands ADB clients combine with: files, text filters, time. They follow the
//! real ones only as far as clients look.

use std::time::Duration;

use crate::clock;
use crate::phone::Phone;
use crate::shell::Io;

/// `None` when there is no such command.
pub(super) async fn run(phone: &Phone, arguments: &[String], io: &Io) -> Option<i32> {
    let rest = &arguments[1..];
    let flags = || rest.iter().filter(|one| one.starts_with('-') && one.len() > 1);
    let plain = || rest.iter().filter(|one| !(one.starts_with('-') && one.len() > 1));
    let has = |flag: char| flags().any(|one| !one.starts_with("--") && one.contains(flag));
    let status = match arguments[0].as_str() {
        "true" | ":" => 0,
        "false" => 1,
        "echo" => {
            let bare = rest.first().is_some_and(|one| one == "-n");
            let says = rest[usize::from(bare)..].join(" ");
            io.say(phone, if bare { says } else { format!("{says}\n") });
            0
        }
        "printf" => {
            io.say(phone, printf(rest));
            0
        }
        "cat" => {
            let mut status = 0;
            if plain().next().is_none() {
                io.say(phone, &io.input);
            }
            for path in plain() {
                match phone.read_file(path) {
                    Some(bytes) => io.say(phone, bytes),
                    None => {
                        let why = if phone.is_dir(path) { "Is a directory" } else { "No such file or directory" };
                        io.complain(phone, format!("cat: {path}: {why}\n"));
                        status = 1;
                    }
                }
            }
            status
        }
        "rm" => {
            let mut status = 0;
            for path in plain() {
                if !phone.remove_file(path) && !has('f') {
                    io.complain(phone, format!("rm: {path}: No such file or directory\n"));
                    status = 1;
                }
            }
            status
        }
        "mkdir" | "chmod" | "touch" | "sync" => {
            if arguments[0] == "touch" {
                for path in plain() {
                    phone.append_file(path, &[]);
                }
            }
            0
        }
        "cp" | "mv" => {
            let paths: Vec<&String> = plain().collect();
            match paths.as_slice() {
                [from, to] => match phone.read_file(from) {
                    Some(bytes) if phone.write_file(to, bytes.clone()) => {
                        if arguments[0] == "mv" {
                            phone.remove_file(from);
                        }
                        0
                    }
                    Some(_) => {
                        io.complain(phone, format!("{}: {to}: Permission denied\n", arguments[0]));
                        1
                    }
                    None => {
                        io.complain(phone, format!("{}: bad '{from}': No such file or directory\n", arguments[0]));
                        1
                    }
                },
                _ => {
                    io.complain(phone, format!("{}: Needs 2 arguments\n", arguments[0]));
                    1
                }
            }
        }
        "ls" => ls(phone, io, plain().map(String::as_str).collect(), has('l'), has('d')),
        "grep" | "egrep" | "fgrep" => grep(phone, io, rest),
        "head" | "tail" => {
            let count = rest
                .iter()
                .position(|one| one == "-n")
                .and_then(|at| rest.get(at + 1))
                .or_else(|| flags().next())
                .and_then(|one| one.trim_start_matches(['-', 'n']).parse().ok())
                .unwrap_or(10_usize);
            let path = rest.iter().enumerate().find(|(at, one)| !one.starts_with('-') && (*at == 0 || rest[at - 1] != "-n"));
            let bytes = path.map_or_else(|| io.input.to_vec(), |(_, path)| phone.read_file(path).unwrap_or_default());
            let whole = String::from_utf8_lossy(&bytes);
            let lines: Vec<&str> = whole.split_inclusive('\n').collect();
            let skip = if arguments[0] == "tail" { lines.len().saturating_sub(count) } else { 0 };
            io.say(phone, lines.into_iter().skip(skip).take(count).collect::<String>());
            0
        }
        "wc" => {
            let bytes = plain().next().map_or_else(|| io.input.to_vec(), |path| phone.read_file(path).unwrap_or_default());
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
            let words = String::from_utf8_lossy(&bytes).split_whitespace().count();
            let says = match (has('l'), has('c'), has('w')) {
                (true, ..) => lines.to_string(),
                (_, true, _) => bytes.len().to_string(),
                (.., true) => words.to_string(),
                _ => format!("{lines} {words} {}", bytes.len()),
            };
            io.say(phone, says + "\n");
            0
        }
        "sleep" => {
            let seconds = rest.first().and_then(|one| one.trim_end_matches('s').parse::<f64>().ok()).unwrap_or(0.0);
            tokio::time::sleep(Duration::from_secs_f64(seconds.clamp(0.0, 3600.0))).await;
            0
        }
        "date" => {
            let now = clock::epoch_seconds();
            let says = match rest.iter().find(|one| one.starts_with('+')).map(String::as_str) {
                Some("+%s") => now.to_string(),
                Some("+%s%3N" | "+%s%N") => format!("{now}000"),
                _ => clock::local(now).as_date(),
            };
            io.say(phone, says + "\n");
            0
        }
        "id" => {
            io.say(phone, "uid=2000(shell) gid=2000(shell) groups=2000(shell),1004(input),1011(adb),3003(inet) context=u:r:shell:s0\n");
            0
        }
        "whoami" => {
            io.say(phone, "shell\n");
            0
        }
        "uname" => {
            io.say(phone, if has('a') { "Linux localhost 5.10.198 #1 SMP PREEMPT aarch64 Toybox\n" } else { "Linux\n" });
            0
        }
        "md5sum" | "sha1sum" | "base64" | "gzip" | "tar" | "su" => return None,
        "which" | "type" => {
            let known = ["sh", "cat", "ls", "rm", "uiautomator", "input", "am", "pm", "screencap", "getprop"];
            match rest.first().filter(|name| known.contains(&name.as_str())) {
                Some(name) => {
                    io.say(phone, format!("/system/bin/{name}\n"));
                    0
                }
                None => 1,
            }
        }
        _ => return None,
    };
    Some(status)
}

fn ls(phone: &Phone, io: &Io, paths: Vec<&str>, long: bool, itself: bool) -> i32 {
    let paths = if paths.is_empty() { vec!["/"] } else { paths };
    let mut status = 0;
    let line = |name: &str, size: Option<usize>| match (long, size) {
        (false, _) => format!("{name}\n"),
        (true, Some(size)) => format!("-rw-rw---- 1 shell shell {size:>8} 2026-01-01 00:00 {name}\n"),
        (true, None) => format!("drwxrwx--x 2 shell shell     4096 2026-01-01 00:00 {name}\n"),
    };
    for path in paths {
        if let Some(bytes) = phone.read_file(path) {
            io.say(phone, line(path, Some(bytes.len())));
        } else if phone.is_dir(path) && !itself {
            for (name, size) in phone.list(path) {
                io.say(phone, line(&name, size));
            }
        } else if phone.is_dir(path) {
            io.say(phone, line(path, None));
        } else {
            io.complain(phone, format!("ls: {path}: No such file or directory\n"));
            status = 1;
        }
    }
    status
}

/// Fixed strings, with `^`, `$` and `|` understood; enough for what clients filter.
fn grep(phone: &Phone, io: &Io, rest: &[String]) -> i32 {
    let flags: String = rest.iter().filter(|one| one.starts_with('-')).flat_map(|one| one.chars().skip(1)).collect();
    let mut plain = rest.iter().filter(|one| !one.starts_with('-'));
    let Some(pattern) = plain.next() else {
        io.complain(phone, "grep: no REGEX\n");
        return 2;
    };
    let fold = |text: &str| if flags.contains('i') { text.to_lowercase() } else { text.to_owned() };
    let choices: Vec<String> = pattern.replace("\\|", "|").split('|').map(fold).collect();
    let bytes = plain.next().map_or_else(|| io.input.to_vec(), |path| phone.read_file(path).unwrap_or_default());
    let whole = String::from_utf8_lossy(&bytes);
    let found: Vec<&str> = whole
        .lines()
        .filter(|line| {
            let line = fold(line);
            let met = choices.iter().any(|one| match (one.strip_prefix('^'), one.strip_suffix('$')) {
                (Some(start), _) => line.starts_with(start),
                (None, Some(end)) => line.ends_with(end),
                (None, None) => line.contains(one.as_str()),
            });
            met != flags.contains('v')
        })
        .collect();
    if flags.contains('c') {
        io.say(phone, format!("{}\n", found.len()));
    } else if !flags.contains('q') {
        for line in &found {
            io.say(phone, format!("{line}\n"));
        }
    }
    i32::from(found.is_empty())
}

fn printf(rest: &[String]) -> String {
    let Some((format, values)) = rest.split_first() else {
        return String::new();
    };
    let mut values = values.iter();
    let mut out = String::new();
    let mut chars = format.chars().peekable();
    while let Some(one) = chars.next() {
        match (one, chars.peek().copied()) {
            ('%', Some('s' | 'd' | 'i' | 'u')) => {
                chars.next();
                out.push_str(values.next().map_or("", String::as_str));
            }
            ('%', Some('%')) => {
                chars.next();
                out.push('%');
            }
            ('\\', Some('n')) => {
                chars.next();
                out.push('\n');
            }
            ('\\', Some('t')) => {
                chars.next();
                out.push('\t');
            }
            ('\\', Some('0'..='7')) => {
                let mut code = 0;
                let mut digits = 0;
                while let Some(digit) = chars.peek().and_then(|one| one.to_digit(8)).filter(|_| digits < 4) {
                    code = code * 8 + digit;
                    digits += 1;
                    chars.next();
                }
                out.extend(char::from_u32(code & 0xff));
            }
            (other, _) => out.push(other),
        }
    }
    out
}
