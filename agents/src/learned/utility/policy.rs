//! The policy: features, weights, one knapsack, and as little moving as possible.

use goodput_env::cluster::NodeId;
use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::sim::Phase;
use goodput_env::time::SimTime;
use goodput_env::view::{Batching, ClusterView, Information, JobView};

use super::experience::Experience;
use super::features::{Facts, weight};
use super::history::History;
use super::speeds::Speeds;
use super::theta::Theta;
use crate::heuristic::sia::placing::{Nodes, Wanted};
use crate::knapsack::{Hull, Item};

/// What was learned.
#[derive(Clone, Debug, PartialEq)]
pub struct Utility {
    /// The numbers.
    pub theta: Theta,
    /// What was seen of jobs meanwhile.
    pub experience: Experience,
}

/// Learned utilities at work.
#[derive(Clone, Debug)]
pub struct UtilityPolicy {
    theta: Theta,
    batching: Batching,
    information: Information,
    speeds: Speeds,
    history: History,
    knapsack: Hull,
    goals: Vec<Goal>,
    /// When the next restart is over.
    wake: Option<SimTime>,
    /// Choices of the job at hand.
    items: Vec<Item>,
    /// Sizes of all choices, job by job, and where each job's begin.
    sizes: Vec<u32>,
    starts: Vec<usize>,
}

impl UtilityPolicy {
    /// As trained under this batching and information level.
    pub fn new(utility: &Utility, batching: Batching, information: Information) -> Self {
        Self {
            theta: utility.theta.clone(),
            batching,
            information,
            speeds: Speeds::default(),
            history: History::after(&utility.experience),
            knapsack: Hull::default(),
            goals: Vec::new(),
            wake: None,
            items: Vec::new(),
            sizes: Vec::new(),
            starts: Vec::new(),
        }
    }

    /// What the job at `at` is worth on each of its sizes, and on the one it has if that is another.
    fn value(&mut self, view: &ClusterView<'_>, at: usize, job: &JobView<'_>, round: &Round) {
        let (theta, speeds) = (&self.theta, &self.speeds);
        let rates = speeds.of(at);
        let least = rates.first().map_or(1, |rate| rate.0);
        let left = self.history.left(view, theta, job, speeds.least(at), least);
        let held = job.gpus();
        let (fair, most) = (round.fair.max(least), rates.last().map_or(1, |rate| rate.0));
        let facts = Facts {
            attained_gpu_secs: job.attained_gpu_millis() as f64 / 1e3,
            remaining_gpu_secs: left.gpu_secs,
            done_gpu_secs: left.done_gpu_secs,
            age_secs: job.age().as_secs_f64(),
            speedups: [fair, round.per_node.max(least), most].map(|gpus| speeds.speedup(at, gpus)),
            waiting: held == 0,
            never_ran: speeds.least(at).is_none(),
            restarts: job.state.restarts,
            pressure: round.pressure,
        };
        let weight = weight(theta.weights(), &facts.features());
        let now = speeds.speedup(at, held).max(1.0);
        let remaining = left.gpu_secs / (f64::from(least) * now);
        let moved = match held {
            0 => 1.0,
            _ => theta.after_restart(job.restart_secs().max(1.0), facts.age_secs, facts.restarts, remaining),
        };
        let (q, floor) = (round.exponent, theta.floor());
        let nothing = floor.powf(q);
        let worth = |gpus: u32, speedup: f64| {
            let speed = if gpus == held { speedup } else { speedup * moved };
            weight * ((speed + floor).powf(q) - nothing) / q
        };
        self.items.clear();
        let mut keep = (held > 0).then(|| Item { weight: held, value: worth(held, speeds.speedup(at, held)) });
        for &(gpus, _) in rates {
            if let Some(item) = keep.take_if(|item| item.weight <= gpus) {
                self.items.push(item);
                if held == gpus {
                    continue;
                }
            }
            self.items.push(Item { weight: gpus, value: worth(gpus, speeds.speedup(at, gpus)) });
        }
        self.items.extend(keep);
    }
}

impl UtilityPolicy {
    /// Jobs that hold nothing go where there is most room for one more.
    fn choose_kinds(&mut self, view: &ClusterView<'_>, kinds: usize) {
        let mut room = vec![0_u32; kinds];
        for (node, free) in view.cluster().nodes.iter().zip(view.free()) {
            room[usize::from(node.accelerator)] += free;
        }
        let mut jobs = vec![0_u32; kinds];
        for goal in self.goals.iter().filter(|goal| goal.gpus > 0) {
            room[usize::from(goal.kind)] += goal.gpus;
            jobs[usize::from(goal.kind)] += 1;
        }
        for goal in self.goals.iter_mut().filter(|goal| goal.gpus == 0) {
            let job = view.job(goal.job);
            let runs = |kind: &usize| job.is_some_and(|job| job.runs_on(*kind as u16));
            let share = |kind: usize| u64::from(room[kind]) * 1000 / u64::from(jobs[kind] + 1);
            if let Some(kind) = (0..kinds).filter(runs).max_by_key(|&kind| (share(kind), std::cmp::Reverse(kind))) {
                goal.kind = kind as u16;
                jobs[kind] += 1;
            }
        }
    }

    /// Divides the accelerators of one type among its jobs.
    fn divide(&mut self, view: &ClusterView<'_>, kind: u16, plan: &mut Plan) {
        let cluster = view.cluster();
        let mut available: Vec<u32> = view.free().to_vec();
        let mut jobs = 0;
        for job in view.jobs().enumerate().filter(|(at, _)| self.goals[*at].kind == kind).map(|(_, job)| job) {
            let counts = job.state.counts();
            job.state.placement.slices().iter().filter(|_| counts).for_each(|s| available[s.node as usize] += s.gpus);
            jobs += 1;
        }
        let of_kind = (0..cluster.nodes.len()).filter(|&node| cluster.nodes[node].accelerator == kind);
        let nodes: Vec<(NodeId, u32)> = of_kind.map(|node| (node as NodeId, available[node])).collect();
        let mut capacity: u32 = nodes.iter().map(|node| node.1).sum();
        let per_node = cluster.gpus_per_node_of(kind).max(1);
        let shared = f64::from(jobs.max(1)) * f64::from(per_node) / f64::from(capacity.max(1));
        let pressure = shared.ln();
        let exponent = self.theta.exponent(pressure);
        let round = Round { fair: capacity.div_ceil(jobs.max(1)).max(1), per_node, pressure, exponent };
        self.knapsack.clear();
        self.sizes.clear();
        self.starts.clear();
        for (at, job) in view.jobs().enumerate() {
            self.items.clear();
            if self.goals[at].kind == kind {
                match job.state.phase {
                    // It has paid for what it is about to get.
                    Phase::Starting { until } => {
                        capacity = capacity.saturating_sub(job.gpus());
                        // A millisecond after, when it has been measured.
                        let ready = until + SimTime::from_millis(1);
                        self.wake = Some(self.wake.map_or(ready, |wake| wake.min(ready)));
                    }
                    Phase::Pending | Phase::Running => {
                        self.value(view, at, &job, &round);
                        self.goals[at].gpus = 0;
                    }
                }
            }
            self.starts.push(self.sizes.len());
            self.sizes.extend(self.items.iter().map(|item| item.weight));
            self.knapsack.group(self.items.iter().copied());
        }
        let chosen = self.knapsack.solve(capacity).iter().zip(&self.starts);
        for (goal, (item, start)) in self.goals.iter_mut().zip(chosen) {
            goal.gpus = item.map_or(goal.gpus, |item| self.sizes[start + item as usize]);
        }
        let here: Vec<&Goal> = self.goals.iter().filter(|goal| goal.kind == kind).collect();
        let wanted = |goal: &&Goal| {
            let held = view.job(goal.job).map(|job| (job.state.placement.clone(), job.state.phase));
            let (held, phase) = held.unwrap_or_default();
            let pinned = matches!(phase, Phase::Starting { .. });
            Wanted { gpus: goal.gpus, held: if held.gpus() == goal.gpus { held } else { Placement::none() }, pinned }
        };
        let wanted: Vec<Wanted> = here.iter().map(wanted).collect();
        for (goal, place) in here.iter().zip(Nodes::new(nodes, per_node).stay(&wanted)) {
            if view.job(goal.job).is_some_and(|job| job.state.placement != place) {
                plan.set(goal.job, place);
            }
        }
    }
}

/// What a job is to have.
#[derive(Clone, Copy, Debug)]
struct Goal {
    job: JobId,
    gpus: u32,
    kind: u16,
}

/// What is the same for all jobs of a round.
struct Round {
    fair: u32,
    per_node: u32,
    pressure: f64,
    exponent: f64,
}

impl Policy for UtilityPolicy {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.speeds.load(view);
        let speeds = &self.speeds;
        self.history.observe(view, &self.theta, |at, _| speeds.least(at));
        self.wake = None;
        self.goals.clear();
        self.goals.extend(view.jobs().map(|job| Goal { job: job.id(), gpus: job.gpus(), kind: job.kind() }));
        let kinds = view.cluster().types.len().max(1);
        let mut plan = Plan::keep();
        if kinds > 1 {
            self.choose_kinds(view, kinds);
        }
        for kind in 0..kinds as u16 {
            self.divide(view, kind, &mut plan);
        }
        plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        self.wake
    }

    fn batching(&self) -> Batching {
        self.batching
    }

    fn information(&self) -> Information {
        self.information
    }
}
