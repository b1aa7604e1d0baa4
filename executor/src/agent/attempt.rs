//! One attempt on this node, as it is remembered.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::api::{AttemptState, AttemptStatus};
use super::clock::unix_ms;
use super::keeper::Processes;
use super::record::{self, RecordError};
use super::spool::{self, CAUSE, EXIT, LAUNCH, MEMBERS, PROCESSES, STOP};
use crate::job::{EndCause, Exit, ExitMeaning, Intake, Launch, MembersPlan, Silence};

/// Launch of an attempt and its time, as the spool keeps them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchRecord {
    /// Launch that the daemon ordered.
    pub launch: Launch,
    /// Time of the launch, milliseconds since the Unix epoch.
    pub started_ms: i64,
}

/// Attempt of a job on this node.
#[derive(Debug)]
pub struct LocalAttempt {
    /// Folder of the attempt in the spool.
    pub folder: PathBuf,
    /// Launch and its time.
    pub record: LaunchRecord,
    /// Keeper and job, as processes; `None` before they are known.
    pub processes: Option<Processes>,
    /// Whether the attempt was told to stop.
    pub stopping: bool,
    /// Whether an accelerator of the attempt has failed.
    pub fault: bool,
    /// End of the attempt, its cause, and its time.
    pub ended: Option<(Exit, EndCause, i64)>,
    /// Reports of the attempt.
    pub intake: Intake,
    /// Last hints of an AdaptDL job.
    pub hints: Option<serde_json::Value>,
    /// Version of the plan that a member of an elastic attempt was given.
    pub plan: Option<u64>,
}

impl LocalAttempt {
    /// Attempt that begins now.
    pub fn new(folder: PathBuf, record: LaunchRecord) -> Self {
        let intake = Intake::new(record.launch.fence.clone(), record.launch.attempt);
        let (processes, hints, ended) = (None, None, None);
        let plan = record.launch.member.as_ref().map(|member| member.plan.version);
        Self { folder, record, processes, stopping: false, fault: false, ended, intake, hints, plan }
    }

    /// Attempt that an earlier agent began; `None` where the folder holds none.
    ///
    /// # Errors
    /// It cannot be told which attempt it is.
    pub fn load(folder: PathBuf) -> Result<Option<Self>, RecordError> {
        let Some(record) = record::load::<LaunchRecord>(&folder.join(LAUNCH))? else { return Ok(None) };
        let mut attempt = Self::new(folder, record);
        attempt.stopping = attempt.folder.join(STOP).exists();
        attempt.plan = spool::read::<MembersPlan>(&attempt.folder, MEMBERS).map(|plan| plan.version).or(attempt.plan);
        attempt.fault = spool::read::<EndCause>(&attempt.folder, CAUSE).is_some_and(|cause| cause.fault);
        attempt.refresh();
        if let Some(exit) = spool::read(&attempt.folder, EXIT) {
            attempt.end(exit);
        }
        Ok(Some(attempt))
    }

    /// Reads the processes of the attempt again.
    pub fn refresh(&mut self) {
        if self.processes.is_none_or(|processes| processes.job.is_none()) {
            self.processes = spool::read(&self.folder, PROCESSES).or(self.processes);
        }
    }

    /// Records the end of the attempt.
    pub fn end(&mut self, exit: Exit) {
        // The keeper may have written a cause since.
        self.fault = self.fault || spool::read::<EndCause>(&self.folder, CAUSE).is_some_and(|cause| cause.fault);
        self.ended = Some((exit, EndCause { stopping: self.stopping, fault: self.fault }, unix_ms()));
    }

    /// Gives a member of an elastic attempt a plan, if the plan is newer than the member's.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub fn tell(&mut self, plan: &MembersPlan) -> io::Result<()> {
        if self.ended.is_none() && self.plan.is_some_and(|known| known < plan.version) {
            spool::write(&self.folder, MEMBERS, plan)?;
            self.plan = Some(plan.version);
        }
        Ok(())
    }

    /// Whether the attempt holds the accelerator.
    pub fn holds(&self, uuid: &str) -> bool {
        self.ended.is_none() && self.record.launch.grants.iter().any(|grant| grant.uuid == uuid)
    }

    /// As the daemon is told.
    pub fn status(&self) -> AttemptStatus {
        let launch = &self.record.launch;
        let state = match self.ended {
            Some((exit, cause, at_ms)) => {
                AttemptState::Ended { exit, cause, meaning: ExitMeaning::of(exit, cause), at_ms }
            }
            None if self.stopping => AttemptState::Stopping,
            None => AttemptState::Running,
        };
        AttemptStatus {
            id: launch.id(),
            job: launch.program.name.clone(),
            attempt: launch.attempt,
            fence: launch.fence.clone(),
            grants: launch.grants.clone(),
            state,
            started_ms: self.record.started_ms,
            stalled: self.ended.is_none() && self.intake.silence(unix_ms()) == Silence::Stalled,
            report: self.intake.newest().cloned(),
            hints: self.hints.clone(),
            plan: self.plan,
        }
    }
}
