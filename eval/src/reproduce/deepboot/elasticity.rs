//! Adaptive fast elasticity on and off (DeepBoot, figure 10): how much faster jobs get, how much of
//! their time they wait, and what the cluster is used for, at three inference loads.

use std::path::Path;

use goodput_env::scenario::{Batching, Information};
use goodput_env::sim::Outcome;
use goodput_env::time::SimTime;
use rayon::prelude::*;

use super::loads::{self, loads};
use super::{SHAPE, cost, fair_options, jct_mean_secs, with_lending, without_lending};
use crate::reproduce::{ReproduceError, ReproducedFigure, Reproduction};
use crate::stats::quantiles;

/// Reproduction of the gain of DeepBoot's elasticity.
pub const ELASTICITY: Reproduction = Reproduction {
    name: "deepboot-afe",
    about: "DeepBoot with and without adaptive fast elasticity: speedups, waiting shares and usage at three loads",
    source: "Chen et al., TPDS 2023, figure 10, of which we have no numbers",
    files: &[loads::FILE],
    run,
};

fn run(data: &Path) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let options = |name| fair_options(Batching::Agent, Information::Profiled, cost(name));
    let modes = [("AFE on", "deepboot_afe"), ("AFE off", "deepboot_full")];
    let cases: Vec<_> = loads(data)?.into_iter().flat_map(|load| modes.map(|mode| (load.clone(), mode))).collect();
    let figures: Result<Vec<Vec<ReproducedFigure>>, ReproduceError> = cases
        .into_par_iter()
        .map(|(load, (mode, costs))| {
            let case = format!("{} load, {mode}", load.name);
            let without = without_lending(&load.workload, options("deepboot_full"), "without idle inference GPUs")?;
            let outcome = with_lending(&load.workload, options(costs), &case)?;
            let figure = |(metric, ours)| ReproducedFigure { case: case.clone(), metric, theirs: None, ours };
            Ok(facts(&outcome, &without).into_iter().map(figure).collect())
        })
        .collect();
    Ok(figures?.into_iter().flatten().collect())
}

fn facts(outcome: &Outcome, without: &Outcome) -> Vec<(&'static str, f64)> {
    let secs = |time: Option<SimTime>| time.map_or(f64::NAN, SimTime::as_secs_f64);
    let pairs = || outcome.jobs.iter().zip(&without.jobs);
    let speedups: Vec<f64> = pairs().map(|(with, without)| secs(without.jct()) / secs(with.jct())).collect();
    let waiting: Vec<f64> =
        outcome.jobs.iter().map(|job| 100.0 * (1.0 - job.executed.as_secs_f64() / secs(job.jct()))).collect();
    let held: i64 = outcome.jobs.iter().map(|job| job.attained_gpu_millis).sum();
    let end = outcome.jobs.iter().filter_map(|job| job.finish).max().unwrap_or_default();
    let capacity = f64::from(SHAPE.0 * SHAPE.1) * end.as_millis() as f64;
    let [s50, s75, s95] = quantiles(&speedups, [0.5, 0.75, 0.95]).unwrap_or([f64::NAN; 3]);
    let [w50, w75, w95] = quantiles(&waiting, [0.5, 0.75, 0.95]).unwrap_or([f64::NAN; 3]);
    let working = held - outcome.idle_gpu_millis + outcome.instance_run_millis - outcome.instance_cold_millis;
    vec![
        ("train_jct_mean_secs", jct_mean_secs(outcome)),
        ("speedup_p50", s50),
        ("speedup_p75", s75),
        ("speedup_p95", s95),
        ("waiting_percent_p50", w50),
        ("waiting_percent_p75", w75),
        ("waiting_percent_p95", w95),
        ("held_percent", 100.0 * (held + outcome.instance_run_millis) as f64 / capacity),
        ("working_percent", 100.0 * working as f64 / capacity),
    ]
}
