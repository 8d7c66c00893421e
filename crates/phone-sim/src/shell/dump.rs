//! `uiautomator dump` with the manners of the real one: it exits 0 on most failures, runs on when
//! its shell is gone, and only one can run at a time.

use std::sync::Arc;
use std::time::Duration;

use crate::phone::{DumpPlan, Dumped, Phone, until};
use crate::shell::Io;

const DEFAULT_FILE: &str = "/sdcard/window_dump.xml";

pub(super) async fn run(phone: &Arc<Phone>, arguments: &[String], io: &Io, tty: bool) -> i32 {
    if arguments.get(1).is_none_or(|verb| verb != "dump") {
        io.complain(phone, "Usage: uiautomator <subcommand> [options]\n\nAvailable subcommands:\n\nhelp: displays help message\n\ndump: creates an XML dump of current UI hierarchy\n    dump [--compressed] [file]\n");
        return i32::from(arguments.len() > 1);
    }
    let compressed = arguments.iter().any(|one| one == "--compressed");
    let file = arguments[2..].iter().find(|one| !one.starts_with("--")).map_or(DEFAULT_FILE, String::as_str);
    let (own, io, file) = (phone.clone(), io.clone(), file.to_owned());
    // Its own task: closing the stream ends the shell, not the grandchild (adb facts, fact 7).
    let running = tokio::spawn(async move { dump(&own, &io, &file, compressed, tty).await });
    running.await.unwrap_or(137)
}

async fn dump(phone: &Phone, io: &Io, file: &str, compressed: bool, tty: bool) -> i32 {
    let mut control = phone.control.subscribe();
    let kills = control.borrow_and_update().kills;
    let plan = phone.begin_dump();
    let time = match plan {
        DumpPlan::Taken => {
            io.complain(
                phone,
                "java.lang.IllegalStateException: UiAutomationService android.accessibilityservice.IAccessibilityServiceClient$Stub$Proxy@7d3f2c1already registered!\n\tat android.app.UiAutomationConnection.connect(UiAutomationConnection.java)\nKilled\n",
            );
            return 1;
        }
        DumpPlan::Exit137 => {
            tokio::time::sleep(phone.dump_time() / 2).await;
            return 137;
        }
        DumpPlan::Hang => Duration::MAX,
        // The real one gives up after 10 s; scaled with the configured dump time.
        DumpPlan::NeverIdle => (phone.dump_time() * 28).min(Duration::from_secs(10)),
        DumpPlan::Normal | DumpPlan::Emoji => phone.dump_time(),
    };
    let killed = until(&mut control, |now| now.stop || now.kills != kills);
    if tokio::time::timeout(time.min(Duration::from_secs(86_400)), killed).await.is_ok() {
        phone.abandon_dump();
        return 137;
    }
    if plan == DumpPlan::NeverIdle {
        phone.abandon_dump();
        io.complain(phone, "ERROR: could not get idle state.\n");
        return 0;
    }
    if plan == DumpPlan::Emoji {
        phone.abandon_dump();
        io.complain(
            phone,
            "java.lang.IllegalArgumentException: Illegal character (d83d)\n\tat org.kxml2.io.KXmlSerializer.reportInvalidCharacter(KXmlSerializer.java:144)\n\tat com.android.commands.uiautomator.DumpCommand.run(DumpCommand.java:99)\nKilled\n",
        );
        return 137;
    }
    match phone.finish_dump(compressed) {
        Dumped::NullRoot => {
            io.complain(phone, "ERROR: null root node returned by UiTestAutomationBridge.\n");
            return 0;
        }
        // The status line prints whatever happened to the file, as on a phone.
        Dumped::Xml(xml) => match file {
            "/dev/tty" if tty => io.say(phone, xml),
            "/dev/tty" => {}
            _ => {
                phone.write_file(file, xml);
            }
        },
        Dumped::Lost => {}
        Dumped::Stale(old) => {
            if file != "/dev/tty" && phone.read_file(file).is_none() {
                phone.write_file(file, old);
            }
        }
    }
    io.say(phone, format!("UI hierchary dumped to: {file}\n"));
    0
}
