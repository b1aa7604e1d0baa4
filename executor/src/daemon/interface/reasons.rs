//! Reasons of a learned utility for a change of one job, for people and for the audit log.

use goodput_agents::policies::explain::UtilityReasons;
use goodput_env::job::JobId;
use goodput_env::view::ClusterView;
use serde::{Deserialize, Serialize};

use crate::daemon::predict::answer::accelerators;

/// Contributions that are shown; the others are summed up.
const SHOWN: usize = 4;

/// Reasons for the last change of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangeReasons {
    /// Policy that decided.
    pub by: String,
    /// Time of the decision, milliseconds of the Unix epoch.
    pub at_ms: i64,
    /// Accelerators that the policy gives the job; 0 where it stops the job.
    pub gpus: u32,
    /// Logarithm of the job's worth for an accelerator: the higher, the earlier the job is served.
    pub score: f64,
    /// Score of the usual job of the queue, the mean over its features.
    pub usual: f64,
    /// Largest contributions to the difference of the two scores, largest first.
    pub parts: Vec<ReasonPart>,
    /// Sum of the other contributions.
    pub others: f64,
    /// Value of each size that the job can have, by type and size.
    pub sizes: Vec<SizeValue>,
}

/// Contribution of a feature to the score of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReasonPart {
    /// Name of the feature.
    pub feature: String,
    /// Value of the feature for this job.
    pub value: f64,
    /// Value of the feature for the usual job.
    pub usual: f64,
    /// Part of the difference of the scores.
    pub contribution: f64,
}

/// Value of a size of a job in the policy's own unit; the sum over all jobs is what the policy maximises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeValue {
    /// Type of the accelerators.
    pub accelerator: String,
    /// Number of accelerators.
    pub gpus: u32,
    /// Value of that size.
    pub value: f64,
}

impl ChangeReasons {
    /// Reasons for giving `gpus` accelerators to `job`; `None` where the policy did not score the job.
    pub fn of(reasons: &UtilityReasons, view: &ClusterView<'_>, (job, gpus): (JobId, u32)) -> Option<Self> {
        let mut explained = reasons.explain(job)?;
        explained.contributions.sort_by(|a, b| b.contribution.abs().total_cmp(&a.contribution.abs()));
        let others = explained.contributions.iter().skip(SHOWN).map(|part| part.contribution).sum();
        let parts = explained.contributions.into_iter().take(SHOWN).map(|part| ReasonPart {
            feature: part.feature,
            value: part.value,
            usual: part.usual,
            contribution: part.contribution,
        });
        let name = |at: usize| view.cluster().types.get(at).map(|kind| kind.name.clone()).unwrap_or_default();
        let sizes = reasons.value(job)?.offers.iter().map(|offer| SizeValue {
            accelerator: name(offer.kind.index()),
            gpus: offer.weight,
            value: offer.value,
        });
        Some(Self {
            gpus,
            score: explained.score,
            usual: explained.usual_score,
            parts: parts.collect(),
            others,
            sizes: sizes.collect(),
            ..Self::default()
        })
    }

    /// Reasons as lines of text.
    pub fn words(&self) -> String {
        let mut text = format!(
            "{} gives it {}: an accelerator is worth {:.3} to it (a logarithm; {:.3} to the usual job)",
            self.by,
            accelerators(self.gpus),
            self.score,
            self.usual
        );
        for ReasonPart { feature, value, usual, contribution } in &self.parts {
            text.push_str(&format!("\n  {contribution:+.3} {feature}: {value:.3}, usually {usual:.3}"));
        }
        text.push_str(&format!("\n  {:+.3} all others", self.others));
        let sizes = self.sizes.iter().map(|size| format!("{} of {} {:.3}", size.gpus, size.accelerator, size.value));
        text.push_str(&format!("\n  value by size: {}", sizes.collect::<Vec<_>>().join(", ")));
        text
    }
}
