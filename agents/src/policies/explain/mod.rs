//! Explanations of learned policies: the score of a job, taken apart into a contribution of each
//! feature.
//!
//! The question is always "why does this job score as it does rather than as the usual job of the
//! queue would in its place". For policies that are linear in features the answer is exact. For
//! nets it is integrated gradients (Sundararajan et al., ICML 2017) along the straight line from
//! the usual job to this one: the contributions then sum to the difference of the two scores
//! (completeness), and a feature that the net does not look at gets nothing. The gradients of ONNX graphs are
//! differences of scores. Occlusion, the change
//! of the score where one feature alone is the usual one, is the check: it asks the plain forward
//! pass and no gradient, and where it disagrees, features act together.

mod utility;

#[cfg(feature = "learn")]
mod decided;
#[cfg(feature = "learn")]
mod gradient;
#[cfg(feature = "learn")]
mod rounds;
#[cfg(feature = "learn")]
mod scored;
#[cfg(feature = "learn")]
mod secants;

#[cfg(feature = "learn")]
pub use decided::{Decision, Explained};
#[cfg(feature = "learn")]
pub use scored::{Scored, ScoredModel};
pub use utility::UtilityReasons;

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
