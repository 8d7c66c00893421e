//! Device heartbeat: keeps this device ready to claim (T-205 §4, D19) and hears of cancels (D4).

use std::sync::atomic::Ordering;

use cmautobuy_protocol::UserId;
use cmautobuy_protocol::device::DeviceHeartbeat;
use cmautobuy_store::StoreError;

use crate::house::{Sync, store_failed};
use crate::turn::Next;

/// What is known of the phone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PhoneReport {
    pub serial: Option<String>,
    pub android_version: Option<String>,
    pub pdd_version: Option<String>,
    /// The last accessibility dump succeeded within the heartbeat TTL (D19).
    pub accessibility_connected: bool,
    pub pdd_installed: bool,
}

impl Sync {
    pub(crate) async fn beat_turn(&self) -> Next {
        let Some(user) = self.user() else { return Next::Wait };
        let phone = self.parts.phone.borrow().clone();
        let beat = DeviceHeartbeat {
            device_id: self.parts.device,
            instance_id: self.parts.instance,
            predecessors: self.parts.predecessors.clone(),
            phone_serial: phone.serial,
            app_version: self.parts.app_version.to_owned(),
            android_version: phone.android_version,
            pdd_version: phone.pdd_version,
            accessibility_connected: phone.accessibility_connected,
            pdd_installed: phone.pdd_installed,
            active_task_id: self.parts.lease.current().map(|running| running.task),
            client_time: self.parts.clock.now(),
        };
        let answer = self.parts.api.device_heartbeat(&beat).await;
        self.saw(answer.as_ref().map(|_| ()));
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                tracing::debug!(%error, "device heartbeat failed");
                let failures = self.beat_failures.fetch_add(1, Ordering::Relaxed) + 1;
                return Next::Within(self.parts.timing.backoff.delay(failures, self.dice()));
            }
        };
        if self.beat_failures.swap(0, Ordering::Relaxed) > 0
            && let Err(error) = self.server_is_back(user).await
        {
            return store_failed("heartbeat", &error);
        }
        if !answer.cancel_requested_tasks.is_empty() {
            for task in &answer.cancel_requested_tasks {
                self.parts.lease.request_cancel(*task);
            }
            let (tasks, now) = (answer.cancel_requested_tasks, self.parts.clock.now());
            if let Err(error) = self.parts.store.write(move |tx| tx.cancel_requested(&tasks, now).map(drop)).await {
                return store_failed("heartbeat", &error);
            }
            self.parts.nudges.engine.notify_one();
        }
        // A device that just became ready need not wait for the next poll.
        if answer.not_ready.is_empty() {
            self.parts.nudges.claim.notify_one();
        }
        Next::Wait
    }

    /// The server answers again: nothing waits out the back-off of an outage that is over.
    async fn server_is_back(&self, user: UserId) -> Result<(), StoreError> {
        let (device, now) = (self.parts.device, self.parts.clock.now());
        let hurry = self.parts.store.write(move |tx| Ok((tx.outbox_hurry(user, device, now)?, tx.calls_hurry(now)?)));
        hurry.await?;
        self.parts.nudges.drain.notify_one();
        self.parts.nudges.calls.notify_one();
        Ok(())
    }
}
