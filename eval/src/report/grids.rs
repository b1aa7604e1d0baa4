//! Tables of the page, as data for its template.

use serde::Serialize;

use super::color_of;
use super::results::ComparisonResults;
use crate::metrics::{Better, HEADLINE, METRICS, Metric, MetricUnit, metric};
use crate::report::format::{NumberFormat, change, significant};
use crate::report::leaderboard::{columns, ranking, shown};
use crate::report::plots::Ink;
use crate::run::summary::{PolicySummary, Summary};
use crate::stats::Estimate;

#[derive(Serialize)]
pub(super) struct Grid {
    head: Vec<GridHead>,
    rows: Vec<GridRow>,
}

#[derive(Serialize)]
struct GridHead {
    name: String,
    unit: String,
    about: String,
}

#[derive(Serialize)]
struct GridRow {
    name: String,
    information: String,
    color: String,
    focus: bool,
    cells: Vec<GridCell>,
}

#[derive(Default, Serialize)]
struct GridCell {
    value: String,
    /// Interval or spread of the value, in smaller type below the value.
    range: String,
    /// CSS class: `best`, `good`, `bad`, `quiet` or none.
    class: &'static str,
}

/// The table that most readers look at and leave.
pub(super) fn headline_table(results: &ComparisonResults, focus: Option<&str>) -> Grid {
    let summary = &results.summary;
    let columns = columns(summary);
    let mut heads: Vec<GridHead> = columns.iter().map(|key| head(summary, key)).collect();
    let about = "Ratio of the means, with the interval of the paired bootstrap".into();
    heads.insert(1, GridHead { name: format!("vs {}", summary.reference), unit: "%".into(), about });
    let rows = ranking(summary).into_iter().map(|policy| {
        let mut cells: Vec<GridCell> = columns.iter().map(|key| metric_cell(summary, policy, key)).collect();
        cells.insert(1, change_cell(policy));
        row(results, focus, policy, cells)
    });
    Grid { head: heads, rows: rows.collect() }
}

/// Mean JCT by workload; empty where there is one.
pub(super) fn by_workload(results: &ComparisonResults, focus: Option<&str>) -> Option<Grid> {
    let summary = &results.summary;
    if summary.workloads.len() < 2 {
        return None;
    }
    let estimate = |policy: &PolicySummary, name: &str| policy.by_workload.get(name)?.get(HEADLINE).copied();
    let unit = |name: &str| {
        let values = summary.policies.iter().filter_map(|policy| estimate(policy, name)).map(|estimate| estimate.value);
        NumberFormat::new(MetricUnit::Secs, values)
    };
    let head = summary.workloads.iter().map(|workload| {
        let about = format!("Mean JCT on {} seeds", workload.seeds.len());
        GridHead { name: workload.name.clone(), unit: unit(&workload.name).unit.into(), about }
    });
    let cell = |policy: &PolicySummary, name: &str| -> GridCell {
        let Some(found) = estimate(policy, name) else {
            return GridCell { value: "–".into(), ..GridCell::default() };
        };
        let shown = unit(name);
        let all = summary.policies.iter().filter_map(|policy| estimate(policy, name)).map(|estimate| estimate.value);
        let value = shown.number(found.value);
        let best = best(all, Better::Lower, shown).is_some_and(|best| best == value);
        GridCell { range: shown.interval(&found), value, class: if best { "best" } else { "" } }
    };
    let rows = ranking(summary).into_iter().map(|policy| {
        let cells = summary.workloads.iter().map(|workload| cell(policy, &workload.name));
        row(results, focus, policy, cells.collect())
    });
    Some(Grid { head: head.collect(), rows: rows.collect() })
}

/// Strength of the evidence against the reference.
pub(super) fn evidence(results: &ComparisonResults, focus: Option<&str>) -> Option<Grid> {
    let summary = &results.summary;
    let about = |name: &str, about: &str| GridHead { name: name.into(), unit: String::new(), about: about.into() };
    let head = vec![
        about(
            "score, IQM",
            "Interquartile mean of the reference's mean JCT over the policy's, per run; above 1 is better",
        ),
        about(
            "P(better)",
            "Probability that a run of the policy has a lower mean JCT than one of the reference (Mann-Whitney)",
        ),
        about("wins", "Share of seeds where the policy has the lower mean JCT"),
        about(
            "p, Holm",
            "Two-sided Wilcoxon signed-rank test of the paired differences, corrected for the number of policies",
        ),
    ];
    let cell = |value: String, range: String| GridCell { value, range, ..GridCell::default() };
    let ratio = |estimate: &Estimate| {
        let shown = NumberFormat::new(MetricUnit::Ratio, [1.0].into_iter());
        cell(shown.number(estimate.value), shown.interval(estimate))
    };
    let rows: Vec<GridRow> = ranking(summary)
        .into_iter()
        .filter_map(|policy| {
            let headline = policy.versus_reference.as_ref()?.headline.as_ref()?;
            let p = headline.wilcoxon_p_holm.map_or_else(|| "–".into(), p_value);
            let cells = vec![
                ratio(&headline.score_iqm),
                ratio(&headline.probability_of_improvement),
                cell(format!("{:.0} %", headline.win_rate * 100.0), String::new()),
                cell(p, String::new()),
            ];
            Some(row(results, focus, policy, cells))
        })
        .collect();
    (!rows.is_empty()).then_some(Grid { head, rows })
}

/// Every metric of every policy with its interval and its definition.
pub(super) fn details(results: &ComparisonResults) -> Vec<MetricDetail> {
    let summary = &results.summary;
    let of = |metric: &'static Metric| {
        let shown = shown(summary, metric.key);
        let values = ranking(summary).into_iter().map(|policy| {
            let estimate = policy.metrics.get(metric.key);
            DetailValue {
                name: policy.name.clone(),
                value: estimate.map_or_else(|| "–".into(), |estimate| shown.number(estimate.value)),
                range: estimate.map_or_else(String::new, |estimate| shown.interval(estimate)),
            }
        });
        MetricDetail {
            name: metric.name,
            key: metric.key,
            unit: shown.unit,
            better: match metric.better {
                Better::Lower => "lower is better",
                Better::Higher => "higher is better",
            },
            description: metric.description,
            values: values.collect(),
        }
    };
    let known =
        |metric: &&'static Metric| summary.policies.iter().any(|policy| policy.metrics.contains_key(metric.key));
    METRICS.iter().filter(known).map(of).collect()
}

#[derive(Serialize)]
pub(super) struct MetricDetail {
    name: &'static str,
    key: &'static str,
    unit: &'static str,
    better: &'static str,
    description: &'static str,
    values: Vec<DetailValue>,
}

#[derive(Serialize)]
struct DetailValue {
    name: String,
    value: String,
    range: String,
}

fn row(results: &ComparisonResults, focus: Option<&str>, policy: &PolicySummary, cells: Vec<GridCell>) -> GridRow {
    GridRow {
        name: policy.name.clone(),
        information: policy.information.clone(),
        color: Ink::Series(color_of(results, &policy.name)).variable(),
        focus: focus == Some(policy.name.as_str()),
        cells,
    }
}

fn head(summary: &Summary, key: &str) -> GridHead {
    let (name, about) = metric(key).map_or((key, ""), |metric| (metric.name, metric.description));
    GridHead { name: name.into(), unit: shown(summary, key).unit.into(), about: about.into() }
}

/// The best value of a metric, where policies differ in it as shown.
fn best(values: impl Iterator<Item = f64> + Clone, better: Better, shown: NumberFormat) -> Option<String> {
    let pick = match better {
        Better::Lower => f64::min,
        Better::Higher => f64::max,
    };
    let best = shown.number(values.clone().reduce(pick)?);
    values.map(|value| shown.number(value)).any(|text| text != best).then_some(best)
}

fn metric_cell(summary: &Summary, policy: &PolicySummary, key: &str) -> GridCell {
    let Some(estimate) = policy.metrics.get(key) else {
        return GridCell { value: "–".into(), ..GridCell::default() };
    };
    let shown = shown(summary, key);
    let values = summary.policies.iter().filter_map(|policy| policy.metrics.get(key)).map(|estimate| estimate.value);
    let value = shown.number(estimate.value);
    let best = metric(key).and_then(|metric| best(values, metric.better, shown)).is_some_and(|best| best == value);
    let range = if key == HEADLINE { shown.interval(estimate) } else { String::new() };
    GridCell { value, range, class: if best { "best" } else { "" } }
}

fn change_cell(policy: &PolicySummary) -> GridCell {
    let Some(versus) = &policy.versus_reference else {
        return GridCell { value: "reference".into(), class: "quiet", ..GridCell::default() };
    };
    let Some(ratio) = versus.ratio.get(HEADLINE) else {
        return GridCell { value: "–".into(), ..GridCell::default() };
    };
    let tone = match ratio.excludes(1.0) {
        true if ratio.value < 1.0 => "good",
        true => "bad",
        false => "",
    };
    let range = ratio.ci.map_or_else(String::new, |ci| format!("{} to {}", change(ci.low), change(ci.high)));
    GridCell { value: change(ratio.value), range, class: tone }
}

fn p_value(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".into() } else { significant(p) }
}
