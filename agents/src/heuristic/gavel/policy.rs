//! Gavel as a policy: an objective gives shares of time, the ledger turns the shares into rounds.

use goodput_env::cluster::{AcceleratorType, TypeId};
use goodput_env::job::JobId;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::Information;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};

use super::artifact::Artifact;
use super::config::{GavelConfig, GavelObjective, TypeSpeeds};
use super::departures::{Departures, PublishedGavel};
use super::form::GavelForm;
use super::instance::{CombinationRow, GavelInstance, GavelJob, TimeShares};
use super::isolated::{equal_time, isolated, isolated_rate};
use super::objectives;
use super::rounds::{ChosenTask, Combination, OpeningCredit, RoundLedger, RoundTask};
use super::shockwave_forms::{ShockwaveCluster, ShockwaveSimulator};
use super::shortest_first::shortest_first;
use super::water_filling::{Entity, Inside, water_filling};

/// Gavel over a cluster. Jobs run at the size they asked for, on one type at a time. Nothing starts
/// within a round: the accelerators of a job that completes early are idle until the round is over.
pub struct Gavel {
    pub(super) config: GavelConfig,
    pub(super) departures: Box<dyn Departures>,
    pub(super) ledger: Option<RoundLedger>,
    /// Active jobs, ascending.
    pub(super) jobs: Vec<KnownJob>,
    /// Smallest id that has not been seen.
    unseen: JobId,
    pub(super) stale: bool,
    /// Accelerators of each type at the last computation of shares.
    capacity: Option<Vec<u32>>,
    pub(super) tasks: Vec<RoundTask>,
    /// Tasks of the next round, where they are chosen before the present one ends.
    pub(super) next: Option<Vec<ChosenTask>>,
    pub(super) start_secs: f64,
    pub(super) end_secs: f64,
    /// Time up to which the tasks' received time has been entered.
    pub(super) entered_secs: f64,
}

/// Active job, as remembered between rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownJob {
    pub(super) id: JobId,
    /// At the last allocation: steps left, and steps per second under isolated shares.
    allocated: Option<(f64, f64)>,
    isolated_secs: f64,
}

impl Gavel {
    /// A policy with the given settings.
    pub fn new(config: GavelConfig) -> Self {
        let departures: Box<dyn Departures> = match &config.form {
            GavelForm::Artifact => Box::new(Artifact::new(config.seed)),
            GavelForm::Published => Box::new(PublishedGavel::new(config.seed)),
            GavelForm::ShockwaveSimulator => Box::new(ShockwaveSimulator),
            GavelForm::ShockwaveCluster(run) => Box::new(ShockwaveCluster::new(run.clone())),
        };
        Self {
            config,
            departures,
            ledger: None,
            jobs: Vec::new(),
            unseen: JobId(0),
            stale: false,
            capacity: None,
            tasks: Vec::new(),
            next: None,
            start_secs: 0.0,
            end_secs: 0.0,
            entered_secs: 0.0,
        }
    }

    /// Whether the round is over: its time is up, or none of its jobs is active.
    fn over(&self, view: &ClusterView<'_>) -> bool {
        let active = |task: &RoundTask| task.combination.jobs().any(|job| view.job(job).is_some());
        let time_is_up =
            view.now >= SimTime::from_secs_f64(self.end_secs) && !self.departures.extends_round(view, &self.tasks);
        time_is_up || !self.tasks.iter().any(active)
    }

    /// Enters the time that the round's tasks received since it was entered last.
    pub(super) fn enter_time(&mut self, view: &ClusterView<'_>, ledger: &mut RoundLedger) {
        let now = view.now.as_secs_f64();
        for (at, task) in self.tasks.iter().enumerate() {
            ledger.receive(task.combination, task.kind, self.departures.task_end(at, now) - self.entered_secs);
        }
        self.entered_secs = now;
    }

    /// Accounts for the time that the round's tasks received, forgets completed jobs and enters new
    /// ones.
    pub(super) fn close_round(&mut self, view: &ClusterView<'_>, ledger: &mut RoundLedger) {
        self.enter_time(view, ledger);
        self.departures.settle(view, &self.tasks);
        let before = self.jobs.len();
        self.jobs.retain(|known| view.job(known.id).is_some());
        self.stale |= self.jobs.len() < before;
        if self.stale {
            ledger.close(|job| view.job(job).is_some());
        }
        let new = view.jobs().rev().take_while(|job| job.id() >= self.unseen).count();
        // A view lists jobs by id, so new jobs come last. An older one that is not known was hidden from
        // earlier views by a guarantee around the policy.
        let hidden = self.jobs.len() + new < view.active();
        let known: Vec<JobId> = if hidden { self.jobs.iter().map(|job| job.id).collect() } else { Vec::new() };
        for job in view.jobs().skip(if hidden { 0 } else { view.active() - new }) {
            if known.binary_search(&job.id()).is_err() {
                self.enter(view, ledger, &job);
            }
        }
        self.jobs.sort_by_key(|job| job.id);
    }

    fn enter(&mut self, view: &ClusterView<'_>, ledger: &mut RoundLedger, job: &JobView<'_>) {
        let runs = runs(view, job);
        ledger.open(Combination::single(job.id()), job.request().gpus, runs, OpeningCredit::HalfRound);
        if self.config.sharing {
            for other in &self.jobs {
                let Some(other) = view.job(other.id) else { continue };
                let kinds = view.cluster().type_ids();
                let beside = kinds.map(|kind| view.shared_rates(other.id(), job.id(), kind).is_some());
                let runs: Vec<bool> = beside.collect();
                if other.request().gpus == job.request().gpus && self.departures.opens_pair(&runs) {
                    let combination = Combination::pair(job.id(), other.id());
                    ledger.open(combination, job.request().gpus, runs, self.departures.credit_of_pairs());
                }
            }
        }
        self.departures.enter(job);
        self.jobs.push(KnownJob { id: job.id(), allocated: None, isolated_secs: 0.0 });
        self.unseen = self.unseen.max(JobId(job.id().0 + 1));
        self.stale = true;
    }

    /// Computes shares anew where jobs or accelerators have come or gone. Shares computed while a
    /// node was down would leave its accelerators idle after the repair.
    pub(super) fn allocate_shares(&mut self, view: &ClusterView<'_>, ledger: &mut RoundLedger, now: f64) {
        let capacity = capacity(view);
        self.stale |= self.capacity.as_ref().is_some_and(|before| *before != capacity);
        let due = ledger.last_reset() == 0.0 || now - ledger.last_reset() >= self.config.rounds.reset_secs;
        if !self.stale || self.departures.allocates_at_resets_only() && !due {
            return;
        }
        if due {
            ledger.reset(now);
        }
        self.stale = false;
        self.capacity = Some(capacity.clone());
        // Only jobs that can run at all take part.
        let fits = |known: &KnownJob| {
            let job = view.job(known.id).expect("close_round keeps active jobs only");
            runs(view, &job).iter().zip(&capacity).any(|(runs, &gpus)| *runs && job.request().gpus <= gpus)
        };
        let participants: Vec<usize> = (0..self.jobs.len()).filter(|&at| fits(&self.jobs[at])).collect();
        let ids: Vec<JobId> = participants.iter().map(|&at| self.jobs[at].id).collect();
        let (mut instance, accounts) = self.instance(view, ledger, &ids, capacity, now);
        let seen = if self.config.types == TypeSpeeds::Known || self.config.sharing {
            instance.clone()
        } else {
            self.unaware(&instance)
        };
        for (job, &at) in participants.iter().enumerate() {
            let left = instance.jobs[job].steps_left;
            let known = &mut self.jobs[at];
            if let Some((before, rate)) = known.allocated {
                // Finish-time fairness compares with the time that these steps would have taken
                // under isolated shares.
                known.isolated_secs += (before - left) / rate;
            }
            known.allocated = Some((left, isolated_rate(&seen, job)));
            instance.jobs[job].isolated_secs = known.isolated_secs;
        }
        let seen = GavelInstance { jobs: instance.jobs.clone(), ..seen };
        // The solver may give up; isolated shares are always feasible.
        let allocation = self.allocate(view, &seen, &ids, now).unwrap_or_else(|| isolated(&seen));
        for (row, account) in accounts.into_iter().enumerate() {
            ledger.set_share(account, allocation.row(row));
        }
    }

    /// Instance of the jobs that take part, and for each of its rows the index of the account.
    fn instance(
        &self,
        view: &ClusterView<'_>,
        ledger: &RoundLedger,
        ids: &[JobId],
        counts: Vec<u32>,
        now: f64,
    ) -> (GavelInstance, Vec<usize>) {
        let kinds = counts.len();
        let position = |id: JobId| ids.binary_search(&id).ok();
        let jobs = ids.iter().map(|&id| {
            let job = view.job(id).expect("close_round keeps active jobs only");
            let left = self.departures.steps_left(&job);
            GavelJob {
                age_secs: now - job.request().submit.as_secs_f64(),
                weight: f64::from(job.request().weight_milli) / 1000.0,
                // Programs divide by the steps left, which therefore stay above 0.
                ..GavelJob::new(job.request().gpus, left.unwrap_or(1.0).max(1e-9))
            }
        });
        let mut singles = vec![(CombinationRow::single(0, vec![None; kinds]), 0); ids.len()];
        let mut pairs = Vec::new();
        for (at, account) in ledger.accounts().iter().enumerate() {
            let Combination { younger, older } = account.combination;
            let Some(job) = position(younger) else { continue };
            match older {
                None => {
                    let view = view.job(younger).expect("close_round keeps active jobs only");
                    let rates = TypeId::first(kinds).map(|kind| view.rate_on(kind, account.gpus));
                    singles[job] = (CombinationRow::single(job, rates), at);
                }
                Some(older) => {
                    let Some(first) = position(older) else { continue };
                    let rates = TypeId::first(kinds).map(|kind| view.shared_rates(older, younger, kind)).collect();
                    pairs.push((CombinationRow { first, second: Some(job), rates }, at));
                }
            }
        }
        singles.append(&mut pairs);
        let (rows, accounts) = singles.into_iter().unzip();
        (GavelInstance { counts, jobs: jobs.collect(), rows }, accounts)
    }

    /// Instance as an objective sees it that does not know speeds: one speed on all types.
    fn unaware(&self, instance: &GavelInstance) -> GavelInstance {
        match self.config.objective {
            GavelObjective::FinishTime
            | GavelObjective::Makespan
            | GavelObjective::MinJct
            | GavelObjective::ShortestFirst => instance.unaware(|job| self.departures.unaware_rate(instance, job)),
            _ => instance.unaware(|_| 1.0),
        }
    }

    fn allocate(
        &mut self,
        view: &ClusterView<'_>,
        instance: &GavelInstance,
        ids: &[JobId],
        now: f64,
    ) -> Option<TimeShares> {
        if ids.is_empty() {
            return Some(TimeShares::zero(instance));
        }
        let types = &view.cluster().types;
        match &mut self.config.objective {
            GavelObjective::Isolated => Some(isolated(instance)),
            GavelObjective::MaxMin => objectives::max_min(instance),
            GavelObjective::WaterFilling => water_filling(instance, &[]),
            GavelObjective::Hierarchical(inside) => water_filling(instance, &entities(view, ids, *inside)),
            GavelObjective::FinishTime => objectives::finish_time_fairness(instance),
            GavelObjective::Makespan => self.departures.makespan(instance),
            GavelObjective::MinJct => objectives::min_jct(instance),
            GavelObjective::ShortestFirst => Some(shortest_first(instance)),
            // Steps count, whatever their batch size.
            GavelObjective::MaxThroughput => {
                let step_work = |job: usize| view.job(ids[job]).map_or(1.0, |job| job.step_work());
                objectives::max_throughput(&instance.divided(step_work))
            }
            GavelObjective::Cost(prices) => {
                objectives::max_throughput_per_cost(instance, &prices_of(&view.cluster().types, prices), &[])
            }
            GavelObjective::Per(expense) => {
                objectives::max_throughput_per_cost(instance, &expense.of(&view.cluster().types), &[])
            }
            GavelObjective::RelativePer(expense) => {
                objectives::relative_efficiency(instance, &expense.of(&view.cluster().types))
            }
            GavelObjective::CostWithDeadlines(prices) => {
                let deadline = |&id: &JobId| Some(view.job(id)?.request().deadline?.as_secs_f64() - now);
                let deadlines = ids.iter().enumerate().filter_map(|(job, id)| Some((job, deadline(id)?)));
                // A deadline that is past cannot be kept any more, and would make the program
                // infeasible.
                let open: Vec<(usize, f64)> = deadlines.filter(|&(_, secs)| secs > 0.0).collect();
                objectives::max_throughput_per_cost(instance, &prices_of(&view.cluster().types, prices), &open)
            }
            GavelObjective::Fifo(fifo) => {
                let mut by_name: Vec<usize> = (0..types.len()).collect();
                by_name.sort_by(|&one, &other| types[one].name.cmp(&types[other].name));
                Some(fifo.allocate(instance, ids, &by_name))
            }
            GavelObjective::Gandiva(gandiva) => Some(gandiva.allocate(instance, ids)),
            GavelObjective::EqualTime => Some(equal_time(instance)),
            GavelObjective::Allox(queues) => Some(queues.allocate(instance, ids)),
            GavelObjective::Shockwave(_) => Some(TimeShares::zero(instance)),
        }
    }
}

impl Policy for Gavel {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        if self.over(view) {
            return self.next_round(view);
        }
        if self.chooses_at().is_some_and(|at| SimTime::from_secs_f64(at) <= view.now) {
            let now = view.now.as_secs_f64();
            self.next = Some(self.choose(view, now));
        }
        self.departures.within_round(view, &self.tasks)
    }

    fn wake_at(&self) -> Option<SimTime> {
        let end = match self.ledger.as_ref().map(RoundLedger::last_reset) {
            // Nothing runs, and jobs may wait for shares that come with the next reset.
            Some(reset) if self.tasks.is_empty() => self.stale.then_some(reset + self.config.rounds.reset_secs),
            _ => (!self.tasks.is_empty()).then_some(self.end_secs),
        };
        let times = end.into_iter().chain(self.chooses_at()).map(SimTime::from_secs_f64);
        self.departures.wake_at().into_iter().chain(times).min()
    }

    fn round(&self) -> Option<SimTime> {
        Some(SimTime::from_secs_f64(self.config.rounds.round_secs))
    }

    fn information(&self) -> Information {
        self.departures.information(match self.config.objective {
            GavelObjective::FinishTime
            | GavelObjective::Makespan
            | GavelObjective::MinJct
            | GavelObjective::ShortestFirst
            | GavelObjective::Allox(_)
            | GavelObjective::Shockwave(_)
            | GavelObjective::CostWithDeadlines(_) => Information::Oracle,
            _ => Information::Profiled,
        })
    }

    fn needs(&self) -> Information {
        self.departures.needs(self.information())
    }
}

/// Whether `job` runs on each type.
pub(super) fn runs(view: &ClusterView<'_>, job: &JobView<'_>) -> Vec<bool> {
    let kinds = view.cluster().type_ids();
    kinds.map(|kind| job.rate_on(kind, job.request().gpus).is_some_and(|rate| rate > 0.0)).collect()
}

/// Number of accelerators by type.
fn capacity(view: &ClusterView<'_>) -> Vec<u32> {
    let nodes: Vec<u32> = view.cluster().nodes.iter().map(|node| node.gpus).collect();
    of_types(view, &nodes)
}

/// Sums by type of counts by node.
pub(super) fn of_types(view: &ClusterView<'_>, by_node: &[u32]) -> Vec<u32> {
    let mut sums = vec![0; view.cluster().types.len()];
    for (node, gpus) in view.cluster().nodes.iter().zip(by_node) {
        sums[node.accelerator.index()] += gpus;
    }
    sums
}

/// Prices by accelerator type; all 1 where a type has none.
fn prices_of(types: &[AcceleratorType], prices: &[(&'static str, f64)]) -> Vec<f64> {
    let price = |name: &str| prices.iter().find(|(known, _)| *known == name).map(|(_, price)| *price);
    let known: Option<Vec<f64>> = types.iter().map(|kind| price(&kind.name)).collect();
    known.unwrap_or_else(|| vec![1.0; types.len()])
}

/// Entities of the hierarchical objective: tenants with active jobs, and their weights.
fn entities(view: &ClusterView<'_>, ids: &[JobId], inside: Inside) -> Vec<Entity> {
    let mut tenants: Vec<(u32, usize)> =
        ids.iter().enumerate().filter_map(|(at, &id)| Some((view.job(id)?.request().tenant, at))).collect();
    tenants.sort_unstable();
    let of_tenant = |jobs: &[(u32, usize)]| {
        // A tenant of weight zero still gets what is left over in the end.
        let weight = f64::from(view.tenants().weight_milli(jobs[0].0).max(1)) / 1000.0;
        Entity { weight, inside, jobs: jobs.iter().map(|(_, at)| *at).collect() }
    };
    tenants.chunk_by(|one, other| one.0 == other.0).map(of_tenant).collect()
}
