//! Completion times by simulation: the policy against one other, over all comparisons of a period.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::intervals::{MeanInterval, interval};
use crate::daemon::shadow::ShadowComparison;

/// Jobs listed on either side.
const LISTED: usize = 10;

/// Comparisons of two policies over a period. Differences are the policy minus the other one: negative is
/// sooner under the policy. Times are seconds of the policy's clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CompletionReport {
    /// Policy that is to decide.
    pub policy: String,
    /// Policy that it is compared with.
    pub against: String,
    /// Whether the other one stands for the cluster as it is; otherwise it is the shadow policy.
    pub as_it_is: bool,
    /// Number of comparisons.
    pub comparisons: usize,
    /// Horizon of the comparisons.
    pub horizon_secs: f64,
    /// Mean time from submission to completion under the policy and under the other one.
    pub mean_jct_secs: [f64; 2],
    /// Difference of that mean with its interval of 95 % by blocks of days; `None` where there are too few.
    pub difference: Option<MeanInterval>,
    /// Jobs in one comparison that are complete sooner under the policy, later, and neither, on average.
    pub jobs_per_comparison: [f64; 3],
    /// Interruptions in one comparison under the policy and under the other one, on average.
    pub restarts_per_comparison: [f64; 2],
    /// Different jobs that were sooner on average over their comparisons, and that were later.
    pub jobs: [usize; 2],
    /// Jobs that gain most.
    pub soonest: Vec<JobOutlook>,
    /// Jobs that lose most.
    pub latest: Vec<JobOutlook>,
    /// Share of the jobs with a duration that their users stated.
    pub stated_share: f64,
}

/// Job over its comparisons, seconds: mean, least and greatest difference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobOutlook {
    /// Key of the job.
    pub job: String,
    /// Name of the job, where its start was seen.
    pub name: String,
    /// Mean of the differences.
    pub secs: f64,
    /// Least and greatest difference.
    pub between_secs: [f64; 2],
    /// Comparisons in which it differs.
    pub comparisons: usize,
    /// Whether a difference is a lower bound: a simulation ended before the job did.
    pub open: bool,
}

/// Comparisons of one pair of policies as they are read.
#[derive(Debug, Default)]
pub(super) struct Compared {
    at: Vec<(i64, ShadowComparison)>,
}

impl Compared {
    /// Takes a comparison in. With another policy on either side the comparisons begin anew.
    pub(super) fn take(&mut self, at_ms: i64, compared: ShadowComparison) {
        let pair = |of: &ShadowComparison| (of.incumbent.policy.clone(), of.candidate.policy.clone());
        self.at.retain(|(_, of)| pair(of) == pair(&compared));
        self.at.push((at_ms, compared));
    }

    /// Summary of the comparisons; `names` are those of jobs by key.
    pub(super) fn report(&self, as_it_is: bool, names: &BTreeMap<String, String>) -> CompletionReport {
        let Some((_, last)) = self.at.last() else { return CompletionReport::default() };
        let count = self.at.len() as f64;
        let mean =
            |value: &dyn Fn(&ShadowComparison) -> f64| self.at.iter().map(|(_, of)| value(of)).sum::<f64>() / count;
        let difference = |of: &ShadowComparison| of.incumbent.mean_jct_secs - of.candidate.mean_jct_secs;
        let values: Vec<(i64, f64)> = self.at.iter().map(|(at, of)| (*at, difference(of))).collect();
        let mut jobs = self.jobs(names);
        jobs.sort_by(|a, b| a.secs.total_cmp(&b.secs).then_with(|| a.job.cmp(&b.job)));
        let sooner = jobs.iter().filter(|job| job.secs < 0.0).count();
        let later = jobs.len() - sooner;
        let share = |of: &ShadowComparison| {
            let stated = of.assumed.jobs.saturating_sub(of.assumed.unknown + of.assumed.overdue);
            stated as f64 / of.assumed.jobs.max(1) as f64
        };
        CompletionReport {
            policy: last.incumbent.policy.clone(),
            against: last.candidate.policy.clone(),
            as_it_is,
            comparisons: self.at.len(),
            horizon_secs: last.horizon_secs,
            mean_jct_secs: [mean(&|of| of.incumbent.mean_jct_secs), mean(&|of| of.candidate.mean_jct_secs)],
            difference: interval(&values),
            jobs_per_comparison: [
                mean(&|of| of.completions.sooner as f64),
                mean(&|of| of.completions.later as f64),
                mean(&|of| of.completions.equal as f64),
            ],
            restarts_per_comparison: [
                mean(&|of| f64::from(of.incumbent.restarts)),
                mean(&|of| f64::from(of.candidate.restarts)),
            ],
            jobs: [sooner, later],
            soonest: jobs.iter().take(sooner.min(LISTED)).cloned().collect(),
            latest: jobs.iter().rev().take(later.min(LISTED)).cloned().collect(),
            stated_share: mean(&share),
        }
    }

    fn jobs(&self, names: &BTreeMap<String, String>) -> Vec<JobOutlook> {
        let mut jobs: BTreeMap<&str, JobOutlook> = BTreeMap::new();
        for difference in self.at.iter().flat_map(|(_, of)| &of.completions.largest) {
            let job = jobs.entry(&difference.job).or_insert_with(|| JobOutlook {
                job: difference.job.clone(),
                name: names.get(&difference.job).cloned().unwrap_or_default(),
                between_secs: [f64::INFINITY, f64::NEG_INFINITY],
                ..JobOutlook::default()
            });
            let [low, high] = job.between_secs;
            job.between_secs = [low.min(difference.secs), high.max(difference.secs)];
            job.secs += difference.secs;
            job.comparisons += 1;
            job.open |= difference.open;
        }
        let mean = |job: JobOutlook| JobOutlook { secs: job.secs / job.comparisons.max(1) as f64, ..job };
        jobs.into_values().map(mean).collect()
    }
}
