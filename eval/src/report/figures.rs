//! Figures of the page with captions that say what to see.

use goodput_env::time::SimTime;
use serde::Serialize;

use super::picture::Picture;
use super::results::ComparisonResults;
use super::words::{few_seeds, interval_name, seeds, tied};
use super::{Report, color_of};
use crate::metrics::HEADLINE;
use crate::report::leaderboard::ranking;
use crate::report::plots::{
    CdfSeries, Figure, ForestRow, GANTT_MOST_JOBS, GanttFrame, PROFILE_MOST_BANDS, ProfileSeries, UtilizationRow, cdf,
    forest, gantt, learning_curve, performance_profiles, utilization,
};
use crate::run::summary::{PolicySummary, profiles, scores};

/// A figure with its heading.
#[derive(Serialize)]
pub(super) struct Section {
    id: &'static str,
    heading: String,
    svg: String,
    caption: String,
}

impl Section {
    fn new(id: &'static str, heading: impl Into<String>, figure: &Figure, caption: &str) -> Self {
        Self { id, heading: heading.into(), svg: figure.inline().into(), caption: tied(caption) }
    }
}

/// Policies, best first, each with its run of the scenario that has a log of allocations.
type RankedRuns<'a> = [(&'a PolicySummary, &'a Picture)];

/// The figures, in reading order; those without data are left out.
pub(super) fn figures(results: &ComparisonResults, report: &Report) -> Vec<Section> {
    let ranked = ranking(&results.summary);
    let first = |policy: &&'_ PolicySummary| results.pictures.get(color_of(results, &policy.name));
    let shown: Vec<(&PolicySummary, &Picture)> =
        ranked.iter().filter_map(|policy| Some((*policy, first(policy)?))).collect();
    let mut sections = Vec::new();
    sections.extend(differences(results, &ranked));
    sections.extend(report.learning.as_ref().map(|learning| {
        let caption = format!(
            "{} during training, evaluated on seeds it was not trained on; the band is the interval over those seeds. \
             Lines are baselines on the same seeds: where the curve crosses one, training has caught up with it.",
            learning.name
        );
        Section::new(
            "learning",
            "How it learnt",
            &learning_curve(learning, color_of(results, &learning.name)),
            &caption,
        )
    }));
    sections.extend(completion(results, &ranked));
    sections.extend(fullness(results, &shown));
    sections.extend(gantts(results, &shown, report.focus.as_deref()));
    sections.extend(reliability(results, &ranked));
    sections
}

fn differences(results: &ComparisonResults, ranked: &[&PolicySummary]) -> Option<Section> {
    let reference = &results.summary.reference;
    let row = |policy: &&PolicySummary| {
        let ratio = *policy.versus_reference.as_ref()?.ratio.get(HEADLINE)?;
        Some(ForestRow { name: policy.name.clone(), ratio })
    };
    let rows: Vec<ForestRow> = ranked.iter().filter_map(row).collect();
    let meaning = match few_seeds(&results.summary) {
        true => "; so few seeds show the spread, not how sure a difference is",
        false => "; one that stays off the line is a difference, before correction for the number of policies",
    };
    let whiskers = match seeds(&results.summary) {
        0 | 1 => "A single seed has no range".to_owned(),
        _ => format!("Whiskers are {} of the paired differences{meaning}", interval_name(&results.summary)),
    };
    let caption = format!(
        "Each policy's mean completion time relative to {reference}, on the same seeds. {whiskers}. Blue is sooner, \
         orange later, grey undecided."
    );
    (!rows.is_empty())
        .then(|| Section::new("differences", "Differences in completion time", &forest(reference, &rows), &caption))
}

fn completion(results: &ComparisonResults, ranked: &[&PolicySummary]) -> Option<Section> {
    let curve = |policy: &&PolicySummary| {
        let color = color_of(results, &policy.name);
        CdfSeries { name: policy.name.clone(), color, times: results.completion[color].clone() }
    };
    let curves: Vec<CdfSeries> = ranked.iter().map(curve).collect();
    let caption = "Share of all jobs, over all runs, that are complete within a time of their submission. A curve further \
                   left is better; where curves cross, one policy favours short jobs at the expense of long ones.";
    let any = curves.iter().any(|curve| !curve.times.is_empty());
    any.then(|| Section::new("completion", "How long jobs take", &cdf(&curves), caption))
}

fn fullness(results: &ComparisonResults, shown: &RankedRuns<'_>) -> Option<Section> {
    let until = shown.iter().map(|(_, picture)| picture.end).max().filter(|&end| end > SimTime::ZERO)?;
    let strip = |(policy, picture): &(&PolicySummary, &Picture)| {
        let color = color_of(results, &policy.name);
        let head = &results.heads[results.layout.runs_of(color).start];
        UtilizationRow::new(&policy.name, color, picture, until, head.measures.get("utilization").unwrap_or(0.0))
    };
    let strips: Vec<UtilizationRow> = shown.iter().map(strip).collect();
    let caption = format!(
        "Share of accelerators held on {}. The shaded box ends with the last job: a policy that fills it early and leaves no \
         long thin tail packs work well. Grey on \
         top is free but scattered: on nodes too full for the widest job that waits. Holding is not progress: compare goodput \
         in the table.",
        scenario_of(results, shown)
    );
    Some(Section::new("utilisation", "How full the cluster is", &utilization(&strips, until), &caption))
}

fn gantts(results: &ComparisonResults, shown: &RankedRuns<'_>, focus: Option<&str>) -> Vec<Section> {
    let chosen = gantt_choice(shown, focus, &results.summary.reference);
    let frame = GanttFrame::new(chosen.iter().map(|(.., picture)| *picture));
    let section = |(id, policy, picture): (&'static str, &str, &Picture)| {
        let figure = gantt(picture.chart.as_ref()?, frame);
        let caption = format!(
            "Every job of {} under {policy}, in order of submission. Thin lines are waiting, a gap in a bar is a preemption, \
             and a bar is as high as the job has GPUs.",
            scenario_of(results, shown)
        );
        Some(Section::new(id, format!("What {policy} does"), &figure, &caption))
    };
    chosen.into_iter().filter_map(section).collect()
}

/// Sentence about the charts of single jobs where runs have too many jobs for such a chart.
pub(super) fn omitted(results: &ComparisonResults) -> Option<String> {
    let jobs = results.heads.first()?.jobs;
    (jobs > GANTT_MOST_JOBS).then(|| {
        format!("There is no chart of single jobs: the first run has {jobs} jobs, and a chart shows {GANTT_MOST_JOBS} at most.")
    })
}

fn reliability(results: &ComparisonResults, ranked: &[&PolicySummary]) -> Option<Section> {
    let reference = &results.summary.reference;
    let (thresholds, series) = profile_series(results, ranked)?;
    let bands = if series.len() <= PROFILE_MOST_BANDS { " Bands are pointwise intervals." } else { "" };
    let caption = format!(
        "Share of runs in which a policy is at least so many times faster than {reference} in mean completion time. A curve \
         that is higher everywhere belongs to the better policy; right of the line it beats {reference}.{bands}"
    );
    let figure = performance_profiles(reference, &thresholds, &series);
    Some(Section::new("profiles", "How reliable the advantage is", &figure, &caption))
}

fn scenario_of(results: &ComparisonResults, shown: &RankedRuns<'_>) -> String {
    shown.first().map_or_else(String::new, |_| {
        let first = results.layout.scenarios[0];
        format!("workload {}, seed {}", results.layout.workloads[first.workload], first.seed)
    })
}

/// The run in focus (or the best), and the reference's beside it.
fn gantt_choice<'a>(
    first: &[(&'a PolicySummary, &'a Picture)],
    focus: Option<&str>,
    reference: &str,
) -> Vec<(&'static str, &'a str, &'a Picture)> {
    let chosen = first.iter().find(|(policy, _)| Some(policy.name.as_str()) == focus).or(first.first());
    let base = first.iter().find(|(policy, _)| policy.name == reference);
    let mut picked: Vec<(&'static str, &str, &Picture)> = Vec::new();
    for (id, found) in [("gantt", chosen), ("gantt-reference", base)] {
        if let Some((policy, run)) = found.filter(|(policy, _)| picked.iter().all(|(_, name, _)| *name != policy.name))
        {
            picked.push((id, &policy.name, run));
        }
    }
    picked
}

/// Thresholds and profiles of all policies but the reference, where there are runs enough to speak
/// of shares.
fn profile_series(results: &ComparisonResults, ranked: &[&PolicySummary]) -> Option<(Vec<f64>, Vec<ProfileSeries>)> {
    if results.summary.runs_per_policy() < 5 {
        return None;
    }
    let others = ranked.iter().filter(|policy| policy.versus_reference.is_some());
    let others: Vec<(&str, usize)> =
        others.map(|policy| (policy.name.as_str(), color_of(results, &policy.name))).collect();
    let indices: Vec<usize> = others.iter().map(|(_, index)| *index).collect();
    let scored = scores(&results.layout, &results.heads, &indices);
    let all: Vec<(&str, usize, ndarray::Array2<f64>)> =
        others.into_iter().zip(scored).filter_map(|((name, index), scores)| Some((name, index, scores?))).collect();
    let values = || all.iter().flat_map(|(.., scores)| scores.iter().copied());
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    if all.is_empty() || low >= high {
        return None;
    }
    let (low, high) = (low.min(1.0) * 0.98, high.max(1.0) * 1.02);
    let thresholds: Vec<f64> = (0..=240).map(|k| low + (high - low) * f64::from(k) / 240.0).collect();
    let series = all.iter().map(|(name, color, scores)| ProfileSeries {
        name: (*name).to_owned(),
        color: *color,
        shares: profiles(&results.summary, scores, &thresholds),
    });
    let series = series.collect();
    Some((thresholds, series))
}
