//! The arrows and the forbidden things of ARCHITECTURE.md, checked against every manifest and every source file. A new edge is a reviewed
//! line here; it never decides anything at run time.
//!
//! Each rule is a named row with its reason, and a failure names the file, the line and what to do.

#[path = "architecture/source.rs"]
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use source::{RustText, SourceFile, lines_with_word, root, text_files, without_ts_comments};

/// `a -> b`: shipped code of `a` may use `b`. Everything that is not here is not allowed.
const ARROWS: [(&str, &[&str]); 14] = [
    ("protocol", &[]),
    ("task", &["protocol"]),
    ("store", &["task", "protocol"]),
    ("device", &[]),
    ("pdd", &["device", "protocol"]),
    ("sync", &["store", "task", "protocol"]),
    ("engine", &["store", "task", "device", "pdd", "protocol"]),
    // The server and the simulated phone are in the exe for --demo (D15).
    ("app", &["engine", "sync", "store", "pdd", "device", "task", "protocol", "server", "phone-sim"]),
    ("src-tauri", &["app"]),
    ("server", &["analytics", "protocol"]),
    ("analytics", &["protocol"]),
    ("phone-sim", &[]),
    ("lingxing-sim", &[]),
    ("tests", &[]),
];

/// What only tests of a room may use beside its arrows. `tests` sees everything.
const TEST_ARROWS: [(&str, &str, &str); 3] = [
    ("analytics", "lingxing-sim", "collection is tested against the simulated Lingxing and its ground truth"),
    ("pdd", "phone-sim", "the collect flow is tested against the simulated phone's own catalogue"),
    ("device", "phone-sim", "connections and the doctor are tested through the stock adb, which needs a phone to connect to"),
];

/// The only outside crates of the rooms that do no I/O and read no clock.
const PURE_ROOMS: [(&str, &[&str]); 2] = [
    // utoipa describes the messages for the server's OpenAPI document; the client builds without it.
    ("protocol", &["serde", "serde_json", "thiserror", "jiff", "uuid", "sha2", "utoipa"]),
    ("task", &["serde", "thiserror", "jiff"]),
];

/// Outside crates that belong to some rooms only: (crate, rooms, why).
const KEPT_IN: [(&str, &[&str], &str); 15] = [
    ("rusqlite", &["store", "server", "analytics"], "one SQLite on the client; tasks and analytics have a file each on the server (R11)"),
    ("rusqlite_migration", &["store", "server", "analytics"], "the same"),
    ("reqwest", &["sync", "analytics"], "sync is the only road to the server, analytics the only one to Lingxing"),
    ("hyper", &[], "axum and reqwest are the two HTTP ends"),
    ("axum", &["server", "lingxing-sim"], "the two HTTP servers"),
    ("tower-http", &["server"], "the server is the only HTTP server"),
    ("tauri", &["src-tauri"], "the window decides nothing, and nothing else knows the window"),
    ("tauri-specta", &["src-tauri"], "the window decides nothing, and nothing else knows the window"),
    ("rsa", &["device", "phone-sim"], "ADB keys live at the two ends of ADB"),
    ("quick-xml", &["device"], "one parser of UI trees"),
    ("argon2", &["server"], "passwords are checked on the server only"),
    ("chacha20poly1305", &["store"], "sealing happens where sealed rows are (D6)"),
    ("keyring-core", &["app"], "the credential store is opened by the house (D6)"),
    ("adb_client", &["device"], "device is the only road to a phone"),
    ("specta", &["app", "src-tauri"], "generated types are for the window's own wire only"),
];

/// Words shipped code may not hold: (rule, rooms it binds or none for all, words, rooms or files excepted, why).
struct Forbidden {
    rule: &'static str,
    rooms: &'static [&'static str],
    words: &'static [&'static str],
    except: &'static [&'static str],
    why: &'static str,
}

const ALL: &[&str] = &[];
const FORBIDDEN: [Forbidden; 9] = [
    Forbidden {
        rule: "SQLite stays in store, server and analytics",
        rooms: ALL,
        words: &["rusqlite"],
        except: &["crates/store/", "crates/server/", "crates/analytics/"],
        why: "SQL elsewhere would make a second place that completes a task",
    },
    Forbidden {
        rule: "HTTP calls stay in sync and analytics",
        rooms: ALL,
        words: &["reqwest"],
        except: &["crates/sync/", "crates/analytics/"],
        why: "sync is the only HTTP client on the client side, analytics the only one on the server's",
    },
    Forbidden {
        rule: "Tauri stays in the window",
        rooms: ALL,
        words: &["tauri", "tauri_specta"],
        except: &["src-tauri/"],
        why: "everything under the window must run without one",
    },
    Forbidden {
        rule: "the window opens no database and no connection",
        rooms: &["src-tauri"],
        words: &["rusqlite", "reqwest", "TcpStream", "TcpListener"],
        except: &[],
        why: "a command is parse, call, convert",
    },
    Forbidden {
        rule: "clocks are read in clock.rs",
        rooms: ALL,
        words: &["Instant::now", "SystemTime::now", "Timestamp::now", "Utc::now", "Zoned::now", "Local::now"],
        except: &["/clock.rs"],
        why: "time is an argument; only a loop reads the clock",
    },
    Forbidden {
        rule: "only device talks to a phone",
        rooms: &["protocol", "task", "store", "pdd", "sync", "engine", "src-tauri"],
        words: &["TcpStream", "TcpListener", "UdpSocket", "process::Command"],
        except: &[],
        why: "device owns the sockets and processes that reach a phone, and its guard is the only door (D10)",
    },
    Forbidden {
        rule: "protocol and task do no I/O",
        rooms: &["protocol", "task"],
        words: &["std::fs", "std::net", "std::process", "std::env", "std::thread", "tokio", "tracing"],
        except: &[],
        why: "what both ends say, and the life of a task, are pure",
    },
    Forbidden {
        rule: "only the live gate names an order permit",
        rooms: ALL,
        words: &["OrderPermit", "guard::Evidence", "guard::permit", "guard::{", "check_submit"],
        except: &["crates/device/", "crates/engine/src/live_gate"],
        why: "an order permit has one maker (D10)",
    },
    Forbidden {
        rule: "libraries print nothing",
        rooms: &["protocol", "task", "store", "device", "pdd", "sync", "engine"],
        words: &["println!", "eprintln!", "print!", "eprint!"],
        except: &[],
        why: "a library logs through tracing",
    },
];

/// Type names that say nothing about what a thing is.
const EMPTY_NAMES: [&str; 7] = ["Manager", "Service", "Helper", "Helpers", "Util", "Utils", "Processor"];
/// A field's own word that ends like an empty one: (file, type, whose word it is).
const FIELD_WORDS: [(&str, &str, &str); 1] =
    [("crates/phone-sim/src/adb/services.rs", "Service", "ADB calls what a stream asks for a service")];
const MAX_LINES: usize = 700;

#[derive(Debug, Default)]
struct Manifest {
    shipped: BTreeSet<String>,
    tests: BTreeSet<String>,
}

/// Every member's dependencies by package name: `build` and per-target ones count as shipped.
fn manifests() -> BTreeMap<String, Manifest> {
    let root = root();
    let mut folders: Vec<_> =
        fs::read_dir(root.join("crates")).expect("crates/ exists").map(|e| e.expect("a folder entry").path()).collect();
    folders.extend([root.join("src-tauri"), root.join("tests")]);
    let mut found = BTreeMap::new();
    for folder in folders.into_iter().filter(|folder| folder.join("Cargo.toml").is_file()) {
        let room = folder.file_name().expect("a folder has a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest is readable");
        let manifest: toml::Table = text.parse().unwrap_or_else(|fault| panic!("{room}/Cargo.toml: {fault}"));
        let mut tables = vec![&manifest];
        if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
            tables.extend(targets.values().filter_map(toml::Value::as_table));
        }
        let mut entry = Manifest::default();
        for table in tables {
            for section in ["dependencies", "build-dependencies", "dev-dependencies"] {
                let named = table.get(section).and_then(toml::Value::as_table).into_iter().flatten();
                let packages = named.map(|(key, value)| value.get("package").and_then(toml::Value::as_str).unwrap_or(key).to_owned());
                let into = if section == "dev-dependencies" { &mut entry.tests } else { &mut entry.shipped };
                into.extend(packages);
            }
        }
        found.insert(room, entry);
    }
    found
}

/// The room behind a package name of this workspace.
fn room_of(package: &str) -> Option<&str> {
    let room = package.strip_prefix("cmautobuy-")?;
    Some(if room == "desktop" { "src-tauri" } else { room })
}

#[test]
fn every_member_has_a_row() {
    let rows: BTreeSet<&str> = ARROWS.iter().map(|(room, _)| *room).collect();
    let members = manifests();
    let members: BTreeSet<&str> = members.keys().map(String::as_str).collect();
    assert_eq!(members, rows, "a new room needs a row in ARROWS: say what it may use, and what it forbids");
}

#[test]
fn shipped_code_follows_the_arrows() {
    let manifests = manifests();
    let arrows: BTreeMap<&str, &[&str]> = ARROWS.into_iter().collect();
    let mut new = Vec::new();
    for (room, manifest) in &manifests {
        let allowed = arrows.get(room.as_str()).copied().unwrap_or_default();
        let edges = manifest.shipped.iter().filter_map(|package| room_of(package));
        new.extend(edges.filter(|to| !allowed.contains(to)).map(|to| format!("{room} -> {to}")));
    }
    assert_eq!(new, Vec::<String>::new(), "a new arrow: move the code, or review the arrow in ARCHITECTURE.md and ARROWS");
}

#[test]
fn test_code_follows_the_arrows_too() {
    let arrows: BTreeMap<&str, &[&str]> = ARROWS.into_iter().collect();
    let mut new = Vec::new();
    for (room, manifest) in manifests().iter().filter(|(room, _)| *room != "tests") {
        let shipped = arrows.get(room.as_str()).copied().unwrap_or_default();
        let edges = manifest.tests.iter().filter_map(|package| room_of(package));
        let is_known = |to: &str| to == room || shipped.contains(&to) || TEST_ARROWS.iter().any(|row| (row.0, row.1) == (room, to));
        new.extend(edges.filter(|to| !is_known(to)).map(|to| format!("{room} -(tests)-> {to}")));
    }
    assert_eq!(new, Vec::<String>::new(), "a test that needs another room belongs in tests/, or in TEST_ARROWS with a reason");
}

#[test]
fn the_arrows_have_no_circle() {
    let mut left: BTreeMap<&str, BTreeSet<&str>> = ARROWS.iter().map(|(room, to)| (*room, to.iter().copied().collect())).collect();
    while !left.is_empty() {
        let free: Vec<&str> = left.iter().filter(|(_, to)| to.is_empty()).map(|(room, _)| *room).collect();
        assert!(!free.is_empty(), "these rooms need each other in a circle: {:?}", left.keys());
        left.retain(|room, _| !free.contains(room));
        left.values_mut().for_each(|to| to.retain(|room| !free.contains(room)));
    }
}

#[test]
fn pure_rooms_use_only_what_is_pure() {
    let manifests = manifests();
    for (room, allowed) in PURE_ROOMS {
        let shipped = &manifests.get(room).unwrap_or_else(|| panic!("{room} is a member")).shipped;
        let new: Vec<&String> = shipped.iter().filter(|p| room_of(p).is_none() && !allowed.contains(&p.as_str())).collect();
        assert_eq!(new, Vec::<&String>::new(), "{room} does no I/O and reads no clock: a new outside crate is a reviewed line here");
    }
}

#[test]
fn outside_crates_stay_in_their_rooms() {
    let manifests = manifests();
    let mut strayed = Vec::new();
    for (package, rooms, why) in KEPT_IN {
        let users = manifests.iter().filter(|(_, manifest)| manifest.shipped.contains(package)).map(|(room, _)| room.as_str());
        strayed.extend(users.filter(|room| !rooms.contains(room)).map(|room| format!("{room} uses {package}: {why}")));
    }
    assert_eq!(strayed, Vec::<String>::new(), "an outside crate left its rooms");
}

fn shipped_rust() -> Vec<(SourceFile, RustText)> {
    let files = text_files(&root()).into_iter().filter(SourceFile::is_shipped_rust);
    let found: Vec<_> = files.map(|file| (RustText::read(&file.text), file)).map(|(text, file)| (file, text)).collect();
    assert!(found.len() > 40, "the guards below would pass on an empty tree; found only {} files", found.len());
    found
}

#[test]
fn forbidden_words() {
    let sources = shipped_rust();
    let mut broken = Vec::new();
    for rule in FORBIDDEN {
        for (file, text) in &sources {
            let bound = rule.rooms.is_empty() || file.room().is_some_and(|room| rule.rooms.contains(&room));
            if !bound || rule.except.iter().any(|part| file.path.contains(part)) {
                continue;
            }
            for word in rule.words {
                broken.extend(
                    text.lines_with(word).iter().map(|line| format!("{}:{line} `{word}`: {} ({})", file.path, rule.rule, rule.why)),
                );
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new(), "shipped code holds a word its room forbids");
}

/// SQL by its shape: an upper-case statement with the word that must follow.
fn is_sql(text: &str) -> bool {
    let words: Vec<&str> = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| !word.is_empty()).collect();
    let after = |first: &str, second: &str| words.iter().position(|word| *word == first).is_some_and(|at| words[at..].contains(&second));
    let pair = |first: &str, second: &str| words.windows(2).any(|two| two == [first, second]);
    after("SELECT", "FROM")
        || after("INSERT", "INTO")
        || after("UPDATE", "SET")
        || pair("DELETE", "FROM")
        || ["TABLE", "INDEX", "TRIGGER", "VIEW"].iter().any(|kind| pair("CREATE", kind) || pair("ALTER", kind) || pair("DROP", kind))
}

#[test]
fn client_sql_stays_in_its_files() {
    let homes = ["crates/store/src/table/", "crates/store/src/tx", "crates/store/src/open.rs", "crates/server/"];
    let mut strayed = Vec::new();
    for (file, text) in shipped_rust().iter().filter(|(file, _)| !homes.iter().any(|home| file.path.starts_with(home))) {
        strayed.extend(text.strings.iter().filter(|(_, s)| is_sql(s)).map(|(line, s)| format!("{}:{line} {}", file.path, first_words(s))));
    }
    assert_eq!(strayed, Vec::<String>::new(), "SQL on the client lives in store/src/table, store/src/tx and store/migrations");
}

fn first_words(text: &str) -> String {
    text.chars().take(50).collect()
}

const fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3000}'..='\u{303f}' | '\u{3400}'..='\u{9fff}' | '\u{ff00}'..='\u{ffef}')
}

/// What Pinduoduo writes is data (`resources/pdd`), what a person reads is the house's (`app/src/problem.rs`) or the window's.
#[test]
fn rooms_below_the_house_speak_no_chinese() {
    let rooms = ["engine", "sync", "store", "server", "task", "protocol"];
    let mut found = Vec::new();
    for (file, text) in shipped_rust().iter().filter(|(file, _)| file.room().is_some_and(|room| rooms.contains(&room))) {
        let chinese = text.strings.iter().filter(|(_, s)| s.chars().any(is_cjk));
        found.extend(chinese.map(|(line, s)| format!("{}:{line} {}", file.path, first_words(s))));
    }
    assert_eq!(found, Vec::<String>::new(), "a Pinduoduo text belongs in resources/pdd, a sentence for a person in app/src/problem.rs");
}

#[test]
fn every_module_says_why_it_exists() {
    let silent: Vec<String> = shipped_rust()
        .into_iter()
        .filter(|(file, _)| !file.text.trim_start_matches('\u{feff}').trim_start().starts_with("//!"))
        .map(|(file, _)| file.path)
        .collect();
    assert_eq!(silent, Vec::<String>::new(), "a module opens with why it exists and what it never does (style rule 27)");
}

fn is_ui_code(file: &SourceFile) -> bool {
    file.path.starts_with("ui/src/") && ["ts", "vue"].contains(&file.extension())
}

fn is_ui_test(file: &SourceFile) -> bool {
    file.name().contains(".test.") || file.name().contains(".spec.") || file.path.contains("/test/") || file.path.contains("/tests/")
}

#[test]
fn one_file_of_the_pages_knows_the_window() {
    // The bindings are generated; only host.ts may import them in turn.
    let doors = ["ui/src/api/host.ts", "ui/src/api/bindings.ts"];
    let mut broken = Vec::new();
    for file in text_files(&root()).iter().filter(|file| is_ui_code(file) && !is_ui_test(file)) {
        let code = without_ts_comments(&file.text);
        if !doors.contains(&file.path.as_str()) {
            broken.extend(lines_with_word(&code, "@tauri-apps").iter().map(|line| format!("{}:{line} imports @tauri-apps", file.path)));
        }
        for word in ["fetch(", "XMLHttpRequest", "WebSocket", "EventSource", "sendBeacon"] {
            let network = |line: &&usize| {
                let text = code.lines().nth(**line - 1).unwrap_or_default();
                // `query.fetch()` is somebody's method; `window.fetch()` and a bare `fetch()` are the network.
                word != "fetch(" || text.contains("window.fetch(") || text.contains("globalThis.fetch(") || !text.contains(".fetch(")
            };
            let lines = lines_with_word(&code, word);
            broken.extend(lines.iter().filter(network).map(|line| format!("{}:{line} `{word}` reaches the network", file.path)));
        }
    }
    assert_eq!(broken, Vec::<String>::new(), "the pages reach the program through ui/src/api/host.ts and the network not at all");
}

#[test]
fn no_path_of_a_machine_is_written_down() {
    // Put together here so that this file does not hold them.
    let paths = [["/wo", "rk/"].concat(), ["/ro", "ot/"].concat(), ["/ho", "me/user"].concat(), [".lib", "rary/"].concat()];
    let mut found = Vec::new();
    for file in text_files(&root()) {
        for (index, line) in file.text.lines().enumerate() {
            if let Some(path) = paths.iter().find(|path| line.contains(path.as_str())) {
                found.push(format!("{}:{} {path}", file.path, index + 1));
            }
        }
    }
    assert_eq!(found, Vec::<String>::new(), "a path that exists on one machine only");
}

#[test]
fn files_stay_readable() {
    // Generated in one piece; nobody reads it top to bottom.
    let generated = ["ui/src/api/bindings.ts"];
    let long: Vec<String> = text_files(&root())
        .iter()
        .filter(|file| ["rs", "ts", "vue"].contains(&file.extension()) && !generated.contains(&file.path.as_str()))
        .map(|file| (file.text.lines().count(), &file.path))
        .filter(|(lines, _)| *lines > MAX_LINES)
        .map(|(lines, path)| format!("{path}: {lines} lines"))
        .collect();
    assert_eq!(long, Vec::<String>::new(), "a file over {MAX_LINES} lines holds two subjects: split it");
}

#[test]
fn names_say_what_a_thing_is() {
    let keywords = ["struct", "enum", "trait", "type", "union", "class", "interface"];
    let mut empty = Vec::new();
    for file in text_files(&root()) {
        let code = match file.extension() {
            "rs" => RustText::read(&file.text).code,
            "ts" | "vue" if file.path.starts_with("ui/src/") => without_ts_comments(&file.text),
            _ => continue,
        };
        for (index, line) in code.lines().enumerate() {
            let words: Vec<&str> = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty()).collect();
            for two in words.windows(2).filter(|two| keywords.contains(&two[0])) {
                let is_field_word = FIELD_WORDS.iter().any(|(path, name, _)| (*path, *name) == (file.path.as_str(), two[1]));
                if !is_field_word && EMPTY_NAMES.iter().any(|suffix| two[1].ends_with(suffix)) {
                    empty.push(format!("{}:{} {}", file.path, index + 1, two[1]));
                }
            }
        }
    }
    assert_eq!(empty, Vec::<String>::new(), "Manager, Service, Helper, Util and Processor name nothing: use the field's word");
}

#[test]
fn the_guards_see_what_they_look_for() {
    let text = concat!(
        "//! Instant::now in a comment\n",
        "/* outer /* inner */ Instant::now */ fn f<'a>(x: &'a str) -> char { '\"' }\n",
        "const S: &str = \"Instant::now \\\" still\"; const R: &str = r#\"SELECT \"a\" FROM t\"#;\n",
        "fn g() { Instant::now(); MyInstant::now(); b'\\''; }\n",
        "#[cfg(test)]\nmod tests {\n    fn h() { if true { Instant::now(); } let _ = \"中文\"; }\n}\n",
        "fn i() { Instant::now(); }\n",
    );
    let read = RustText::read(text);
    assert_eq!(read.lines_with("Instant::now"), vec![4, 9], "comments, strings, longer names and test modules do not count");
    let strings: Vec<&str> = read.strings.iter().map(|(_, s)| s.as_str()).collect();
    assert_eq!(strings, ["Instant::now \\\" still", "SELECT \"a\" FROM t"], "strings are whole and those of test modules are left out");
    assert_eq!(read.code.lines().count(), text.lines().count(), "line numbers stay right");

    let rows = [
        ("a query", "SELECT id FROM pdd_tasks WHERE id = ?1", true),
        ("a query over lines", "\n  UPDATE pdd_tasks\n  SET state = ?1", true),
        ("a sentence", "select a phone from the list", false),
        ("a sentence with one loud word", "UPDATE the program, then set it up", false),
        ("a table", "CREATE TABLE x(id INTEGER)", true),
    ];
    for (why, text, expected) in rows {
        assert_eq!(is_sql(text), expected, "{why}");
    }

    let ts = "import x from '@tauri-apps/api' // fetch(\nconst a = 'https://x/' /* WebSocket\n fetch( */ + b\n";
    let code = without_ts_comments(ts);
    assert_eq!(lines_with_word(&code, "@tauri-apps"), vec![1], "an import path is seen");
    assert_eq!(lines_with_word(&code, "fetch("), Vec::<usize>::new(), "comments do not count");
    assert!(code.contains("https://x/"), "a link is no comment");
    assert_eq!(lines_with_word("query.refetch()", "fetch("), Vec::<usize>::new(), "refetch is not fetch");
}
