//! Summary of a comparison: means with intervals for each policy, and paired differences against
//! one of them.
//!
//! It is written as `summary.json`: keys in a fixed order, floats in their shortest form that reads
//! back exactly, hence the same bytes for the same runs.

use std::collections::BTreeMap;

use goodput_env::scenario::Batching;
use ndarray::{Array2, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

use super::head::RunHead;
use super::layout::RunLayout;
use crate::metrics::{HEADLINE, METRICS, metric};
use crate::stats::{
    Bootstrap, Estimate, Tail, difference, holm, interquartile_mean, mean_of_tasks, performance_profile,
    probability_of_improvement, ratio_of_means, wilcoxon, win_rate,
};

/// Share of the resamples that an interval holds where nothing else is said.
pub const COVERAGE: f64 = 0.95;

/// Seeds of a workload from which on a bootstrap interval is called one. With 8 paired seeds the
/// smallest two-sided p-value of Wilcoxon's test is 0.0078; with 5 it is 0.0625.
pub const ENOUGH_SEEDS: usize = 8;

/// Method of the intervals: confidence and number of resamples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    /// Number of bootstrap resamples.
    pub resamples: usize,
    /// Confidence of the intervals; absent where the seeds are too few to speak of one. The intervals then hold the
    /// middle [`COVERAGE`] of the resamples, and show the spread only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Master seed of the resampling.
    pub seed: u64,
}

impl Default for Statistics {
    fn default() -> Self {
        Self { resamples: 5_000, confidence: Some(COVERAGE), seed: 0 }
    }
}

impl Statistics {
    /// Share of the resamples that an interval holds.
    pub fn coverage(&self) -> f64 {
        self.confidence.unwrap_or(COVERAGE)
    }

    /// Method on so many seeds of each workload: without a confidence where they are too few.
    fn on_seeds(self, seeds: usize) -> Self {
        Self { confidence: self.confidence.filter(|_| seeds >= ENOUGH_SEEDS), ..self }
    }
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Version of this format.
    pub version: u32,
    /// Method of the intervals.
    pub statistics: Statistics,
    /// The policy that others are measured against.
    pub reference: String,
    /// Workloads on which the policies were run.
    pub workloads: Vec<WorkloadSummary>,
    /// Policies in the order they were given.
    pub policies: Vec<PolicySummary>,
}

/// One workload of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadSummary {
    /// Name of the workload.
    pub name: String,
    /// Accelerators of its cluster.
    pub cluster_gpus: u32,
    /// Nodes of its cluster.
    pub cluster_nodes: usize,
    /// Jobs under each seed.
    pub jobs: Vec<usize>,
    /// Seeds of the repetitions.
    pub seeds: Vec<u64>,
    /// Assumption about the scaling of its jobs that the results rest on, where its file states one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumption: Option<String>,
}

/// Values by metric key. Metrics that are undefined on some run are left out.
pub type Estimates = BTreeMap<String, Estimate>;

/// One policy of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicySummary {
    /// Name of the policy.
    pub name: String,
    /// Information level of the policy.
    pub information: String,
    /// Choice of the batch sizes of jobs.
    pub batching: Batching,
    /// Mean over workloads of the mean over seeds; intervals from the bootstrap over
    /// seeds.
    pub metrics: Estimates,
    /// Means and intervals on each workload.
    pub by_workload: BTreeMap<String, Estimates>,
    /// Against the reference; `None` for the reference itself.
    pub versus_reference: Option<Versus>,
}

/// A policy against the reference, on the same seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Versus {
    /// Whether both had the same information level; a difference between unequals is no verdict on
    /// their skill.
    pub same_information: bool,
    /// Mean paired difference, policy minus reference, in the unit of the metric.
    pub difference: Estimates,
    /// Ratio of the means, policy over reference.
    pub ratio: Estimates,
    /// On the headline metric.
    pub headline: Option<Headline>,
    /// On each workload, where there are several.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_workload: BTreeMap<String, OnWorkload>,
}

/// A policy against the reference on the seeds of one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnWorkload {
    /// Mean paired difference, policy minus reference, in the unit of the metric.
    pub difference: Estimates,
    /// Ratio of the means, policy over reference.
    pub ratio: Estimates,
}

/// Robust comparison on mean JCT. The score of a run is the reference's mean JCT over the policy's
/// on the same seed: above 1 is better than the reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Headline {
    /// Interquartile mean of the score.
    pub score_iqm: Estimate,
    /// Probability that a run of the policy has a lower mean JCT than a run of the reference on the
    /// same workload.
    pub probability_of_improvement: Estimate,
    /// Share of seeds where the policy has the lower mean JCT.
    pub win_rate: f64,
    /// Two-sided Wilcoxon signed-rank test of the differences of seeds, each the mean over workloads; `None` where all
    /// are zero.
    pub wilcoxon_p: Option<f64>,
    /// Wilcoxon p-value after Holm's correction for the number of policies compared.
    pub wilcoxon_p_holm: Option<f64>,
}

impl Summary {
    /// Summarises runs by their heads, in the order of the layout.
    pub(crate) fn new(layout: &RunLayout, heads: &[RunHead], statistics: Statistics) -> Self {
        let RunLayout { policies, workloads, reference: base, .. } = layout;
        let base = *base;
        let tables = Tables::new(layout, heads);
        let seeds = tables.seeds;
        let boot = Bootstrap::of_seeds(seeds, statistics.resamples, statistics.coverage(), statistics.seed);
        let head = |policy: usize| &heads[layout.runs_of(policy).start];

        let mut summaries: Vec<PolicySummary> = policies
            .iter()
            .enumerate()
            .map(|(policy, name)| PolicySummary {
                name: name.clone(),
                information: head(policy).information.clone(),
                batching: head(policy).batching,
                metrics: tables.estimates(policy, &boot),
                by_workload: tables.by_workload(policy, workloads, &boot),
                versus_reference: (policy != base).then(|| Versus {
                    same_information: head(policy).information == head(base).information,
                    difference: tables.paired(policy, base, |x, y| difference(&boot, x, y)),
                    ratio: tables.paired(policy, base, |x, y| ratio_of_means(&boot, x, y)),
                    headline: tables.headline(policy, base, &boot, statistics.seed),
                    by_workload: tables.versus_by_workload(policy, base, workloads, &boot),
                }),
            })
            .collect();
        correct_for_many(&mut summaries);
        Self {
            version: 1,
            statistics: statistics.on_seeds(seeds),
            reference: policies[base].clone(),
            workloads: workload_summaries(layout, heads),
            policies: summaries,
        }
    }

    /// As JSON, with a final newline.
    pub fn to_json(&self) -> String {
        // Every number in here is finite or absent, and keys are strings.
        let mut json = serde_json::to_string_pretty(self).expect("a summary is always representable as JSON");
        json.push('\n');
        json
    }

    /// The policy called `name`.
    pub fn policy(&self, name: &str) -> Option<&PolicySummary> {
        self.policies.iter().find(|policy| policy.name == name)
    }

    /// Number of runs of each policy: workloads times seeds.
    pub fn runs_per_policy(&self) -> usize {
        self.workloads.iter().map(|workload| workload.seeds.len()).sum()
    }
}

fn workload_summaries(layout: &RunLayout, heads: &[RunHead]) -> Vec<WorkloadSummary> {
    let of = |(index, name): (usize, &String)| {
        let mine = || layout.scenarios.iter().zip(heads).filter(move |(scenario, _)| scenario.workload == index);
        let first = mine().next().map(|(_, head)| head);
        WorkloadSummary {
            name: name.clone(),
            cluster_gpus: first.map_or(0, |head| head.cluster_gpus),
            cluster_nodes: first.map_or(0, |head| head.cluster_nodes),
            jobs: mine().map(|(_, head)| head.jobs).collect(),
            seeds: mine().map(|(scenario, _)| scenario.seed).collect(),
            assumption: None,
        }
    };
    layout.workloads.iter().enumerate().map(of).collect()
}

fn correct_for_many(policies: &mut [PolicySummary]) {
    let mut headlines: Vec<&mut Headline> = policies
        .iter_mut()
        .filter_map(|policy| policy.versus_reference.as_mut()?.headline.as_mut())
        .filter(|headline| headline.wilcoxon_p.is_some())
        .collect();
    let raw: Vec<f64> = headlines.iter().filter_map(|headline| headline.wilcoxon_p).collect();
    for (headline, corrected) in headlines.iter_mut().zip(holm(&raw)) {
        headline.wilcoxon_p_holm = Some(corrected);
    }
}

/// Scores of runs on the headline metric, reference over policy, of shape seeds x workloads; one for each of
/// `policies`, `None` where the metric is undefined.
pub(crate) fn scores(layout: &RunLayout, heads: &[RunHead], policies: &[usize]) -> Vec<Option<Array2<f64>>> {
    let tables = Tables::new(layout, heads);
    policies.iter().map(|policy| tables.scores(*policy, layout.reference)).collect()
}

/// Shares of runs with a score above each threshold, by policy; `None` where the headline metric is
/// undefined.
pub(crate) fn profiles(summary: &Summary, scores: &Array2<f64>, thresholds: &[f64]) -> Vec<Estimate> {
    let Statistics { resamples, seed, .. } = summary.statistics;
    let coverage = summary.statistics.coverage();
    let boot = Bootstrap::of_seeds(scores.nrows(), resamples.min(2_000), coverage, seed);
    performance_profile(&boot, scores.view(), thresholds)
}

/// Matrices of shape seeds x workloads by policy and metric; `None` where a run has no value.
struct Tables {
    seeds: usize,
    matrices: Vec<Vec<Option<Array2<f64>>>>,
}

impl Tables {
    fn new(layout: &RunLayout, heads: &[RunHead]) -> Self {
        let of = |policy: usize| {
            let runs = &heads[layout.runs_of(policy)];
            METRICS.iter().map(|metric| matrix(layout, runs, metric.key)).collect()
        };
        let seeds = layout.scenarios.len() / layout.workloads.len();
        Self { seeds, matrices: (0..layout.policies.len()).map(of).collect() }
    }

    fn matrix(&self, policy: usize, key: &str) -> Option<ArrayView2<'_, f64>> {
        let index = METRICS.iter().position(|metric| metric.key == key)?;
        self.matrices[policy][index].as_ref().map(|matrix| matrix.view())
    }

    fn estimates(&self, policy: usize, bootstrap: &Bootstrap) -> Estimates {
        self.each(policy, |matrix| mean_estimate(bootstrap, matrix))
    }

    fn by_workload(&self, policy: usize, names: &[String], bootstrap: &Bootstrap) -> BTreeMap<String, Estimates> {
        let of = |task: usize| {
            self.each(policy, |all| mean_estimate(bootstrap, all.slice_axis(Axis(1), (task..=task).into())))
        };
        names.iter().enumerate().map(|(task, name)| (name.clone(), of(task))).collect()
    }

    fn versus_by_workload(
        &self,
        policy: usize,
        base: usize,
        names: &[String],
        bootstrap: &Bootstrap,
    ) -> BTreeMap<String, OnWorkload> {
        let on = |task: usize, of: fn(&Bootstrap, ArrayView2<'_, f64>, ArrayView2<'_, f64>) -> Estimate| {
            let column = (task..=task).into();
            self.paired(policy, base, |x, y| {
                of(bootstrap, x.slice_axis(Axis(1), column), y.slice_axis(Axis(1), column))
            })
        };
        let versus = |task| OnWorkload { difference: on(task, difference), ratio: on(task, ratio_of_means) };
        let several = names.iter().enumerate().filter(|_| names.len() > 1);
        several.map(|(task, name)| (name.clone(), versus(task))).collect()
    }

    fn each(&self, policy: usize, of: impl Fn(ArrayView2<'_, f64>) -> Estimate) -> Estimates {
        let matrices = METRICS.iter().zip(&self.matrices[policy]);
        matrices.filter_map(|(metric, matrix)| Some((metric.key.into(), of(matrix.as_ref()?.view())))).collect()
    }

    /// `of(policy, base)` for each metric where both are defined and the result is a number.
    fn paired(
        &self,
        policy: usize,
        base: usize,
        of: impl Fn(ArrayView2<'_, f64>, ArrayView2<'_, f64>) -> Estimate,
    ) -> Estimates {
        let pair = |key: &str| Some(of(self.matrix(policy, key)?, self.matrix(base, key)?));
        let estimates = METRICS.iter().filter_map(|metric| Some((metric.key.to_owned(), pair(metric.key)?)));
        estimates.filter(|(_, estimate)| estimate.value.is_finite()).collect()
    }

    fn scores(&self, policy: usize, base: usize) -> Option<Array2<f64>> {
        let (mine, reference) = (self.matrix(policy, HEADLINE)?, self.matrix(base, HEADLINE)?);
        Some(&reference / &mine).filter(|scores| scores.iter().all(|score| score.is_finite()))
    }

    fn headline(&self, policy: usize, base: usize, bootstrap: &Bootstrap, seed: u64) -> Option<Headline> {
        let (mine, reference) = (self.matrix(policy, HEADLINE)?, self.matrix(base, HEADLINE)?);
        let scores = self.scores(policy, base)?;
        let other = bootstrap.independent(seed);
        // Lower is better, so the scores that are to be high are the negated times.
        let (up, down) = (mine.mapv(|secs| -secs), reference.mapv(|secs| -secs));
        // One difference a seed: the workloads of a seed are not independent.
        let by_seed = mine.outer_iter().zip(reference.outer_iter());
        let differences: Vec<f64> = by_seed.map(|(x, y)| (x.sum() - y.sum()) / x.len() as f64).collect();
        Some(Headline {
            score_iqm: bootstrap
                .estimate(interquartile_mean(scores.view()), |draw| interquartile_mean(draw.of(scores.view()).view())),
            probability_of_improvement: probability_of_improvement(bootstrap, &other, up.view(), down.view()),
            win_rate: win_rate(up.view(), down.view()),
            wilcoxon_p: wilcoxon(&differences, Tail::TwoSided).ok(),
            wilcoxon_p_holm: None,
        })
    }
}

fn mean_estimate(bootstrap: &Bootstrap, scores: ArrayView2<'_, f64>) -> Estimate {
    bootstrap.estimate(mean_of_tasks(scores), |draw| mean_of_tasks(draw.of(scores).view()))
}

/// One policy's values of a metric; rows are the repetitions of each workload in the order they
/// were given.
fn matrix(layout: &RunLayout, runs: &[RunHead], key: &str) -> Option<Array2<f64>> {
    debug_assert!(metric(key).is_some());
    let workloads = layout.workloads.len();
    let mut filled = vec![0; workloads];
    let mut values = Array2::zeros((runs.len() / workloads, workloads));
    for (scenario, run) in layout.scenarios.iter().zip(runs) {
        let row = &mut filled[scenario.workload];
        values[[*row, scenario.workload]] = run.measures.get(key)?;
        *row += 1;
    }
    Some(values)
}
