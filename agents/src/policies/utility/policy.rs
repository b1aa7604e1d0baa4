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

use super::claim::{ClaimRound, JobClaim};
use super::experience::Experience;
use super::features::weight;
use super::history::History;
use super::nudge::{Lever, Nudge};
use super::reach::{available, capacity, is_left_alone};
use super::speeds::Speeds;
use super::theta::{Theta, bounded_exponent};
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
    /// Change of the claims of jobs.
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
    fn value(&mut self, view: &ClusterView<'_>, at: usize, job: &JobView<'_>, round: &ClaimRound) {
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
        let floor = theta.floor();
        let q = bounded_exponent(round.exponent + nudged(Lever::Exponent));
        // Another exponent leaves what the smallest size is worth.
        let of_smallest = |q: f64| ((1.0 + floor).powf(q) - floor.powf(q)) / q;
        let weight = if q == round.exponent { weight } else { weight * of_smallest(round.exponent) / of_smallest(q) };
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

    /// Claim of the job at `at` of the view.
    pub(super) fn claim(&self, view: &ClusterView<'_>, at: usize, job: &JobView<'_>, round: &ClaimRound) -> JobClaim {
        JobClaim::of(view, at, job, round, &self.theta, &self.speeds, &self.history)
    }

    /// Parameters that a search or a fit moves.
    pub(super) fn theta(&self) -> &Theta {
        &self.theta
    }

    /// Policy that moves the claims of jobs for a while.
    #[must_use]
    pub fn nudged(self, nudge: Nudge) -> Self {
        Self { nudge: Some(nudge), ..self }
    }

    /// Goals of all jobs, size and type, by one division.
    fn divide(&mut self, view: &ClusterView<'_>, available: &[u32]) {
        self.capacity = capacity(view, available);
        let round = ClaimRound::new(view, &self.theta, &self.capacity);
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

/// Goal of a job: accelerators and their type.
#[derive(Clone, Copy, Debug)]
struct Goal {
    job: JobId,
    gpus: u32,
    kind: TypeId,
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
