//! State of the agent, as the daemon sees it.

use super::api::{AttemptStatus, Done, NodeAccelerator, NodeStatus, Term};
use super::clock::{boot_ms, unix_ms};
use super::error::AgentError;
use super::mps;
use super::node::Agent;
use crate::devices::{Tracked, accelerator_type};
use crate::http::identity;

/// Readings older than so many periods are stale.
const OLD_PERIODS: u64 = 5;

impl Agent {
    /// The node. Answers at once, whatever the driver does.
    pub fn status(&self) -> NodeStatus {
        let readings = self.telemetry.readings();
        let at_ms = unix_ms();
        let old = (at_ms - readings.read_ms) as u64 > OLD_PERIODS * self.config.pace.period_ms;
        let stuck = readings.stuck_ms.map(|ms| format!("the driver has not answered for {} s", ms / 1000));
        let inner = self.lock();
        let (leader, silent) = inner.lease.leader();
        NodeStatus {
            name: self.config.node.clone(),
            at_ms,
            boot_ms: boot_ms(),
            agent_since_ms: self.since_ms,
            term: inner.lease.term(),
            leader: leader.to_owned(),
            leader_silent_ms: silent.as_millis() as u64,
            fencing: self.config.fencing,
            accelerators: readings.devices.iter().map(accelerator).collect(),
            stale: old || stuck.is_some() || readings.error.is_some(),
            trouble: stuck.or(readings.error),
            disk: self.disk.trouble(),
            damaged: self.damaged.clone(),
            certificate: identity::ends_soon(&self.config.tls.cert, at_ms),
            keeps_limits: self.keeps_limits(),
            gives_parts: mps::runs(&self.config.mps_pipes),
            uncontained: self.hierarchy.as_ref().err().cloned(),
            read_ms: readings.read_ms,
            attempts: inner.attempts.values().map(super::attempt::LocalAttempt::status).collect(),
        }
    }

    /// State of one attempt.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn attempt(&self, id: &str) -> Result<AttemptStatus, AgentError> {
        let inner = self.lock();
        let attempt = inner.attempts.get(id).ok_or_else(|| AgentError::NoAttempt(id.to_owned()))?;
        Ok(attempt.status())
    }

    /// An administrator says that an accelerator is well.
    ///
    /// # Errors
    /// The term is over, or there is no such accelerator.
    pub fn restore(&self, uuid: &str, order: Term) -> Result<Done, AgentError> {
        let mut inner = self.lock();
        inner.lease.admit(order.term, None)?;
        match self.telemetry.restore(uuid) {
            true => Ok(Done { term: inner.lease.term() }),
            false => Err(AgentError::NoAccelerator(uuid.to_owned())),
        }
    }
}

fn accelerator(device: &Tracked) -> NodeAccelerator {
    let info = &device.info;
    NodeAccelerator {
        uuid: device.uuid.clone(),
        kind: accelerator_type(&info.name),
        product: info.name.clone(),
        memory_mib: info.memory_total_mib,
        memory_used_mib: info.memory_used_mib,
        compute_percent: info.compute_percent,
        health: device.health.clone(),
        processes: info.process_ids.clone(),
    }
}
