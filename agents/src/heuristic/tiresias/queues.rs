//! Queues of Tiresias: entry, demotion, promotion, and the choice of running jobs.
//!
//! Few queues instead of a continuous priority keep two long jobs from preempting each other for
//! ever. Queues are walked from first to last, and every job that fits into what is left runs; the
//! rest is preempted or waits. There is no head-of-line blocking, so a wide job may wait behind
//! narrower jobs of a lower queue: that is the published behaviour. Jobs that keep running keep
//! their nodes.
//!
//! Attained service is wall time with accelerators, restarts included, as of the decision. A
//! decision that comes late therefore demotes late. Where the run lets a policy choose its moments
//! ([`Policy::wake_at`]), demotions and promotions are decided exactly when they fall due. Where
//! decisions fall at rounds only, they wait for the next round, as in the Pollux artifact.
//!
//! A job that finds no nodes although enough accelerators are free (too scattered for its model, or
//! of several types) is passed over, and the walk starts again without it: no job is preempted for
//! a job that cannot start.
//!
//! A decision looks at the jobs that have changed, started, stopped or come to the end of their time in a queue since
//! the last one, and at those that it moves. Only queues in order of an index are sorted anew each time, because every
//! running job's index changes.

use std::collections::BTreeSet;

use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::state::Bookmark;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};

use super::line::{Line, Part, Position, QueuedJob};
use super::{QueueOrder, TiresiasConfig, TiresiasPlacement};
use crate::allocation::passing::Verdict;
use crate::placement::{Consolidation, Free};

/// Tiresias over a cluster. Ties are broken by order of entry into the queue, and among jobs that
/// enter at once by job id.
#[derive(Clone, Debug)]
pub struct Tiresias {
    config: TiresiasConfig,
    line: Line,
    /// Smallest id that has not been seen.
    unseen: JobId,
    mark: Bookmark,
    /// Jobs that are looked at in this decision, ascending.
    stirred: Vec<JobId>,
    /// Jobs that the last decision started or stopped.
    planned: Vec<JobId>,
    /// Jobs that entered a queue in this decision, in order of entry.
    entered: Vec<JobId>,
    /// Jobs that were to run and were found without accelerators in this decision.
    stopped: Vec<JobId>,
    free: Free,
    wake: Option<SimTime>,
}

/// Indices that are to be computed anew.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OutdatedRanks {
    /// Indices that are marked by NaN.
    Marked,
    /// Every index, since the sample of completed jobs has changed.
    All,
}

impl Tiresias {
    /// A policy with the given settings.
    pub fn new(config: TiresiasConfig) -> Self {
        Self {
            config,
            line: Line::default(),
            unseen: JobId(0),
            mark: Bookmark::default(),
            stirred: Vec::new(),
            planned: Vec::new(),
            entered: Vec::new(),
            stopped: Vec::new(),
            free: Free::default(),
            wake: None,
        }
    }

    /// Gathers the jobs that may have changed since the last decision.
    fn gather(&mut self, view: &ClusterView<'_>) {
        self.stirred.clear();
        match view.changed_jobs(&mut self.mark) {
            Some(changed) => {
                self.stirred.extend_from_slice(changed);
                self.stirred.append(&mut self.planned);
                self.stirred.extend(self.line.due_by(view.now));
                if self.config.order != QueueOrder::Entry {
                    // The index of every running job has changed.
                    self.stirred.extend(self.line.holders().map(|entry| entry.job));
                }
            }
            None => {
                self.stirred.extend(self.line.jobs().map(|entry| entry.job));
                self.stirred.extend(view.jobs().map(|job| job.id()));
            }
        }
        self.stirred.sort_unstable();
        self.stirred.dedup();
        self.planned.clear();
        self.entered.clear();
        self.stopped.clear();
    }

    /// New jobs enter the first queue.
    fn admit(&mut self, view: &ClusterView<'_>) {
        let first = self.stirred.partition_point(|&job| job < self.unseen);
        for at in first..self.stirred.len() {
            let Some(job) = view.job(self.stirred[at]) else { continue };
            self.unseen = JobId(job.id().0 + 1);
            self.enter(self.entry(view, &job), 0);
        }
    }

    /// Puts a job at the end of a queue.
    fn enter(&mut self, mut entry: QueuedJob, queue: usize) {
        let by_entry = self.config.order == QueueOrder::Entry;
        let part = if self.config.running_first && by_entry { Part::Entered } else { Part::Front };
        entry.at = self.line.last(queue, part);
        self.entered.push(entry.job);
        self.line.insert(QueuedJob { due: self.config.due(&entry), ..entry });
    }

    fn entry(&self, view: &ClusterView<'_>, job: &JobView<'_>) -> QueuedJob {
        QueuedJob {
            job: job.id(),
            gpus: job.request().gpus,
            submit: job.request().submit,
            consolidation: match &self.config.placing {
                TiresiasPlacement::Packer(_) => Consolidation::Optional,
                TiresiasPlacement::Skew(skew) => skew.consolidation(job),
            },
            running: job.state.is_allocated(),
            executed: job.state.executed(view.now),
            forgiven: SimTime::ZERO,
            waited: SimTime::ZERO,
            since: view.now,
            rank: f64::NAN,
            at: Position { queue: 0, part: Part::Front, number: 0 },
            due: SimTime::NEVER,
        }
    }

    /// Takes in jobs that an earlier view did not have though they are older than others in it, as a guarantee around
    /// the policy hides them for a while. Each enters the queue of its service.
    fn readmit(&mut self, view: &ClusterView<'_>) {
        if self.line.len() >= view.active() {
            return;
        }
        for at in 0..self.stirred.len() {
            let id = self.stirred[at];
            if let Some(job) = view.job(id).filter(|_| self.line.get(id).is_none()) {
                let entry = self.entry(view, &job);
                let served = self.config.attained(&entry);
                let limits = self.config.limits.iter();
                let queue = limits.take_while(|limit| served >= i64::from(**limit) * 1000).count();
                self.enter(entry, queue);
            }
        }
        self.reorder(OutdatedRanks::Marked);
    }

    /// Forgets completed jobs, brings service up to date, and moves jobs between queues.
    fn requeue(&mut self, view: &ClusterView<'_>) {
        let (mut gone, mut moved) = (Vec::new(), Vec::new());
        for at in 0..self.stirred.len() {
            let id = self.stirred[at];
            let Some(mut entry) = self.line.get(id).copied() else { continue };
            let Some(job) = view.job(id) else {
                gone.extend(self.line.remove(id));
                continue;
            };
            match self.bring_up_to_date(&mut entry, &job, view.now) {
                Some(queue) => {
                    self.line.remove(id);
                    moved.push((entry, queue));
                }
                None => self.line.update(QueuedJob { due: self.config.due(&entry), ..entry }),
            }
        }
        let outdated = self.learn(gone, view.now);
        // Jobs that enter a queue at once enter by id, whatever queues they come from.
        moved.into_iter().for_each(|(entry, queue)| self.enter(entry, queue));
        self.reorder(outdated);
    }

    /// Brings the times of a job up to `now`. Returns the queue that the job moves to, if it does.
    fn bring_up_to_date(&mut self, entry: &mut QueuedJob, job: &JobView<'_>, now: SimTime) -> Option<usize> {
        let queue = entry.at.queue;
        if entry.running {
            // A running job attains service, which puts its index out of date.
            entry.rank = f64::NAN;
            entry.executed = job.state.executed(now);
            entry.since = now;
            entry.running = job.state.is_allocated();
            if !entry.running {
                self.stopped.push(entry.job);
            }
            let limit = self.config.limit(queue);
            return limit.is_some_and(|limit| self.config.attained(entry) >= limit).then_some(queue + 1);
        }
        self.config.count_wait(entry, now);
        if !self.config.promotes(entry) || entry.waited < self.config.patience(entry) {
            return None;
        }
        // A promoted job starts over: neither its service nor its wait counts any more.
        (entry.forgiven, entry.waited, entry.rank) = (entry.executed, SimTime::ZERO, f64::NAN);
        Some(0)
    }

    /// Takes in the service of completed jobs, where an index goes by it.
    fn learn(&mut self, mut gone: Vec<QueuedJob>, now: SimTime) -> OutdatedRanks {
        let service = self.config.service;
        let QueueOrder::Gittins(experience, _) = &mut self.config.order else { return OutdatedRanks::Marked };
        gone.sort_unstable_by_key(|entry| entry.at);
        let mut outdated = OutdatedRanks::Marked;
        for entry in gone {
            // The view no longer has a completed job, so its last stretch is counted here.
            let run = if entry.running { now - entry.since } else { SimTime::ZERO };
            if experience.learn(service.weighted(entry.gpus, entry.executed + run) as f64 / 1000.0) {
                outdated = OutdatedRanks::All;
            }
        }
        outdated
    }

    /// Sorts each queue by index, where it is ordered by one, and computes the indices that are out of date.
    fn reorder(&mut self, outdated: OutdatedRanks) {
        let Self { config, line, .. } = self;
        let index = |entry: &QueuedJob| match &config.order {
            QueueOrder::Entry => 0.0,
            QueueOrder::Gittins(experience, horizon) => {
                let secs = config.service.weighted(entry.gpus, entry.executed) as f64 / 1000.0;
                experience.sample().index(secs, *horizon)
            }
            QueueOrder::Artifact(table) => table.index(config.attained(entry) / 1000),
        };
        let in_order = match &config.order {
            QueueOrder::Entry => return,
            QueueOrder::Gittins(..) => |a: &QueuedJob, b: &QueuedJob| b.rank.total_cmp(&a.rank).then(a.job.cmp(&b.job)),
            QueueOrder::Artifact(_) => {
                |a: &QueuedJob, b: &QueuedJob| b.rank.total_cmp(&a.rank).then(a.submit.cmp(&b.submit))
            }
        };
        let ranked = |entry: QueuedJob| match outdated == OutdatedRanks::All || entry.rank.is_nan() {
            true => QueuedJob { rank: index(&entry), ..entry },
            false => entry,
        };
        line.sort_by(ranked, in_order);
    }

    /// Chooses the jobs that run, and finds nodes for those that start.
    fn schedule(&mut self, view: &ClusterView<'_>) -> (Plan, Vec<Verdict>) {
        let mut barred = BTreeSet::new();
        loop {
            let verdicts = self.line.admit(view.total_free(), &barred);
            let known = barred.len();
            let plan = self.plan(view, &verdicts, &mut barred);
            // Each further walk bars at least one more job, so the loop ends.
            if barred.len() == known {
                return (plan, verdicts);
            }
        }
    }

    /// Places jobs that start on what stopped and idle jobs leave; those that find no nodes are `barred`.
    fn plan(&mut self, view: &ClusterView<'_>, verdicts: &[Verdict], barred: &mut BTreeSet<JobId>) -> Plan {
        let mut plan = Plan::keep();
        if verdicts.is_empty() {
            return plan;
        }
        self.free.reset(view);
        // Stopped jobs make room for those that start.
        for verdict in verdicts {
            if let Verdict::Stop(id) = *verdict {
                view.job(id).iter().for_each(|job| self.free.release(&job.state.placement));
                plan.set(id, Placement::none());
            }
        }
        for verdict in verdicts {
            let Verdict::Start(id) = *verdict else { continue };
            let Some(entry) = self.line.get(id) else { continue };
            let placement = match &self.config.placing {
                TiresiasPlacement::Packer(packer) => packer.place(view.cluster(), &mut self.free, entry.gpus),
                TiresiasPlacement::Skew(skew) => {
                    skew.place(view.cluster(), &mut self.free, entry.gpus, entry.consolidation)
                }
            };
            match placement {
                Some(placement) => plan.set(id, placement),
                None => {
                    barred.insert(id);
                }
            }
        }
        plan
    }

    /// Notes which jobs run from now on and when the next job is to change its queue.
    fn settle(&mut self, view: &ClusterView<'_>, verdicts: &[Verdict]) {
        for verdict in verdicts {
            let (Verdict::Start(id) | Verdict::Stop(id)) = *verdict;
            let Some(mut entry) = self.line.get(id).copied() else { continue };
            entry.running = !entry.running;
            if entry.running {
                self.config.count_wait(&mut entry, view.now);
            } else {
                entry.executed = view.job(id).map_or(entry.executed, |job| job.state.executed(view.now));
                self.stopped.push(id);
            }
            entry.since = view.now;
            if entry.at.part == Part::Back {
                entry.at = self.line.last(entry.at.queue, Part::Front);
            }
            self.line.update(QueuedJob { due: self.config.due(&entry), ..entry });
            self.planned.push(id);
        }
        if self.config.running_first {
            self.part();
        }
        self.wake = self.config.next_change(&self.line, view.now);
    }

    /// Moves running jobs ahead of waiting ones inside their queue; among each, the order stays.
    fn part(&mut self) {
        match self.config.order {
            QueueOrder::Entry => {}
            // The next decision sorts anew, and jobs of equal index keep the order that they have now.
            QueueOrder::Artifact(_) => return self.line.sort_by(|entry| entry, |a, b| b.running.cmp(&a.running)),
            QueueOrder::Gittins(..) => return,
        }
        let waits_in_front = |entry: &QueuedJob| !entry.running && entry.at.part == Part::Front;
        for entry in self.line.in_order(&self.stopped, waits_in_front).into_iter().rev() {
            let at = self.line.first(entry.at.queue, Part::Back);
            self.line.move_to(&entry, at);
        }
        for entry in self.line.in_order(&self.entered, |entry| entry.at.part == Part::Entered) {
            let part = if entry.running { Part::Front } else { Part::Back };
            let at = self.line.last(entry.at.queue, part);
            self.line.move_to(&entry, at);
        }
    }
}

impl Policy for Tiresias {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.gather(view);
        self.admit(view);
        self.requeue(view);
        self.readmit(view);
        let (plan, verdicts) = self.schedule(view);
        self.settle(view, &verdicts);
        plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        self.wake
    }
}
