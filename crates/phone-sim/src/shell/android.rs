//! Android's own commands as far as clients of a phone use them: properties, packages, activities,
//! input, screen. Texts follow the real ones closely, because clients match on them.

use std::sync::Arc;

use crate::model::{LAUNCHER, Opened, PAYMENT, PDD, SYSTEM_UI};
use crate::phone::Phone;
use crate::shell::{Io, dumpsys};

pub(super) const PDD_VERSION: &str = "7.58.0";

/// `None` when it is not an Android command.
pub(super) fn run(phone: &Phone, arguments: &[String], io: &Io) -> Option<i32> {
    let rest = &arguments[1..];
    let arg = |at: usize| rest.get(at).map_or("", String::as_str);
    Some(match arguments[0].as_str() {
        "getprop" => getprop(phone, arg(0), io),
        "setprop" | "svc" | "logcat" | "content" | "ime" => 0,
        "pm" => pm(phone, rest, io),
        "cmd" => match arg(0) {
            "package" => pm(phone, &rest[1..], io),
            "activity" => am(phone, &rest[1..], io),
            _ => {
                io.complain(phone, format!("cmd: Can't find service: {}\n", arg(0)));
                20
            }
        },
        "am" => am(phone, rest, io),
        "monkey" => monkey(phone, rest, io),
        "input" => input(phone, rest, io),
        "wm" => wm(phone, rest, io),
        "settings" => settings(phone, rest, io),
        "dumpsys" => dumpsys::run(phone, rest, io),
        "ps" => {
            io.say(phone, ps(phone));
            0
        }
        "pidof" => {
            if arg(0) == PDD && phone.with_model(|model| model.running()) {
                io.say(phone, "8123\n");
                0
            } else {
                1
            }
        }
        "pkill" | "killall" => {
            let asked = rest.last().map_or("", String::as_str);
            let dumps = asked.contains("uiautomator") && phone.kill_dumps();
            let agent = ["uia2", "u2.jar", "app_process"].iter().any(|one| asked.contains(one)) && phone.kill_agent();
            i32::from(!(dumps || agent))
        }
        "kill" => 0,
        _ => return None,
    })
}

fn properties(phone: &Phone) -> Vec<(&'static str, String)> {
    [
        ("ro.product.brand", "Companion"),
        ("ro.product.device", "cmsim"),
        ("ro.product.manufacturer", "Companion"),
        ("ro.product.model", "CM Sim Phone"),
        ("ro.product.name", "cmsim"),
        ("ro.build.version.release", "13"),
        ("ro.build.version.sdk", "33"),
        ("ro.build.version.security_patch", "2025-11-05"),
        ("ro.build.fingerprint", "Companion/cmsim/cmsim:13/CM1A.231105.001/1:user/release-keys"),
        ("ro.build.characteristics", "default"),
        ("ro.product.cpu.abi", "arm64-v8a"),
        ("persist.sys.timezone", "Asia/Shanghai"),
        ("ro.debuggable", "0"),
        ("persist.sys.locale", "zh-CN"),
        ("sys.boot_completed", "1"),
    ]
    .into_iter()
    .map(|(key, value)| (key, value.to_owned()))
    .chain([("ro.serialno", phone.serial.clone()), ("ro.sf.lcd_density", phone.screen().density.to_string())])
    .collect()
}

fn getprop(phone: &Phone, key: &str, io: &Io) -> i32 {
    let all = properties(phone);
    if key.is_empty() {
        for (key, value) in all {
            io.say(phone, format!("[{key}]: [{value}]\n"));
        }
    } else {
        let value = all.into_iter().find(|(own, _)| *own == key).map(|(_, value)| value).unwrap_or_default();
        io.say(phone, value + "\n");
    }
    0
}

fn packages(phone: &Phone) -> Vec<&'static str> {
    let installed = phone.with_model(|model| model.installed);
    let mut all = vec![LAUNCHER, SYSTEM_UI, PAYMENT, "com.android.settings", "com.android.inputmethod.latin"];
    if installed {
        all.push(PDD);
    }
    all
}

fn pm(phone: &Phone, rest: &[String], io: &Io) -> i32 {
    let name = rest.iter().skip(1).rfind(|one| !one.starts_with('-')).map_or("", String::as_str);
    match rest.first().map_or("", String::as_str) {
        "path" => {
            if packages(phone).contains(&name) {
                io.say(phone, format!("package:/data/app/~~c2lt==/{name}-c2lt==/base.apk\n"));
                return 0;
            }
            1
        }
        "list" => {
            let filter = rest.iter().skip(2).find(|one| !one.starts_with('-')).map_or("", String::as_str);
            for package in packages(phone).into_iter().filter(|one| one.contains(filter)) {
                io.say(phone, format!("package:{package}\n"));
            }
            0
        }
        "resolve-activity" => {
            if packages(phone).contains(&name) && name == PDD {
                io.say(
                    phone,
                    format!(
                        "priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=true\n{PDD}/.ui.activity.MainFrameActivity\n"
                    ),
                );
            } else {
                io.say(phone, "No activity found\n");
            }
            0
        }
        other => {
            io.complain(phone, format!("Unknown command: {other}\n"));
            255
        }
    }
}

fn am(phone: &Phone, rest: &[String], io: &Io) -> i32 {
    match rest.first().map_or("", String::as_str) {
        "start" | "start-activity" => start(phone, &rest[1..], io),
        "force-stop" => {
            if let Some(package) = rest.get(1) {
                phone.force_stop(package);
            }
            0
        }
        "kill" | "broadcast" | "kill-all" => 0,
        other => {
            io.complain(phone, format!("Unknown command: {other}\n"));
            255
        }
    }
}

fn start(phone: &Phone, rest: &[String], io: &Io) -> i32 {
    let (mut action, mut url, mut package, mut component, mut stop) = (None, None, None, None, false);
    let mut at = 0;
    while at < rest.len() {
        let next = rest.get(at + 1).cloned();
        let takes = match rest[at].as_str() {
            "-a" => {
                action = next;
                true
            }
            "-d" => {
                url = next;
                true
            }
            "-p" => {
                package = next;
                true
            }
            "-n" => {
                component = next;
                true
            }
            "-c" | "-f" | "-t" | "--user" | "--es" | "--ez" | "--ei" => true,
            "-S" => {
                stop = true;
                false
            }
            "-W" | "-R" | "--activity-clear-top" => false,
            other if !other.starts_with('-') && other.contains("://") => {
                url = Some(other.to_owned());
                false
            }
            other if !other.starts_with('-') && other.contains('/') => {
                component = Some(other.to_owned());
                false
            }
            _ => false,
        };
        at += if takes { 2 } else { 1 };
    }
    let described = {
        let mut all = Vec::new();
        all.extend(action.as_ref().map(|one| format!("act={one}")));
        // `am` itself shortens the link to its host.
        all.extend(url.as_ref().map(|one| format!("dat={}", shortened(one))));
        all.extend(package.as_ref().map(|one| format!("pkg={one}")));
        all.extend(component.as_ref().map(|one| format!("cmp={one}")));
        format!("Intent {{ {} }}", all.join(" "))
    };
    io.say(phone, format!("Starting: {described}\n"));
    let owner = component.as_ref().and_then(|one| one.split('/').next().map(str::to_owned));
    if stop && let Some(owner) = &owner {
        phone.force_stop(owner);
    }
    let done = match (&url, &owner) {
        (Some(url), _) => matches!(phone.open_link(url, package.as_deref()), Opened::Yes(_)),
        (None, Some(owner)) if phone.launch(owner) => true,
        (None, Some(_)) => {
            let name = component.as_deref().unwrap_or_default();
            io.complain(phone, format!("Error type 3\nError: Activity class {{{name}}} does not exist.\n"));
            return 1;
        }
        (None, None) => package.as_ref().is_some_and(|package| phone.launch(package)),
    };
    if done {
        return 0;
    }
    io.complain(phone, format!("Error: Activity not started, unable to resolve {described}\n"));
    1
}

fn shortened(url: &str) -> String {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split(['/', '?']).next()?))) {
        Some((scheme, host)) => format!("{scheme}://{host}/..."),
        None => url.to_owned(),
    }
}

fn monkey(phone: &Phone, rest: &[String], io: &Io) -> i32 {
    let package = rest.iter().position(|one| one == "-p").and_then(|at| rest.get(at + 1)).map_or("", String::as_str);
    if phone.launch(package) {
        io.say(phone, "Events injected: 1\n## Network stats: elapsed time=11ms (0ms mobile, 0ms wifi, 11ms not connected)\n");
        return 0;
    }
    io.complain(phone, "** No activities found to run, monkey aborted.\n");
    252
}

fn input(phone: &Phone, rest: &[String], io: &Io) -> i32 {
    // `input touchscreen tap` names the source first.
    let rest = match rest.first().map(String::as_str) {
        Some("touchscreen" | "keyboard" | "touchpad") => &rest[1..],
        _ => rest,
    };
    let acts = matches!(rest.first().map(String::as_str), Some("tap" | "swipe" | "draganddrop" | "keyevent" | "text"));
    if acts && phone.input_denied() {
        io.complain(
            phone,
            "Exception occurred while executing 'tap':\njava.lang.SecurityException: Injecting input events requires the caller (or the source of the instrumentation, if any) to have the INJECT_EVENTS permission.\n\tat com.android.server.input.InputManagerService.injectInputEventToTarget(InputManagerService.java:866)\n",
        );
        return 255;
    }
    let numbers: Option<Vec<i32>> =
        rest.get(1..).map(|all| all.iter().filter_map(|one| one.parse::<f64>().ok().map(|one| one as i32)).collect());
    let numbers = numbers.unwrap_or_default();
    match (rest.first().map_or("", String::as_str), numbers.as_slice()) {
        ("tap", [x, y]) => phone.tap(*x, *y),
        ("swipe" | "draganddrop", [a, b, c, d]) => phone.swipe((*a, *b), (*c, *d), 300),
        ("swipe" | "draganddrop", [a, b, c, d, time]) => phone.swipe((*a, *b), (*c, *d), (*time).max(0) as u32),
        ("keyevent", _) => {
            for key in rest[1..].iter().filter(|one| !one.starts_with("--")) {
                match key_code(key) {
                    Some(code) => phone.key(code),
                    None => {
                        io.complain(phone, format!("Error: Invalid keycode '{key}'\n"));
                        return 1;
                    }
                }
            }
        }
        ("text", _) => phone.text(&rest[1..].join(" ").replace("%s", " ")),
        ("", _) => {
            io.complain(phone, "Usage: input [<source>] [-d DISPLAY_ID] <command> [<arg>...]\n");
            return 255;
        }
        (command, _) => {
            io.complain(phone, format!("Error: Invalid arguments for command: {command}\n"));
            return 255;
        }
    }
    0
}

fn key_code(name: &str) -> Option<u32> {
    match name.trim_start_matches("KEYCODE_") {
        "HOME" => Some(3),
        "BACK" => Some(4),
        "POWER" => Some(26),
        "MENU" => Some(82),
        "SLEEP" => Some(223),
        "WAKEUP" => Some(224),
        "ENTER" => Some(66),
        "DEL" => Some(67),
        "APP_SWITCH" => Some(187),
        other => other.parse().ok(),
    }
}

fn wm(phone: &Phone, rest: &[String], io: &Io) -> i32 {
    match rest.first().map_or("", String::as_str) {
        "size" => io.say(phone, format!("Physical size: {}x{}\n", phone.screen().width, phone.screen().height)),
        "density" => io.say(phone, format!("Physical density: {}\n", phone.screen().density)),
        "dismiss-keyguard" => {}
        _ => {
            io.complain(phone, "Window manager (window) commands:\n");
            return 255;
        }
    }
    0
}

fn settings(phone: &Phone, rest: &[String], io: &Io) -> i32 {
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    match rest.as_slice() {
        ["get", namespace, key] => {
            let value = phone.setting(&format!("{namespace} {key}"));
            io.say(phone, value.unwrap_or_else(|| "null".to_owned()) + "\n");
        }
        ["put", namespace, key, value] => phone.set_setting(format!("{namespace} {key}"), Some((*value).to_owned())),
        ["delete", namespace, key] => {
            phone.set_setting(format!("{namespace} {key}"), None);
            io.say(phone, "Deleted 1 rows\n");
        }
        ["list", namespace] => {
            for line in phone.settings(namespace) {
                io.say(phone, line + "\n");
            }
        }
        _ => {
            io.complain(phone, "Invalid command\n");
            return 255;
        }
    }
    0
}

/// Drawing takes long enough to keep off the threads that serve other streams.
pub(super) async fn screencap(phone: &Arc<Phone>, rest: &[String], io: &Io) -> i32 {
    let path = rest.iter().find(|one| !one.starts_with('-'));
    let wants_png = rest.iter().any(|one| one == "-p") || path.is_some_and(|path| path.ends_with(".png"));
    if !wants_png {
        io.complain(phone, "screencap: only -p (PNG) is offered\n");
        return 1;
    }
    let drawn = phone.clone();
    let Ok(png) = tokio::task::spawn_blocking(move || drawn.screencap()).await else {
        return 1;
    };
    match path {
        None => io.say(phone, png),
        Some(path) if phone.write_file(path, png) => {}
        Some(path) => {
            io.complain(phone, format!("Error opening file: {path} (Permission denied)\n"));
            return 1;
        }
    }
    0
}

fn ps(phone: &Phone) -> String {
    let mut out = String::from("USER           PID  PPID     VSZ    RSS WCHAN            ADDR S NAME\n");
    let mut rows = vec![("root", 1, "init"), ("system", 1204, "system_server"), ("u0_a88", 2210, SYSTEM_UI), ("u0_a91", 2402, LAUNCHER)];
    if phone.with_model(|model| model.running()) {
        rows.push(("u0_a187", 8123, PDD));
    }
    if phone.agent().is_some() {
        rows.push(("shell", 9107, "com.wetest.uia2.Main"));
    } else if phone.other_client() {
        rows.push(("u0_a203", 9211, "com.github.uiautomator"));
    }
    for (user, pid, name) in rows {
        out.push_str(&format!("{user:<12} {pid:>5}     1 1487220  98112 0                   0 S {name}\n"));
    }
    out
}
