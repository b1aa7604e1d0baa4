//! The mailbox of jobs on nodes without an agent: reports and AdaptDL's hints come to the daemon by HTTP.
//!
//! A job has a token of its own from its submission on, of which its comment or its annotation has the hash; with
//! it, it speaks for the attempt that runs, and for no other job. So nothing secret is kept here, and a
//! daemon that is started anew believes the same jobs.
//!
//! AdaptDL sends no token. The address that AdaptDL is told therefore holds a key that follows from the token, and the
//! number of the attempt ([`supervisor_path`]). The token does not follow from the key.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use goodput_env::model::BatchLimits;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Attempt, NodeSeen, SpeedReport};
use crate::job::adaptdl::{self, Supervisor};
use crate::job::{Fence, Intake, JobReport, LONGEST_LINE, Refusal, Silence, SpeedMeasurement};

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

/// A job that runs and may report, as its engine shows it to the mailbox.
#[derive(Debug)]
pub(super) struct Speaker {
    /// Key of the job, under which its processes report.
    pub key: String,
    /// Attempt of which the processes were told.
    pub attempt: Attempt,
    /// Hash of the token of the job.
    pub token: String,
    /// Hash of the key in the address of AdaptDL's supervisor; `None` where no job is told one.
    pub supervisor: Option<String>,
    /// Addresses of the replicas by rank; none where the engine does not know all of them yet.
    pub addresses: Vec<String>,
}

/// A job that runs.
#[derive(Debug)]
struct ReportingJob {
    /// Hash of its token, and of the key of its supervisor.
    token: String,
    supervisor: Option<String>,
    attempt: u32,
    nodes: u32,
    gpus: u32,
    accelerator: String,
    addresses: Vec<String>,
    /// Reports of this attempt, from its first report on.
    intake: Option<Intake>,
    /// The newest hints of this attempt.
    hints: Option<Value>,
    /// Speeds that the newest hints tell, until the daemon has heard them.
    hinted: Vec<SpeedMeasurement>,
}

/// The hash of a token, as a job's comment or annotation has it.
pub(super) fn token_hash(fence: &Fence) -> String {
    hash(fence.as_str())
}

/// The hash of the key with which a job with this token speaks to AdaptDL's supervisor.
pub(super) fn supervisor_hash(fence: &Fence) -> String {
    hash(&fence.supervisor_key())
}

fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Path under which the attempt `attempt` of the job with this token finds AdaptDL's supervisor. `attempt` may be a
/// variable that is put in later.
pub(super) fn supervisor_path(fence: &Fence, attempt: &str) -> String {
    format!("/adaptdl/{}.{attempt}", fence.supervisor_key())
}

/// Key and attempt in an address of the supervisor; the key has the form of a token.
fn of_key(key: &str) -> Option<(Fence, u32)> {
    let (fence, attempt) = key.rsplit_once('.')?;
    Some((Fence::try_from(fence.to_owned()).ok()?, attempt.parse().ok()?))
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, MailboxState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a report of `job`, one object of JSON.
    ///
    /// # Errors
    /// The line is no report, or the sender is not the attempt that runs.
    pub fn take(&self, job: &str, line: &[u8], now_ms: i64) -> Result<(), Refusal> {
        if line.len() > LONGEST_LINE {
            return Err(Refusal::Malformed(format!("{} bytes, at most {LONGEST_LINE}", line.len())));
        }
        let report: JobReport = serde_json::from_slice(line).map_err(|error| Refusal::Malformed(error.to_string()))?;
        let mut inner = self.lock();
        // A daemon that was just started has seen nothing run.
        let speaker = inner.running.get_mut(job).ok_or(Refusal::NotSeen)?;
        if token_hash(&report.fence) != speaker.token || report.attempt < speaker.attempt {
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

    /// Batch sizes that the hints of `job` allow; `None` where they tell none.
    pub(super) fn batch(&self, job: &str) -> Option<BatchLimits> {
        self.lock().running.get(job)?.hints.as_ref().and_then(adaptdl::limits)
    }

    /// Requests per second that `job` reported lately; `None` where it has not.
    pub(super) fn load(&self, job: &str, now_ms: i64) -> Option<f64> {
        let inner = self.lock();
        let intake = inner.running.get(job)?.intake.as_ref()?;
        let newest = intake.newest().filter(|_| intake.silence(now_ms) == Silence::Fine)?;
        newest.serving.map(|serving| serving.qps)
    }

    /// Takes the jobs that run now, and returns what they reported since the last call.
    pub(super) fn hear(&self, jobs: impl Iterator<Item = Speaker>, nodes: &[NodeSeen]) -> Vec<SpeedReport> {
        let mut inner = self.lock();
        let mut before = std::mem::take(&mut inner.running);
        let mut said = std::mem::take(&mut inner.said);
        for Speaker { key, attempt, token, supervisor, addresses } in jobs {
            let on = attempt.placement.first().and_then(|on| nodes.iter().find(|node| node.name == on.node));
            let Some(on) = on else { continue };
            let gpus = attempt.placement.iter().map(|on| on.gpus).sum();
            let old = before.remove(&key).filter(|old| old.attempt == attempt.number);
            let (intake, hints, hinted) = old.map(|old| (old.intake, old.hints, old.hinted)).unwrap_or_default();
            let of_job = |measured| SpeedReport { job: key.clone(), accelerator: on.accelerator.clone(), measured };
            said.extend(hinted.into_iter().map(of_job));
            let speaker = ReportingJob {
                token,
                supervisor,
                attempt: attempt.number,
                nodes: attempt.placement.len() as u32,
                gpus,
                accelerator: on.accelerator.clone(),
                addresses,
                intake,
                hints,
                hinted: Vec::new(),
            };
            inner.running.insert(key, speaker);
        }
        said
    }
}

impl MailboxState {
    /// The running attempt of `job` that a call under `key` speaks for. A job has the name by which its engine knows
    /// it, which is its key or a part of the key.
    fn addressed(&mut self, of: &(Fence, u32), job: &str) -> Option<&mut ReportingJob> {
        let supervisor = Some(token_hash(&of.0));
        let is_named = |key: &str| key == job || key.split('.').any(|part| part == job);
        let mut named = self.running.iter_mut().filter(|(key, _)| is_named(key)).map(|(_, running)| running);
        named.find(|running| running.supervisor == supervisor && running.attempt == of.1)
    }
}

impl Supervisor for Mailbox {
    fn knows(&self, key: &str, job: &str) -> bool {
        of_key(key).is_some_and(|of| self.lock().addressed(&of, job).is_some())
    }

    fn hints(&self, key: &str, job: &str, hints: Value) -> bool {
        let Some(of) = of_key(key) else { return false };
        let mut inner = self.lock();
        let Some(running) = inner.addressed(&of, job) else { return false };
        let (nodes, gpus) = (running.nodes, running.gpus);
        let reports = adaptdl::reports(&hints, &of, nodes, gpus);
        // The fit changes with every hint: only the newest counts.
        running.hinted = reports.iter().filter_map(|report| SpeedMeasurement::of(report, nodes, gpus)).collect();
        running.hints = Some(hints);
        true
    }

    fn addresses(&self, key: &str, job: &str, attempt: u32) -> Option<Vec<String>> {
        let of = of_key(key).filter(|of| of.1 == attempt)?;
        let mut inner = self.lock();
        let running = inner.addressed(&of, job)?;
        (!running.addresses.is_empty()).then(|| running.addresses.clone())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;
    use crate::engine::OnNode;

    fn fence(key: &str) -> Fence {
        Fence::from_text(key)
    }

    fn running(key: &str, number: u32) -> Speaker {
        let placement = vec![OnNode { node: "n0".into(), gpus: 4, ..OnNode::default() }];
        let attempt = Attempt { number, placement, ..Attempt::default() };
        let addresses = vec!["10.0.0.1".into(); 4];
        let (token, supervisor) = (token_hash(&fence(key)), Some(supervisor_hash(&fence(key))));
        Speaker { key: key.into(), attempt, token, supervisor, addresses }
    }

    fn nodes() -> [NodeSeen; 1] {
        [NodeSeen { name: "n0".into(), accelerator: "a100".into(), gpus: 8, ..NodeSeen::default() }]
    }

    #[test]
    fn a_job_speaks_for_its_running_attempt_and_for_no_other() {
        let (seven, eight) = (fence("7"), fence("8"));
        let mailbox = Mailbox::default();
        let line = |fence: &Fence, attempt: u32| {
            let report =
                JobReport { step_time_s: Some(0.5), batch_size: Some(64), ..JobReport::new(fence.clone(), attempt, 3) };
            serde_json::to_vec(&report).unwrap()
        };
        assert_eq!(mailbox.take("7", &line(&seven, 0), 0), Err(Refusal::NotSeen), "it does not run");
        let hear = |attempt: u32| mailbox.hear([running("7", attempt), running("8", 0)].into_iter(), &nodes());
        assert!(hear(0).is_empty());
        mailbox.take("7", &line(&seven, 0), 0).unwrap();
        mailbox.take("7", &line(&seven, 0), 500).unwrap();
        assert_eq!(mailbox.take("8", &line(&seven, 0), 0), Err(Refusal::OldFence), "another's token");
        assert_eq!(mailbox.take("7", &line(&seven, 1), 0), Err(Refusal::NotSeen), "an attempt that has not begun");
        assert!(matches!(mailbox.take("7", b"{}", 0), Err(Refusal::Malformed(_))));
        let said = hear(1);
        assert_eq!((said.len(), said[0].job.as_str(), said[0].accelerator.as_str()), (1, "7", "a100"), "one a second");
        let sample = said[0].measured.sample.unwrap();
        assert_eq!((sample.nodes, sample.replicas, sample.atomic), (1, 4, 16));
        assert_eq!(mailbox.take("7", &line(&seven, 0), 9000), Err(Refusal::OldFence), "that attempt is over");
        mailbox.take("7", &line(&seven, 1), 9000).unwrap();
        mailbox.take("8", &line(&eight, 0), 9000).unwrap();
    }

    #[test]
    fn hints_need_the_address_of_the_attempt_that_runs() {
        let mailbox = Mailbox::default();
        let hear = |attempt: u32| mailbox.hear([running("site.seven.1a2b", attempt)].into_iter(), &nodes());
        hear(2);
        let token = fence("site.seven.1a2b");
        let key = |fence: &Fence, attempt: u32| {
            supervisor_path(fence, &attempt.to_string()).strip_prefix("/adaptdl/").unwrap().to_owned()
        };
        let perf = json!({
            "alpha_c": 0.1, "beta_c": 0.002, "alpha_n": 0.05, "beta_n": 0.001, "alpha_r": 0.02, "beta_r": 0.0005,
            "gamma": 1.6,
        });
        let hints = json!({
            "initBatchSize": 256, "maxBatchSize": 4096, "localBszBounds": [32, 160], "perfParams": perf,
        });
        let right = key(&token, 2);
        for (wrong, job) in [
            (key(&token, 1), "seven"),
            (key(&token, 3), "seven"),
            (key(&fence("8"), 2), "seven"),
            (token.as_str().to_owned(), "seven"),
            (format!("{}.2", token.as_str()), "seven"),
            (String::new(), "seven"),
            (right.clone(), "eight"),
        ] {
            assert!(!mailbox.hints(&wrong, job, hints.clone()), "{wrong} {job}");
            assert_eq!(mailbox.addresses(&wrong, job, 2), None, "{wrong} {job}");
        }
        assert_eq!(mailbox.batch("site.seven.1a2b"), None, "and none of it counted");
        assert!(mailbox.hints(&right, "seven", hints.clone()) && mailbox.hints(&right, "seven", hints));
        assert_eq!(mailbox.addresses(&right, "seven", 2), Some(vec!["10.0.0.1".to_owned(); 4]));
        assert_eq!(mailbox.addresses(&right, "seven", 3), None, "the next attempt is not there yet");
        assert_eq!(mailbox.batch("site.seven.1a2b"), BatchLimits::new(256, 4096, 32, 160).ok());
        let sizes: Vec<u32> = hear(2).iter().filter_map(|said| Some(said.measured.sample?.atomic)).collect();
        assert_eq!(sizes, [64, 128], "the newest hints count once");
        assert!(hear(2).is_empty() && mailbox.batch("site.seven.1a2b").is_some());
        hear(3);
        assert!(!mailbox.hints(&right, "seven", json!({})), "that attempt is over");
    }
}
