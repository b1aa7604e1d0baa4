//! Beside the artifact's simulation.

use std::path::Path;

use goodput_agents::heuristic::gavel::GavelForm;
use goodput_env::scenario::{Batching, Information, Preset};
use rayon::prelude::*;

use super::{FILES, ReproduceError, ReproducedFigure, SOURCE, ShockwavePolicy, ShockwaveRun, ShockwaveTrace, rows};
use crate::reproduce::Reproduction;

/// Reproduction of the artifact's simulation.
pub const TABLE: Reproduction = Reproduction {
    name: "shockwave",
    about: "mean completion time and makespan of Shockwave's policies in its simulator; 120 jobs that change their \
            batch size, 32 V100",
    source: SOURCE,
    files: FILES,
    run,
};

fn run(data: &Path) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let trace = ShockwaveTrace::read(data)?;
    let figures = ShockwavePolicy::ALL.par_iter().map(|&policy| {
        let key = format!("tacc_32gpus/{}-simulation", policy.name());
        let theirs = ShockwaveRun::published(data, &key, &trace.workload)?;
        let options = Preset::ShockwaveNsdi23.options(Batching::Requested, Information::Oracle);
        let outcome = policy.simulate(GavelForm::ShockwaveSimulator, &trace.workload, options)?;
        Ok(rows(policy, &theirs, &ShockwaveRun::of(&outcome), &trace.profiled_secs))
    });
    let figures: Result<Vec<_>, ReproduceError> = figures.collect();
    Ok(figures?.into_iter().flatten().collect())
}
