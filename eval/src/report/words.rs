//! Sentences of the page.

use crate::metrics::HEADLINE;
use crate::report::format::significant;
use crate::report::leaderboard::{ranking, shown};
use crate::run::summary::{ENOUGH_SEEDS, PolicySummary, Summary};

/// Number of seeds of each workload.
pub(super) fn seeds(summary: &Summary) -> usize {
    summary.workloads.first().map_or(0, |workload| workload.seeds.len())
}

/// Whether the seeds are too few to speak of confidence.
pub fn few_seeds(summary: &Summary) -> bool {
    seeds(summary) < ENOUGH_SEEDS
}

/// Name of the intervals of this comparison, in the plural: intervals of a confidence, or ranges.
pub fn interval_name(summary: &Summary) -> String {
    match few_seeds(summary) {
        true => format!("bootstrap ranges over {} seeds", seeds(summary)),
        false => format!("{} % intervals", summary.statistics.coverage() * 100.0),
    }
}

/// Note below the first table about its small figures.
pub(super) fn interval_note(summary: &Summary) -> String {
    let resamples = summary.statistics.resamples;
    let how = format!(
        "bootstrap over seeds, {resamples} resamples; the workloads of a seed are drawn together, and differences are paired by seed."
    );
    match (seeds(summary), few_seeds(summary)) {
        (0 | 1, _) => "One seed: no intervals. Run more seeds before believing a difference.".into(),
        (_, false) => format!("Small figures are {}: {how}", interval_name(summary)),
        (seeds, true) => format!(
            "Small figures are {}: {how} With {seeds} seeds they show the spread, not a confidence; run {ENOUGH_SEEDS} \
             or more.",
            interval_name(summary)
        ),
    }
}

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
        return match ranked.as_slice() {
            [first, next, ..] if first.name == policy.name => match beside_the_best(summary, next) {
                Some(next) => format!("{start}; {next}."),
                None => format!("{start}; no other policy here is faster on average."),
            },
            _ => format!("{start}."),
        };
    };
    let percent = |ratio: f64| significant((ratio - 1.0).abs() * 100.0);
    let side = if ratio.value < 1.0 { "less" } else { "more" };
    let against = format!("{} % {side} than under {}", percent(ratio.value), summary.reference);
    match ratio.ci {
        None => format!("{start}, {against}; a single seed does not say how sure that is."),
        Some(_) if ratio.excludes(1.0) && !few_seeds(summary) && doubtful(summary, policy).is_some() => {
            let p = significant(doubtful(summary, policy).unwrap_or(1.0));
            format!("{start}, {against}, but corrected for the number of policies the test leaves it open (p = {p}).")
        }
        Some(ci) if ratio.excludes(1.0) => {
            let (near, far) = if ratio.value < 1.0 { (ci.high, ci.low) } else { (ci.low, ci.high) };
            let (near, far) = (percent(near), percent(far));
            if few_seeds(summary) {
                let seeds = seeds(summary);
                return format!(
                    "{start}, {against} (range {near} to {far} % over {seeds} seeds, which are too few to say how sure that is)."
                );
            }
            let confidence = summary.statistics.coverage() * 100.0;
            format!("{start}, {against} ({confidence} % interval {near} to {far} %, {runs} paired runs).")
        }
        Some(_) => format!("{start}, {against}, but {runs} paired runs cannot tell the two apart."),
    }
}

/// Words on the next best policy beside the reference, which is the best; `None` where the seeds are too few, or where
/// the corrected test leaves the difference open.
fn beside_the_best(summary: &Summary, next: &PolicySummary) -> Option<String> {
    let ratio = next.versus_reference.as_ref()?.ratio.get(HEADLINE)?;
    let ci = ratio.ci.filter(|ci| ci.low > 1.0 && !few_seeds(summary) && doubtful(summary, next).is_none())?;
    let percent = |ratio: f64| significant((ratio - 1.0) * 100.0);
    let confidence = summary.statistics.coverage() * 100.0;
    Some(format!(
        "under {}, the next best, it takes {} % longer ({confidence} % interval {} to {} %)",
        next.name,
        percent(ratio.value),
        percent(ci.low),
        percent(ci.high)
    ))
}

/// p-value of the policy's difference, where the corrected test does not establish the difference.
fn doubtful(summary: &Summary, policy: &PolicySummary) -> Option<f64> {
    let headline = policy.versus_reference.as_ref()?.headline.as_ref()?;
    headline.wilcoxon_p_holm.filter(|&p| p > 1.0 - summary.statistics.coverage())
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
        plural(seeds(summary), "seed each", "seeds each"),
        format!("{} per policy", plural(jobs, "job", "jobs")),
        format!("{} GPUs", gpus.iter().map(u32::to_string).collect::<Vec<_>>().join(" / ")),
    ]
}

/// Assumptions that the results rest on, by workload where there are several.
pub(super) fn assumptions(summary: &Summary) -> Vec<String> {
    let named = summary.workloads.iter().filter_map(|workload| Some((&workload.name, workload.assumption.as_ref()?)));
    let several = summary.workloads.len() > 1;
    let text = |(name, text): (&String, &String)| if several { format!("{name}: {text}") } else { text.clone() };
    named.map(text).collect()
}

/// Names of policies that knew more or less than the reference.
pub(super) fn unequal_information(summary: &Summary) -> Vec<String> {
    let unequal =
        |policy: &&PolicySummary| policy.versus_reference.as_ref().is_some_and(|versus| !versus.same_information);
    summary.policies.iter().filter(unequal).map(|policy| policy.name.clone()).collect()
}

/// Policies under which jobs of a kind have no completion time, and how many per run: `metric` counts them.
pub(super) fn policies_with(summary: &Summary, metric: &str) -> Vec<String> {
    let count = |policy: &PolicySummary| policy.metrics.get(metric).map_or(0.0, |estimate| estimate.value);
    let some = summary.policies.iter().filter(|policy| count(policy) > 0.0);
    some.map(|policy| format!("{} ({} per run)", policy.name, significant(count(policy)))).collect()
}

/// The text with its percent signs tied to their numbers, so that no line breaks between them.
pub(super) fn tied(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}
