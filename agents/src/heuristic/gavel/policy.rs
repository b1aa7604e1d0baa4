//! Gavel as a policy: an objective gives shares of time, the ledger turns them into rounds.

use goodput_env::cluster::AcceleratorType;
use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::Information;
use goodput_env::seed::{Stream, rng};
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};
use rand::RngExt;

use super::fifo::Fifo;
use super::gandiva::{Draws, Gandiva};
use super::instance::{Allocation, Instance, Job, Row};
use super::isolated::{isolated, isolated_rate};
use super::python_random::PythonRandom;
use super::rounds::{Chosen, Combination, Ledger};
use super::water_filling::{Entity, Inside, water_filling};
use super::{objectives, replica};

/// What is optimised.
#[derive(Clone, Debug)]
pub enum Objective {
    /// Equal shares of everything.
    Isolated,
    /// Max-min fairness.
    MaxMin,
    /// Max-min fairness by water-filling, each job on its own.
    WaterFilling,
    /// Water-filling over tenants by their weights.
    Hierarchical(Inside),
    /// Finish-time fairness.
    FinishTime,
    /// Makespan.
    Makespan,
    /// Sum of completion times.
    MinJct,
    /// Sum of throughputs.
    MaxThroughput,
    /// Sum of throughputs over the price of their types; prices an hour by name. Where a type of the cluster has none, prices do not
    /// count.
    Cost(Vec<(&'static str, f64)>),
    /// The same with jobs' deadlines kept, where all of them can be.
    CostWithDeadlines(Vec<(&'static str, f64)>),
    /// First in, first out.
    Fifo(Fifo),
    /// Random pairs.
    Gandiva(Gandiva),
}

/// Settings of [`Gavel`].
#[derive(Clone, Debug)]
pub struct GavelConfig {
    /// What is optimised.
    pub objective: Objective,
    /// Whether speeds of types are known to the objective.
    pub aware: bool,
    /// Whether two jobs may share accelerators.
    pub sharing: bool,
    /// Length of a round, seconds.
    pub round_secs: f64,
    /// What each job has received is counted anew after this time at the earliest, seconds.
    pub reset_secs: f64,
    /// Behaves as the artifact's simulator, defects included.
    pub artifact: bool,
    /// Seed of what is drawn.
    pub seed: u64,
}

impl GavelConfig {
    /// Rounds of 6 minutes, counts kept for 32 minutes.
    pub fn published(objective: Objective, aware: bool, seed: u64) -> Self {
        let sharing = matches!(objective, Objective::Gandiva(_));
        Self { objective, aware, sharing, round_secs: 360.0, reset_secs: 1920.0, artifact: false, seed }
    }
}

/// The policy. Jobs run at the size they asked for, on one type at a time. Within a round nothing starts: what completes early leaves
/// its accelerators idle until the round is over.
pub struct Gavel {
    config: GavelConfig,
    /// Shuffles the order of types for objectives that do not know them.
    shuffle: Shuffle,
    ledger: Option<Ledger>,
    /// Active jobs, ascending.
    jobs: Vec<Known>,
    /// Jobs of this id and above have not been seen.
    unseen: JobId,
    stale: bool,
    /// Accelerators of each type when shares were last computed.
    capacity: Option<Vec<u32>>,
    tasks: Vec<Task>,
    start_secs: f64,
    end_secs: f64,
}

enum Shuffle {
    Own(Box<rand_chacha::ChaCha8Rng>),
    Python(Box<PythonRandom>),
}

/// What is remembered of a job.
#[derive(Clone, Copy, Debug)]
struct Known {
    id: JobId,
    /// Steps left as the artifact counts them: whole steps, round by round.
    steps_left: f64,
    /// At the last allocation: steps left, and steps per second under isolated shares.
    allocated: Option<(f64, f64)>,
    isolated_secs: f64,
}

/// What runs in a round.
#[derive(Clone, Debug)]
struct Task {
    combination: Combination,
    kind: usize,
    placement: Placement,
    /// Steps of the older and the younger job (of the only one twice) in this round, and when they are done, seconds. Only the artifact
    /// plans them.
    steps: [f64; 2],
    ends_secs: f64,
    /// One of its jobs completes.
    last: bool,
    stopped: bool,
}

impl Gavel {
    /// With the given settings.
    pub fn new(config: GavelConfig) -> Self {
        let shuffle = match config.artifact {
            // The scheduler's generators have consecutive seeds; this is the sixth.
            true => Shuffle::Python(Box::new(PythonRandom::new(config.seed + 5))),
            false => Shuffle::Own(Box::new(rng(config.seed, Stream::Policy))),
        };
        Self {
            config,
            shuffle,
            ledger: None,
            jobs: Vec::new(),
            unseen: JobId(0),
            stale: false,
            capacity: None,
            tasks: Vec::new(),
            start_secs: 0.0,
            end_secs: 0.0,
        }
    }

    /// Whether the round is over: its time is up, or nothing of it is left.
    fn over(&self, view: &ClusterView<'_>) -> bool {
        let active = |task: &Task| task.combination.jobs().any(|job| view.job(job).is_some());
        let completing = |task: &Task| {
            self.config.artifact && task.last && task.combination.jobs().all(|job| view.job(job).is_some())
        };
        let time_is_up = view.now >= SimTime::from_secs_f64(self.end_secs) && !self.tasks.iter().any(completing);
        time_is_up || !self.tasks.iter().any(active)
    }

    /// In the artifact's rounds a job stops after the whole steps that fit into the round.
    fn stop_early(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        for task in &mut self.tasks {
            if !task.stopped && !task.last && SimTime::from_secs_f64(task.ends_secs) <= view.now {
                task.stopped = true;
                for job in task.combination.jobs().filter(|&job| view.job(job).is_some()) {
                    plan.set(job, Placement::none());
                }
            }
        }
        plan
    }

    /// Enters what the round's tasks have received, forgets completed jobs and learns of new ones.
    fn settle(&mut self, view: &ClusterView<'_>, ledger: &mut Ledger) {
        let now = view.now.as_secs_f64();
        for task in &self.tasks {
            let ends = if self.config.artifact { task.ends_secs } else { now };
            ledger.receive(task.combination, task.kind, ends - self.start_secs);
            if self.config.artifact {
                for (job, steps) in task.combination.jobs().zip(task.steps) {
                    if let Ok(at) = self.jobs.binary_search_by_key(&job, |known| known.id) {
                        let known = &mut self.jobs[at];
                        known.steps_left -= steps;
                        // One of a pair that completed before the other leaves it faster than the artifact thinks.
                        let left = view.job(job).and_then(|job| job.remaining_work()).unwrap_or(known.steps_left);
                        if left < known.steps_left - 1.0 {
                            known.steps_left = left.ceil();
                        }
                    }
                }
            }
        }
        let before = self.jobs.len();
        self.jobs.retain(|known| view.job(known.id).is_some());
        self.stale |= self.jobs.len() < before;
        if self.stale {
            ledger.close(|job| view.job(job).is_some());
        }
        let new = view.jobs().rev().take_while(|job| job.id() >= self.unseen).count();
        for job in view.jobs().skip(view.active() - new) {
            self.enter(view, ledger, &job);
        }
    }

    fn enter(&mut self, view: &ClusterView<'_>, ledger: &mut Ledger, job: &JobView<'_>) {
        let runs = runs(view, job);
        ledger.open(Combination::single(job.id()), job.request().gpus, runs, true);
        if self.config.sharing {
            for other in &self.jobs {
                let Some(other) = view.job(other.id) else { continue };
                let kinds = 0..view.cluster().types.len();
                let beside = kinds.map(|kind| view.shared_rates(other.id(), job.id(), kind as u16).is_some());
                let runs: Vec<bool> = beside.collect();
                // The artifact also knows pairs that fit nowhere, and gives pairs no credit to begin with.
                let known = self.config.artifact || runs.contains(&true);
                if other.request().gpus == job.request().gpus && known {
                    let combination = Combination::pair(job.id(), other.id());
                    ledger.open(combination, job.request().gpus, runs, !self.config.artifact);
                }
            }
        }
        let steps_left = job.remaining_work().unwrap_or(1.0);
        self.jobs.push(Known { id: job.id(), steps_left, allocated: None, isolated_secs: 0.0 });
        self.unseen = self.unseen.max(JobId(job.id().0 + 1));
        self.stale = true;
    }

    /// Computes shares anew where jobs or accelerators have come or gone: shares of a node that was down when they were computed would
    /// else be nobody's after its repair.
    fn promise(&mut self, view: &ClusterView<'_>, ledger: &mut Ledger) {
        let capacity = capacity(view);
        self.stale |= self.capacity.as_ref().is_some_and(|before| *before != capacity);
        let now = self.start_secs;
        let due = ledger.last_reset() == 0.0 || now - ledger.last_reset() >= self.config.reset_secs;
        // In the artifact's simulation shares are only computed when counts are reset as well.
        if !self.stale || (self.config.artifact && !due) {
            return;
        }
        if due {
            ledger.reset(now);
        }
        self.stale = false;
        self.capacity = Some(capacity.clone());
        // Only jobs that can run at all take part.
        let fits = |known: &Known| {
            let job = view.job(known.id).expect("settle keeps active jobs only");
            runs(view, &job).iter().zip(&capacity).any(|(runs, &gpus)| *runs && job.request().gpus <= gpus)
        };
        let takes_part: Vec<usize> = (0..self.jobs.len()).filter(|&at| fits(&self.jobs[at])).collect();
        let ids: Vec<JobId> = takes_part.iter().map(|&at| self.jobs[at].id).collect();
        let (mut instance, accounts) = self.instance(view, ledger, &ids, &takes_part, capacity);
        let seen = if self.config.aware || self.config.sharing { instance.clone() } else { self.blind(&instance) };
        for (job, &at) in takes_part.iter().enumerate() {
            let left = instance.jobs[job].steps_left;
            let known = &mut self.jobs[at];
            if let Some((before, rate)) = known.allocated {
                known.isolated_secs += (before - left) / rate;
            }
            known.allocated = Some((left, isolated_rate(&seen, job)));
            instance.jobs[job].isolated_secs = known.isolated_secs;
        }
        let seen = Instance { jobs: instance.jobs.clone(), ..seen };
        let allocation = self.allocate(view, &seen, &ids).unwrap_or_else(|| isolated(&seen));
        for (row, account) in accounts.into_iter().enumerate() {
            ledger.promise(account, allocation.row(row));
        }
    }

    /// The instance of the jobs that take part, and for each of its rows the account.
    fn instance(
        &self,
        view: &ClusterView<'_>,
        ledger: &Ledger,
        ids: &[JobId],
        takes_part: &[usize],
        counts: Vec<u32>,
    ) -> (Instance, Vec<usize>) {
        let kinds = counts.len();
        let position = |id: JobId| ids.binary_search(&id).ok();
        let jobs = takes_part.iter().zip(ids).map(|(&at, &id)| {
            let job = view.job(id).expect("settle keeps active jobs only");
            let left = if self.config.artifact { Some(self.jobs[at].steps_left) } else { job.remaining_work() };
            Job {
                age_secs: self.start_secs - job.request().submit.as_secs_f64(),
                weight: f64::from(job.request().weight_milli) / 1000.0,
                ..Job::new(job.request().gpus, left.unwrap_or(1.0).max(1e-9))
            }
        });
        let mut singles = vec![(Row::single(0, vec![None; kinds]), 0); ids.len()];
        let mut pairs = Vec::new();
        for (at, account) in ledger.accounts().iter().enumerate() {
            let Combination { younger, older } = account.combination;
            let Some(job) = position(younger) else { continue };
            match older {
                None => {
                    let view = view.job(younger).expect("settle keeps active jobs only");
                    let rates = (0..kinds).map(|kind| view.rate_on(kind as u16, account.gpus));
                    singles[job] = (Row::single(job, rates), at);
                }
                Some(older) => {
                    let Some(first) = position(older) else { continue };
                    let rates = (0..kinds).map(|kind| view.shared_rates(older, younger, kind as u16)).collect();
                    pairs.push((Row { first, second: Some(job), rates }, at));
                }
            }
        }
        singles.append(&mut pairs);
        let (rows, accounts) = singles.into_iter().unzip();
        (Instance { counts, jobs: jobs.collect(), rows }, accounts)
    }

    /// What an objective that does not know types sees: one speed everywhere. Where time matters it is the mean over the cluster; in
    /// the artifact the speed on the first type.
    fn blind(&self, instance: &Instance) -> Instance {
        match self.config.objective {
            Objective::FinishTime | Objective::Makespan | Objective::MinJct if self.config.artifact => {
                instance.blind(|job| instance.rates(job).next().flatten().unwrap_or(1.0))
            }
            Objective::FinishTime | Objective::Makespan | Objective::MinJct => {
                instance.blind(|job| instance.proportional_rate(job))
            }
            _ => instance.blind(|_| 1.0),
        }
    }

    fn allocate(&mut self, view: &ClusterView<'_>, instance: &Instance, ids: &[JobId]) -> Option<Allocation> {
        if ids.is_empty() {
            return Some(Allocation::zero(instance));
        }
        let types = &view.cluster().types;
        let now = self.start_secs;
        match &mut self.config.objective {
            Objective::Isolated => Some(isolated(instance)),
            Objective::MaxMin => objectives::max_min(instance),
            Objective::WaterFilling => water_filling(instance, &[]),
            Objective::Hierarchical(inside) => water_filling(instance, &entities(view, ids, *inside)),
            Objective::FinishTime => objectives::finish_time_fairness(instance),
            Objective::Makespan if self.config.artifact => replica::makespan(instance),
            Objective::Makespan => objectives::makespan(instance),
            Objective::MinJct => objectives::min_jct(instance),
            Objective::MaxThroughput => objectives::max_throughput(instance),
            Objective::Cost(prices) => {
                objectives::max_throughput_per_cost(instance, &prices_of(&view.cluster().types, prices), &[])
            }
            Objective::CostWithDeadlines(prices) => {
                let deadline = |&id: &JobId| Some(view.job(id)?.request().deadline?.as_secs_f64() - now);
                let deadlines = ids.iter().enumerate().filter_map(|(job, id)| Some((job, deadline(id)?)));
                // One that is past cannot be kept any more, and must not make the others void.
                let open: Vec<(usize, f64)> = deadlines.filter(|&(_, secs)| secs > 0.0).collect();
                objectives::max_throughput_per_cost(instance, &prices_of(&view.cluster().types, prices), &open)
            }
            Objective::Fifo(fifo) => {
                let mut by_name: Vec<usize> = (0..types.len()).collect();
                by_name.sort_by(|&one, &other| types[one].name.cmp(&types[other].name));
                Some(fifo.allocate(instance, ids, &by_name))
            }
            Objective::Gandiva(gandiva) => Some(gandiva.allocate(instance, ids)),
        }
    }

    fn order_of_types(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        if !self.config.aware && !self.config.sharing {
            match &mut self.shuffle {
                Shuffle::Python(random) => random.shuffle(&mut order),
                Shuffle::Own(random) => {
                    for i in (1..count).rev() {
                        order.swap(i, random.random_range(0..=i));
                    }
                }
            }
        }
        order
    }

    /// Plans the next round.
    fn start(&mut self, view: &ClusterView<'_>, ledger: &Ledger) -> Plan {
        let mut free = view.free().to_vec();
        for job in view.jobs().filter(|job| job.state.counts()) {
            job.state.placement.slices().iter().for_each(|slice| free[slice.node as usize] += slice.gpus);
        }
        let order = self.order_of_types(view.cluster().types.len());
        let only_promised = matches!(self.config.objective, Objective::Fifo(_));
        let chosen = ledger.choose(&order, of_types(view, &free), only_promised);
        let held = |combination: Combination| {
            let task = self.tasks.iter().find(|task| task.combination == combination)?;
            Some((task.kind, task.placement.clone()))
        };
        let placed = ledger.place(&chosen, held, view.cluster(), free);
        self.tasks = placed.into_iter().map(|(chosen, placement)| self.task(view, ledger, chosen, placement)).collect();
        let latest = self.tasks.iter().map(|task| task.ends_secs).fold(self.start_secs, f64::max);
        self.end_secs = if self.config.artifact { latest } else { self.start_secs + self.config.round_secs };
        self.plan(view)
    }

    fn task(&self, view: &ClusterView<'_>, ledger: &Ledger, chosen: Chosen, placement: Placement) -> Task {
        let Chosen { account, kind } = chosen;
        let combination = ledger.accounts()[account].combination;
        let mut task = Task {
            combination,
            kind,
            placement,
            steps: [0.0; 2],
            ends_secs: self.start_secs,
            last: false,
            stopped: false,
        };
        if self.config.artifact {
            let rates = match combination.older {
                Some(older) => view.shared_rates(older, combination.younger, kind as u16),
                None => view
                    .job(combination.younger)
                    .and_then(|job| job.rate_on(kind as u16, job.request().gpus).map(|rate| [rate; 2])),
            };
            for (at, job) in combination.jobs().enumerate() {
                let known = self.jobs.binary_search_by_key(&job, |known| known.id).map(|at| self.jobs[at].steps_left);
                let (left, rate) = (known.unwrap_or(1.0), rates.map_or(1.0, |rates| rates[at]));
                task.steps[at] = (rate * self.config.round_secs).floor().max(1.0).min(left);
                task.last |= task.steps[at] >= left;
                task.ends_secs = task.ends_secs.max(self.start_secs + task.steps[at] / rate);
            }
        }
        task
    }

    fn plan(&self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        let mut moved: Vec<JobId> = Vec::new();
        for task in &self.tasks {
            let partner = task.combination.older.map(|older| (older, task.combination.younger));
            let stays = |job: JobId| {
                view.job(job).is_some_and(|job| {
                    let with = partner.map(|(one, other)| if one == job.id() { other } else { one });
                    job.state.placement == task.placement && job.state.partner == with
                })
            };
            moved.extend(task.combination.jobs());
            if task.combination.jobs().all(stays) {
                continue;
            }
            match partner {
                None => plan.set(task.combination.younger, task.placement.clone()),
                Some((one, other)) => plan.share(one, other, task.placement.clone()),
            }
        }
        moved.sort_unstable();
        for job in view.jobs().filter(|job| job.state.is_allocated()) {
            if moved.binary_search(&job.id()).is_err() {
                plan.set(job.id(), Placement::none());
            }
        }
        plan
    }
}

impl Policy for Gavel {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        if !self.over(view) {
            return if self.config.artifact { self.stop_early(view) } else { Plan::keep() };
        }
        let mut ledger =
            self.ledger.take().unwrap_or_else(|| Ledger::new(view.cluster().types.len(), self.config.round_secs));
        self.settle(view, &mut ledger);
        let idle = self.tasks.is_empty();
        // The artifact's clock runs in fractions of a millisecond, ours follows it as well as it can.
        self.start_secs = if self.config.artifact && !idle { self.end_secs } else { view.now.as_secs_f64() };
        self.promise(view, &mut ledger);
        let plan = self.start(view, &ledger);
        self.ledger = Some(ledger);
        plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        let end = (!self.tasks.is_empty()).then(|| SimTime::from_secs_f64(self.end_secs));
        let stops = self.tasks.iter().filter(|task| self.config.artifact && !task.stopped && !task.last);
        stops.map(|task| SimTime::from_secs_f64(task.ends_secs)).chain(end).min()
    }

    fn information(&self) -> Information {
        match self.config.objective {
            Objective::FinishTime | Objective::Makespan | Objective::MinJct | Objective::CostWithDeadlines(_) => {
                Information::Oracle
            }
            _ if self.config.artifact => Information::Oracle,
            _ => Information::Profiled,
        }
    }

    fn needs(&self) -> Information {
        match self.information() {
            Information::Oracle if self.config.artifact => Information::Oracle,
            Information::Oracle => Information::Estimate { sigma: 0.0 },
            known => known,
        }
    }
}

/// Whether `job` runs on each type.
fn runs(view: &ClusterView<'_>, job: &JobView<'_>) -> Vec<bool> {
    let kinds = 0..view.cluster().types.len();
    kinds.map(|kind| job.rate_on(kind as u16, job.request().gpus).is_some_and(|rate| rate > 0.0)).collect()
}

/// Accelerators of each type.
fn capacity(view: &ClusterView<'_>) -> Vec<u32> {
    let nodes: Vec<u32> = view.cluster().nodes.iter().map(|node| node.gpus).collect();
    of_types(view, &nodes)
}

/// Sums by type of what is given by node.
fn of_types(view: &ClusterView<'_>, by_node: &[u32]) -> Vec<u32> {
    let mut sums = vec![0; view.cluster().types.len()];
    for (node, gpus) in view.cluster().nodes.iter().zip(by_node) {
        sums[node.accelerator as usize] += gpus;
    }
    sums
}

/// Prices by accelerator type; all 1 where one of them has none.
fn prices_of(types: &[AcceleratorType], prices: &[(&'static str, f64)]) -> Vec<f64> {
    let price = |name: &str| prices.iter().find(|(known, _)| *known == name).map(|(_, price)| *price);
    let known: Option<Vec<f64>> = types.iter().map(|kind| price(&kind.name)).collect();
    known.unwrap_or_else(|| vec![1.0; types.len()])
}

/// Tenants with active jobs, and their weights.
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

/// Gandiva's generator, by our stream or by Python's.
pub(super) fn gandiva(seed: u64, artifact: bool) -> Objective {
    let draws = match artifact {
        true => Draws::Python(Box::new(PythonRandom::new(seed))),
        false => Draws::Own(Box::new(rng(seed, Stream::Policy))),
    };
    Objective::Gandiva(Gandiva::new(draws))
}
