//! Change of the claims of jobs for a while: what a counterfactual run carries out.

use std::collections::BTreeMap;
use std::ops::Range;

use goodput_env::job::JobId;
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

use super::claim::ClaimRound;
use super::features::COMMON;
use super::policy::UtilityPolicy;
use super::reach::is_left_alone;

/// Quantity of a job that a nudge moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lever {
    /// Logarithm of the weight of the job: with more the job starts or grows, with less it shrinks or waits.
    Weight,
    /// Logarithm of the horizon over which a restart of the job pays: with more the job goes to another size sooner,
    /// with less it holds what it has.
    Horizon,
    /// Exponent of the speed in the value of the job's sizes: with more the job grows beyond its smallest size, with
    /// less it stays small. What the smallest size is worth stays.
    Exponent,
}

impl Lever {
    /// Every quantity that may be moved.
    pub const ALL: [Self; 3] = [Self::Weight, Self::Horizon, Self::Exponent];

    /// Number of features of all levers.
    pub const FEATURES: usize = COMMON + 3 + 2;

    /// Places of the features that the quantity is a weighted sum of, among those of a [`ClaimSituation`].
    pub const fn features(self) -> Range<usize> {
        match self {
            Self::Weight => 0..COMMON,
            Self::Horizon => COMMON..COMMON + 3,
            Self::Exponent => COMMON + 3..Self::FEATURES,
        }
    }

    /// Amount of the quantity that counts as one: logarithms move by more than an exponent between -1 and 0.
    pub const fn unit(self) -> f64 {
        match self {
            Self::Weight | Self::Horizon => 1.0,
            Self::Exponent => 0.5,
        }
    }
}

/// Change of the claims of jobs until a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Nudge {
    /// By job, what is added to each quantity, in units of its lever ([`Lever::unit`]) and in the order of
    /// [`Lever::ALL`].
    pub by: BTreeMap<JobId, [f64; Lever::ALL.len()]>,
    /// Time at which it ends.
    pub until: SimTime,
}

impl Nudge {
    /// Amount that is added to a quantity of a job at a time.
    pub(super) fn of(&self, job: JobId, now: SimTime, lever: Lever) -> f64 {
        let by = self.by.get(&job).filter(|_| now < self.until);
        by.map_or(0.0, |by| by[lever as usize] * lever.unit())
    }
}

/// Features that the claim of a job goes by at a decision point.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimSituation {
    /// Job with this claim.
    pub job: JobId,
    /// Features of the levers ([`Lever::features`]). Those of the horizon are zero for a job that waits, which has no
    /// restart to weigh.
    pub features: [f64; Lever::FEATURES],
}

impl UtilityPolicy {
    /// Situations of the jobs that are not left alone at the decision point that this policy has decided about last.
    pub fn situations(&self, view: &ClusterView<'_>) -> Vec<ClaimSituation> {
        let round = ClaimRound::at(view, self.theta());
        let jobs = view.jobs().enumerate().filter(|(_, job)| !is_left_alone(view, job));
        let situation = |(at, job)| {
            let claim = self.claim(view, at, &job, &round);
            let holds = f64::from(u8::from(job.gpus() > 0));
            let horizon = [1.0, (claim.age_secs + 1.0).ln(), (claim.remaining_secs + 1.0).ln()].map(|of| holds * of);
            let mut features = [0.0; Lever::FEATURES];
            features[Lever::Weight.features()].copy_from_slice(&claim.features[..COMMON]);
            features[Lever::Horizon.features()].copy_from_slice(&horizon);
            features[Lever::Exponent.features()].copy_from_slice(&[1.0, round.pressure]);
            ClaimSituation { job: job.id(), features }
        };
        jobs.map(situation).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::features::{FEATURES, weight};
    use super::*;
    use crate::policies::utility::Theta;

    fn sum(by: &[f64], features: &[f64]) -> f64 {
        by.iter().zip(features).map(|(by, feature)| by * feature).sum()
    }

    /// The parameters can express what a fit on the features finds of nudges.
    #[test]
    fn moved_parameters_move_a_job_as_a_nudge_by_the_weighted_sum_of_its_features_does() {
        let theta = Theta::sia().moved(Lever::Weight, &[0.5, -0.25, 0.0, 1.0]);
        let by: Vec<f64> = (0..COMMON).map(|at| 0.03 * at as f64 - 0.2).collect();
        let features: [f64; FEATURES.len()] = std::array::from_fn(|at| (at as f64 * 1.7).sin());
        let weighed = |theta: &Theta| weight(theta.weights(), &features).ln();
        let moved = weighed(&theta.clone().moved(Lever::Weight, &by)) - weighed(&theta);
        assert!((moved - sum(&by, &features[..COMMON])).abs() < 1e-6, "{moved}");

        let (by, age, left) = ([0.4, -0.1, 0.05], 5_000.0_f64, 700.0_f64);
        let kept = |theta: &Theta, nudge| theta.after_restart(600.0, age, 1, left, nudge);
        let expected = kept(&theta, sum(&by, &[1.0, (age + 1.0).ln(), (left + 1.0).ln()]));
        let moved = kept(&theta.clone().moved(Lever::Horizon, &by), 0.0);
        assert!((moved - expected).abs() < 1e-6 && (moved - kept(&theta, 0.0)).abs() > 1e-3, "{moved} {expected}");

        let (by, pressure) = ([0.2, 0.3], -0.6);
        let moved = theta.clone().moved(Lever::Exponent, &by).exponent(pressure, 0.0);
        let expected = theta.exponent(pressure, 0.0) + Lever::Exponent.unit() * sum(&by, &[1.0, pressure]);
        assert!((moved - expected).abs() < 1e-6, "{moved} {expected}");
    }
}
