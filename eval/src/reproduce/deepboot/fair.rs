//! Training policies with equal access to inference accelerators: each beside ATS-I, on DeepBoot's
//! smallest workload under three cost models, and on the two larger ones under one.
//!
//! The artifact gives its rivals another inference scheduler than its own policy, one that confines
//! inference to half of the nodes and clears a whole node of training for a request. Here the only
//! difference is the training policy.

use std::path::Path;

use goodput_agents::compose;
use goodput_env::scenario::Batching;
use goodput_env::sim::Outcome;
use rayon::prelude::*;

use super::loads::{self, loads};
use super::{COSTS, SHAPE, cost, fair_options, jct_mean_secs, mean_secs, simulate, usage_percent};
use crate::metrics::requests::{latency_mean_secs, protect_hits};
use crate::reproduce::{ReproduceError, ReproducedFigure, Reproduction};

/// Reproduction of DeepBoot's comparison under equal conditions.
pub const FAIR: Reproduction = Reproduction {
    name: "deepboot-fair",
    about: "AFS, Aryl, Optimus, Tiresias, Pollux and DeepBoot with equal access to inference GPUs; usage at three loads",
    source: "Chen et al., TPDS 2023; its comparison gives its rivals less, ours is on equal terms",
    files: &[loads::FILE],
    run,
};

const TRAINING: [&str; 7] =
    ["afs-l+ats-i", "aryl+ats-i", "optimus+ats-i", "tiresias+ats-i", "pollux+ats-i", "pollux-fast+ats-i", "deepboot"];

/// Cost model of the runs at the middle and the large load.
const LARGER_COST: &str = "deepboot_full";

fn run(data: &Path) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let loads = loads(data)?;
    let known = TRAINING.into_iter().filter(|name| compose::by_name(name, 1).is_some());
    let on_small = |name| COSTS.into_iter().flat_map(move |cost| [true, false].map(|own| (0, name, cost, own)));
    // The genetic search takes minutes on the larger loads, and its fast form comes to the same.
    let larger = |name: &str| if name == "pollux+ats-i" { 1..1 } else { 1..3 };
    let on_larger = |name| larger(name).map(move |load| (load, name, LARGER_COST, true));
    let cases: Vec<_> = known
        .flat_map(|name| on_small(name).chain(on_larger(name)))
        // A policy that adapts batch sizes anyway has one row.
        .filter(|&(_, name, _, own)| own || built_batching(name) == Batching::Requested)
        .collect();
    let figures: Result<Vec<Vec<ReproducedFigure>>, ReproduceError> = cases
        .into_par_iter()
        .map(|(load, name, costs, own)| {
            let built = compose::by_name(name, 1).expect("it was found above");
            let batching = if own { built.batching() } else { Batching::Catalog };
            let options = fair_options(batching, built.information(), cost(costs));
            let batches = if own { "" } else { ", batches adapted" };
            let at = if load == 0 { String::new() } else { format!(", {} load", loads[load].name) };
            let case = format!("{name}, {costs}{batches}{at}");
            let outcome = simulate(name, SHAPE.0, &loads[load].workload, options, &case)?;
            Ok(facts(&outcome)
                .map(|(metric, ours)| ReproducedFigure { case: case.clone(), metric, theirs: None, ours })
                .to_vec())
        })
        .collect();
    Ok(figures?.into_iter().flatten().collect())
}

fn built_batching(name: &str) -> Batching {
    compose::by_name(name, 1).map_or(Batching::Requested, |policy| policy.batching())
}

fn facts(outcome: &Outcome) -> [(&'static str, f64); 6] {
    let restarts: u32 = outcome.jobs.iter().map(|job| job.restarts).sum();
    let queueing = outcome.jobs.iter().filter_map(|job| Some(job.start? - job.submit));
    [
        ("train_jct_mean_secs", jct_mean_secs(outcome)),
        ("mean_queueing_secs", mean_secs(queueing)),
        ("restarts_per_job", f64::from(restarts) / outcome.jobs.len().max(1) as f64),
        ("mean_request_latency_secs", latency_mean_secs(outcome).unwrap_or(0.0)),
        ("protect_hits_percent", 100.0 * protect_hits(outcome).unwrap_or(0.0)),
        ("usage_percent", usage_percent(outcome)),
    ]
}
