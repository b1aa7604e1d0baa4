//! The policy: features, weights, one division, and as little moving as possible.

use goodput_env::cluster::{NodeId, TypeId};
use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::{Policy, Scope};
use goodput_env::scenario::{Batching, Information};
use goodput_env::state::Phase;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};

use super::experience::Experience;
use super::features::{FEATURES, JobFacts, weight};
use super::history::{History, Left};
use super::nudge::{Lever, Nudge};
use super::speeds::Speeds;
use super::tenants::Tenants;
use super::theta::Theta;
use crate::allocation::knapsack::{Hull, Offer};
use crate::compose::loaning::SharedJobValues;
use crate::placement::whole_nodes::{Nodes, Wanted};

/// Learned utility: parameters, experience and options.
#[derive(Clone, Debug, PartialEq)]
pub struct Utility {
    /// Learned parameters: weights of features, and shape.
    pub theta: Theta,
    /// Work of jobs that completed during training.
    pub experience: Experience,
    /// Whether a job is believed to be as fast as others of its model.
    pub siblings: bool,
    /// Whether sizes are judged by goodput. If not, by throughput alone, as though every sample of
    /// a larger batch taught as much: for ablations.
    pub efficiency: bool,
}

/// Policy that divides the accelerators by learned utilities, with a knapsack.
#[derive(Clone, Debug)]
pub struct UtilityPolicy {
    theta: Theta,
    batching: Batching,
    information: Information,
    speeds: Speeds,
    history: History,
    division: Hull,
    goals: Vec<Goal>,
    /// Time at which the next restart is over.
    wake: Option<SimTime>,
    /// Choices of the job at hand.
    offers: Vec<Offer>,
    /// Type and size of all choices, job by job, and where each job's begin.
    choices: Vec<(TypeId, u32)>,
    starts: Vec<usize>,
    /// Accelerators to divide, by type.
    capacity: Vec<u32>,
    /// Channel to the orchestrator for the values of jobs.
    worths: Option<SharedJobValues>,
    /// Change of the claim of one job.
    nudge: Option<Nudge>,
}

impl UtilityPolicy {
    /// As trained under this batching and information level.
    pub fn new(utility: &Utility, batching: Batching, information: Information) -> Self {
        Self {
            theta: utility.theta.clone(),
            batching,
            information,
            speeds: Speeds::new(utility),
            history: History::after(&utility.experience),
            division: Hull::default(),
            goals: Vec::new(),
            wake: None,
            offers: Vec::new(),
            choices: Vec::new(),
            starts: Vec::new(),
            capacity: Vec::new(),
            worths: None,
            nudge: None,
        }
    }

    /// Policy that writes the value of each job to `worths` at each decision.
    #[must_use]
    pub fn publishing(self, worths: SharedJobValues) -> Self {
        Self { worths: Some(worths), ..self }
    }

    /// Values of the job at `at` on each of its sizes on each type, and on its present accelerators
    /// if they are of another size.
    fn value(&mut self, view: &ClusterView<'_>, at: usize, job: &JobView<'_>, round: &UtilityRound) {
        let (theta, speeds) = (&self.theta, &self.speeds);
        let (held, held_on) = (job.gpus(), job.kind());
        let seen = self.claim(view, at, job, round);
        let nudged = |lever| self.nudge.as_ref().map_or(0.0, |nudge| nudge.of(job.id(), view.now, lever));
        let weight = weight(theta.weights(), &seen.features) * nudged(Lever::Weight).exp();
        if let Some(worths) = &self.worths {
            worths.tell(job.id(), weight.ln());
        }
        let secs = job.restart_secs().max(1.0);
        let moved = match held {
            0 => 1.0,
            _ => theta.after_restart(secs, seen.age_secs, seen.restarts, seen.remaining_secs, nudged(Lever::Horizon)),
        };
        let (q, floor) = (round.exponent, theta.floor());
        // Without this, a size of no speed would have a value other than 0.
        let nothing = floor.powf(q);
        let offer = |kind: TypeId, gpus: u32| {
            let speedup = speeds.speedup(at, kind, gpus);
            let speed = if (kind, gpus) == (held_on, held) { speedup } else { speedup * moved };
            Offer { kind, weight: gpus, value: weight * ((speed + floor).powf(q) - nothing) / q }
        };
        self.offers.clear();
        for kind in TypeId::first(view.cluster().types.len().max(1)) {
            // The present size may be off the ladder, and keeping it must remain a choice.
            let mut keep = (held > 0 && kind == held_on).then_some(held);
            for &(gpus, _) in speeds.on(at, kind) {
                if let Some(held) = keep.take_if(|held| *held <= gpus) {
                    self.offers.push(offer(kind, held));
                    if held == gpus {
                        continue;
                    }
                }
                self.offers.push(offer(kind, gpus));
            }
            self.offers.extend(keep.map(|held| offer(kind, held)));
        }
        self.division.group(self.offers.iter().copied());
    }

    /// What the claim of the job at `at` goes by.
    pub(super) fn claim(&self, view: &ClusterView<'_>, at: usize, job: &JobView<'_>, round: &UtilityRound) -> Claim {
        let (theta, speeds) = (&self.theta, &self.speeds);
        let least = speeds.smallest(at).max(1);
        let left = self.history.left(view, theta, job, speeds.least(at), least);
        let facts = facts(view, speeds, at, job, &left, round);
        // A job that waits counts with the speed of its smallest size.
        let now = speeds.speedup(at, job.kind(), job.gpus()).max(1.0);
        Claim {
            features: facts.features(),
            age_secs: facts.age_secs,
            restarts: facts.restarts,
            remaining_secs: left.gpu_secs / (f64::from(least) * now),
        }
    }

    /// Quantities that all jobs share at a decision point.
    pub(super) fn round_of(&self, view: &ClusterView<'_>) -> UtilityRound {
        UtilityRound::new(view, &self.theta, &capacity(view, &available(view)))
    }

    /// Policy that moves the claim of one job for a while; `None` ends that.
    #[must_use]
    pub fn nudged(self, nudge: Option<Nudge>) -> Self {
        Self { nudge, ..self }
    }

    /// Goals of all jobs, size and type, by one division.
    fn divide(&mut self, view: &ClusterView<'_>, available: &[u32]) {
        self.capacity = capacity(view, available);
        let round = UtilityRound::new(view, &self.theta, &self.capacity);
        self.division.clear();
        self.choices.clear();
        self.starts.clear();
        for (at, job) in view.jobs().enumerate() {
            self.offers.clear();
            if let Phase::Starting { until } = job.state.phase {
                // A millisecond after, when it has been measured.
                let ready = until + SimTime::from_millis(1);
                self.wake = Some(self.wake.map_or(ready, |wake| wake.min(ready)));
            }
            if is_left_alone(view, &job) {
                // What a job keeps is not there to divide, and its group is empty so that groups
                // match jobs.
                let left = &mut self.capacity[job.kind().index()];
                *left = left.saturating_sub(job.gpus());
                self.division.group::<Offer>([]);
            } else {
                self.value(view, at, &job, &round);
                // A job that the knapsack leaves out gets nothing.
                self.goals[at].gpus = 0;
            }
            self.starts.push(self.choices.len());
            self.choices.extend(self.offers.iter().map(|offer| (offer.kind, offer.weight)));
        }
        let chosen = self.division.solve(&self.capacity).iter().zip(&self.starts);
        for (goal, (item, start)) in self.goals.iter_mut().zip(chosen) {
            if let Some(item) = item {
                (goal.kind, goal.gpus) = self.choices[start + *item as usize];
            }
        }
    }

    /// Puts the jobs of one type on its nodes.
    fn place(&self, view: &ClusterView<'_>, kind: TypeId, available: &[u32], plan: &mut Plan) {
        let cluster = view.cluster();
        let of_kind = (0..cluster.nodes.len()).filter(|&node| cluster.nodes[node].accelerator == kind);
        let nodes = of_kind.map(|node| (NodeId::at(node), available[node]));
        let here: Vec<&Goal> = self.goals.iter().filter(|goal| goal.kind == kind).collect();
        let wanted = |goal: &&Goal| {
            let job = view.job(goal.job);
            let stays = job.filter(|job| job.kind() == kind && job.gpus() == goal.gpus);
            // A part of a card is no whole one to stay on.
            let stays = stays.filter(|job| job.state.placement.share().is_none());
            let pinned = job.is_some_and(|job| is_left_alone(view, &job));
            let held = stays.map_or_else(Placement::none, |job| job.state.placement.clone());
            Wanted { gpus: goal.gpus, held, pinned }
        };
        let wanted: Vec<Wanted> = here.iter().map(wanted).collect();
        for (goal, place) in here.iter().zip(Nodes::new(nodes, cluster.gpus_per_node_of(kind).max(1)).stay(&wanted)) {
            if view.job(goal.job).is_some_and(|job| job.state.placement != place) {
                plan.set(goal.job, place);
            }
        }
    }
}

/// Restarts after which a job runs undisturbed for as long as a restart takes before it may be
/// stopped again; after twice as many for twice as long.
const PATIENCE: u32 = 8;

/// Whether a job keeps what it holds, as it is: while it starts, for it has paid for what it is
/// about to get, and for the longer afterwards the more often it was stopped. However wrong the
/// utility is on jobs unlike those of its training, so of the time that a job holds accelerators an
/// ever greater part is work; without this a policy can go on for ever stopping every job on a
/// crowded cluster in favour of the next.
pub(super) fn is_left_alone(view: &ClusterView<'_>, job: &JobView<'_>) -> bool {
    match job.state.phase {
        Phase::Pending => false,
        Phase::Starting { .. } => true,
        Phase::Running => {
            let restart = job.restart_secs();
            let times = job.state.restarts / PATIENCE;
            // The undisturbed time grows with the number of restarts.
            times > 0 && (view.now - job.state.changed).as_secs_f64() < restart * f64::from(1 + times)
        }
    }
}

/// Accelerators by node that are free or held by jobs.
pub(super) fn available(view: &ClusterView<'_>) -> Vec<u32> {
    let mut available = view.free().to_vec();
    for job in view.jobs() {
        job.state.frees().iter().for_each(|slice| available[slice.node.index()] += slice.gpus);
    }
    available
}

/// Accelerators by type that are free or held by jobs.
pub(super) fn capacity(view: &ClusterView<'_>, available: &[u32]) -> Vec<u32> {
    let mut capacity = vec![0; view.cluster().types.len().max(1)];
    for (node, available) in view.cluster().nodes.iter().zip(available) {
        capacity[node.accelerator.index()] += available;
    }
    capacity
}

/// Goal of a job: accelerators and their type.
#[derive(Clone, Copy, Debug)]
struct Goal {
    job: JobId,
    gpus: u32,
    kind: TypeId,
}

/// What the claim of a job to accelerators goes by.
pub(super) struct Claim {
    /// Features of its weight.
    pub features: [f64; FEATURES.len()],
    /// Seconds since its submission.
    pub age_secs: f64,
    /// Restarts so far.
    pub restarts: u32,
    /// Seconds that it may have left at its present speed.
    pub remaining_secs: f64,
}

/// Quantities that all jobs of a round share.
pub(super) struct UtilityRound {
    pub fair: u32,
    pub pressure: f64,
    pub exponent: f64,
    pub tenants: Tenants,
}

/// Facts about the job at `at`.
pub(super) fn facts(
    view: &ClusterView<'_>,
    speeds: &Speeds,
    at: usize,
    job: &JobView<'_>,
    left: &Left,
    round: &UtilityRound,
) -> JobFacts {
    let (least, most_measured) = (speeds.smallest(at).max(1), speeds.most_measured(at));
    let most = speeds.on(at, most_measured).last().map_or(1, |rate| rate.0);
    let node = view.cluster().gpus_per_node_of(most_measured).max(least);
    JobFacts {
        attained_gpu_secs: job.attained_gpu_millis() as f64 / 1e3,
        remaining_gpu_secs: left.gpu_secs,
        done_gpu_secs: left.done_gpu_secs,
        age_secs: job.age().as_secs_f64(),
        speedups: [round.fair.max(least), node, most].map(|gpus| speeds.scaling(at, most_measured, gpus)),
        waiting: job.gpus() == 0,
        never_ran: speeds.least(at).is_none(),
        restarts: job.state.restarts,
        pressure: round.pressure,
        spread: speeds.spread(at),
        share_of_tenant: round.tenants.share(job.request().tenant),
        failures: job.failures(),
    }
}

impl UtilityRound {
    /// Of the jobs in view on what is there of each type.
    pub fn new(view: &ClusterView<'_>, theta: &Theta, capacity: &[u32]) -> Self {
        let per_node = |kind: usize| f64::from(view.cluster().gpus_per_node_of(TypeId::at(kind)).max(1));
        let total: u32 = capacity.iter().sum();
        let jobs = (view.active() as u32).max(1);
        // Nodes of types differ; the mean goes by accelerators.
        let of_nodes: f64 = (0..capacity.len()).map(|kind| f64::from(capacity[kind]) * per_node(kind)).sum();
        let mean = if total > 0 { of_nodes / f64::from(total) } else { per_node(0) };
        let pressure = (f64::from(jobs) * mean / f64::from(total.max(1))).ln();
        let tenants = Tenants::of(view, total);
        Self { fair: total.div_ceil(jobs).max(1), pressure, exponent: theta.exponent(pressure), tenants }
    }
}

impl Policy for UtilityPolicy {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.speeds.load(view, &self.theta);
        let speeds = &self.speeds;
        self.history.observe(view, &self.theta, |at, _| speeds.least(at));
        self.wake = None;
        self.goals.clear();
        self.goals.extend(view.jobs().map(|job| Goal { job: job.id(), gpus: job.gpus(), kind: job.kind() }));
        let available = available(view);
        self.divide(view, &available);
        let mut plan = Plan::keep();
        TypeId::first(self.capacity.len()).for_each(|kind| self.place(view, kind, &available, &mut plan));
        plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        self.wake
    }

    fn batching(&self) -> Batching {
        self.batching
    }

    /// Scope of published policies with loaning: the policy shares the cluster with services.
    fn scope(&self) -> Scope {
        Scope::Borrowing
    }

    fn information(&self) -> Information {
        self.information
    }
}
