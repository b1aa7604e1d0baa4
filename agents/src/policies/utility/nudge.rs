//! Change of the claim of one job for a while: the one change that a counterfactual run carries out.

use goodput_env::job::JobId;
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

use super::features::COMMON;
use super::policy::{UtilityPolicy, is_left_alone};

/// Quantity of a job that a nudge moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lever {
    /// Logarithm of the weight of the job: with more the job starts or grows, with less it shrinks or waits.
    Weight,
    /// Logarithm of the horizon over which a restart of the job pays: with more the job goes to another size sooner,
    /// with less it holds what it has.
    Horizon,
}

impl Lever {
    /// Number of features that the quantity is a weighted sum of.
    pub const fn features(self) -> usize {
        match self {
            Self::Weight => COMMON,
            Self::Horizon => 3,
        }
    }
}

/// Change of the claim of one job until a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nudge {
    /// Job that it is about.
    pub job: JobId,
    /// Quantity that it moves.
    pub lever: Lever,
    /// Amount that is added to the quantity.
    pub by: f64,
    /// Time at which it ends.
    pub until: SimTime,
}

impl Nudge {
    /// Amount that is added to a quantity of a job at a time.
    pub(super) fn of(&self, job: JobId, now: SimTime, lever: Lever) -> f64 {
        if self.job == job && self.lever == lever && now < self.until { self.by } else { 0.0 }
    }
}

/// What the claim of a job goes by at a decision point.
#[derive(Clone, Debug, PartialEq)]
pub struct Situation {
    /// The job.
    pub job: JobId,
    /// Features of [`Lever::Weight`].
    pub weight: [f64; Lever::Weight.features()],
    /// Features of [`Lever::Horizon`]; `None` for a job that waits, which has no restart to weigh.
    pub horizon: Option<[f64; Lever::Horizon.features()]>,
}

impl Situation {
    /// Features of a lever; `None` where it moves nothing.
    pub fn features(&self, lever: Lever) -> Option<&[f64]> {
        match lever {
            Lever::Weight => Some(&self.weight),
            Lever::Horizon => self.horizon.as_ref().map(<[f64; 3]>::as_slice),
        }
    }
}

impl UtilityPolicy {
    /// Situations of the jobs that are not left alone at the decision point that this policy has decided about last.
    pub fn situations(&self, view: &ClusterView<'_>) -> Vec<Situation> {
        let round = self.round_of(view);
        let jobs = view.jobs().enumerate().filter(|(_, job)| !is_left_alone(view, job));
        let situation = |(at, job)| {
            let claim = self.claim(view, at, &job, &round);
            let logs = [1.0, (claim.age_secs + 1.0).ln(), (claim.remaining_secs + 1.0).ln()];
            Situation {
                job: job.id(),
                weight: std::array::from_fn(|feature| claim.features[feature]),
                horizon: (job.gpus() > 0).then_some(logs),
            }
        };
        jobs.map(situation).collect()
    }
}
