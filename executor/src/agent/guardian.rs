//! Accelerators and attempts: what may be given, and what happens to jobs when a device fails.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::error::AgentError;
use super::mps;
use super::node::{Agent, NodeState, blame_machine, stop_attempt};
use super::spool;
use crate::devices::{DeviceHealth, HealthBook, Tracked};
use crate::job::{AcceleratorGrant, GrantIsolation};

/// Health of accelerators, for the next agent.
pub(super) const HEALTH: &str = "health.json";

/// Time that a start waits for the driver to show an accelerator free.
const SETTLE: Duration = Duration::from_secs(2);

const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl Agent {
    /// Checks that all grants can be given now: the accelerators are known and healthy, not given
    /// away, and free by the driver's word after their last attempt has ended.
    pub(super) async fn check_grants(&self, grants: &[AcceleratorGrant]) -> Result<(), AgentError> {
        for grant in grants {
            let memory = self.check_fit(grant)?;
            if grant.isolation == GrantIsolation::Mps && !mps::runs(&self.config.mps_pipes) {
                let why = "the control daemon of CUDA MPS does not run; start `nvidia-cuda-mps-control -d`".to_owned();
                return Err(AgentError::Unavailable { uuid: grant.uuid.clone(), why });
            }
            check_share(&self.lock(), grant, memory)?;
            if grant.isolation == GrantIsolation::Hami && grants.len() > 1 {
                let why = "HAMi keeps a job to a part of one accelerator only; give it one, or use MPS".to_owned();
                return Err(AgentError::Unavailable { uuid: grant.uuid.clone(), why });
            }
            let given_up = Instant::now() + SETTLE;
            while let Some(why) = self.in_use(&grant.uuid) {
                if Instant::now() >= given_up {
                    return Err(AgentError::Unavailable { uuid: grant.uuid.clone(), why });
                }
                self.telemetry.read_soon();
                sleep(LOOK_AGAIN).await;
            }
        }
        Ok(())
    }

    /// Checks that an accelerator is known and healthy. Returns its memory, MiB, where the driver tells it.
    fn check_fit(&self, grant: &AcceleratorGrant) -> Result<Option<u64>, AgentError> {
        let readings = self.telemetry.readings();
        let find = |device: &&Tracked| device.uuid == grant.uuid;
        let device = readings.devices.iter().find(find);
        let device = device.ok_or_else(|| AgentError::NoAccelerator(grant.uuid.clone()))?;
        let unavailable = |why: String| Err(AgentError::Unavailable { uuid: grant.uuid.clone(), why });
        if let Some(stuck_ms) = readings.stuck_ms {
            return unavailable(format!("the driver has not answered for {} s", stuck_ms / 1000));
        }
        match &device.health {
            DeviceHealth::Fit => Ok(device.info.memory_total_mib),
            DeviceHealth::Out { reason, .. } => unavailable(format!("it is out of service ({reason}); see `restore`")),
        }
    }

    /// Reason why an accelerator that no attempt holds cannot be called free; `None` where it is
    /// free.
    fn in_use(&self, uuid: &str) -> Option<String> {
        let inner = self.lock();
        if inner.attempts.values().any(|attempt| attempt.holds(uuid)) {
            // The processes that share the accelerator are known, and under MPS the driver names a
            // server in their place.
            return None;
        }
        let held =
            inner.attempts.values().filter(|attempt| attempt.record.launch.grants.iter().any(|g| g.uuid == uuid));
        let left_ms = held.filter_map(|attempt| attempt.ended.map(|(.., at_ms)| at_ms)).max().unwrap_or(0);
        let readings = self.telemetry.readings();
        if readings.read_ms <= left_ms {
            return Some("the driver has not been read since it was last used; try again".to_owned());
        }
        let device = readings.devices.iter().find(|device| device.uuid == uuid)?;
        let pid = device.info.process_ids.iter().find(|pid| !mps::is_server(**pid))?;
        Some(format!("process {pid} still uses it; end that process"))
    }

    /// Looks after attempts whenever something new is known of accelerators, for ever.
    pub(super) async fn guard(self: Arc<Self>) {
        let mut changes = self.telemetry.changes();
        let mut kept: Option<HealthBook> = None;
        while changes.changed().await.is_ok() {
            let book = self.telemetry.book();
            let health = |book: &HealthBook| -> Vec<DeviceHealth> {
                book.devices().iter().map(|device| device.health.clone()).collect()
            };
            if kept.as_ref().map(health) != Some(health(&book)) {
                // If the disk fails, the next agent learns it from the driver.
                let _ = spool::write(&self.config.state_dir, HEALTH, &book);
            }
            self.spare_jobs(&book);
            kept = Some(book);
        }
    }

    /// Jobs on accelerators that failed write their checkpoint and leave.
    fn spare_jobs(&self, book: &HealthBook) {
        let out = |uuid: &str| {
            let device = book.devices().iter().find(|device| device.uuid == uuid);
            device.is_some_and(|device| device.health != DeviceHealth::Fit)
        };
        let mut inner = self.lock();
        let hit = inner.attempts.values_mut().filter(|attempt| attempt.ended.is_none() && !attempt.fault);
        for attempt in hit.filter(|attempt| attempt.record.launch.grants.iter().any(|grant| out(&grant.uuid))) {
            // Neither error leaves anything to do: the job is then found out when it ends.
            let _ = blame_machine(attempt);
            let _ = stop_attempt(attempt, None);
        }
    }
}

/// Whether a grant fits beside those given, on an accelerator of `total` MiB.
fn check_share(inner: &NodeState, grant: &AcceleratorGrant, total: Option<u64>) -> Result<(), AgentError> {
    let given: Vec<&AcceleratorGrant> = inner
        .attempts
        .values()
        .filter(|attempt| attempt.ended.is_none())
        .flat_map(|attempt| &attempt.record.launch.grants)
        .filter(|given| given.uuid == grant.uuid)
        .collect();
    let percent: u32 = given.iter().map(|given| given.compute_percent).sum();
    let memory = |grant: &&AcceleratorGrant| grant.memory_mib.unwrap_or(0);
    let mib: u64 = given.iter().chain([&grant]).map(memory).sum();
    let alone = given.iter().chain([&grant]).any(|given| given.isolation == GrantIsolation::Exclusive);
    let why = if !(1..=100).contains(&grant.compute_percent) {
        "`compute_percent` is a number from 1 to 100".to_owned()
    } else if !given.is_empty() && alone {
        "another attempt holds it".to_owned()
    } else if percent + grant.compute_percent > 100 {
        format!("{percent} % of it are given, and {} more are asked for", grant.compute_percent)
    } else if let Some(total) = total.filter(|total| mib > *total) {
        format!("{mib} MiB of its {total} would be given")
    } else {
        return Ok(());
    };
    Err(AgentError::Unavailable { uuid: grant.uuid.clone(), why })
}
