//! Training throughput that a policy gives up for the first tokens of language models.
//!
//! A policy that keeps more servers at home answers more requests in time, and trains less. Beside a reference, each
//! policy gives up some training and gains some attainment of the objective of the time to the first token (TTFT). The
//! price of a point of attainment is the one over the other, over all seeds.

use ndarray::Array2;

use crate::report::results::ComparisonResults;
use crate::run::{RunHead, RunLayout};
use crate::stats::{Bootstrap, Estimate, Resample};

/// Smallest gain that has a price, points of 100: a price of less is a ratio of two roundings.
const LEAST_GAIN: f64 = 0.05;

/// Training and attainment of a policy on a workload, beside those of the reference.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenPrice {
    /// Name of the workload.
    pub workload: String,
    /// Name of the policy.
    pub policy: String,
    /// Training throughput: accelerators that would do the completed work without any loss.
    pub training_gpus: f64,
    /// Share of requests with the first token within its objective.
    pub ttft: f64,
    /// Share of requests with further tokens within their objective.
    pub tpot: f64,
    /// Training throughput of the reference less that of the policy, accelerators.
    pub given_up_gpus: Estimate,
    /// Attainment of the policy less that of the reference, points of 100.
    pub gained_points: Estimate,
    /// Accelerators given up for a point gained; `None` for the reference, and where it is not sure that the policy
    /// gains anything, or the gain is below [`LEAST_GAIN`].
    pub gpus_per_point: Option<Estimate>,
}

/// Prices of all policies on all workloads that have language models among their services.
pub fn prices(results: &ComparisonResults) -> Vec<TokenPrice> {
    let ComparisonResults { layout, heads, summary, .. } = results;
    let statistics = &summary.statistics;
    let mut prices = Vec::new();
    for (at, workload) in layout.workloads.iter().enumerate() {
        let of = |policy: usize| PolicyRuns::of(layout, heads, at, policy);
        let Some(reference) = of(layout.reference) else { continue };
        let seeds = reference.training.len();
        let draws = Bootstrap::of_seeds(seeds, statistics.resamples, statistics.coverage(), statistics.seed);
        for (policy, name) in layout.policies.iter().enumerate() {
            let Some(runs) = of(policy) else { continue };
            let given_up = less(&reference.training, &runs.training);
            let gained = less(&runs.ttft, &reference.ttft).mapv(|share| 100.0 * share);
            let estimate = |of: &Array2<f64>| draws.estimate(mean(of), |draw: Resample<'_>| mean(&draw.of(of.view())));
            let gained_points = estimate(&gained);
            let ratio = |draw: Resample<'_>| mean(&draw.of(given_up.view())) / mean(&draw.of(gained.view()));
            let is_sure = policy != layout.reference
                && gained_points.ci.is_some_and(|ci| ci.low > 0.0)
                && gained_points.value >= LEAST_GAIN;
            prices.push(TokenPrice {
                workload: workload.clone(),
                policy: name.clone(),
                training_gpus: mean(&runs.training),
                ttft: mean(&runs.ttft),
                tpot: mean(&runs.tpot),
                given_up_gpus: estimate(&given_up),
                gpus_per_point: is_sure.then(|| draws.estimate(mean(&given_up) / mean(&gained), ratio)),
                gained_points,
            });
        }
    }
    prices
}

/// Runs of one policy on one workload, a row for each seed.
struct PolicyRuns {
    training: Array2<f64>,
    ttft: Array2<f64>,
    tpot: Array2<f64>,
}

impl PolicyRuns {
    /// Runs of a policy; `None` where one of them has no language model, or no measure of its training.
    fn of(layout: &RunLayout, heads: &[RunHead], workload: usize, policy: usize) -> Option<Self> {
        let runs: Vec<&RunHead> = (0..heads.len())
            .filter(|&index| {
                let (of, scenario) = layout.run(index);
                of == policy && scenario.workload == workload
            })
            .map(|index| &heads[index])
            .collect();
        let column = |of: &dyn Fn(&RunHead) -> Option<f64>| -> Option<Array2<f64>> {
            let values = runs.iter().map(|head| of(head)).collect::<Option<Vec<f64>>>()?;
            Array2::from_shape_vec((values.len(), 1), values).ok()
        };
        Some(Self {
            training: column(&|head| Some(head.measures.get("goodput")? * f64::from(head.cluster_gpus)))?,
            ttft: column(&|head| head.measures.get("ttft_attainment"))?,
            tpot: column(&|head| head.measures.get("tpot_attainment"))?,
        })
    }
}

fn less(one: &Array2<f64>, other: &Array2<f64>) -> Array2<f64> {
    one - other
}

fn mean(values: &Array2<f64>) -> f64 {
    values.mean().unwrap_or(0.0)
}
