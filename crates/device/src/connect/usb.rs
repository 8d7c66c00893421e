//! A phone on a cable with no adb program at all, through the crate `adb_client` where the driver allows it (feature `usb`).
//!
//! That crate blocks, has no time-outs, one stream at a time, no exit codes, and its shell is a terminal that rewrites line ends
//! (facts/adb A1-A6). So it lives on a thread of its own, and every command is wrapped: base64 against the terminal, a trailer with the
//! exit code against an answer that was cut. A command that never ends costs that thread, never a caller: the road is then given up
//! and says so. Not on the path of the default build (ADR 0008).

use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc as blocking;
use std::time::Duration;

use adb_client::ADBDeviceExt;
use adb_client::usb::ADBUSBDevice;
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::sync::oneshot;

use crate::adb::link::{Link, MAX_OUTPUT_BYTES, ShellOutput, split_trailer, with_trailer, within};
use crate::adb::phone::AdbPhone;
use crate::adb::{AdbError, AdbKey};
use crate::phone::Phone;

/// Commands waiting for the one stream; more callers than that are a mistake.
const WAITING: usize = 64;

/// A phone on a cable by USB vendor and product id. Connects at the first call.
pub fn connect_usb(vendor_id: u16, product_id: u16, key: Arc<AdbKey>) -> Arc<dyn Phone> {
    Arc::new(AdbPhone::new(UsbLink::start(vendor_id, product_id, key)))
}

type Answer = Result<Vec<u8>, AdbError>;

struct Job {
    command: String,
    answer: oneshot::Sender<Answer>,
}

struct UsbLink {
    name: String,
    jobs: blocking::SyncSender<Job>,
}

impl fmt::Debug for UsbLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsbLink").field("name", &self.name).finish_non_exhaustive()
    }
}

impl UsbLink {
    fn start(vendor_id: u16, product_id: u16, key: Arc<AdbKey>) -> UsbLink {
        let (jobs, queue) = blocking::sync_channel(WAITING);
        // Detached on purpose: a read of that crate cannot be interrupted. It ends when the link is dropped or the cable is pulled.
        std::thread::spawn(move || work(vendor_id, product_id, &key, &queue));
        UsbLink { name: format!("usb:{vendor_id:04x}:{product_id:04x}"), jobs }
    }

    async fn run(&self, cmd: &str) -> Result<ShellOutput, AdbError> {
        let (answer, answered) = oneshot::channel();
        let command = format!("( {} ) 2>&1 | base64", with_trailer(cmd));
        self.jobs.try_send(Job { command, answer }).map_err(|_| {
            AdbError::Protocol("the cable is stuck in an earlier command; unplug the phone and plug it in again".to_owned())
        })?;
        let text = answered.await.map_err(|_| AdbError::BrokeOff)??;
        let text: Vec<u8> = text.into_iter().filter(|byte| !byte.is_ascii_whitespace()).collect();
        split_trailer(STANDARD.decode(text).map_err(|_| AdbError::BrokeOff)?)
    }
}

#[async_trait]
impl Link for UsbLink {
    fn serial(&self) -> &str {
        &self.name
    }

    async fn shell(&self, cmd: &str, limit: Duration) -> Result<ShellOutput, AdbError> {
        within(limit, self.run(cmd)).await
    }

    async fn exec(&self, cmd: &str, limit: Duration) -> Result<Vec<u8>, AdbError> {
        Ok(within(limit, self.run(cmd)).await?.stdout)
    }
}

/// Refuses to grow for ever; an error here ends the command.
#[derive(Default)]
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // Base64 is a third longer.
        if self.0.len() + bytes.len() > MAX_OUTPUT_BYTES / 3 * 4 {
            return Err(std::io::Error::other("the answer is too large"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn work(vendor_id: u16, product_id: u16, key: &AdbKey, queue: &blocking::Receiver<Job>) {
    let mut device: Option<ADBUSBDevice> = None;
    while let Ok(job) = queue.recv() {
        // Its caller gave up while it waited in line.
        if job.answer.is_closed() {
            continue;
        }
        let answer = perform(&mut device, vendor_id, product_id, key, &job.command);
        if answer.is_err() {
            device = None;
        }
        let _ = job.answer.send(answer);
    }
}

fn perform(device: &mut Option<ADBUSBDevice>, vendor_id: u16, product_id: u16, key: &AdbKey, command: &str) -> Answer {
    let device = match device {
        Some(device) => device,
        None => device.insert(open(vendor_id, product_id, key)?),
    };
    let mut out = Bounded::default();
    device.shell_command(&command, Some(&mut out), None).map_err(|error| AdbError::Io(std::io::Error::other(error.to_string())))?;
    Ok(out.0)
}

/// That crate takes a key only as a file, so ours is one for as long as it reads it, in the user's own temporary folder (D6: never in
/// `data/`, and gone before the phone answers).
fn open(vendor_id: u16, product_id: u16, key: &AdbKey) -> Result<ADBUSBDevice, AdbError> {
    let pem = key.to_pkcs8_pem().map_err(|error| AdbError::Protocol(error.to_string()))?;
    let path = std::env::temp_dir().join(format!("cmautobuy-{:016x}", rand::random::<u64>()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&path).and_then(|mut file| file.write_all(pem.as_bytes()));
    let opened = written.map_err(AdbError::Io).and_then(|()| {
        let unreachable = |error: adb_client::RustADBError| AdbError::Unreachable {
            endpoint: format!("the phone on the cable ({vendor_id:04x}:{product_id:04x})"),
            // DeviceBusy: an adb server has it. NotSupported: no WinUSB driver.
            source: std::io::Error::other(error.to_string()),
        };
        ADBUSBDevice::new_with_custom_private_key(vendor_id, product_id, &path).map_err(unreachable)
    });
    if let Err(error) = std::fs::remove_file(&path) {
        tracing::warn!(%error, "the temporary key file could not be removed");
    }
    opened
}
