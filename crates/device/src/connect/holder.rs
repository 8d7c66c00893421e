//! Who holds a TCP port of this computer: name and process id, for a person who must close it.
//!
//! Linux tells through /proc. Windows is asked through its own `netstat` and `tasklist`, because its table API is C pointers and this
//! crate has no unsafe code. Best effort: "unknown" is an answer, an error is not.

use std::fmt;

/// A program on this computer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    pub name: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}

/// The program that listens on `port`; `None` when nobody does or it cannot be told.
pub async fn holder_of(port: u16) -> Option<Holder> {
    #[cfg(windows)]
    return windows::holder_of(port).await;
    #[cfg(not(windows))]
    return tokio::task::spawn_blocking(move || proc::holder_of(port)).await.ok().flatten();
}

#[cfg(not(windows))]
mod proc {
    use std::fs;

    use super::{Holder, listening_inodes};

    pub(super) fn holder_of(port: u16) -> Option<Holder> {
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
        let inodes: Vec<String> = tables.iter().flat_map(|table| listening_inodes(table, port)).map(|i| format!("socket:[{i}]")).collect();
        if inodes.is_empty() {
            return None;
        }
        fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            // Another user's process does not show its files; then the holder stays unknown.
            let mut files = fs::read_dir(entry.path().join("fd")).ok()?.flatten();
            files.find(|file| fs::read_link(file.path()).is_ok_and(|to| inodes.iter().any(|inode| to.as_os_str() == inode.as_str())))?;
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            Some(Holder { pid, name: name.trim().to_owned() })
        })
    }
}

/// Inodes of the sockets that listen on `port`, from `/proc/net/tcp`.
#[cfg(any(test, not(windows)))]
fn listening_inodes(table: &str, port: u16) -> Vec<u64> {
    const LISTEN: &str = "0A";
    let inode = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next()?;
        let (_, hex) = local.rsplit_once(':')?;
        let state = fields.nth(1)?;
        let inode = fields.nth(5)?;
        (state == LISTEN && u16::from_str_radix(hex, 16).ok()? == port).then(|| inode.parse().ok()).flatten()
    };
    table.lines().filter_map(inode).collect()
}

/// The process of the listening socket in `netstat -ano -p TCP`. The state column is translated on a Chinese Windows, so a listener is
/// known by its foreign port 0.
#[cfg(any(test, windows))]
fn netstat_pid(table: &str, port: u16) -> Option<u32> {
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [kind, local, foreign, .., pid] = fields.as_slice() else { return None };
        let fits = kind.eq_ignore_ascii_case("tcp")
            && local.rsplit_once(':').is_some_and(|(_, own)| own.parse() == Ok(port))
            && foreign.ends_with(":0");
        fits.then(|| pid.parse().ok()).flatten()
    })
}

/// The image name in one line of `tasklist /FO CSV /NH`.
#[cfg(any(test, windows))]
fn tasklist_name(csv: &str) -> Option<String> {
    let line = csv.lines().map(str::trim).find(|line| line.starts_with('"'))?;
    let name = line.trim_start_matches('"').split('"').next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(windows)]
mod windows {
    use std::path::Path;
    use std::time::Duration;

    use super::{Holder, netstat_pid, tasklist_name};
    use crate::connect::program::{quiet, said};

    const LIMIT: Duration = Duration::from_secs(5);

    pub(super) async fn holder_of(port: u16) -> Option<Holder> {
        let mut netstat = quiet(Path::new("netstat.exe"));
        netstat.args(["-ano", "-p", "TCP"]);
        let pid = netstat_pid(&said(netstat, "list ports", LIMIT).await.ok()?, port)?;
        let mut tasklist = quiet(Path::new("tasklist.exe"));
        tasklist.args(["/FI", &format!("PID eq {pid}"), "/FO", "CSV", "/NH"]);
        let name = said(tasklist, "name a program", LIMIT).await.ok().and_then(|csv| tasklist_name(&csv));
        Some(Holder { pid, name: name.unwrap_or_else(|| "?".to_owned()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_tables() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:13AD 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0 100 0 0 10 0\n\
             1: 0100007F:13AD 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 4243 1 0 100 0 0 10 0\n\
             2: garbage\n";
        assert_eq!(listening_inodes(table, 5037), [4242], "only the listener, not its connections");
        assert_eq!(listening_inodes(table, 5038), Vec::<u64>::new(), "another port is not it");
    }

    #[test]
    fn windows_tables() {
        let table = "\r\n活动连接\r\n\r\n  协议  本地地址          外部地址        状态           PID\r\n\
             \x20 TCP    0.0.0.0:135            0.0.0.0:0              LISTENING       1044\r\n\
             \x20 TCP    127.0.0.1:5037         127.0.0.1:50021        ESTABLISHED     9000\r\n\
             \x20 TCP    127.0.0.1:5037         0.0.0.0:0              侦听            7788\r\n\
             \x20 TCP    [::]:445               [::]:0                 LISTENING       4\r\n";
        assert_eq!(netstat_pid(table, 5037), Some(7788), "the listener, whatever the language of its state");
        assert_eq!(netstat_pid(table, 445), Some(4), "IPv6 too");
        assert_eq!(netstat_pid(table, 37), None, "a port is compared whole");
        let csv = "\"360MobileMgr.exe\",\"7788\",\"Console\",\"1\",\"20,000 K\"\r\n";
        assert_eq!(tasklist_name(csv).as_deref(), Some("360MobileMgr.exe"), "the person must know what to close");
        assert_eq!(tasklist_name("信息: 没有运行的任务匹配指定标准。\r\n"), None, "a process that has ended has no name");
    }

    #[cfg(not(windows))]
    #[tokio::test]
    async fn our_own_listener_is_found() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let holder = holder_of(port).await.expect("this test listens there");
        assert_eq!(holder.pid, std::process::id(), "the holder is this test");
        drop(listener);
        assert_eq!(holder_of(port).await, None, "nobody holds a closed port");
    }
}
