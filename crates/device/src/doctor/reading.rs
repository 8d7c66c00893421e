//! What the phone's answers mean for the doctor. Pure; an answer that makes no sense is "unknown", never a finding.

/// `dumpsys power`: the screen is off or dozing.
pub(super) fn screen_is_off(power: &str) -> Option<bool> {
    let state = power.lines().find_map(|line| line.trim().strip_prefix("mWakefulness="))?;
    Some(state.trim() != "Awake")
}

/// `dumpsys window`: a keyguard covers the screen. The name of the flag changed over the years; any that is true counts.
pub(super) fn is_locked(window: &str) -> Option<bool> {
    const FLAGS: [&str; 4] = ["mDreamingLockscreen=", "isKeyguardShowing=", "mShowingLockscreen=", "mKeyguardShowing="];
    let states: Vec<bool> = window
        .split_whitespace()
        .filter_map(|word| FLAGS.iter().find_map(|flag| word.strip_prefix(flag)))
        .filter_map(|value| value.trim_end_matches(',').parse().ok())
        .collect();
    (!states.is_empty()).then(|| states.contains(&true))
}

/// Free megabytes in `df -k /data`.
pub(super) fn free_mb(df: &str) -> Option<u64> {
    let mut lines = df.lines().map(str::trim).filter(|line| !line.is_empty());
    let head = lines.next()?;
    let column = head.split_whitespace().position(|word| word.eq_ignore_ascii_case("available") || word.eq_ignore_ascii_case("avail"))?;
    // A long device name wraps, so the columns are counted over the joined rest.
    let rest: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    rest.get(column)?.parse::<u64>().ok().map(|kb| kb / 1024)
}

/// `settings get global X`: `None` for a phone that does not have it.
pub(super) fn setting(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && text != "null").then(|| text.to_owned())
}

/// An unset scale is 1, the default.
pub(super) fn is_animated(scale: Option<&str>) -> bool {
    scale.is_none_or(|scale| scale.parse::<f64>().map_or(true, |value| value > 0.0))
}

/// `dumpsys package`: the owner switched the app off (`enabled=2` by the system, `3` by a person).
pub(super) fn is_disabled(package: &str) -> bool {
    let user = package.lines().map(str::trim).find(|line| line.starts_with("User 0:"));
    user.is_some_and(|line| line.split_whitespace().any(|word| matches!(word, "enabled=2" | "enabled=3")))
}

/// First two numbers of a version.
pub(super) fn version(text: &str) -> Option<[u32; 2]> {
    let mut parts = text.trim().split('.').map(|part| part.parse().ok());
    Some([parts.next()??, parts.next().flatten().unwrap_or(0)])
}

/// Xiaomi's own switch: `persist.security.adbinput` is 0 while "USB debugging (Security settings)" is off.
pub(super) fn input_is_off(adbinput: &str) -> bool {
    adbinput.trim() == "0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screens() {
        let rows = [
            ("awake", "  mWakefulness=Awake\n", Some(false)),
            ("asleep", "  mWakefulness=Asleep\n", Some(true)),
            ("dozing", "mWakefulness=Dozing", Some(true)),
            ("silent", "", None),
        ];
        for (name, text, want) in rows {
            assert_eq!(screen_is_off(text), want, "row {name}");
        }
        let rows = [
            ("old", "    mShowingLockscreen=true mShowingDream=false", Some(true)),
            ("new", "  isKeyguardShowing=false\n  mDreamingLockscreen=false", Some(false)),
            ("one of two", "isKeyguardShowing=true\nmDreamingLockscreen=false", Some(true)),
            ("none", "mCurrentFocus=null", None),
        ];
        for (name, text, want) in rows {
            assert_eq!(is_locked(text), want, "row {name}");
        }
    }

    #[test]
    fn small_answers() {
        let df = "Filesystem     1K-blocks     Used Available Use% Mounted on\n/dev/block/dm-44 112345678 99999999 204800 99% /data\n";
        assert_eq!(free_mb(df), Some(200), "kilobytes to megabytes");
        let wrapped = "Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/block/very-long\n 100 50 1048576 5% /data\n";
        assert_eq!(free_mb(wrapped), Some(1024), "a long name wraps the line");
        assert_eq!(free_mb("df: not found"), None, "unknown is not low");
        assert!(is_animated(None) && is_animated(Some("1.0")) && is_animated(Some("0.5")), "unset means 1");
        assert!(!is_animated(Some("0")) && !is_animated(Some("0.0")), "off is off");
        assert_eq!(setting("null\n"), None, "android's word for unset");
        assert!(is_disabled("  User 0: ceDataInode=1 installed=true enabled=3 instant=false"), "switched off by the owner");
        assert!(!is_disabled("  User 0: installed=true enabled=0\n  User 10: enabled=3"), "another user's choice is not ours");
        assert_eq!(version("7.58.0"), Some([7, 58]), "a version");
        assert_eq!(version("8"), Some([8, 0]), "a short one");
        assert_eq!(version("dev"), None, "not a version");
        assert!(input_is_off("0\n") && !input_is_off("1") && !input_is_off(""), "only a plain no counts");
    }
}
