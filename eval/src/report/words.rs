//! Sentences of the page.

use crate::metrics::HEADLINE;
use crate::report::format::significant;
use crate::report::leaderboard::{ranking, shown};
use crate::run::summary::{PolicySummary, Summary};

/// One sentence that says how the policy in focus, or else the best, fares.
pub(super) fn verdict(summary: &Summary, focus: Option<&str>) -> String {
    let ranked = ranking(summary);
    let chosen = focus.and_then(|name| summary.policy(name)).or_else(|| ranked.first().copied());
    let Some((policy, mean)) = chosen.and_then(|policy| Some((policy, policy.metrics.get(HEADLINE)?))) else {
        return "No run completed a job.".into();
    };
    let shown = shown(summary, HEADLINE);
    let runs = summary.runs_per_policy();
    let start = format!("Under {} a job takes {} {} on average", policy.name, shown.number(mean.value), shown.unit);
    let Some(ratio) = policy.versus_reference.as_ref().and_then(|versus| versus.ratio.get(HEADLINE)) else {
        return match ranked.first() {
            Some(first) if first.name == policy.name && summary.policies.len() > 1 => {
                format!("{start}; nothing compared here is faster.")
            }
            _ => format!("{start}."),
        };
    };
    let percent = |ratio: f64| significant((ratio - 1.0).abs() * 100.0);
    let side = if ratio.value < 1.0 { "less" } else { "more" };
    let against = format!("{} % {side} than under {}", percent(ratio.value), summary.reference);
    match ratio.ci {
        None => format!("{start}, {against}; a single seed does not say how sure that is."),
        Some(ci) if ratio.excludes(1.0) => {
            let (near, far) = if ratio.value < 1.0 { (ci.high, ci.low) } else { (ci.low, ci.high) };
            let confidence = summary.statistics.confidence * 100.0;
            format!(
                "{start}, {against} ({confidence} % interval {} to {} %, {runs} paired runs).",
                percent(near),
                percent(far)
            )
        }
        Some(_) => format!("{start}, {against}, but {runs} paired runs cannot tell the two apart."),
    }
}

/// The size of the comparison, in a line.
pub(super) fn facts(summary: &Summary) -> Vec<String> {
    let plural = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let mut gpus: Vec<u32> = summary.workloads.iter().map(|workload| workload.cluster_gpus).collect();
    gpus.sort_unstable();
    gpus.dedup();
    let jobs: usize = summary.workloads.iter().flat_map(|workload| &workload.jobs).sum();
    vec![
        plural(summary.policies.len(), "policy", "policies"),
        plural(summary.workloads.len(), "workload", "workloads"),
        plural(summary.workloads.first().map_or(0, |workload| workload.seeds.len()), "seed each", "seeds each"),
        format!("{jobs} jobs per policy"),
        format!("{} GPUs", gpus.iter().map(u32::to_string).collect::<Vec<_>>().join(" / ")),
    ]
}

/// Names of policies that knew more or less than the reference.
pub(super) fn unequal_information(summary: &Summary) -> Vec<String> {
    let unequal =
        |policy: &&PolicySummary| policy.versus_reference.as_ref().is_some_and(|versus| !versus.same_information);
    summary.policies.iter().filter(unequal).map(|policy| policy.name.clone()).collect()
}

/// Policies with jobs left over when runs were cut off, and how many per run.
pub(super) fn unfinished(summary: &Summary) -> Vec<String> {
    let left = |policy: &PolicySummary| policy.metrics.get("unfinished_jobs").map_or(0.0, |estimate| estimate.value);
    let some = summary.policies.iter().filter(|policy| left(policy) > 0.0);
    some.map(|policy| format!("{} ({} per run)", policy.name, significant(left(policy)))).collect()
}

/// The text with its percent signs tied to their numbers, so that no line breaks between them.
pub(super) fn tied(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}
