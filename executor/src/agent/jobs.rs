//! Calls of jobs to the agent: reports, and AdaptDL's hints.

use super::api::StoredReport;
use super::clock::unix_ms;
use super::error::AgentError;
use super::node::Agent;
use super::process::descends;
use crate::job::{JobReport, Launch, Refusal, adaptdl};

/// Source of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportSource<'a> {
    /// A process on the socket, as the kernel names it.
    Process(u32),
    /// A process that names this job by HTTP.
    Named(&'a str),
}

impl Agent {
    /// Takes a report, one line of JSON.
    ///
    /// # Errors The line is no report, its fence is not that of a running attempt, or the process
    /// that sent it was not started by that attempt.
    pub fn report(&self, speaker: ReportSource<'_>, line: &[u8]) -> Result<(), AgentError> {
        let report: JobReport = serde_json::from_slice(line).map_err(|error| Refusal::Malformed(error.to_string()))?;
        let at_ms = unix_ms();
        let mut inner = self.lock();
        let mut running = inner.attempts.values_mut().filter(|attempt| attempt.ended.is_none());
        let attempt = running.find(|attempt| attempt.record.launch.fence == report.fence).ok_or(Refusal::OldFence)?;
        let belongs = match speaker {
            ReportSource::Named(job) => attempt.record.launch.program.name.as_str() == job,
            ReportSource::Process(pid) => {
                attempt.refresh();
                attempt.processes.is_some_and(|processes| descends(pid, processes.keeper.pid))
            }
        };
        if !belongs {
            return Err(Refusal::Stranger.into());
        }
        let keep = attempt.intake.read(line, at_ms)?;
        let launch = &attempt.record.launch;
        let job = launch.program.name.clone();
        // The members of an elastic attempt change after its launch.
        let (nodes, world) = match &report.members {
            Some(members) => (members.nodes, members.numbers.len() as u32),
            None => (launch.gang.nodes, launch.gang.world),
        };
        if keep {
            Agent::keep(&mut inner, StoredReport { job, nodes, world, at_ms, report });
        }
        Ok(())
    }

    /// Takes the hints of an AdaptDL job, and what they tell of its speed as reports. `false`: no
    /// attempt of the job with this key runs here.
    pub(super) fn hint(&self, key: &str, job: &str, hints: serde_json::Value) -> bool {
        let mut inner = self.lock();
        let mut running = inner.attempts.values_mut().filter(|attempt| attempt.ended.is_none());
        let attempt = running.find(|attempt| is_addressed(&attempt.record.launch, key, job));
        let Some(attempt) = attempt else { return false };
        let launch = &attempt.record.launch;
        let (job, nodes, world) = (launch.program.name.clone(), launch.gang.nodes, launch.gang.world);
        let reports = adaptdl::reports(&hints, &(launch.fence.clone(), launch.attempt), nodes, world);
        attempt.hints = Some(hints);
        let at_ms = unix_ms();
        for report in reports {
            Agent::keep(&mut inner, StoredReport { job: job.clone(), nodes, world, at_ms, report });
        }
        true
    }

    /// Addresses of the replicas of an attempt, by rank; `None`: it does not run here, or not yet.
    pub(super) fn peers(&self, key: &str, job: &str, attempt: u32) -> Option<Vec<String>> {
        let inner = self.lock();
        let mut running = inner.attempts.values().filter(|attempt| attempt.ended.is_none());
        let found = running.find(|running| {
            let launch = &running.record.launch;
            launch.attempt == attempt && is_addressed(launch, key, job)
        });
        found.map(|attempt| attempt.record.launch.gang.peers.clone())
    }
}

/// Whether a call to the supervisor under `key` is of an attempt of `job`.
fn is_addressed(launch: &Launch, key: &str, job: &str) -> bool {
    launch.program.name.as_str() == job && launch.fence.supervisor_key() == key
}

impl crate::job::adaptdl::Supervisor for Agent {
    fn knows(&self, key: &str, job: &str) -> bool {
        let inner = self.lock();
        let mut running = inner.attempts.values().filter(|attempt| attempt.ended.is_none());
        running.any(|attempt| is_addressed(&attempt.record.launch, key, job))
    }

    fn hints(&self, key: &str, job: &str, hints: serde_json::Value) -> bool {
        self.hint(key, job, hints)
    }

    fn addresses(&self, key: &str, job: &str, attempt: u32) -> Option<Vec<String>> {
        self.peers(key, job, attempt)
    }
}
