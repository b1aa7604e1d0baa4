//! Beside the artifact's run on 32 V100s of the Texas Advanced Computing Center.
//!
//! Six policies ran there. All constants below are measured in the records of these runs (per-round schedules, run
//! times and throughputs by job), all runs together, and none is fitted to a completion time or a makespan:
//!
//! - [`RESTART_MILLIS`]: accelerator time without training for each start, by least squares over the jobs of all runs.
//! - [`SAVING_SECS`]: length that a round has above 120 s over ln(1 + k), where k jobs leave their accelerators, by
//!   least squares over the runs.
//! - [`SPEEDS`]: throughput over that of the file of throughputs, by model and mode; the median over the runs of the
//!   median of each run.
//! - Limit of the run time. A job is removed when it has run for a multiple of its profiled run time, whatever it still
//!   has to do. The published code has a multiple of 1.5. In the runs of Shockwave, OSSP, Themis and AlloX it was 1:
//!   19 in 20 of their jobs ran for 0.95 to 1.1 times the profiled run time, however slow they were. In the runs of
//!   Gavel and MST the run times of slow jobs end at 1.5 times the profiled ones. [`OVERRUN_SECS`] is how long a job
//!   runs on until the limit is looked at, the median over the runs with a multiple of 1.

use std::path::Path;
use std::sync::Arc;

use goodput_agents::heuristic::gavel::{ClusterRun, GavelForm};
use goodput_datasets::import::batch_schedules::BatchMode;
use goodput_env::job::{JobClass, Work, Workload};
use goodput_env::model::SwitchCost;
use goodput_env::scenario::{Batching, Information, Preset, SimOptions};
use rayon::prelude::*;

use super::trace::{KIND, mode_of, schedule};
use super::{FILES, ReproduceError, ReproducedFigure, SOURCE, ShockwavePolicy, ShockwaveRun, ShockwaveTrace, rows};
use crate::reproduce::Reproduction;

/// Reproduction of the artifact's run on machines.
pub const TABLE: Reproduction = Reproduction {
    name: "shockwave-machines",
    about: "mean completion time and makespan of Shockwave's policies as measured on 32 V100s, with one model of the \
            machines for all",
    source: SOURCE,
    files: FILES,
    run,
};

/// Accelerator time without training at each start, milliseconds.
pub const RESTART_MILLIS: i64 = 15_700;
/// Length that a round gains for each unit of ln(1 + k), where k jobs leave their accelerators, seconds.
pub const SAVING_SECS: f64 = 5.8;
/// Run time past the limit, seconds.
pub const OVERRUN_SECS: f64 = 36.0;

/// Speed on the machines over that in the file of throughputs, by model and mode.
pub const SPEEDS: &[(&str, BatchMode, f64)] = &[
    ("LM", BatchMode::Accordion, 0.979),
    ("LM", BatchMode::NoiseScale, 0.880),
    ("Recommendation", BatchMode::Accordion, 0.947),
    ("Recommendation", BatchMode::NoiseScale, 0.930),
    ("Recommendation", BatchMode::Static, 0.959),
    ("ResNet-18", BatchMode::Accordion, 0.992),
    ("ResNet-18", BatchMode::NoiseScale, 0.683),
    ("ResNet-50", BatchMode::Accordion, 0.964),
    ("ResNet-50", BatchMode::NoiseScale, 0.798),
    ("ResNet-50", BatchMode::Static, 0.853),
    ("Transformer", BatchMode::Accordion, 0.957),
    ("Transformer", BatchMode::NoiseScale, 0.949),
];

/// Policies that ran on machines, with the multiple of the profiled run time at which a job was removed.
pub const LIMITS: [(ShockwavePolicy, f64); 6] = [
    (ShockwavePolicy::Shockwave, 1.0),
    (ShockwavePolicy::Ossp, 1.0),
    (ShockwavePolicy::Themis, 1.0),
    (ShockwavePolicy::Gavel, 1.5),
    (ShockwavePolicy::Allox, 1.0),
    (ShockwavePolicy::Mst, 1.5),
];

/// The multiple in the published code (`scheduler.py`).
const PUBLISHED_LIMIT: f64 = 1.5;

/// Jobs as the machines ran them, and the work by job that was still to do when a job was removed.
pub fn as_run(trace: &ShockwaveTrace, limit: f64) -> (Workload, Vec<f64>) {
    let mut workload = Workload::clone(&trace.workload);
    for class in &mut workload.classes {
        let factor = speed_factor(class);
        let class = Arc::make_mut(class);
        let later = class.later.iter_mut().map(|stage| &mut stage.steps_per_sec);
        for speeds in std::iter::once(&mut class.steps_per_sec).chain(later) {
            speeds.values_mut().for_each(|speed| *speed *= factor);
        }
    }
    let mut undone = Vec::with_capacity(workload.jobs.len());
    for (job, profiled) in workload.jobs.iter_mut().zip(&trace.profiled_secs) {
        let Work::Steps { class, steps } = &mut job.work else { continue };
        let done = work_in(&workload.classes[usize::from(*class)], *steps, limit * profiled + OVERRUN_SECS);
        undone.push(*steps - done);
        *steps = done;
    }
    (workload, undone)
}

fn speed_factor(class: &JobClass) -> f64 {
    let model = schedule(class).map_or("", |schedule| schedule.model.name);
    let of_class = |(name, mode, _): &&(&str, BatchMode, f64)| *name == model && *mode == mode_of(class);
    SPEEDS.iter().find(of_class).map_or(1.0, |(_, _, factor)| *factor)
}

/// Part of `work` that a job of `class` does alone in `secs`.
fn work_in(class: &JobClass, work: f64, secs: f64) -> f64 {
    let (mut done, mut left) = (0.0, secs);
    for stage in 0..class.stages() {
        let rate = class.work_per_sec(stage, KIND).unwrap_or(0.0);
        let end = class.stage_end(stage).min(work);
        if rate * left <= end - done {
            return done + rate * left;
        }
        left -= (end - done) / rate;
        done = end;
    }
    done
}

/// Options of a run on machines.
pub fn options() -> SimOptions {
    SimOptions {
        switch_cost: SwitchCost::Constant { millis: RESTART_MILLIS },
        free_moves: false,
        ..Preset::ShockwaveNsdi23.options(Batching::Requested, Information::Oracle)
    }
}

/// One policy as the machines ran it.
///
/// # Errors
/// Where the run fails.
pub fn simulate(policy: ShockwavePolicy, trace: &ShockwaveTrace, limit: f64) -> Result<ShockwaveRun, ReproduceError> {
    let (workload, undone) = as_run(trace, limit);
    let form = GavelForm::ShockwaveCluster(ClusterRun { unexpected_end: undone.into(), saving_secs: SAVING_SECS });
    Ok(ShockwaveRun::of(&policy.simulate(form, &Arc::new(workload), options())?))
}

fn run(data: &Path) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let trace = ShockwaveTrace::read(data)?;
    // Where the runs had another limit than the published code, that limit comes as well, after the others.
    let published = LIMITS.iter().filter(|(_, limit)| *limit != PUBLISHED_LIMIT);
    let published = published.map(|&(policy, _)| (policy, PUBLISHED_LIMIT, ", limit of the published code"));
    let cases = LIMITS.iter().map(|&(policy, limit)| (policy, limit, "")).chain(published);
    let figures = cases.collect::<Vec<_>>().into_par_iter().map(|(policy, limit, note)| {
        let key = format!("tacc_32gpus_comparison/{}-physical", policy.name());
        let theirs = ShockwaveRun::published(data, &key, &trace.workload)?;
        let rows = rows(policy, &theirs, &simulate(policy, &trace, limit)?, &trace.profiled_secs);
        Ok(rows.map(|row| ReproducedFigure { case: format!("{}{note}", row.case), ..row }))
    });
    let figures: Result<Vec<_>, ReproduceError> = figures.collect();
    Ok(figures?.into_iter().flatten().collect())
}
