//! Explanations of learned policies: the score of a job, taken apart into a contribution of each
//! feature.
//!
//! The question is always "why does this job score as it does rather than as the usual job of the
//! queue would in its place". For policies that are linear in features the answer is exact. For
//! nets it is integrated gradients (Sundararajan et al., ICML 2017) along the straight line from
//! the usual job to this one: the contributions then sum to the difference of the two scores
//! (completeness), and a feature that the net does not look at gets nothing. Occlusion, the change
//! of the score where one feature alone is the usual one, is the check: it asks the plain forward
//! pass and no gradient, and where it disagrees, features act together.

mod gradient;
mod rounds;
mod scored;
mod utility;

use goodput_env::job::JobId;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

use crate::policies::rounds::{Decoder, LearnedPolicy};
use crate::policies::utility::Utility;
use rounds::Rounds;
pub use scored::{Scored, ScoredModel};
use utility::Utilities;

/// Contribution of a feature to a score.
#[derive(Clone, Debug, PartialEq)]
pub struct Contribution {
    /// Name of the feature.
    pub feature: String,
    /// Value of the feature for this job.
    pub value: f64,
    /// Value of the feature for the usual job: the mean over the queue.
    pub usual: f64,
    /// Part of the difference between the two scores.
    pub contribution: f64,
    /// Loss of the score if this feature alone were the usual one.
    pub occlusion: f64,
}

/// A score taken apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Name of the score, in words.
    pub of: String,
    /// Score of the job.
    pub score: f64,
    /// The score that the usual job would have in its place.
    pub usual_score: f64,
    /// By feature, in the order of the schema.
    pub contributions: Vec<Contribution>,
}

impl Explanation {
    /// Residual of the contributions: the difference of the scores less their sum.
    pub fn residual(&self) -> f64 {
        let sum: f64 = self.contributions.iter().map(|part| part.contribution).sum();
        self.score - self.usual_score - sum
    }
}

/// A decision with its reasons.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Plan that was decided.
    pub plan: Plan,
    /// Active jobs in order of id with their scores, the highest of which is served first; `None`
    /// for those that are not scored: they are left alone, or have no slot.
    pub scores: Vec<(JobId, Option<f64>)>,
    reasons: Reasons,
}

#[derive(Clone, Debug)]
enum Reasons {
    Rounds(Box<rounds::Played>),
    Utilities(utility::Seen),
}

impl Decision {
    /// The score of `job` taken apart; `None` where it has none.
    pub fn explain(&self, job: JobId) -> Option<Explanation> {
        match &self.reasons {
            Reasons::Rounds(played) => played.explain(job),
            Reasons::Utilities(seen) => seen.explain(job),
        }
    }
}

/// A policy that can be asked why. It is led through a run as any policy is.
#[derive(Clone, Debug)]
pub struct Explained(Inner);

#[derive(Clone, Debug)]
enum Inner {
    Rounds(Box<Rounds>),
    Utilities(Box<Utilities>),
}

impl Explained {
    /// Policy that plays rounds by the scores of `scored`.
    pub fn playing(policy: LearnedPolicy, scored: Scored) -> Self {
        Self(Inner::Rounds(Box::new(Rounds { policy, scored })))
    }

    /// Policy that divides the accelerators by `utility`.
    pub fn dividing(utility: &Utility, decoder: Decoder) -> Self {
        Self(Inner::Utilities(Box::new(Utilities::new(utility, decoder))))
    }

    /// Decides without a word.
    pub fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        match &mut self.0 {
            Inner::Rounds(rounds) => rounds.policy.decide(view),
            Inner::Utilities(utilities) => utilities.decide(view),
        }
    }

    /// Time at which the policy wants to be asked again.
    pub fn wake_at(&self) -> Option<SimTime> {
        match &self.0 {
            Inner::Rounds(rounds) => rounds.policy.wake_at(),
            Inner::Utilities(utilities) => utilities.policy.wake_at(),
        }
    }

    /// Decides and says why.
    pub fn explain(&mut self, view: &ClusterView<'_>) -> Decision {
        match &mut self.0 {
            Inner::Rounds(rounds) => rounds.explain(view),
            Inner::Utilities(utilities) => utilities.explain(view),
        }
    }
}
