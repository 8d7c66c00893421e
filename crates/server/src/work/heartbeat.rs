//! Device heartbeat, readiness and who else is live (T-205 §4, D19). Times are the server's; `client_time` is only written down.

use cmautobuy_protocol::device::{DeviceHeartbeat, DeviceHeartbeatAnswer, MAX_PREDECESSORS, NotReady};
use cmautobuy_protocol::{ErrorCode, WireTime};

use crate::auth::Buyer;
use crate::config::ms;
use crate::house::Call;
use crate::refusal::{CallError, Refusal};
use crate::store::device::{DeviceRow, Rival, device_beat, device_get, device_set_rival, device_with_phone};
use crate::store::task::{task_cancel_requested, task_in_slot};

const MAX_VERSION_CHARS: usize = 64;
const MAX_SERIAL_CHARS: usize = 128;

/// What became of a heartbeat. A refused one must be remembered, so it is not an error: an error would roll the memory back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Beat {
    Taken(DeviceHeartbeatAnswer),
    InUse(Refusal),
}

pub(crate) fn beat(call: Call<'_>, buyer: Buyer, beat: &DeviceHeartbeat) -> Result<Beat, CallError> {
    buyer.must_be(beat.device_id)?;
    check_texts(beat)?;
    let device = this_device(call, buyer)?;
    if let Some(text) = live_elsewhere(call, &device, beat)? {
        device_set_rival(call.tx, buyer.device, &Rival { at: call.now, instance_id: beat.instance_id, text: text.clone() })?;
        tracing::warn!(device_id = %buyer.device, instance_id = %beat.instance_id, reason = %text, "heartbeat refused: device in use");
        return Ok(Beat::InUse(Refusal::new(ErrorCode::DeviceInUse, text)));
    }
    device_beat(call.tx, beat, call.now)?;
    let held = task_in_slot(call.tx, buyer.device, None, call.now)?;
    if let Some(reported) = beat.active_task_id.filter(|reported| held != Some(*reported)) {
        // T-205 §4: compared only; the server's own record is the authority.
        tracing::debug!(device_id = %buyer.device, %reported, held = held.map(tracing::field::display), "device reports another active task");
    }
    Ok(Beat::Taken(DeviceHeartbeatAnswer {
        server_time: call.now,
        not_ready: not_ready(beat.accessibility_connected, beat.pdd_installed),
        active_task_id: held,
        cancel_requested_tasks: task_cancel_requested(call.tx, buyer.device)?,
        ttl_ms: ms(call.house.config.heartbeat_ttl).unsigned_abs(),
    }))
}

fn check_texts(beat: &DeviceHeartbeat) -> Result<(), Refusal> {
    let longer = |text: Option<&str>, most: usize| text.is_some_and(|t| t.chars().count() > most);
    if beat.app_version.is_empty() || longer(Some(&beat.app_version), MAX_VERSION_CHARS) {
        return Err(Refusal::malformed(format!("app_version must be 1 to {MAX_VERSION_CHARS} characters")));
    }
    if longer(beat.android_version.as_deref(), MAX_VERSION_CHARS) || longer(beat.pdd_version.as_deref(), MAX_VERSION_CHARS) {
        return Err(Refusal::malformed(format!("a version must be at most {MAX_VERSION_CHARS} characters")));
    }
    if beat.predecessors.len() > MAX_PREDECESSORS {
        return Err(Refusal::malformed(format!("predecessors must be at most {MAX_PREDECESSORS}")));
    }
    if longer(beat.phone_serial.as_deref(), MAX_SERIAL_CHARS) {
        return Err(Refusal::malformed(format!("phone_serial must be at most {MAX_SERIAL_CHARS} characters")));
    }
    Ok(())
}

/// D19: a second live instance of this device, or this phone live under another device.
fn live_elsewhere(call: Call<'_>, device: &DeviceRow, beat: &DeviceHeartbeat) -> Result<Option<String>, CallError> {
    // A folder has one process at a time (D7), so a restarted client takes over from the process it replaced at once.
    let same_folder = |instance| instance == beat.instance_id || beat.predecessors.contains(&instance);
    let other = device.heartbeat.as_ref().filter(|last| !same_folder(last.instance_id) && lives(call, last.at));
    if let Some(other) = other {
        let ago_s = call.now.ms_since(other.at) / 1000;
        return Ok(Some(format!(
            "instance {} of this device was heard {ago_s} s ago; close the other copy, or wait until it is silent for {} s",
            other.instance_id.short(),
            call.house.config.heartbeat_ttl.as_secs()
        )));
    }
    let Some(serial) = &beat.phone_serial else { return Ok(None) };
    let since = call.now.plus_ms(-ms(call.house.config.heartbeat_ttl));
    let holder = device_with_phone(call.tx, serial, device.device_id, since)?;
    Ok(holder.map(|holder| format!("phone {serial} is in use by device {holder}; disconnect it there first")))
}

/// Heard of within the heartbeat TTL.
pub(crate) fn lives(call: Call<'_>, at: WireTime) -> bool {
    call.now.ms_since(at) <= ms(call.house.config.heartbeat_ttl)
}

fn not_ready(accessibility_connected: bool, pdd_installed: bool) -> Vec<NotReady> {
    let bits = [(accessibility_connected, NotReady::AccessibilityOff), (pdd_installed, NotReady::PddMissing)];
    bits.into_iter().filter(|(fine, _)| !fine).map(|(_, why)| why).collect()
}

/// The caller's own device row; its login says it exists.
pub(crate) fn this_device(call: Call<'_>, buyer: Buyer) -> Result<DeviceRow, CallError> {
    let gone = || Refusal::new(ErrorCode::Forbidden, "this device is no longer authorised; ask an administrator");
    Ok(device_get(call.tx, buyer.device)?.ok_or_else(gone)?)
}

/// D19: claim, start and resume are refused while somebody else was refused as this device within the TTL. The calls themselves name no
/// instance, so neither copy may go on until one is silent.
pub(crate) fn must_be_alone(call: Call<'_>, device: &DeviceRow) -> Result<(), Refusal> {
    match device.rival.as_ref().filter(|rival| lives(call, rival.at)) {
        None => Ok(()),
        Some(rival) => Err(Refusal::new(ErrorCode::DeviceInUse, rival.text.clone())),
    }
}

/// T-205 §4: a heartbeat at most the TTL old with both bits true.
pub(crate) fn must_be_ready(call: Call<'_>, device: &DeviceRow) -> Result<(), Refusal> {
    let refuse = |why: &str| Err(Refusal::new(ErrorCode::DeviceNotReady, why));
    let Some(last) = device.heartbeat.as_ref().filter(|last| lives(call, last.at)) else {
        return refuse("the server has no recent heartbeat of this device; send one and try again");
    };
    match not_ready(last.accessibility_connected, last.pdd_installed).first() {
        None => Ok(()),
        Some(NotReady::AccessibilityOff) => refuse("the phone's screen could not be read lately; unlock it and check the connection"),
        Some(NotReady::PddMissing) => refuse("Pinduoduo is not installed on the phone; install it"),
    }
}
