//! `live report`: what the policy would have changed while the daemon observed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use goodput_configs::live::deployment::Deployment;
use goodput_configs::reader;
use goodput_console::{AnswerFormat, CommandError};
use goodput_executor::daemon::interface::report::{
    CompletionReport, JobOutlook, KeptBack, LiveReport, MeanInterval, RealJobs, RiskCount, Risks,
};
use goodput_executor::machine::wall_ms;

use crate::config_file::command_error;
use crate::listings::moment;

/// Prints the report about the last `days` days.
pub fn run(from: &Path, days: f64, output: AnswerFormat) -> Result<(), CommandError> {
    if !(days > 0.0 && days <= 3660.0) {
        return Err(CommandError::input(format!("--days {days}: expected a positive number, at most 3660")));
    }
    let report = LiveReport::read(&folder(from)?, days, wall_ms()).map_err(CommandError::failed)?;
    output.print(|| text(&report), &report)
}

/// State directory: the folder itself, or that of a deployment.
fn folder(from: &Path) -> Result<PathBuf, CommandError> {
    if from.is_file() {
        return Ok(reader::read::<Deployment>(from, &[]).map_err(command_error)?.0.state.directory);
    }
    Ok(from.to_owned())
}

/// Report for the terminal.
fn text(report: &LiveReport) -> String {
    let LiveReport { days, period_ms: [first, last], watched_hours, observed_hours, .. } = report;
    let mut lines =
        vec![format!("Report about {days} days, lines of the log from {} to {} UTC", moment(*first), moment(*last))];
    lines.push(format!(
        "policy {}; watched for {watched_hours:.1} h, of which {observed_hours:.1} h in the mode observe",
        report.policies.join(", then ")
    ));
    if report.rests_on_enough() {
        lines.push("The data suffices.".into());
    } else {
        lines.push("TOO LITTLE DATA to decide by:".into());
        lines.extend(report.too_little.iter().map(|sentence| format!("  ! {sentence}")));
    }
    lines.extend(real(&report.jobs));
    lines.extend(kept_back(&report.kept_back));
    lines.extend(report.completions.iter().flat_map(completion));
    lines.extend(risks(&report.risks));
    lines.join("\n") + "\n"
}

fn heading(title: &str) -> [String; 2] {
    [String::new(), title.to_owned()]
}

fn row(what: &str, value: impl std::fmt::Display) -> String {
    format!("  {what:<46} {value}")
}

fn real(jobs: &RealJobs) -> Vec<String> {
    let secs = |value: Option<f64>| value.map_or_else(|| "unknown".into(), duration);
    let mut lines = heading("Jobs as they ran").to_vec();
    lines.push(row("began", jobs.started));
    lines.push(row("ended well; failed or cancelled", format!("{}; {}", jobs.done, jobs.not_done)));
    lines.push(row(
        "waited for the start, mean; 90th percentile",
        format!("{}; {}", secs(jobs.mean_delay_secs), secs(jobs.p90_delay_secs)),
    ));
    lines
}

fn kept_back(kept: &KeptBack) -> Vec<String> {
    let mut lines = heading("Would have been done, and was not").to_vec();
    lines.push(row("decisions in the mode observe", kept.decisions));
    lines.push(row("orders, each counted once for an attempt", words(&kept.orders)));
    lines.push(row("jobs moved, resized or stopped while they ran", kept.preempted_jobs));
    lines.push(row("such interruptions a day", format!("{:.1}", kept.preemptions_per_day)));
    if !kept.most_preempted.is_empty() {
        let most = kept.most_preempted.iter().map(|(job, count)| format!("{job} {count}"));
        lines.push(row("most often: job, times", most.collect::<Vec<_>>().join(", ")));
    }
    lines
}

fn completion(of: &CompletionReport) -> Vec<String> {
    let CompletionReport { policy, against, comparisons, horizon_secs, .. } = of;
    let stands = if of.as_it_is { "the cluster as it is" } else { "the shadow policy" };
    let mut lines = heading(&format!("Completion by simulation: {policy} against {against}, {stands}")).to_vec();
    lines.push(row("comparisons; each looks ahead", format!("{comparisons}; {}", duration(*horizon_secs))));
    let [ours, theirs] = of.mean_jct_secs;
    lines.push(row("mean completion, policy; other", format!("{}; {}", duration(ours), duration(theirs))));
    lines.push(row("difference with interval of 95 %", difference(of.difference, ours - theirs, theirs)));
    let [sooner, later, equal] = of.jobs_per_comparison;
    lines.push(row("jobs at hand sooner; later; within a minute", format!("{sooner:.1}; {later:.1}; {equal:.1}")));
    lines.push(row("different jobs sooner; later", format!("{}; {}", of.jobs[0], of.jobs[1])));
    let [one, other] = of.restarts_per_comparison;
    lines.push(row("interruptions in a comparison, policy; other", format!("{one:.1}; {other:.1}")));
    lines.push(row("jobs with a duration that users stated", format!("{:.0} %", 100.0 * of.stated_share)));
    for (title, jobs) in [("gain most", &of.soonest), ("lose most", &of.latest)] {
        lines.extend(jobs.iter().map(|job| row(&format!("{title}: {} {}", job.job, job.name), outlook(job))));
    }
    lines.push(
        "  no arrivals, no failures and no rules of the guard in a simulation; users' durations taken at their word"
            .into(),
    );
    lines
}

fn difference(interval: Option<MeanInterval>, mean: f64, base: f64) -> String {
    let percent = |secs: f64| 100.0 * secs / base.max(1e-9);
    match interval {
        Some(MeanInterval { mean, low, high }) => format!(
            "{} [{}, {}], {:+.1} % [{:+.1}, {:+.1}]",
            signed(mean),
            signed(low),
            signed(high),
            percent(mean),
            percent(low),
            percent(high)
        ),
        None => format!("{}, {:+.1} %; too few days for an interval", signed(mean), percent(mean)),
    }
}

fn outlook(job: &JobOutlook) -> String {
    let [low, high] = job.between_secs;
    let bound = if job.open { ", at least" } else { "" };
    format!("{} [{}, {}] over {}{bound}", signed(job.secs), signed(low), signed(high), job.comparisons)
}

fn risks(risks: &Risks) -> Vec<String> {
    let mut lines = heading("Risks").to_vec();
    lines.push(row("changes left out by the guard, rule and jobs", words(&risks.guard)));
    lines.push(row("decisions of the fallback", risks.decisions_of_fallback));
    lines.extend(counts("not relied on", &risks.fallbacks));
    lines.extend(counts("alert", &risks.alerts));
    let [failed, cycles] = risks.failed_cycles;
    lines.push(row("cycles that ended early, of all", format!("{failed} of {cycles}")));
    lines.push(row("starts of the daemon", risks.restarts));
    if risks.unreadable_lines > 0 {
        lines.push(row("lines of the log that could not be read", risks.unreadable_lines));
    }
    lines
}

fn counts(title: &str, counts: &BTreeMap<String, RiskCount>) -> Vec<String> {
    if counts.is_empty() {
        return vec![row(title, "none")];
    }
    let line = |(kind, RiskCount { count, last }): (&String, &RiskCount)| {
        let last: String = last.chars().take(100).collect();
        row(&format!("{title}: {kind}"), format!("{count}{}{last}", if last.is_empty() { "" } else { "; last: " }))
    };
    counts.iter().map(line).collect()
}

fn words(counts: &BTreeMap<String, usize>) -> String {
    if counts.is_empty() {
        return "none".into();
    }
    counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}

/// Seconds in the unit that suits them.
fn duration(secs: f64) -> String {
    match secs.abs() {
        less if less < 120.0 => format!("{secs:.0} s"),
        less if less < 7200.0 => format!("{:.1} min", secs / 60.0),
        _ => format!("{:.1} h", secs / 3600.0),
    }
}

fn signed(secs: f64) -> String {
    let sign = if secs > 0.0 { "+" } else { "" };
    format!("{sign}{}", duration(secs))
}
