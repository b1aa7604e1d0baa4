//! Data of a comparison that the page's script reads: values of every run, and what its charts draw.

use serde::Serialize;

use super::color_of;
use super::format::NumberFormat;
use super::node_chart::{CHART_MOST_BYTES, NodeChart};
use super::plots::Ink;
use super::results::ComparisonResults;
use crate::metrics::{Better, METRICS, Metric};
use crate::report::leaderboard::ranking;
use crate::run::RunHead;

/// Numbers that the page holds at most for each of the two large parts: values of runs and quantiles of runs.
const MOST_NUMBERS: usize = 40_000;
/// Spans of time of the chart of held accelerators.
const SPANS: usize = 600;

/// All data of a page.
#[derive(Serialize)]
pub(super) struct PageData<'a> {
    policies: Vec<PagePolicy<'a>>,
    reference: usize,
    metrics: Vec<PageMetric>,
    workloads: &'a [String],
    /// Workload and seed of each scenario.
    scenarios: Vec<(usize, u64)>,
    /// Values of runs by metric, policy and scenario.
    values: Vec<Vec<Vec<Option<f64>>>>,
    completion: Vec<Vec<CompletionOfRun>>,
    held: Option<HeldShares>,
    /// Chart of the nodes under each policy.
    nodes: Vec<Option<&'a NodeChart>>,
    /// Names of policies with a chart that the page has no room for.
    crowded_out: Vec<&'a str>,
}

#[derive(Serialize)]
struct PagePolicy<'a> {
    name: &'a str,
    color: String,
    focus: bool,
}

#[derive(Serialize)]
struct PageMetric {
    key: &'static str,
    name: &'static str,
    about: &'static str,
    unit: &'static str,
    /// Size of the unit: a value is divided by it.
    per: f64,
    /// Whether larger is better.
    higher: bool,
}

/// Completion times of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CompletionOfRun {
    /// Number of jobs that completed.
    jobs: usize,
    /// Quantiles from 0 to 1 in equal steps, seconds.
    secs: Vec<f64>,
}

/// Steps between the quantiles of a run.
const STEPS: usize = 50;

impl CompletionOfRun {
    /// Quantiles of completion times in any order, seconds.
    pub fn of(mut secs: Vec<f64>) -> Self {
        secs.sort_by(f64::total_cmp);
        let last = secs.len().saturating_sub(1);
        let at = |step: usize| secs.get((step * last).div_ceil(STEPS)).map(|&secs| short(secs));
        Self { jobs: secs.len(), secs: (0..=STEPS).filter_map(at).collect() }
    }
}

/// Share of accelerators that jobs hold on the first scenario, in equal spans of time.
#[derive(Serialize)]
struct HeldShares {
    until_secs: f64,
    /// Thousandths, by policy.
    shares: Vec<Vec<u16>>,
}

impl<'a> PageData<'a> {
    pub fn of(results: &'a ComparisonResults, focus: Option<&str>) -> Self {
        let layout = &results.layout;
        let policy = |(index, name): (usize, &'a String)| PagePolicy {
            name,
            color: Ink::Series(index).variable(),
            focus: Some(name.as_str()) == focus,
        };
        let defined = |metric: &&Metric| results.heads.iter().any(|head| head.measures.get(metric.key).is_some());
        let most_metrics = MOST_NUMBERS / layout.runs().max(1);
        let metrics: Vec<&Metric> = METRICS.iter().filter(defined).take(most_metrics.max(1)).collect();
        let (nodes, crowded_out) = charts(results, focus);
        let small = layout.runs() * STEPS <= MOST_NUMBERS;
        let completion = (0..layout.policies.len()).filter(|_| small);
        Self {
            policies: layout.policies.iter().enumerate().map(policy).collect(),
            reference: layout.reference,
            metrics: metrics.iter().map(|metric| PageMetric::of(metric, &results.heads)).collect(),
            workloads: &layout.workloads,
            scenarios: layout.scenarios.iter().map(|scenario| (scenario.workload, scenario.seed)).collect(),
            values: metrics.iter().map(|metric| values(results, metric)).collect(),
            completion: completion.map(|policy| results.completion_of_runs[layout.runs_of(policy)].to_vec()).collect(),
            held: held(results),
            nodes,
            crowded_out,
        }
    }

    /// The data as JSON that may stand inside a script element.
    pub fn to_json(&self) -> String {
        // Keys are texts and numbers are finite or absent, so serde_json has no reason to fail.
        serde_json::to_string(self).unwrap_or_default().replace('<', "\\u003c")
    }
}

impl PageMetric {
    fn of(metric: &Metric, heads: &[RunHead]) -> Self {
        let format = NumberFormat::new(metric.unit, heads.iter().filter_map(|head| head.measures.get(metric.key)));
        let Metric { key, name, description: about, .. } = *metric;
        Self { key, name, about, unit: format.unit, per: format.per(), higher: metric.better == Better::Higher }
    }
}

/// Values of a metric by policy and scenario.
fn values(results: &ComparisonResults, metric: &Metric) -> Vec<Vec<Option<f64>>> {
    let layout = &results.layout;
    let of = |head: &RunHead| head.measures.get(metric.key).filter(|value| value.is_finite()).map(short);
    (0..layout.policies.len()).map(|policy| results.heads[layout.runs_of(policy)].iter().map(of).collect()).collect()
}

fn held(results: &ComparisonResults) -> Option<HeldShares> {
    let until = results.pictures.iter().map(|picture| picture.end).max()?;
    let shares = results.pictures.iter().map(|picture| {
        let capacity = f64::from(picture.capacity_gpus.max(1));
        let mean = picture.held.mean_gpus(picture.end, until, SPANS);
        mean.into_iter().map(|gpus| (gpus / capacity * 1000.0).round() as u16).collect()
    });
    Some(HeldShares { until_secs: until.as_secs_f64(), shares: shares.collect() })
}

/// Charts of nodes that the page has room for: that of the policy in focus, of the reference, and of others, the best
/// first. Then the names of policies with a chart that finds no room.
fn charts<'a>(results: &'a ComparisonResults, focus: Option<&str>) -> (Vec<Option<&'a NodeChart>>, Vec<&'a str>) {
    let layout = &results.layout;
    let ranked = ranking(&results.summary);
    let place = |name: &str| (Some(name) != focus, name != layout.policies[layout.reference]);
    let mut order: Vec<usize> = ranked.iter().map(|policy| color_of(results, &policy.name)).collect();
    order.sort_by_key(|&policy| place(&layout.policies[policy]));
    let (mut room, mut shown, mut crowded_out) = (CHART_MOST_BYTES, vec![None; order.len()], Vec::new());
    for policy in order {
        let Some(chart) = results.pictures.get(policy).and_then(|picture| picture.nodes.as_ref()) else { continue };
        match room.checked_sub(chart.packed.len()) {
            Some(rest) => (room, shown[policy]) = (rest, Some(chart)),
            None => crowded_out.push(layout.policies[policy].as_str()),
        }
    }
    (shown, crowded_out)
}

/// Five significant digits: what a chart can show.
fn short(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}
