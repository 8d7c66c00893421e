//! Reads source text the way a guard needs it: which files there are, and of a Rust file the code without comments, string contents and
//! test modules, with the strings apart. It is a lexer, not a parser: enough to say "this word is used here", and tested for it.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold nothing written by hand.
const SKIPPED: [&str; 6] = [".git", "target", "node_modules", "dist", ".cargo", "proptest-regressions"];

/// The folder that holds the workspace.
pub(crate) fn root() -> PathBuf {
    let from = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let found = from.ancestors().find(|dir| dir.join("crates/protocol/Cargo.toml").is_file());
    found.expect("these tests run from a checkout").to_path_buf()
}

/// One file of the checkout: its path from the root with `/`, and its text when it is text.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl SourceFile {
    pub(crate) fn extension(&self) -> &str {
        self.path.rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    pub(crate) fn name(&self) -> &str {
        self.path.rsplit_once('/').map_or(&self.path, |(_, name)| name)
    }

    /// The workspace member the file belongs to: `store`, `src-tauri`, `tests`; `None` outside of members.
    pub(crate) fn room(&self) -> Option<&str> {
        let mut parts = self.path.split('/');
        match parts.next()? {
            "crates" => parts.next(),
            room @ ("src-tauri" | "tests") => Some(room),
            _ => None,
        }
    }

    /// Shipped code of a member, as against its tests, benches and examples.
    pub(crate) fn is_shipped_rust(&self) -> bool {
        let inside = match self.room() {
            Some("src-tauri") => self.path.starts_with("src-tauri/src/"),
            Some("tests") | None => false,
            Some(room) => self.path.starts_with(&format!("crates/{room}/src/")),
        };
        let is_test_module = self.name() == "tests.rs" || self.path.contains("/tests/");
        inside && self.extension() == "rs" && !is_test_module
    }
}

/// Every text file below `root` that is not made by a tool.
pub(crate) fn text_files(root: &Path) -> Vec<SourceFile> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap_or_else(|fault| panic!("{}: {fault}", folder.display()));
        for entry in entries {
            let entry = entry.expect("a folder entry");
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let from_root = path.strip_prefix(root).expect("found below the root").to_string_lossy().replace('\\', "/");
            let kind = entry.file_type().expect("a file type");
            if kind.is_dir() {
                // A checkout's runtime folder holds whatever a run left (03 §2.1).
                let is_runtime = from_root.starts_with("data/");
                if !SKIPPED.contains(&name.as_str()) && !is_runtime {
                    folders.push(path);
                }
            } else if kind.is_file()
                && let Ok(text) = fs::read_to_string(&path)
            {
                found.push(SourceFile { path: from_root, text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// A Rust file taken apart; `code` has as many lines as the file.
#[derive(Debug)]
pub(crate) struct RustText {
    pub(crate) code: String,
    /// (line from 1, contents) of string literals outside of test modules.
    pub(crate) strings: Vec<(usize, String)>,
}

impl RustText {
    pub(crate) fn read(text: &str) -> Self {
        let (code, mut strings) = separate(text);
        let (code, tests) = without_tests(&code);
        strings.retain(|(line, _)| !tests.iter().any(|range| range.contains(line)));
        Self { code, strings }
    }

    /// Lines (from 1) on which `word` stands as a whole word. A `word` that contains `::` is matched as it is, at a word boundary.
    pub(crate) fn lines_with(&self, word: &str) -> Vec<usize> {
        lines_with_word(&self.code, word)
    }
}

pub(crate) fn lines_with_word(code: &str, word: &str) -> Vec<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.lines()
        .enumerate()
        .filter(|(_, line)| {
            line.match_indices(word).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                let after = line[at + word.len()..].chars().next();
                let starts = !word.starts_with(is_word) || !before.is_some_and(is_word);
                let ends = !word.ends_with(is_word) || !after.is_some_and(is_word);
                starts && ends
            })
        })
        .map(|(index, _)| index + 1)
        .collect()
}

/// Blanks comments and string contents; keeps every line break.
fn separate(text: &str) -> (String, Vec<(usize, String)>) {
    let chars: Vec<char> = text.chars().collect();
    let (mut code, mut strings) = (String::with_capacity(text.len()), Vec::new());
    let (mut at, mut line) = (0, 1);
    let peek = |at: usize| chars.get(at).copied().unwrap_or('\0');
    // Blanks `chars[from..to]`, keeping line breaks.
    let blank = |code: &mut String, line: &mut usize, from: usize, to: usize| {
        for &c in &chars[from..to] {
            if c == '\n' {
                code.push('\n');
                *line += 1;
            } else {
                code.push(' ');
            }
        }
    };
    while at < chars.len() {
        let c = chars[at];
        let word_before = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
        if c == '/' && peek(at + 1) == '/' {
            let end = chars[at..].iter().position(|&c| c == '\n').map_or(chars.len(), |n| at + n);
            blank(&mut code, &mut line, at, end);
            at = end;
        } else if c == '/' && peek(at + 1) == '*' {
            let (mut depth, mut end) = (1, at + 2);
            while end < chars.len() && depth > 0 {
                match (peek(end), peek(end + 1)) {
                    ('/', '*') => (depth, end) = (depth + 1, end + 2),
                    ('*', '/') => (depth, end) = (depth - 1, end + 2),
                    _ => end += 1,
                }
            }
            let end = end.min(chars.len());
            blank(&mut code, &mut line, at, end);
            at = end;
        } else if let Some((open, hashes)) = raw_string(&chars, at).filter(|_| !word_before) {
            let closing: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            let end = (open..chars.len()).find(|&i| chars[i..].starts_with(&closing)).unwrap_or(chars.len());
            strings.push((line, chars[open..end].iter().collect()));
            code.push('"');
            blank(&mut code, &mut line, open, end);
            code.push('"');
            at = (end + closing.len()).min(chars.len());
        } else if c == '"' {
            let mut end = at + 1;
            while end < chars.len() && chars[end] != '"' {
                end += if chars[end] == '\\' { 2 } else { 1 };
            }
            let end = end.min(chars.len());
            strings.push((line, chars[at + 1..end].iter().collect()));
            code.push('"');
            blank(&mut code, &mut line, at + 1, end);
            code.push('"');
            at = end + 1;
        } else if c == '\'' && (peek(at + 1) == '\\' || (peek(at + 2) == '\'' && peek(at + 1) != '\'')) {
            // A character literal; anything else with one quote is a lifetime.
            let from = if peek(at + 1) == '\\' { at + 3 } else { at + 2 };
            let end = (from..chars.len()).find(|&i| chars[i] == '\'').unwrap_or(chars.len() - 1);
            code.push_str("' '");
            at = end + 1;
        } else {
            if c == '\n' {
                line += 1;
            }
            code.push(c);
            at += 1;
        }
    }
    (code, strings)
}

/// When a raw string starts at `at`: where its contents start and how many `#` close it.
fn raw_string(chars: &[char], at: usize) -> Option<(usize, usize)> {
    let after_prefix = match chars.get(at)? {
        'r' => at + 1,
        'b' | 'c' if chars.get(at + 1) == Some(&'r') => at + 2,
        _ => return None,
    };
    let hashes = chars[after_prefix..].iter().take_while(|&&c| c == '#').count();
    (chars.get(after_prefix + hashes) == Some(&'"')).then_some((after_prefix + hashes + 1, hashes))
}

/// Blanks items under `#[cfg(test)]`; also says which lines those were.
fn without_tests(code: &str) -> (String, Vec<std::ops::RangeInclusive<usize>>) {
    const MARK: &str = "#[cfg(test)]";
    let (mut kept, mut ranges) = (code.to_owned(), Vec::new());
    while let Some(start) = kept.find(MARK) {
        let rest = &kept[start + MARK.len()..];
        let mut depth = 0_usize;
        let mut end = rest.len();
        for (at, c) in rest.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth <= 1 => {
                    end = at + 1;
                    break;
                }
                '}' => depth -= 1,
                ';' if depth == 0 => {
                    end = at + 1;
                    break;
                }
                _ => {}
            }
        }
        let stop = start + MARK.len() + end;
        let line_of = |at: usize| kept[..at].matches('\n').count() + 1;
        ranges.push(line_of(start)..=line_of(stop));
        let blank: String = kept[start..stop].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        kept.replace_range(start..stop, &blank);
    }
    (kept, ranges)
}

/// Blanks `//` and `/* */` of TypeScript and Vue; strings stay, since an import path is one.
pub(crate) fn without_ts_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut in_block = false;
    for line in text.lines() {
        let mut rest = line;
        while !rest.is_empty() {
            if in_block {
                match rest.find("*/") {
                    Some(at) => (in_block, rest) = (false, &rest[at + 2..]),
                    None => break,
                }
            } else {
                // `://` is a link, not a comment.
                let line_comment = rest.match_indices("//").find(|(at, _)| !rest[..*at].ends_with(':')).map(|(at, _)| at);
                match (line_comment, rest.find("/*")) {
                    (Some(at), block) if block.is_none_or(|b| at < b) => {
                        kept.push_str(&rest[..at]);
                        break;
                    }
                    (_, Some(at)) => {
                        kept.push_str(&rest[..at]);
                        (in_block, rest) = (true, &rest[at + 2..]);
                    }
                    (_, None) => {
                        kept.push_str(rest);
                        break;
                    }
                }
            }
        }
        kept.push('\n');
    }
    kept
}
