//! `goodput advise job`: the predicted start of one job, and how well such predictions held.

use std::process::ExitCode;
use std::sync::Arc;

use goodput_console::{Cell, CommandError, Listing, OutputFormat, print, say};
use goodput_env::job::{JobRequest, Workload};
use goodput_env::time::SimTime;
use goodput_eval::studies::starts::{StartCheck, StartError, StartStudy};
use serde::Serialize;

use super::queue::AskedQueue;
use super::start_page::ToldAnswer;
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
    let (cluster, mut workload) = jobs_on(&args.trace, &args.cluster)?;
    let queue = args.snapshot.as_deref().map(|path| AskedQueue::read(path, &cluster, &mut workload)).transpose()?;
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
            let at = request.submit;
            let asked = queue.as_ref().map(|queue| queue.asked(args.job.as_deref(), &request)).transpose()?;
            let answer = match (&queue, &asked) {
                (Some(queue), Some(asked)) => study.answer_queue(&queue.seen, asked, at, args.questions, &progress),
                _ => study.answer(request.clone(), args.questions, &progress),
            };
            meter.finish();
            let answer = answer.map_err(|error| match error {
                StartError::Limit { .. } if args.job.is_none() => {
                    CommandError::input(error).with_help("add --limit-hours")
                }
                StartError::Limit { .. } | StartError::QueueLimit { .. } => CommandError::input(error).with_help(
                    "give each waiting and running job a time limit (under Slurm: `scontrol update JobId=JOB \
                     TimeLimit=TIME`), or choose a policy that does not plan by run times, such as fifo-backfill",
                ),
                other => CommandError::failed(other),
            })?;
            let told = match (&queue, &asked) {
                (Some(queue), Some(asked)) => ToldAnswer::of_queue(&answer, queue, asked),
                _ => ToldAnswer::of_trace(&answer, &request),
            };
            told.print(args.output)?;
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

pub(super) fn json(answer: &impl Serialize) -> Result<(), CommandError> {
    print(&(serde_json::to_string_pretty(answer).map_err(CommandError::failed)? + "\n"))
}
