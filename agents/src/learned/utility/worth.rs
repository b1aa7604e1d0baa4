//! What a learned utility goes by at a decision, job by job, for people who want to know why.
//!
//! A job is served when the first step of its sizes is worth more for an accelerator than what others have to offer, and the logarithm of that
//! is a sum: weights times features, and one term for how much speed an accelerator buys. So the score of a job comes apart exactly.

use goodput_env::job::JobId;
use goodput_env::sim::Phase;
use goodput_env::view::{ClusterView, JobView};

use super::features::{FEATURES, weight};
use super::history::History;
use super::policy::{Round, Utility, facts};
use super::speeds::Speeds;
use super::theta::Theta;
use crate::knapsack::Item;

/// Sees what the policy sees. It is shown every decision of a run, in order, as the policy is.
#[derive(Clone, Debug)]
pub struct Observer {
    theta: Theta,
    speeds: Speeds,
    history: History,
}

/// What a job is worth at a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Worth {
    /// The job.
    pub job: JobId,
    /// Its features, by [`FEATURES`].
    pub features: [f64; FEATURES.len()],
    /// Its sizes, ascending, with their values; none while it restarts, when it keeps what it has.
    pub items: Vec<Item>,
    /// Logarithm of what an accelerator buys it on its best size apart from its weight; `None` where that is nothing.
    pub log_speed_per_gpu: Option<f64>,
    /// Logarithm of the same with its weight: the higher, the earlier it is served.
    pub score: Option<f64>,
}

impl Observer {
    /// Of a policy with these numbers.
    pub fn new(utility: &Utility) -> Self {
        let history = History::after(&utility.experience);
        Self { theta: utility.theta.clone(), speeds: Speeds::new(utility), history }
    }

    /// Weights of [`FEATURES`].
    pub fn weights(&self) -> &[f64] {
        self.theta.weights()
    }

    /// Takes note of a decision point.
    pub fn observe(&mut self, view: &ClusterView<'_>) {
        self.speeds.load(view, &self.theta);
        let speeds = &self.speeds;
        self.history.observe(view, &self.theta, |at, _| speeds.least(at));
    }

    /// Worths of the active jobs of a cluster with one type of accelerator, at the decision point observed last, and the accelerators there are
    /// for those who do not restart.
    pub fn worths(&self, view: &ClusterView<'_>) -> (Vec<Worth>, u32) {
        let counted = view.jobs().filter(|job| job.state.counts()).map(|job| job.gpus()).sum::<u32>();
        let available = view.total_free() + counted;
        let round = Round::new(view, &self.theta, &[available]);
        let worths: Vec<Worth> = view.jobs().enumerate().map(|(at, job)| self.worth(view, at, &job, &round)).collect();
        let restarting = view.jobs().filter(|job| matches!(job.state.phase, Phase::Starting { .. }));
        (worths, available - restarting.map(|job| job.gpus()).sum::<u32>().min(available))
    }

    fn worth(&self, view: &ClusterView<'_>, at: usize, job: &JobView<'_>, round: &Round) -> Worth {
        let (theta, speeds) = (&self.theta, &self.speeds);
        let (rates, held) = (speeds.on(at, job.kind()), job.gpus());
        let least = speeds.smallest(at).max(1);
        let left = self.history.left(view, theta, job, speeds.least(at), least);
        let facts = facts(view, speeds, at, job, &left, round);
        let features = facts.features();
        let remaining = left.gpu_secs / (f64::from(least) * speeds.speedup(at, job.kind(), held).max(1.0));
        let moved = match held {
            0 => 1.0,
            _ => theta.after_restart(job.restart_secs().max(1.0), facts.age_secs, facts.restarts, remaining),
        };
        let (q, floor) = (round.exponent, theta.floor());
        let speed = |gpus: u32| speeds.speedup(at, job.kind(), gpus) * if gpus == held { 1.0 } else { moved };
        let bought = |gpus: u32| ((speed(gpus) + floor).powf(q) - floor.powf(q)) / q;
        let mut sizes: Vec<u32> = match job.state.phase {
            Phase::Starting { .. } => Vec::new(),
            Phase::Pending | Phase::Running => {
                rates.iter().map(|rate| rate.0).chain((held > 0).then_some(held)).collect()
            }
        };
        sizes.sort_unstable();
        sizes.dedup();
        let best = sizes.iter().map(|&gpus| bought(gpus) / f64::from(gpus)).fold(0.0, f64::max);
        let weight = weight(theta.weights(), &features);
        Worth {
            job: job.id(),
            features,
            items: sizes.into_iter().map(|gpus| Item { weight: gpus, value: weight * bought(gpus) }).collect(),
            log_speed_per_gpu: (best > 0.0).then(|| best.ln()),
            score: (best > 0.0).then(|| weight.ln() + best.ln()),
        }
    }
}
