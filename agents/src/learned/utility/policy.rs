//! The policy: features, weights, one knapsack, and as little moving as possible.

use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::sim::Phase;
use goodput_env::view::{Batching, ClusterView, Information, JobView};

use super::features::{Facts, weight};
use super::history::History;
use super::speeds::Speeds;
use super::theta::Theta;
use crate::knapsack::{Hull, Item};
use crate::placement::{Free, resize};

/// Learned utilities at work.
#[derive(Clone, Debug)]
pub struct UtilityPolicy {
    theta: Theta,
    batching: Batching,
    information: Information,
    speeds: Speeds,
    history: History,
    knapsack: Hull,
    free: Free,
    /// Choices of the job at hand.
    items: Vec<Item>,
    /// Sizes of all choices, job by job, and where each job's begin.
    sizes: Vec<u32>,
    starts: Vec<usize>,
}

impl UtilityPolicy {
    /// With these parameters, as trained under this batching and information level.
    pub fn new(theta: Theta, batching: Batching, information: Information) -> Self {
        Self {
            theta,
            batching,
            information,
            speeds: Speeds::default(),
            history: History::default(),
            knapsack: Hull::default(),
            free: Free::default(),
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
        let horizon = theta.horizon_secs(facts.age_secs, left.gpu_secs / (f64::from(least) * now));
        let moved = if held == 0 { 1.0 } else { horizon / (horizon + job.restart_secs().max(1.0)) };
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
        let held: u32 = view.jobs().filter(|job| job.state.counts()).map(|job| job.gpus()).sum();
        let mut capacity = view.total_free() + held;
        let jobs = view.active().max(1) as u32;
        let per_node = view.cluster().gpus_per_node().max(1);
        let pressure = (f64::from(jobs) * f64::from(per_node) / f64::from(capacity.max(1))).ln();
        let exponent = self.theta.exponent(pressure);
        let round = Round { fair: capacity.div_ceil(jobs).max(1), per_node, pressure, exponent };
        self.knapsack.clear();
        self.sizes.clear();
        self.starts.clear();
        let mut goals: Vec<(JobView<'_>, u32)> = Vec::with_capacity(view.active());
        for (at, job) in view.jobs().enumerate() {
            self.items.clear();
            if let Phase::Starting { .. } = job.state.phase {
                // It has paid for what it is about to get.
                capacity -= job.gpus();
                goals.push((job, job.gpus()));
            } else {
                self.value(view, at, &job, &round);
                goals.push((job, 0));
            }
            self.starts.push(self.sizes.len());
            self.sizes.extend(self.items.iter().map(|item| item.weight));
            self.knapsack.group(self.items.iter().copied());
        }
        let chosen = self.knapsack.solve(capacity).iter().zip(&self.starts);
        for ((_, gpus), (item, start)) in goals.iter_mut().zip(chosen) {
            *gpus = item.map_or(*gpus, |item| self.sizes[start + item as usize]);
        }
        let mut plan = Plan::keep();
        resize(view, &mut self.free, &goals, &mut plan);
        plan
    }

    fn batching(&self) -> Batching {
        self.batching
    }

    fn information(&self) -> Information {
        self.information
    }
}
