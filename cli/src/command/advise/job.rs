//! `goodput advise job`: the predicted start of one job, and how well such predictions held.

use std::process::ExitCode;
use std::sync::Arc;

use goodput_console::{Cell, CommandError, Listing, OutputFormat, counted, print, say};
use goodput_env::job::{JobRequest, Workload};
use goodput_env::time::SimTime;
use goodput_eval::studies::starts::{StartAnswer, StartCheck, StartError, StartStudy};
use serde::Serialize;

use super::{jobs_on, policies, sigma};
use crate::args::AdviseJob;
use crate::command::run::threads;
use crate::progress::{Meter, Verbosity};

/// Share of the jobs of a trace before the first prediction of `--check`.
const SKIPPED: f64 = 0.5;

/// Runs `goodput advise job` and gives its exit code.
pub fn run(args: &AdviseJob, verbosity: Verbosity) -> Result<ExitCode, CommandError> {
    threads(args.jobs)?;
    if args.futures < 2 {
        return Err(CommandError::input(format!("--futures {}: expected at least 2", args.futures)));
    }
    let (cluster, workload) = jobs_on(&args.trace, &args.cluster)?;
    let [policy] = <[_; 1]>::try_from(policies(std::slice::from_ref(&args.policy), &cluster)?)
        .map_err(|_| CommandError::input("--policy: expected one policy"))?;
    let request = request(args, &workload, cluster.total_gpus())?;
    let study = StartStudy {
        cluster,
        workload: Arc::new(workload),
        policy,
        futures: args.futures,
        sigma: sigma(args.estimate_sigma)?,
    };
    let meter = Meter::new(verbosity);
    let progress = |done: u64, total: u64| meter.runs(done as usize, total as usize);
    match args.check {
        true => {
            let check = study.check(args.questions, SKIPPED, &progress);
            meter.finish();
            print_check(&check.map_err(CommandError::failed)?, args.output)?;
        }
        false => {
            let answer = study.answer(request, args.questions, &progress);
            meter.finish();
            let answer = answer.map_err(|error| match error {
                StartError::Limit { .. } => CommandError::input(error).with_help("add --limit-hours"),
                other => CommandError::failed(other),
            });
            print_answer(&answer?, args)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The job as it would be submitted.
fn request(args: &AdviseJob, workload: &Workload, gpus: u32) -> Result<JobRequest, CommandError> {
    if args.gpus == 0 || args.gpus > gpus {
        return Err(CommandError::input(format!(
            "--gpus {}: expected from 1 to {gpus}, which --cluster has",
            args.gpus
        )));
    }
    let hours = |option: &str, hours: f64| match (0.0..=1e6).contains(&hours) {
        true => Ok(SimTime::from_secs_f64(3600.0 * hours)),
        false => Err(CommandError::input(format!("--{option} {hours}: expected from 0 to 1000000"))),
    };
    let names: Vec<&str> = workload.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
    let tenant = match &args.tenant {
        None => 0,
        Some(name) => names.iter().position(|known| known == name).ok_or_else(|| {
            let near = goodput_configs::names::did_you_mean(name, names.iter().copied());
            CommandError::input(format!("--tenant {name}: the trace has {} other tenants{near}", names.len()))
        })?,
    };
    let last = workload.jobs.last().map_or(SimTime::ZERO, |job| job.request.submit);
    Ok(JobRequest {
        name: "the asked job".to_owned(),
        gpus: args.gpus,
        tenant: tenant as u32,
        submit: args.at_hours.map_or(Ok(last), |at| hours("at-hours", at))?,
        limit: args.limit_hours.map(|limit| hours("limit-hours", limit)).transpose()?,
        ..JobRequest::default()
    })
}

fn print_answer(answer: &StartAnswer, args: &AdviseJob) -> Result<(), CommandError> {
    match args.output {
        OutputFormat::Table => print(&words(answer, args)),
        OutputFormat::Json => json(answer),
        other => {
            let mut rows = Listing::new(&["figure", "value"]);
            let mut add = |name: &str, value: Cell| rows.push(vec![name.into(), value]);
            add("wait_low_secs", Cell::Number(answer.wait.low, 1));
            add("wait_median_secs", Cell::Number(answer.wait.median, 1));
            add("wait_high_secs", Cell::Number(answer.wait.high, 1));
            add("wait_as_stated_secs", Cell::option(answer.as_stated_secs, |secs| Cell::Number(secs, 1)));
            add("calibrated_on", Cell::Whole(answer.calibrated_on as i64));
            rows.print(other)
        }
    }
}

/// The answer in sentences.
fn words(answer: &StartAnswer, args: &AdviseJob) -> String {
    let StartAnswer { wait, running, waiting, .. } = answer;
    let mut text = format!(
        "A job of {} under {}, submitted at {:.1} h.\nAt that moment, running: {} on {}; free: {}; waiting: {}, for {}.\n\n",
        counted(args.gpus.into(), "accelerator"),
        answer.policy,
        answer.now_hours,
        counted(running.0 as u64, "job"),
        counted(running.1.into(), "accelerator"),
        answer.free,
        counted(waiting.0 as u64, "job"),
        counted(waiting.1.into(), "accelerator"),
    );
    if wait.high == 0.0 {
        return text + "It starts at once.\n";
    }
    text += &format!(
        "It starts after {}, and in nine of ten cases after {} to {}.\n",
        span(wait.median),
        span(wait.low),
        span(wait.high)
    );
    text += &match answer.calibrated_on {
        0 => "Too few jobs have waited before to calibrate the interval.\n".to_owned(),
        count => format!(
            "The interval is calibrated on {} of jobs that waited before.\n",
            counted(count as u64, "prediction")
        ),
    };
    if let Some(secs) = answer.as_stated_secs {
        text += &format!(
            "If every job ran for as long as its user stated and no job came, it would start after {}.\n",
            span(secs)
        );
    }
    text += &match (answer.ahead_in_most, answer.overtaking) {
        (0, later) if later < 0.5 => {
            "It waits for running jobs to end, and no waiting job is likely to start before it.\n".to_owned()
        }
        (ahead, later) => format!(
            "{} of the waiting jobs are likely to start before it, and {later:.1} jobs that come later.\n",
            ahead
        ),
    };
    for ahead in &answer.ahead {
        text += &format!(
            "  {} ({}) starts earlier in {:.0} % of futures\n",
            ahead.job,
            counted(ahead.gpus.into(), "accelerator"),
            100.0 * ahead.share
        );
    }
    text
}

/// A span of time as people say it.
fn span(secs: f64) -> String {
    match secs {
        secs if !secs.is_finite() => "more than two months".to_owned(),
        secs if secs < 60.0 => format!("{secs:.0} s"),
        secs if secs < 7200.0 => format!("{:.0} min", secs / 60.0),
        secs if secs < 172_800.0 => format!("{:.1} h", secs / 3600.0),
        secs => format!("{:.1} days", secs / 86_400.0),
    }
}

fn print_check(check: &StartCheck, output: OutputFormat) -> Result<(), CommandError> {
    if check.predictions == 0 {
        say(
            "too few jobs had to wait: the first twenty predictions only calibrate later ones, and none came after them",
        );
    }
    let mut rows;
    match output {
        OutputFormat::Json => return json(check),
        OutputFormat::Table => {
            rows = Listing::new(&["figure", "value"]);
            let mut add = |name: &str, value: Cell| rows.push(vec![name.into(), value]);
            add("policy", check.policy.as_str().into());
            add("jobs_that_waited", Cell::Whole(check.waiting as i64));
            add("predictions", Cell::Whole(check.predictions as i64));
            let figure = |value: Option<f64>| Cell::option(value, |value| Cell::Number(value, 3));
            add("coverage_of_0.9", figure(check.coverage));
            add("coverage_before_calibration", figure(check.uncalibrated_coverage));
            add("width_median_hours", figure(check.width_hours));
            add("wait_median_hours", figure(check.wait_hours));
            add("error_median_hours", figure(check.error_hours));
            add("error_as_stated_median_hours", figure(check.as_stated_error_hours));
        }
        _ => {
            rows = Listing::new(&["job", "gpus", "asked_secs", "wait_secs", "low", "median", "high", "as_stated_secs"]);
            for row in &check.rows {
                let seconds = |secs: f64| Cell::Number(secs, 1);
                rows.push(vec![
                    row.job.as_str().into(),
                    Cell::Whole(row.gpus.into()),
                    seconds(row.asked_secs),
                    seconds(row.wait_secs),
                    seconds(row.predicted.low),
                    seconds(row.predicted.median),
                    seconds(row.predicted.high),
                    Cell::option(row.as_stated_secs, seconds),
                ]);
            }
        }
    }
    rows.print(output)
}

fn json(answer: &impl Serialize) -> Result<(), CommandError> {
    print(&(serde_json::to_string_pretty(answer).map_err(CommandError::failed)? + "\n"))
}
