//! Files and settings of the phone, as far as a shell sees them. Nothing here touches the disk of the computer.

use std::collections::BTreeMap;

use super::Phone;

impl Phone {
    pub(crate) fn read_file(&self, path: &str) -> Option<Vec<u8>> {
        self.state().files.get(&clean(path)).cloned()
    }

    /// False where a shell may not write.
    pub(crate) fn write_file(&self, path: &str, bytes: Vec<u8>) -> bool {
        let path = clean(path);
        if !writable(&path) {
            return false;
        }
        self.state().files.insert(path, bytes);
        true
    }

    pub(crate) fn append_file(&self, path: &str, bytes: &[u8]) -> bool {
        let path = clean(path);
        if !writable(&path) {
            return false;
        }
        self.state().files.entry(path).or_default().extend_from_slice(bytes);
        true
    }

    pub(crate) fn remove_file(&self, path: &str) -> bool {
        self.state().files.remove(&clean(path)).is_some()
    }

    pub(crate) fn is_dir(&self, path: &str) -> bool {
        let path = clean(path);
        let below = format!("{}/", path.trim_end_matches('/'));
        DIRS.contains(&path.as_str()) || self.state().files.keys().any(|file| file.starts_with(&below))
    }

    /// Names and sizes directly in a directory; directories have no size.
    pub(crate) fn list(&self, path: &str) -> Vec<(String, Option<usize>)> {
        let below = format!("{}/", clean(path).trim_end_matches('/'));
        let mut found = BTreeMap::new();
        for dir in DIRS {
            if let Some(rest) = dir.strip_prefix(&below).filter(|rest| !rest.is_empty() && !rest.contains('/')) {
                found.insert(rest.to_owned(), None);
            }
        }
        for (file, bytes) in &self.state().files {
            if let Some(rest) = file.strip_prefix(&below) {
                match rest.split_once('/') {
                    None => found.insert(rest.to_owned(), Some(bytes.len())),
                    Some((dir, _)) => found.insert(dir.to_owned(), None),
                };
            }
        }
        found.into_iter().collect()
    }

    pub(crate) fn setting(&self, key: &str) -> Option<String> {
        self.state().settings.get(key).cloned()
    }

    pub(crate) fn set_setting(&self, key: String, value: Option<String>) {
        let mut state = self.state();
        match value {
            Some(value) => state.settings.insert(key, value),
            None => state.settings.remove(&key),
        };
    }

    pub(crate) fn settings(&self, namespace: &str) -> Vec<String> {
        let start = format!("{namespace} ");
        let state = self.state();
        let own = state.settings.iter().filter_map(|(key, value)| Some(format!("{}={value}", key.strip_prefix(&start)?)));
        own.collect()
    }
}

const DIRS: [&str; 9] = ["/", "/sdcard", "/sdcard/Download", "/sdcard/DCIM", "/data", "/data/local", "/data/local/tmp", "/system", "/proc"];

fn writable(path: &str) -> bool {
    path.starts_with("/sdcard/") || path.starts_with("/data/local/tmp/")
}

/// One name per place: aliases of the shared storage, doubled slashes and dots.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    let joined = format!("/{}", parts.join("/"));
    for alias in ["/storage/emulated/0", "/storage/self/primary", "/mnt/sdcard"] {
        if let Some(rest) = joined.strip_prefix(alias) {
            return format!("/sdcard{rest}");
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SimConfig;

    #[test]
    fn one_place_has_one_name() {
        let rows = [
            ("/sdcard//a.png", "/sdcard/a.png"),
            ("/storage/emulated/0/a", "/sdcard/a"),
            ("/data/local/tmp/../tmp/x", "/data/local/tmp/x"),
            ("/", "/"),
        ];
        for (raw, want) in rows {
            assert_eq!(clean(raw), want, "{raw} must be the same file however it is spelt");
        }
    }

    #[test]
    fn a_shell_writes_only_where_it_may() {
        let phone = Phone::new(SimConfig::default());
        assert!(phone.write_file("/sdcard/a", vec![1]), "shared storage is writable");
        assert!(phone.write_file("/data/local/tmp/a", vec![1]), "and so is the shell's own directory");
        assert!(!phone.write_file("/system/a", vec![1]), "the system is not");
    }
}
