//! Results of a comparison: the files in the run directory, the tables on standard output, and
//! `goodput results`, which prints them as Markdown.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use goodput_configs::names::did_you_mean;
use goodput_console::{Cell, CommandError, Listing, OutputFormat, say};
use goodput_eval::metrics::{METRICS, metric};
use goodput_eval::report::Report;
use goodput_eval::report::few_seeds;
use goodput_eval::report::leaderboard;
use goodput_eval::report::origin::{ResultOrigin, markdown_results};
use goodput_eval::report::plots::{CurvePoint, LearningCurve};
use goodput_eval::report::results::{ComparisonResults, ResultFiles};
use goodput_eval::run::summary::Summary;
use goodput_eval::run::{Evaluation, RunHead};
use goodput_eval::studies::bound;
use goodput_eval::sweep::{Sweep, SweepPlan};
use goodput_train::model_card::command;
use goodput_train::run_dir::RunDir;

use crate::args::Results;
use crate::command::run::essential;
use crate::command::sim::data_fault;
use crate::command::study::fault;

/// Name of the file with the origin of the results.
const ORIGIN: &str = "origin.json";

/// Facts in the report beside the comparison.
pub struct ReportContext<'a> {
    /// Heading of the report.
    pub title: String,
    /// The policy it is about.
    pub focus: Option<String>,
    /// Command line that makes these results, the program first.
    pub argv: Vec<String>,
    /// The resolved configuration.
    pub config: &'a str,
    /// Whether `progress.csv` of the run tells of training.
    pub trained: bool,
}

impl<'a> ReportContext<'a> {
    /// Facts about a planned study.
    pub fn of(plan: &'a SweepPlan) -> Self {
        Self { title: plan.title.clone(), focus: None, argv: plan.argv.clone(), config: &plan.config, trained: false }
    }
}

/// Writes the files of a comparison in memory: `summary.json`, `tenants.csv`, the tables `jobs`, `runs`, `events`,
/// `timeseries` and `usage` as Parquet, and the page.
pub fn write(dir: &RunDir, evaluation: &Evaluation, about: &ReportContext<'_>) -> Result<(), CommandError> {
    let heads: Vec<RunHead> = evaluation.runs.iter().map(RunHead::of).collect();
    let mut files = ResultFiles::create(&dir.path(""), &heads, false).map_err(data_fault)?;
    let read = |index| Ok(evaluation.rows(index));
    let results = ComparisonResults::collect(evaluation.layout.clone(), heads, Default::default(), read, |rows| {
        files.write(rows)
    });
    let results = results.map_err(data_fault)?;
    files.finish(&results).map_err(data_fault)?;
    page(dir, &results, about)
}

/// Writes the page of a comparison, and the origin of its results.
pub fn page(dir: &RunDir, results: &ComparisonResults, about: &ReportContext<'_>) -> Result<(), CommandError> {
    dir.write(ORIGIN, origin(&about.argv).to_json().as_bytes()).map_err(CommandError::input)?;
    let report = Report {
        title: about.title.clone(),
        lead: String::new(),
        focus: about.focus.clone(),
        command: command(&about.argv),
        config: about.config.to_string(),
        versions: vec![("goodput".into(), env!("CARGO_PKG_VERSION").into())],
        learning: about.trained.then(|| learning_curve(&dir.path("progress.csv"))).flatten(),
    };
    let page = report.render(results).map_err(CommandError::failed)?;
    dir.write("report.html", page.as_bytes()).map_err(CommandError::input)?;
    say(&format!("report: {}", dir.path("report.html").display()));
    Ok(())
}

/// Origin of results that the command line `argv` writes now.
pub fn origin(argv: &[String]) -> ResultOrigin {
    ResultOrigin {
        command: command(&essential(argv)),
        version: env!("CARGO_PKG_VERSION").into(),
        commit: option_env!("GOODPUT_COMMIT").map(str::to_owned),
        date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
    }
}

/// Runs `goodput results`: one Markdown table for each run directory.
pub fn run(args: &Results) -> Result<ExitCode, CommandError> {
    let named = known_columns(&args.columns)?;
    for (at, run) in args.runs.iter().enumerate() {
        if at > 0 {
            goodput_console::print("\n")?;
        }
        let summary: Summary = read(run.join("summary.json"))?;
        let path = run.join(ORIGIN);
        let origin = if path.exists() { Some(read(path)?) } else { None };
        let columns = if named.is_empty() { leaderboard::columns(&summary) } else { named.clone() };
        goodput_console::print(&markdown_results(&summary, &columns, origin.as_ref()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Keys of metrics, each of which there is.
fn known_columns(named: &[String]) -> Result<Vec<&str>, CommandError> {
    if let Some(unknown) = named.iter().find(|key| metric(key).is_none()) {
        let question = did_you_mean(unknown, METRICS.iter().map(|metric| metric.key));
        return Err(CommandError::input(format!("--columns: there is no metric {unknown:?}{question}"))
            .with_help("goodput list metrics shows them"));
    }
    Ok(named.iter().map(String::as_str).collect())
}

/// Value of a JSON file of a run directory.
fn read<T: serde::de::DeserializeOwned>(path: PathBuf) -> Result<T, CommandError> {
    let help = "goodput results takes directories in which `train` or `eval` has finished";
    let bytes = std::fs::read(&path)
        .map_err(|error| CommandError::input(format!("{}: {error}", path.display())).with_help(help))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| CommandError::input(format!("{}: {error}", path.display())).with_help(help))
}

/// Prints the leaderboard.
pub fn print(summary: &Summary, format: OutputFormat) -> Result<(), CommandError> {
    let more = [leaderboard::costs(summary), leaderboard::deadlines(summary)].concat();
    let worst: &[&str] = match leaderboard::deadlines(summary) {
        [] => &[],
        _ if summary.workloads.len() == 1 => &[],
        _ => &["deadlines_met_worst"],
    };
    let columns = [
        "policy",
        "information",
        "jct_mean_secs",
        "ci_low",
        "ci_high",
        "difference_secs",
        "difference_low",
        "difference_high",
        "jct_p99_secs",
        "makespan_secs",
        "utilization",
        "restarts_mean",
    ];
    let brief = ["policy", "jct_mean_secs", "ci_low", "ci_high", "difference_secs", "jct_p99_secs", "restarts_mean"];
    let mut rows = Listing::new(&[&columns[..], &more, worst].concat()).brief(&[&brief[..], &more, worst].concat());
    if few_seeds(summary) {
        // Few seeds show a spread. A reader takes an interval for a statement of confidence.
        rows = rows.headed("ci_low", "range_low").headed("ci_high", "range_high");
    }
    for policy in leaderboard::ranking(summary) {
        let metric =
            |key: &str, digits| Cell::option(policy.metrics.get(key), |estimate| Cell::Number(estimate.value, digits));
        let jct = policy.metrics.get("jct_mean_secs");
        let interval = jct.and_then(|estimate| estimate.ci);
        let versus = policy.versus_reference.as_ref().and_then(|versus| versus.difference.get("jct_mean_secs"));
        let against = versus.and_then(|estimate| estimate.ci);
        let mut row: Vec<Cell> = vec![
            policy.name.as_str().into(),
            policy.information.as_str().into(),
            metric("jct_mean_secs", 1),
            Cell::option(interval, |ci| Cell::Number(ci.low, 1)),
            Cell::option(interval, |ci| Cell::Number(ci.high, 1)),
            Cell::option(versus, |estimate| Cell::Number(estimate.value, 1)),
            Cell::option(against, |ci| Cell::Number(ci.low, 1)),
            Cell::option(against, |ci| Cell::Number(ci.high, 1)),
            metric("jct_p99_secs", 1),
            metric("makespan_secs", 1),
            metric("utilization", 3),
            metric("restarts_mean", 2),
        ];
        row.extend(more.iter().map(|key| metric(key, 2)));
        row.extend(
            worst.iter().map(|_| Cell::option(leaderboard::worst_deadlines_met(policy), |met| Cell::Number(met, 2))),
        );
        rows.push(row);
    }
    rows.print(format)?;
    if matches!(format, OutputFormat::Table | OutputFormat::Wide) && summary.workloads.len() > 1 {
        goodput_console::print("\n")?;
        by_workload(summary).print(format)?;
    }
    Ok(())
}

/// Prints what no policy can be below.
pub fn print_bounds(sweep: &Sweep, results: &ComparisonResults, format: OutputFormat) -> Result<(), CommandError> {
    let bounds = bound::of(&results.layout, &results.heads, |index| sweep.scenario(index)).map_err(fault)?;
    if bounds.is_empty() {
        return Err(CommandError::input("there is no bound for these workloads")
            .with_help("bounds are for training applications on equal accelerators that some policy completes"));
    }
    let mut rows =
        Listing::new(&["workload", "bound_secs", "without_contention_secs", "best_policy_secs", "above_bound_percent"]);
    for (workload, bound, best) in bounds {
        rows.push(vec![
            workload.as_str().into(),
            Cell::Number(bound.jct_mean_secs, 1),
            Cell::Number(bound.alone_secs, 1),
            Cell::Number(best, 1),
            Cell::Number(100.0 * (best / bound.jct_mean_secs - 1.0), 1),
        ]);
    }
    if matches!(format, OutputFormat::Table | OutputFormat::Wide) {
        goodput_console::print("\n")?;
    }
    rows.print(format)
}

/// Each workload on its own, loads for instance: against the reference, in percent of its mean.
fn by_workload(summary: &Summary) -> Listing {
    let deadlines = leaderboard::deadlines(summary);
    let columns = ["workload", "policy", "jct_mean_secs", "percent", "low", "high", "jct_p99_secs", "p99_percent"];
    let mut rows = Listing::new(&[&columns[..], deadlines].concat());
    for workload in &summary.workloads {
        for policy in leaderboard::ranking(summary) {
            let value = |key: &str| policy.by_workload.get(&workload.name)?.get(key).map(|estimate| estimate.value);
            let versus = policy.versus_reference.as_ref().and_then(|versus| versus.by_workload.get(&workload.name));
            let ratio = |key: &str| versus.and_then(|versus| versus.ratio.get(key));
            let percent = |ratio: f64| Cell::Number(100.0 * (ratio - 1.0), 1);
            let (mean, tail) = (ratio("jct_mean_secs"), ratio("jct_p99_secs"));
            let interval = mean.and_then(|estimate| estimate.ci);
            let mut row = vec![
                workload.name.as_str().into(),
                policy.name.as_str().into(),
                Cell::option(value("jct_mean_secs"), |secs| Cell::Number(secs, 1)),
                Cell::option(mean, |estimate| percent(estimate.value)),
                Cell::option(interval, |ci| percent(ci.low)),
                Cell::option(interval, |ci| percent(ci.high)),
                Cell::option(value("jct_p99_secs"), |secs| Cell::Number(secs, 1)),
                Cell::option(tail, |estimate| percent(estimate.value)),
            ];
            row.extend(deadlines.iter().map(|key| Cell::option(value(key), |found| Cell::Number(found, 2))));
            rows.push(row);
        }
    }
    rows
}

/// Command line of this process as one would type it, without the folder that the program lies in.
pub fn own_command() -> String {
    command(&own_argv())
}

/// Command line of this process, the program first.
pub fn own_argv() -> Vec<String> {
    std::env::args().collect()
}

/// Validation results over the course of training.
fn learning_curve(progress: &Path) -> Option<LearningCurve> {
    let mut reader = csv::Reader::from_path(progress).ok()?;
    let headers = reader.headers().ok()?.clone();
    let column = |name: &str| headers.iter().position(|header| header == name);
    let (jct, best) = (column("eval/jct_mean_secs")?, column("eval/best_heuristic_jct_secs")?);
    let (mut points, mut heuristic): (Vec<CurvePoint>, Option<f64>) = (Vec::new(), None);
    for row in reader.records().map_while(Result::ok) {
        let number =
            |at: usize| row.get(at).and_then(|text| text.parse::<f64>().ok()).filter(|value| value.is_finite());
        heuristic = number(best).or(heuristic);
        // The figure is repeated until the next validation; only its changes are points.
        if let (Some(steps), Some(mean)) = (number(0), number(jct))
            && points.last().is_none_or(|last| last.mean != mean / 3600.0)
        {
            points.push(CurvePoint { x: steps / 1e6, mean: mean / 3600.0, ci: None });
        }
    }
    let baselines = heuristic.map(|secs| ("best quick heuristic".to_string(), secs / 3600.0)).into_iter().collect();
    Some(LearningCurve {
        name: "learned".into(),
        x_name: "decisions, millions".into(),
        y_name: "mean JCT on validation seeds, hours".into(),
        points,
        baselines,
    })
}
