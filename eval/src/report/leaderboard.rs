//! Leaderboard: the policies of a comparison as a Markdown table, best mean completion time first.

use super::format::{NumberFormat, change};
use crate::metrics::{HEADLINE, MetricUnit, metric};
use crate::run::summary::{PolicySummary, Summary};
use crate::stats::Estimate;

/// Policies in order of the headline metric, best first; those without a value last.
pub fn ranking(summary: &Summary) -> Vec<&PolicySummary> {
    let mean = |policy: &PolicySummary| policy.metrics.get(HEADLINE).map_or(f64::INFINITY, |estimate| estimate.value);
    let mut ranked: Vec<&PolicySummary> = summary.policies.iter().collect();
    ranked.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
    ranked
}

/// The metrics of the leaderboard and of the report's first table.
pub const COLUMNS: [&str; 7] =
    [HEADLINE, "jct_p50_secs", "jct_p99_secs", "makespan_secs", "utilization", "goodput", "restarts_mean"];

/// Metrics of cost, where any policy of the comparison ran on rented nodes; none elsewhere.
pub fn costs(summary: &Summary) -> &'static [&'static str] {
    let rents = summary.policies.iter().any(|policy| policy.metrics.contains_key("cost"));
    if rents { &["cost", "cost_per_job", "node_hours"] } else { &[] }
}

/// Metrics of deadlines, where any job of the comparison has one; none elsewhere.
pub fn deadlines(summary: &Summary) -> &'static [&'static str] {
    let any = summary.policies.iter().any(|policy| policy.metrics.contains_key(DEADLINES_MET));
    if any { &[DEADLINES_MET, "refused_jobs"] } else { &[] }
}

/// Share of the deadlines that a policy meets on the workload where it meets fewest; `None` without deadlines and
/// on one workload.
pub fn worst_deadlines_met(policy: &PolicySummary) -> Option<f64> {
    let met = policy.by_workload.values().filter_map(|metrics| metrics.get(DEADLINES_MET));
    met.map(|estimate| estimate.value).min_by(f64::total_cmp).filter(|_| policy.by_workload.len() > 1)
}

const DEADLINES_MET: &str = "deadlines_met";

/// The metrics of the leaderboard and of the report's first table, with those of cost and of deadlines.
pub fn columns(summary: &Summary) -> Vec<&'static str> {
    [&COLUMNS[..], costs(summary), deadlines(summary)].concat()
}

/// The unit in which a metric of all policies reads best.
pub(crate) fn shown(summary: &Summary, key: &str) -> NumberFormat {
    NumberFormat::new(unit(key), values(summary, key))
}

/// The unit of a metric in tables that stand beside the figures of a terminal.
fn written(summary: &Summary, key: &str) -> NumberFormat {
    NumberFormat::as_written(unit(key), values(summary, key))
}

fn unit(key: &str) -> MetricUnit {
    metric(key).map_or(MetricUnit::Ratio, |metric| metric.unit)
}

fn values(summary: &Summary, key: &str) -> impl Iterator<Item = f64> + Clone {
    summary.policies.iter().filter_map(move |policy| policy.metrics.get(key)).map(|estimate| estimate.value)
}

/// The comparison as a Markdown table, best mean JCT first, with the information level of each
/// policy. Times are in seconds, and in hours from a million of seconds on.
pub fn leaderboard(summary: &Summary) -> String {
    leaderboard_of(summary, &columns(summary))
}

/// The leaderboard with a column for each key of a metric. The change against the reference stands
/// beside the headline metric, where the table has that metric.
pub fn leaderboard_of(summary: &Summary, columns: &[&str]) -> String {
    let against = columns.iter().position(|key| *key == HEADLINE).map(|at| at + 3);
    let mut head = vec!["policy".to_owned(), "information".to_owned()];
    for key in columns {
        let (name, unit) = (metric(key).map_or(*key, |metric| metric.name), written(summary, key).unit);
        head.push(if unit.is_empty() { name.into() } else { format!("{name}, {unit}") });
    }
    if let Some(at) = against {
        head.insert(at, format!("against {}, %", summary.reference));
    }
    let rows = ranking(summary).into_iter().map(|policy| {
        let mut row = vec![policy.name.clone(), policy.information.clone()];
        row.extend(columns.iter().map(|key| cell(summary, policy, key)));
        if let Some(at) = against {
            row.insert(at, against_cell(policy));
        }
        row
    });
    markdown(&head, &rows.collect::<Vec<_>>())
}

fn cell(summary: &Summary, policy: &PolicySummary, key: &str) -> String {
    let Some(estimate) = policy.metrics.get(key) else { return "–".into() };
    let shown = written(summary, key);
    match (key == HEADLINE, estimate.ci) {
        (true, Some(_)) => format!("{} [{}]", shown.number(estimate.value), shown.interval(estimate)),
        _ => shown.number(estimate.value),
    }
}

fn against_cell(policy: &PolicySummary) -> String {
    let Some(versus) = &policy.versus_reference else { return "–".into() };
    let unequal = if versus.same_information { "" } else { " *" };
    versus.ratio.get(HEADLINE).map_or_else(|| "–".into(), |ratio| format!("{}{unequal}", change_with_interval(ratio)))
}

fn change_with_interval(ratio: &Estimate) -> String {
    match ratio.ci {
        Some(ci) => format!("{} [{}, {}]", change(ratio.value), change(ci.low), change(ci.high)),
        None => change(ratio.value),
    }
}

/// Pads columns so that the source reads as well as the rendering; the first two are text, the rest
/// numbers.
fn markdown(head: &[String], rows: &[Vec<String>]) -> String {
    let width =
        |column: usize| rows.iter().chain([&head.to_vec()]).map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |row: &[String]| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (text, &width))| match column {
            0 | 1 => format!("{text:<width$}"),
            _ => format!("{text:>width$}"),
        });
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    let rule = widths.iter().enumerate().map(|(column, &width)| match column {
        0 | 1 => "-".repeat(width),
        _ => format!("{}:", "-".repeat(width.saturating_sub(1))),
    });
    let rule = format!("| {} |\n", rule.collect::<Vec<_>>().join(" | "));
    let body: String = rows.iter().map(|row| line(row)).collect();
    format!("{}{rule}{body}", line(head))
}
