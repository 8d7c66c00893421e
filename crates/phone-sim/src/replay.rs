//! Plays back what a recorded run saw. `resources/phone-sim/README.md` describes the format: JSON lines, one capture or one action each.
//!
//! Looking moves on to the next capture until a recorded action stands in between; any action of the peer steps over it. The pages do not
//! react to where the finger lands, because a recording knows only one way.

use std::collections::VecDeque;
use std::path::Path;

use serde::Deserialize;
use thiserror::Error;

use crate::model::{DENSITY, HEIGHT, WIDTH};
use crate::phone::Screen;

/// Larger than any dump or picture; a wrong file must not fill the memory.
const MOST: u64 = 64 * 1024 * 1024;

/// A recording, read whole.
#[derive(Debug, Clone)]
pub struct Recording {
    screen: Screen,
    entries: VecDeque<Entry>,
}

#[derive(Debug, Clone)]
enum Entry {
    Capture(Box<Recorded>),
    Action(String),
}

#[derive(Debug, Clone, Default)]
struct Recorded {
    package: String,
    activity: String,
    goods_id: Option<String>,
    /// `None`: this look failed.
    xml: Option<String>,
    png: Option<Vec<u8>>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line {
    Recording {
        schema_version: u32,
        width: Option<i32>,
        height: Option<i32>,
        density: Option<u32>,
    },
    Capture {
        #[serde(default)]
        package: String,
        #[serde(default)]
        activity: String,
        goods_id: Option<String>,
        xml: Option<String>,
        xml_path: Option<String>,
        png_path: Option<String>,
    },
    Action {
        #[serde(default)]
        what: String,
    },
}

#[derive(Debug, Error)]
pub enum ReplayError {
    #[error("cannot read {path}")]
    Read {
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error("line {line} of the recording is not understood")]
    Line {
        line: usize,
        #[source]
        source: serde_json::Error,
    },
    #[error("line {line} names a file outside the recording's folder: {path}")]
    Outside { line: usize, path: String },
    #[error("the recording has schema_version {0}; this build reads 1")]
    Version(u32),
    #[error("the recording holds no capture")]
    Empty,
}

impl Recording {
    /// Reads a recording and the files beside it, or the artifacts of one attempt: a folder of `NN-step.xml` with `NN-step.png`.
    pub fn open(path: &Path) -> Result<Self, ReplayError> {
        if path.is_dir() {
            return Self::artifacts(path);
        }
        let text = String::from_utf8_lossy(&read(path)?).into_owned();
        Self::parse(&text, path.parent().unwrap_or(Path::new(".")))
    }

    /// Artifacts name no foreground, so the package is the tree's own; a new step means that something was done in between.
    fn artifacts(folder: &Path) -> Result<Self, ReplayError> {
        let wrong = |source| ReplayError::Read { path: folder.display().to_string(), source };
        let listed = std::fs::read_dir(folder).map_err(wrong)?.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
        let mut trees: Vec<_> =
            listed.into_iter().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "xml")).collect();
        trees.sort();
        let mut made = Self { screen: Screen { width: WIDTH, height: HEIGHT, density: DENSITY }, entries: VecDeque::new() };
        let mut before: Option<String> = None;
        for tree in trees {
            let stem = tree.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let step = stem.split_once('-').map_or(stem.as_str(), |(_, step)| step).to_owned();
            if before.as_ref().is_some_and(|before| *before != step) {
                made.entries.push_back(Entry::Action(format!("on to {step}")));
            }
            before = Some(step);
            let xml = String::from_utf8_lossy(&read(&tree)?).into_owned();
            let package = xml.split(" package=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default().to_owned();
            let picture = tree.with_extension("png");
            let png = if picture.is_file() { Some(read(&picture)?) } else { None };
            let capture = Recorded { package, activity: String::new(), goods_id: None, xml: Some(xml), png };
            made.entries.push_back(Entry::Capture(Box::new(capture)));
        }
        if made.entries.is_empty() { Err(ReplayError::Empty) } else { Ok(made) }
    }

    /// Reads the lines; paths in them are relative to `folder` and may not leave it.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, ReplayError> {
        let mut made = Self { screen: Screen { width: WIDTH, height: HEIGHT, density: DENSITY }, entries: VecDeque::new() };
        for (at, raw) in text.lines().enumerate().filter(|(_, raw)| !raw.trim().is_empty()) {
            let line = at + 1;
            let beside = |name: Option<String>| -> Result<Option<Vec<u8>>, ReplayError> {
                let Some(name) = name else { return Ok(None) };
                let inside = Path::new(&name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
                if !inside {
                    return Err(ReplayError::Outside { line, path: name });
                }
                read(&folder.join(name)).map(Some)
            };
            match serde_json::from_str(raw.trim_start_matches('\u{feff}')).map_err(|source| ReplayError::Line { line, source })? {
                Line::Recording { schema_version, width, height, density } => {
                    if schema_version != 1 {
                        return Err(ReplayError::Version(schema_version));
                    }
                    let own = &mut made.screen;
                    own.width = width.unwrap_or(own.width).clamp(1, 10_000);
                    own.height = height.unwrap_or(own.height).clamp(1, 10_000);
                    own.density = density.unwrap_or(own.density);
                }
                Line::Capture { package, activity, goods_id, xml, xml_path, png_path } => {
                    let xml = match xml {
                        Some(xml) => Some(xml),
                        None => beside(xml_path)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
                    };
                    let png = beside(png_path)?;
                    made.entries.push_back(Entry::Capture(Box::new(Recorded { package, activity, goods_id, xml, png })));
                }
                Line::Action { what } => made.entries.push_back(Entry::Action(what)),
            }
        }
        if !made.entries.iter().any(|one| matches!(one, Entry::Capture(_))) {
            return Err(ReplayError::Empty);
        }
        Ok(made)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, ReplayError> {
    let wrong = |source| ReplayError::Read { path: path.display().to_string(), source };
    let size = std::fs::metadata(path).map_err(wrong)?.len();
    if size > MOST {
        return Err(wrong(std::io::Error::new(std::io::ErrorKind::FileTooLarge, "larger than 64 MB")));
    }
    std::fs::read(path).map_err(wrong)
}

/// A recording being played.
#[derive(Debug)]
pub(crate) struct Replay {
    screen: Screen,
    rest: VecDeque<Entry>,
    current: Recorded,
    /// Somebody looked at `current` already.
    seen: bool,
    at: usize,
}

impl Replay {
    pub(crate) fn new(recording: Recording) -> Self {
        let mut made = Self { screen: recording.screen, rest: recording.entries, current: Recorded::default(), seen: false, at: 0 };
        // A recording may begin with the action that led to its first capture.
        made.next_capture();
        made
    }

    fn next_capture(&mut self) {
        while let Some(entry) = self.rest.pop_front() {
            if let Entry::Capture(capture) = entry {
                self.current = *capture;
                self.seen = false;
                self.at += 1;
                return;
            }
        }
    }

    /// One look.
    pub(crate) fn look(&mut self) -> Option<String> {
        if self.seen && matches!(self.rest.front(), Some(Entry::Capture(_))) {
            self.next_capture();
        }
        self.seen = true;
        self.current.xml.clone()
    }

    /// The peer did something: over the next recorded action to what was seen after it.
    pub(crate) fn act(&mut self) -> String {
        let Some(at) = self.rest.iter().position(|entry| matches!(entry, Entry::Action(_))) else {
            return "the recording has no further action".to_owned();
        };
        let skipped = self.rest.drain(..=at).next_back();
        // Several actions in a row were one step of the run.
        if matches!(self.rest.front(), Some(Entry::Capture(_))) {
            self.next_capture();
        }
        match skipped {
            Some(Entry::Action(what)) => format!("recorded: {what}"),
            Some(Entry::Capture(_)) | None => String::new(),
        }
    }

    pub(crate) fn screen(&self) -> Screen {
        self.screen
    }

    pub(crate) fn screen_name(&self) -> String {
        format!("replay:{}", self.at)
    }

    pub(crate) fn front(&self) -> Option<(String, String)> {
        (!self.current.package.is_empty()).then(|| (self.current.package.clone(), self.current.activity.clone()))
    }

    pub(crate) fn goods_id(&self) -> Option<String> {
        self.current.goods_id.clone()
    }

    pub(crate) fn png(&self) -> Option<Vec<u8>> {
        self.current.png.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = r#"{"kind":"recording","schema_version":1,"width":720,"height":1600,"density":320}
{"kind":"action","what":"link"}
{"kind":"capture","package":"p","activity":"a","xml":"<hierarchy rotation=\"0\">1</hierarchy>"}
{"kind":"capture","package":"p","activity":"a","goods_id":"12","xml":"<hierarchy rotation=\"0\">2</hierarchy>"}
{"kind":"action","what":"tap 5,6"}
{"kind":"capture","package":"q","xml":null}
{"kind":"capture","package":"q","xml":"<hierarchy rotation=\"0\">4</hierarchy>"}
"#;

    #[test]
    fn looks_move_on_until_an_action_stands_between() {
        let mut replay = Replay::new(Recording::parse(RUN, Path::new(".")).expect("a good recording"));
        let look = |replay: &mut Replay| replay.look().map(|xml| xml.chars().filter(char::is_ascii_digit).collect::<String>());
        assert_eq!(replay.screen(), Screen { width: 720, height: 1600, density: 320 }, "the recorded phone's own size");
        assert_eq!(look(&mut replay).as_deref(), Some("01"), "the first capture");
        assert_eq!(look(&mut replay).as_deref(), Some("02"), "then the second");
        assert_eq!(replay.goods_id().as_deref(), Some("12"), "with the goods it showed");
        assert_eq!(look(&mut replay).as_deref(), Some("02"), "which stays until somebody acts");
        assert_eq!(replay.act(), "recorded: tap 5,6", "an action steps over the recorded one");
        assert_eq!(look(&mut replay), None, "a failed look fails again");
        assert_eq!(look(&mut replay).as_deref(), Some("04"), "and the last stays");
        assert_eq!(replay.act(), "the recording has no further action", "beyond the end nothing happens");
        assert_eq!(look(&mut replay).as_deref(), Some("04"), "the last page is still there");
    }

    #[test]
    fn the_artifacts_of_an_attempt_are_a_recording() {
        let folder = tempfile::tempdir().expect("a directory");
        assert!(Recording::open(folder.path()).is_err(), "an empty folder holds nothing to play");
        for (name, says) in [("01-open_goods", "1"), ("02-open_goods", "2"), ("03-read_goods", "3")] {
            let tree = format!("<hierarchy><node text=\"{says}\" package=\"com.p\" /></hierarchy>");
            std::fs::write(folder.path().join(name).with_extension("xml"), tree).expect("a tree");
        }
        std::fs::write(folder.path().join("03-read_goods.png"), b"picture").expect("a picture");
        let mut replay = Replay::new(Recording::open(folder.path()).expect("a good folder"));
        let looked: Vec<bool> = ["1", "2", "2"].iter().map(|says| replay.look().is_some_and(|xml| xml.contains(says))).collect();
        assert_eq!(looked, [true; 3], "looks of one step follow each other and stop at its end");
        assert_eq!(replay.act(), "recorded: on to read_goods", "an action leads to the next step");
        assert_eq!(replay.front(), Some(("com.p".to_owned(), String::new())), "the package is the tree's");
        assert_eq!(replay.png().as_deref(), Some(b"picture".as_slice()), "the picture of the same look is shown");
    }

    #[test]
    fn a_recording_with_a_mistake_is_refused() {
        let rows = [
            ("nothing in it", ""),
            ("no JSON", "x"),
            ("an unknown kind", r#"{"kind":"film"}"#),
            ("a later version", r#"{"kind":"recording","schema_version":2}"#),
            ("a path that leaves the folder", r#"{"kind":"capture","xml_path":"../secret.xml"}"#),
            ("an absolute path", r#"{"kind":"capture","png_path":"/etc/hostname"}"#),
            ("a file that is not there", r#"{"kind":"capture","xml_path":"no-such-file.xml"}"#),
        ];
        for (what, text) in rows {
            assert!(Recording::parse(text, Path::new(".")).is_err(), "must be refused: {what}");
        }
    }
}
