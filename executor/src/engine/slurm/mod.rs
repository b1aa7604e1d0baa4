//! Slurm, driven by its commands: it is a separate program, and nothing of it is linked.
//!
//! Behaviour of Slurm 22.05 to 26.05 that is handled here:
//! 1. `requeue` sets a start time two minutes ahead: jobs are requeued held, and given
//!    `StartTime=now` before their release.
//! 2. A job that is completing cannot be altered: it is tried again in the next cycle.
//! 3. Typed and untyped accelerators cannot be mixed: jobs ask for untyped ones, and the node says
//!    the type.
//! 4. A running job does not grow: a change of size is requeue, update, release.
//! 5. Signals reach the batch script, and with some plugins the program as well: the script passes
//!    them on ([`script`]).
//! 6. A job that is killed has failed and is not requeued; whether it is tried again is not Slurm's
//!    to say ([`retry`]).
//! 7. slurmctld acknowledges before it is durable: nothing is believed but the next snapshot, and
//!    every step can be taken again.
//! 8. After a restart of slurmctld, accelerators are shown free that are not: what running jobs
//!    hold is counted too.
//! 9. The time of submission changes when a job is requeued: it is kept in the job's comment.
//! 10. After a restart it aborts, node by node as they report, what runs there without its knowing:
//!     nothing is released before all have reported.
//! 11. A job that starts on a node in the second in which it was stopped there fails for good ("Job
//!     credential revoked": slurmd compares whole seconds): a job is released in a later second
//!     than it left.
//! 12. slurmctld may start a job without any accelerators soon after a restart: such a start is put
//!     back.
//! 13. After some restarts it counts accelerators of an idle node as used, though no job holds
//!     them: such a node is set aside until it does no longer.
//!
//! Only jobs that were given to the daemon are acted on: their comment begins with `goodput`, or they
//! are in a queue that is [given] as a whole. All others are shown hands-off, and what they hold is
//! not in service.

mod commands;
mod facts_key;
mod given;
mod id;
mod per_gpu;
mod poll;
pub mod read;
mod retry;
mod script;
mod services;
mod stated;
mod steps;
mod user;
mod version;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_configs::live::engine::SlurmConfig;
use goodput_env::time::SimTime;

use super::mailbox::{Mailbox, Speaker};
use super::{
    Capabilities, ClusterSnapshot, DeclaredService, Engine, EngineAction, EngineError, JobPhase, NodeSeen, Order,
    OrderProgress, Receipt, StepOutcome, Submission, SubmissionDurability, verify,
};
use crate::job::Fence;
use commands::Commands;
pub use facts_key::FactsKey;
use given::GivenQueues;
use id::SlurmJobId;
use per_gpu::JobDefaults;
use poll::JobPoll;
use read::{RawJob, RawNode, RawState};
use retry::Owed;
use script::{ScriptSettings, Seat};
use services::SlurmServices;
use steps::{SlurmStep, next};
use user::SystemUser;
use version::SlurmRelease;

/// So long after the last node has reported, what a restarted slurmctld does not know of is gone
/// from it.
const ABORTED: Duration = Duration::from_secs(3);

/// Time after which an idle node with accelerators that count as used has leaked them: while jobs
/// come and go nodes are in that state for a moment.
const LEAKED: Duration = Duration::from_secs(10);

/// slurmctld writes its jobs to disk 5 s after they have changed at the latest (`SAVE_MAX_WAIT`).
/// Killed between moving the last file away and moving the new one there it begins with the one
/// before, and a busy disk is left some time. It shows what has ended for `MinJobAge`, 300 s unless
/// set. A start that it forgot and makes again, before the node has got rid of the first one, is
/// refused by the node, which it then drains for good.
const DURABILITY: SubmissionDurability = SubmissionDurability {
    durable_after: Duration::from_secs(45),
    shows_ended_for: Duration::from_secs(60),
    drains_over: "Duplicate jobid",
};

/// A Slurm cluster.
#[derive(Debug)]
pub struct SlurmEngine {
    commands: Commands,
    settings: SlurmConfig,
    version: u64,
    /// Times of submission as first seen, for jobs that do not carry them.
    submitted: BTreeMap<SlurmJobId, i64>,
    jobs: BTreeMap<SlurmJobId, RawJob>,
    /// Nodes as last seen.
    nodes: Vec<RawNode>,
    script: ScriptSettings,
    given: GivenQueues,
    poll: JobPoll,
    key: FactsKey,
    release: Option<SlurmRelease>,
    services: SlurmServices,
    mailbox: Arc<Mailbox>,
    /// The second in which jobs were last seen to leave their nodes.
    leaving_s: BTreeMap<SlurmJobId, i64>,
    /// A node that slurmctld has not heard of since it started, and when that was seen last.
    unheard: Option<(String, Instant)>,
    /// Nodes that are idle though their accelerators count as used, and since when.
    leaking: BTreeMap<String, Instant>,
    owed: Owed,
}

impl SlurmEngine {
    /// The cluster of `settings`; nothing is asked of it yet. Comments are signed with `key`.
    pub fn new(settings: &SlurmConfig, key: FactsKey) -> Self {
        Self {
            commands: Commands::new(settings),
            settings: settings.clone(),
            version: 0,
            submitted: BTreeMap::new(),
            jobs: BTreeMap::new(),
            nodes: Vec::new(),
            script: ScriptSettings::new(settings),
            given: GivenQueues::new(settings),
            poll: JobPoll::default(),
            key,
            release: None,
            services: SlurmServices::default(),
            mailbox: Arc::default(),
            leaving_s: BTreeMap::new(),
            unheard: None,
            leaking: BTreeMap::new(),
            owed: Owed::default(),
        }
    }

    /// The engine with services, which run in `reservation`.
    #[must_use]
    pub fn with_services(self, services: Vec<DeclaredService>, reservation: &str) -> Self {
        Self { services: SlurmServices::new(services, reservation), ..self }
    }

    /// Hands a job in, and gives its number; a replica of a service where it has a seat.
    async fn hand_in(
        &self,
        job: &Submission,
        fence: &Fence,
        seat: Option<Seat<'_>>,
    ) -> Result<SlurmJobId, EngineError> {
        let answer = self.sbatch(job, fence, seat, None).await?;
        let id = answer.trim().split(';').next().unwrap_or_default();
        let refused =
            || EngineError::Unreadable { engine: "slurm", what: "the answer of sbatch", problem: answer.clone() };
        id.parse().map_err(|_| refused())
    }

    /// Answer of `sbatch` to a job, with one more option.
    async fn sbatch(
        &self,
        job: &Submission,
        fence: &Fence,
        seat: Option<Seat<'_>>,
        more: Option<&str>,
    ) -> Result<String, EngineError> {
        let each = JobDefaults::of(&job.resources, &self.settings, &self.nodes);
        let as_owner = self.script.run_as_owner() && !job.owner.is_empty();
        let user = if as_owner { Some(SystemUser::find(&job.owner).await?) } else { None };
        let (arguments, script) = script::of(job, fence, &self.key, &self.script, each, seat, user.as_ref());
        let arguments: Vec<&str> = more.into_iter().chain(arguments.iter().map(String::as_str)).collect();
        self.commands.run("sbatch", &arguments, &script).await
    }

    /// Nodes that have accelerators. From 23.02 on `sinfo` groups nodes and does not list them, and `scontrol` does.
    async fn nodes(commands: &Commands, release: Option<SlurmRelease>) -> Result<Vec<RawNode>, EngineError> {
        read::nodes(&match release.is_some_and(SlurmRelease::filters_json) {
            true => commands.run("scontrol", &["show", "nodes", "--json"], "").await?,
            false => commands.run("sinfo", &["--json"], "").await?,
        })
    }

    fn set_aside_leaking(&mut self, nodes: &mut [RawNode], jobs: &[RawJob]) {
        let since = |node: &RawNode| self.leaking.get(&node.name).copied().unwrap_or_else(Instant::now);
        self.leaking =
            nodes.iter().filter(|node| node.leaks(jobs)).map(|node| (node.name.clone(), since(node))).collect();
        nodes.iter_mut().filter(|node| self.is_set_aside(&node.name)).for_each(RawNode::set_aside);
    }

    fn is_set_aside(&self, node: &str) -> bool {
        self.leaking.get(node).is_some_and(|since| since.elapsed() >= LEAKED)
    }

    /// Line for `scontrol` that takes back the release of a job for a node that is set aside. The
    /// daemon may be gone when the job would start.
    fn hold_back(&self, job: &RawJob) -> Option<String> {
        // The daemon releases its own jobs only.
        let waits = job.state == (RawState::Pending { held: false }) && !job.foreign;
        (waits && job.required_nodes.iter().any(|node| self.is_set_aside(node))).then(|| format!("uhold {}", job.id))
    }

    /// Reason why a job is not released yet.
    fn waits(&self, job: SlurmJobId) -> Option<StepOutcome> {
        let later = |reason: String| Some(StepOutcome::Later { reason });
        if let Some((node, _)) = self.unheard.as_ref().filter(|(_, at)| at.elapsed() < ABORTED) {
            return later(format!("slurmctld started lately, and waited for {node} to report what runs there"));
        }
        let requeued_s = self.jobs.get(&job).map_or(0, |job| job.requeued_s);
        let left_s = self.leaving_s.get(&job).map_or(requeued_s, |&leaving_s| leaving_s.max(requeued_s));
        (left_s >= crate::machine::wall_ms() / 1000).then_some(())?;
        later("it was put back into the queue in this very second".into())
    }
}

impl Engine for SlurmEngine {
    fn name(&self) -> &'static str {
        "slurm"
    }

    fn capabilities(&self) -> Capabilities {
        let scale = !self.services.is_empty();
        Capabilities { suspend: true, hold: true, scale, durability: Some(DURABILITY), ..Capabilities::default() }
    }

    fn release(&self) -> Option<String> {
        self.release.map(|release| release.to_string())
    }

    async fn snapshot(&mut self) -> Result<ClusterSnapshot, EngineError> {
        self.find_release().await?;
        let nodes = Self::nodes(&self.commands, self.release);
        let (mut jobs, mut nodes) = tokio::try_join!(self.poll.look(&self.commands, self.release, &self.key), nodes)?;
        self.services.look(&self.commands).await?;
        self.given.claim(&mut jobs);
        self.set_aside_leaking(&mut nodes, &jobs);
        let partitions = &self.settings.partitions;
        let managed = |job: &RawJob| !job.foreign && (partitions.is_empty() || partitions.contains(&job.partition));
        let mut seen: Vec<NodeSeen> = nodes.iter().map(|node| node.seen(&jobs, managed)).collect();
        if !partitions.is_empty() {
            jobs.retain(|job| partitions.contains(&job.partition));
            nodes.retain(|node| node.partitions.iter().any(|partition| partitions.contains(partition)));
            seen.retain(|seen| nodes.iter().any(|node| node.name == seen.name));
        }
        if let Some(node) = nodes.iter().find(|node| node.awaits_report()) {
            self.unheard = Some((node.name.clone(), Instant::now()));
        }
        self.version += 1;
        let now_s = crate::machine::wall_ms() / 1000;
        let leaving = jobs.iter().filter(|job| job.state == RawState::Completing).map(|job| (job.id, now_s));
        self.leaving_s.extend(leaving);
        for job in &mut jobs {
            let first = *self.submitted.entry(job.id).or_insert(job.submit_ms);
            job.submit_ms = job.stated.submit_ms.unwrap_or(first);
        }
        self.owed.tell(&mut jobs);
        let known: BTreeMap<SlurmJobId, RawJob> = jobs.into_iter().map(|job| (job.id, job)).collect();
        self.submitted.retain(|id, _| known.contains_key(id));
        self.leaving_s.retain(|id, _| known.contains_key(id));
        self.jobs = known;
        self.nodes = nodes;
        let mut nodes = seen;
        let speaker = |job: &RawJob| {
            let (key, seen) = (job.id.to_string(), job.seen());
            let attempt = seen.attempt.filter(|_| seen.phase == JobPhase::Running)?;
            Some(Speaker { key, attempt, token: job.stated.token.clone()?, supervisor: None, addresses: Vec::new() })
        };
        let said = self.mailbox.hear(self.jobs.values().filter_map(speaker), &nodes);
        let at_ms = crate::machine::wall_ms();
        let services = self.services_seen(at_ms);
        let training = self.jobs.values().filter(|job| self.services.of(job).is_none());
        self.services.show_loans(&mut nodes, training.clone());
        let jobs = training.map(|job| self.services.training(job)).collect();
        Ok(ClusterSnapshot { version: self.version, at_ms, nodes, jobs, services, said })
    }

    async fn apply(&mut self, orders: &[Order]) -> Result<Vec<Receipt>, EngineError> {
        let step = |order: &Order| {
            if let EngineAction::Scale { .. } = order.action {
                return Err(StepOutcome::Accepted);
            }
            let step = next(order, &self.jobs)?;
            let wait = if step.release.is_empty() { None } else { self.waits(step.job) };
            wait.map_or(Ok(step), Err)
        };
        let steps: Vec<Result<SlurmStep, StepOutcome>> = orders.iter().map(step).collect();
        // First all preparation, then the releases: a job is not released if its preparation
        // failed.
        let prepare: Vec<&String> = steps.iter().flatten().flat_map(|step| &step.prepare).collect();
        let prepared = self.commands.control(&prepare).await?;
        let release: Vec<&String> = steps
            .iter()
            .flatten()
            .filter(|step| prepared.about(step.job).is_none())
            .flat_map(|step| &step.release)
            .collect();
        let released = self.commands.control(&release).await?;
        let mut receipts = Vec::with_capacity(orders.len());
        for (order, step) in orders.iter().zip(steps) {
            let outcome = match step {
                _ if let EngineAction::Scale { service, node, replicas } = &order.action => {
                    self.scale(service, node, *replicas).await?
                }
                Err(outcome) => outcome,
                Ok(step) => match prepared.about(step.job).or_else(|| released.about(step.job)) {
                    Some(problem) => StepOutcome::Later { reason: problem },
                    None => {
                        if let Some(job) = step.cancel {
                            self.commands.run("scancel", &[&job.to_string()], "").await?;
                        }
                        StepOutcome::Accepted
                    }
                },
            };
            receipts.push(Receipt { id: order.id.clone(), outcome });
        }
        Ok(receipts)
    }

    fn mailbox(&self) -> Option<Arc<Mailbox>> {
        Some(self.mailbox.clone())
    }

    /// Puts jobs that failed and may be tried again back into the queue, before slurmctld forgets
    /// them, and writes down that they failed.
    async fn maintain(&mut self) -> Result<(), EngineError> {
        self.take_given().await?;
        let mut back: Vec<String> = self.jobs.values().filter_map(|job| self.hold_back(job)).collect();
        back.extend(self.jobs.values().filter_map(|job| self.owed.put_back(job)));
        self.commands.control(&back.iter().collect::<Vec<_>>()).await?;
        // Lines of one call must not depend on each other.
        let comments: Vec<String> = self.jobs.values().filter_map(|job| self.owed.comment(job, &self.key)).collect();
        self.commands.control(&comments.iter().collect::<Vec<_>>()).await.map(|_| ())
    }

    /// Slurm itself chooses how many accelerators of which node a job gets where it is spread
    /// unevenly. So only nodes and number count.
    fn verify(&self, order: &Order, snapshot: &ClusterSnapshot) -> OrderProgress {
        let verdict = verify(order, snapshot);
        // The node is not drained by an administrator yet.
        if matches!(&order.action, EngineAction::Drain { node, .. } if self.is_set_aside(node)) {
            return OrderProgress::Pending;
        }
        let job = snapshot.jobs.iter().find(|job| job.key == order.job);
        let held = job.filter(|job| job.phase == JobPhase::Running).and_then(|job| job.attempt.as_ref());
        if let (OrderProgress::Lost { .. }, Some(held), Some(wanted)) = (&verdict, held, order.action.placement()) {
            let total = |on: &[super::OnNode]| on.iter().map(|on| on.gpus).sum::<u32>();
            let nodes =
                |on: &[super::OnNode]| on.iter().map(|on| on.node.clone()).collect::<std::collections::BTreeSet<_>>();
            if total(&held.placement) == total(wanted) && nodes(&held.placement) == nodes(wanted) {
                return OrderProgress::Done;
            }
        }
        verdict
    }

    async fn try_out(&mut self, job: &Submission) -> Result<(), EngineError> {
        self.sbatch(job, &Fence::from_text("tried"), None, Some("--test-only")).await.map(drop)
    }

    async fn submit(&mut self, job: &Submission) -> Result<String, EngineError> {
        let mut job = job.clone();
        if job.spec.request.submit <= SimTime::ZERO {
            job.spec.request.submit = SimTime::from_millis(crate::machine::wall_ms());
        }
        let fence = Fence::random();
        let fence = fence.map_err(|error| EngineError::Refused { engine: "slurm", problem: error.to_string() })?;
        Ok(self.hand_in(&job, &fence, None).await?.to_string())
    }

    async fn remembers_since(&mut self) -> Result<Option<i64>, EngineError> {
        let answer = self.commands.run("scontrol", &["show", "config"], "").await?;
        let unreadable = || EngineError::Unreadable {
            engine: "slurm",
            what: "scontrol show config",
            problem: "no BOOT_TIME".into(),
        };
        Ok(Some(started_ms(&answer).ok_or_else(unreadable)?))
    }
}

/// Time of slurmctld's start by `scontrol show config`, milliseconds of the Unix epoch. Slurm tells whole
/// seconds, so the end of the second is taken: what was acknowledged before it may be forgotten.
fn started_ms(answer: &str) -> Option<i64> {
    let line = answer.lines().find_map(|line| line.strip_prefix("BOOT_TIME"))?;
    Some(1000 * line.trim_start_matches([' ', '=']).trim().parse::<i64>().ok()? + 999)
}

/// Whether an action is one that Slurm can do.
fn is_possible(action: &EngineAction) -> bool {
    !matches!(
        action,
        EngineAction::Lend { .. } | EngineAction::Return { .. } | EngineAction::Place { share: Some(_), .. }
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// A job that is acknowledged in the second in which slurmctld dies and starts anew was lost.
    #[test]
    fn the_start_of_slurmctld_is_at_the_end_of_its_second() {
        assert_eq!(
            started_ms("SLURM_VERSION = 22.05.8\nBOOT_TIME               = 1795618812\n"),
            Some(1_795_618_812_999)
        );
        assert_eq!(started_ms("slurm_load_ctl_conf error"), None);
    }

    #[test]
    fn nothing_is_released_in_the_second_it_left_nor_before_all_nodes_have_reported() {
        let mut engine = SlurmEngine::new(&SlurmConfig::default(), FactsKey::random().unwrap());
        let now_s = crate::machine::wall_ms() / 1000;
        let job = |requeued_s| RawJob { id: 7.into(), requeued_s, ..RawJob::default() };
        assert_eq!(engine.waits(7.into()), None, "it never ran");
        engine.jobs.insert(7.into(), job(now_s + 1));
        assert!(matches!(engine.waits(7.into()), Some(StepOutcome::Later { .. })), "requeued just now");
        engine.jobs.insert(7.into(), job(now_s - 1));
        assert_eq!(engine.waits(7.into()), None);
        engine.leaving_s.insert(7.into(), now_s + 1);
        assert!(matches!(engine.waits(7.into()), Some(StepOutcome::Later { .. })), "seen to leave just now");
        engine.leaving_s.clear();
        engine.unheard = Some(("n1".into(), Instant::now()));
        assert!(matches!(engine.waits(7.into()), Some(StepOutcome::Later { .. })), "n1 may still run it");
    }
}
