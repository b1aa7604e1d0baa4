//! Reports of jobs that Slurm runs: by HTTP to the daemon, for there is no agent on their nodes.
//!
//! A job has a token of its own from its submission on, of which its comment has the hash; with it,
//! it speaks for the attempt that runs, and for no other job. So nothing secret is kept here, and a
//! daemon that is started anew believes the same jobs.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

use crate::engine::{JobPhase, JobSeen, NodeSeen, SpeedReport};
use crate::job::{Fence, Intake, JobReport, LONGEST_LINE, Refusal, Silence, SpeedMeasurement};

use super::id::SlurmJobId;
use super::read::RawJob;

/// Most reports that are kept until the daemon looks at them; more are dropped.
const MOST: usize = 10_000;

/// Takes reports from the interface to the engine.
#[derive(Debug, Default)]
pub struct Mailbox(Mutex<MailboxState>);

#[derive(Debug, Default)]
struct MailboxState {
    running: BTreeMap<String, ReportingJob>,
    said: Vec<SpeedReport>,
}

/// A job that runs.
#[derive(Debug)]
struct ReportingJob {
    /// Hash of its token.
    token: String,
    attempt: u32,
    nodes: u32,
    gpus: u32,
    accelerator: String,
    /// Reports of this attempt, from its first report on.
    intake: Option<Intake>,
}

/// The hash of a token, as a job's comment or annotation has it.
pub(in crate::engine) fn hash(fence: &Fence) -> String {
    Sha256::digest(fence.as_str().as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, MailboxState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a report of `job`, one object of JSON.
    ///
    /// # Errors The line is no report, or the sender is not the attempt that runs.
    pub fn take(&self, job: &str, line: &[u8], now_ms: i64) -> Result<(), Refusal> {
        if line.len() > LONGEST_LINE {
            return Err(Refusal::Malformed(format!("{} bytes, at most {LONGEST_LINE}", line.len())));
        }
        let report: JobReport = serde_json::from_slice(line).map_err(|error| Refusal::Malformed(error.to_string()))?;
        let mut inner = self.lock();
        // A daemon that was just started has seen nothing run.
        let speaker = inner.running.get_mut(job).ok_or(Refusal::NotSeen)?;
        if hash(&report.fence) != speaker.token || report.attempt < speaker.attempt {
            return Err(Refusal::OldFence);
        }
        if report.attempt > speaker.attempt {
            return Err(Refusal::NotSeen);
        }
        let intake = speaker.intake.get_or_insert_with(|| Intake::new(report.fence.clone(), report.attempt));
        let keep = intake.read(line, now_ms)?;
        let measured = SpeedMeasurement::of(&report, speaker.nodes, speaker.gpus).filter(|_| keep);
        let said = measured.map(|measured| {
            let accelerator = speaker.accelerator.clone();
            SpeedReport { job: job.into(), accelerator, measured }
        });
        if inner.said.len() < MOST {
            inner.said.extend(said);
        }
        Ok(())
    }

    /// Requests per second that `job` reported lately; `None` where it has not.
    pub(super) fn load(&self, job: &str, now_ms: i64) -> Option<f64> {
        let inner = self.lock();
        let intake = inner.running.get(job)?.intake.as_ref()?;
        let newest = intake.newest().filter(|_| intake.silence(now_ms) == Silence::Fine)?;
        newest.serving.map(|serving| serving.qps)
    }

    /// Jobs run as Slurm shows; what they said since the last time.
    pub(super) fn exchange(&self, jobs: &BTreeMap<SlurmJobId, RawJob>, nodes: &[NodeSeen]) -> Vec<SpeedReport> {
        let speakers = jobs.iter().map(|(id, job)| (id.to_string(), job.seen(), job.stated.token.clone()));
        self.hear(speakers, nodes)
    }

    /// Jobs run as `jobs` says, each with the name under which it reports and the hash of its token; what they said
    /// since the last time.
    pub(in crate::engine) fn hear(
        &self,
        jobs: impl Iterator<Item = (String, JobSeen, Option<String>)>,
        nodes: &[NodeSeen],
    ) -> Vec<SpeedReport> {
        let mut inner = self.lock();
        let mut before = std::mem::take(&mut inner.running);
        for (name, seen, token) in jobs {
            let (Some(token), Some(attempt)) = (token, seen.attempt) else { continue };
            let on = attempt.placement.first().and_then(|on| nodes.iter().find(|node| node.name == on.node));
            let Some(on) = on.filter(|_| seen.phase == JobPhase::Running) else { continue };
            let gpus = attempt.placement.iter().map(|on| on.gpus).sum();
            let same = before.remove(&name).filter(|old| old.attempt == attempt.number);
            let speaker = ReportingJob {
                token,
                attempt: attempt.number,
                nodes: attempt.placement.len() as u32,
                gpus,
                accelerator: on.accelerator.clone(),
                intake: same.and_then(|old| old.intake),
            };
            inner.running.insert(name, speaker);
        }
        std::mem::take(&mut inner.said)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::super::read::RawState;
    use super::super::stated::CommentFacts;
    use super::*;
    use crate::engine::OnNode;

    #[test]
    fn a_job_speaks_for_its_running_attempt_and_for_no_other() {
        let fences = ["7", "8"].map(Fence::from_text);
        let job = |id: u64, restarts: u32| RawJob {
            id: id.into(),
            state: RawState::Running,
            restarts,
            held: vec![OnNode { node: "n0".into(), gpus: 4, ..OnNode::default() }],
            stated: CommentFacts { token: Some(hash(&fences[id as usize - 7])), ..CommentFacts::default() },
            ..RawJob::default()
        };
        let nodes = [NodeSeen { name: "n0".into(), accelerator: "a100".into(), gpus: 8, ..NodeSeen::default() }];
        let mailbox = Mailbox::default();
        let line = |fence: &Fence, attempt: u32| {
            let report =
                JobReport { step_time_s: Some(0.5), batch_size: Some(64), ..JobReport::new(fence.clone(), attempt, 3) };
            serde_json::to_vec(&report).unwrap()
        };
        assert_eq!(mailbox.take("7", &line(&fences[0], 0), 0), Err(Refusal::NotSeen), "it does not run");
        let both = |restarts: u32| [(7.into(), job(7, restarts)), (8.into(), job(8, 0))].into();
        assert!(mailbox.exchange(&both(0), &nodes).is_empty());
        mailbox.take("7", &line(&fences[0], 0), 0).unwrap();
        mailbox.take("7", &line(&fences[0], 0), 500).unwrap();
        assert_eq!(mailbox.take("8", &line(&fences[0], 0), 0), Err(Refusal::OldFence), "another's token");
        assert_eq!(mailbox.take("7", &line(&fences[0], 1), 0), Err(Refusal::NotSeen), "an attempt that has not begun");
        assert!(matches!(mailbox.take("7", b"{}", 0), Err(Refusal::Malformed(_))));
        let said = mailbox.exchange(&both(1), &nodes);
        assert_eq!((said.len(), said[0].job.as_str(), said[0].accelerator.as_str()), (1, "7", "a100"), "one a second");
        let sample = said[0].measured.sample.unwrap();
        assert_eq!((sample.nodes, sample.replicas, sample.atomic), (1, 4, 16));
        assert_eq!(mailbox.take("7", &line(&fences[0], 0), 9000), Err(Refusal::OldFence), "that attempt is over");
        mailbox.take("7", &line(&fences[0], 1), 9000).unwrap();
    }
}
