//! Worst finish-time fairness under Themis beside the policies it was compared with (Mahajan et
//! al., NSDI'20, abstract: fairer by more than 2.25x, 5 to 250 % more efficient). The paper's trace
//! is not public, so this shows a direction on public ones.

use std::path::Path;

use goodput_env::scenario::Resize;

use super::contended::{Contestant, FILES, run_all, workloads};
use super::{ReproduceError, ReproducedFigure, Reproduction};

/// Reproduction of the claims of fairness of Themis.
pub const TABLE: Reproduction = Reproduction {
    name: "themis-fairness",
    about: "worst finish-time fairness under Themis, Tiresias, Optimus and others on contended elastic workloads; 16 nodes of 4 GPUs",
    source: "Mahajan et al., NSDI 2020 (abstract); workloads of petuum/adaptdl and msr-fiddle/philly-traces",
    files: FILES,
    run,
};

/// The first is what the others are measured against, and the published factor by which they were
/// less fair at least.
const POLICIES: [(&str, Option<f64>); 7] = [
    ("themis", None),
    ("themis lease=300", None),
    ("tiresias", Some(2.25)),
    ("optimus", Some(2.25)),
    ("srtf", None),
    ("afs-l", None),
    ("afs-p", None),
];

fn run(data: &Path) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let workloads = workloads(data)?;
    let contestants = POLICIES.map(|(name, _)| (name, Resize::StopRestart));
    let contestants: &[Contestant] = &contestants;
    let runs = run_all(&workloads, contestants)?;
    let mut figures = Vec::new();
    for (workload, runs) in workloads.iter().zip(&runs) {
        for ((name, _), run) in POLICIES.iter().zip(runs) {
            let case = format!("{} {name}", workload.name);
            figures.push(ReproducedFigure {
                case: case.clone(),
                metric: "worst_rho",
                theirs: None,
                ours: run.worst_rho,
            });
            figures.push(ReproducedFigure { case, metric: "jct_mean_secs", theirs: None, ours: run.jct_mean_secs });
        }
    }
    for (at, (name, theirs)) in POLICIES.iter().enumerate().skip(1) {
        let ratios: Vec<f64> = runs.iter().map(|runs| runs[at].worst_rho / runs[0].worst_rho).collect();
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        let less_fair = ratios.iter().filter(|ratio| **ratio >= 1.0).count() as f64 / ratios.len() as f64;
        let case = format!("{name} over themis");
        figures.push(ReproducedFigure {
            case: case.clone(),
            metric: "geometric_mean_worst_rho_ratio",
            theirs: *theirs,
            ours: mean,
        });
        figures.push(ReproducedFigure { case, metric: "share_of_workloads_less_fair", theirs: None, ours: less_fair });
    }
    Ok(figures)
}
