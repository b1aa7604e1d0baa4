//! Values of a learned utility at a decision, job by job, for explanations.
//!
//! A job is served when the first step of its sizes is worth more for an accelerator than what
//! others have to offer, and the logarithm of that is a sum: weights times features, and one term
//! for how much speed an accelerator buys, of the type where it buys most. So the score of a job
//! comes apart exactly.

use goodput_env::cluster::TypeId;
use goodput_env::job::JobId;
use goodput_env::view::{ClusterView, JobView};

use super::claim::{ClaimRound, JobClaim};
use super::features::{FEATURES, weight};
use super::history::History;
use super::policy::Utility;
use super::reach::{available, capacity, is_left_alone};
use super::speeds::Speeds;
use super::theta::Theta;
use crate::allocation::knapsack::Offer;

/// Sees what the policy sees. It is shown every decision of a run, in order, as the policy is.
#[derive(Clone, Debug)]
pub struct Observer {
    theta: Theta,
    speeds: Speeds,
    history: History,
}

/// Value of a job at a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct JobValue {
    /// Job that is valued.
    pub job: JobId,
    /// Features of the job, by [`FEATURES`].
    pub features: [f64; FEATURES.len()],
    /// Sizes of the job, type by type and ascending, with their values; none while it is left alone
    /// and keeps what it has.
    pub offers: Vec<Offer>,
    /// Logarithm of what an accelerator buys it on its best size and type apart from its weight;
    /// `None` where that is nothing.
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

    /// Worths of the active jobs at the decision point observed last, and by type the accelerators
    /// for the jobs that are not left alone.
    pub fn worths(&self, view: &ClusterView<'_>) -> (Vec<JobValue>, Vec<u32>) {
        let mut capacity = capacity(view, &available(view));
        let round = ClaimRound::new(view, &self.theta, &capacity);
        let worths: Vec<JobValue> =
            view.jobs().enumerate().map(|(at, job)| self.worth(view, at, &job, &round)).collect();
        for job in view.jobs().filter(|job| is_left_alone(view, job)) {
            let left = &mut capacity[job.kind().index()];
            *left = left.saturating_sub(job.gpus());
        }
        (worths, capacity)
    }

    fn worth(&self, view: &ClusterView<'_>, at: usize, job: &JobView<'_>, round: &ClaimRound) -> JobValue {
        let (theta, speeds) = (&self.theta, &self.speeds);
        let (held_on, held) = (job.kind(), job.gpus());
        let JobClaim { features, age_secs, restarts, remaining_secs } =
            JobClaim::of(view, at, job, round, theta, speeds, &self.history);
        let moved = match held {
            0 => 1.0,
            _ => theta.after_restart(job.restart_secs().max(1.0), age_secs, restarts, remaining_secs, 0.0),
        };
        let (q, floor) = (round.exponent, theta.floor());
        let stays = |kind: TypeId, gpus: u32| (kind, gpus) == (held_on, held);
        let speed = |kind, gpus| speeds.speedup(at, kind, gpus) * if stays(kind, gpus) { 1.0 } else { moved };
        let bought = |kind, gpus| ((speed(kind, gpus) + floor).powf(q) - floor.powf(q)) / q;
        let kinds = if is_left_alone(view, job) { 0 } else { view.cluster().types.len().max(1) };
        let mut sizes: Vec<(TypeId, u32)> =
            TypeId::first(kinds).flat_map(|kind| speeds.on(at, kind).iter().map(move |rate| (kind, rate.0))).collect();
        // The present size may be off the ladder, and keeping it is a choice of the policy too.
        sizes.extend((held > 0 && kinds > 0).then_some((held_on, held)));
        sizes.sort_unstable();
        sizes.dedup();
        let best = sizes.iter().map(|&(kind, gpus)| bought(kind, gpus) / f64::from(gpus)).fold(0.0, f64::max);
        let weight = weight(theta.weights(), &features);
        let offer = |(kind, gpus)| Offer { kind, weight: gpus, value: weight * bought(kind, gpus) };
        JobValue {
            job: job.id(),
            features,
            offers: sizes.into_iter().map(offer).collect(),
            log_speed_per_gpu: (best > 0.0).then(|| best.ln()),
            score: (best > 0.0).then(|| weight.ln() + best.ln()),
        }
    }
}
