//! Mean completion times of AFS-L beside those of the policies it was compared with (Hwang et al.,
//! NSDI'21, abstract: up to 2.7x shorter than SRTF, 3.1x than Tiresias-L, 2.2x than Themis). The
//! paper's traces are not public, so this shows a direction on public traces: the order of the
//! policies counts, and the order of magnitude.

use std::path::Path;

use goodput_env::scenario::Resize;

use super::contended::{Contestant, FILES, run_all, workloads};
use super::{ReproduceError, ReproducedFigure, Reproduction};

/// Reproduction of the claims of AFS's abstract.
pub const TABLE: Reproduction = Reproduction {
    name: "afs-direction",
    about: "AFS-L beside SRTF, Tiresias and Themis on contended elastic workloads; 16 nodes of 4 GPUs",
    source: "Hwang et al., NSDI 2021 (abstract); workloads of petuum/adaptdl and msr-fiddle/philly-traces",
    files: FILES,
    run,
};

/// The first is what the others are measured against, and the published factor by which they were
/// slower at most.
const CONTESTANTS: [(Contestant, &str, Option<f64>); 10] = [
    (("afs-l", Resize::Overlapped), "afs-l, overlapped", None),
    (("afs-l", Resize::StopRestart), "afs-l, stop-restart", None),
    (("afs-l@replica", Resize::StopRestart), "afs-l@replica, stop-restart", None),
    (("afs-p", Resize::Overlapped), "afs-p, overlapped", None),
    (("srtf", Resize::StopRestart), "srtf", Some(2.7)),
    (("srtf-elastic", Resize::StopRestart), "srtf-elastic", None),
    (("tiresias", Resize::StopRestart), "tiresias", Some(3.1)),
    (("themis", Resize::StopRestart), "themis", Some(2.2)),
    (("optimus", Resize::StopRestart), "optimus", None),
    (("gandiva", Resize::StopRestart), "gandiva", None),
];

fn run(data: &Path) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let workloads = workloads(data)?;
    let contestants: Vec<Contestant> = CONTESTANTS.iter().map(|(contestant, ..)| *contestant).collect();
    let runs = run_all(&workloads, &contestants)?;
    let mut figures = Vec::new();
    for (workload, runs) in workloads.iter().zip(&runs) {
        for ((_, label, _), run) in CONTESTANTS.iter().zip(runs) {
            let case = format!("{} {label}", workload.name);
            figures.push(ReproducedFigure {
                case: case.clone(),
                metric: "jct_mean_secs",
                theirs: None,
                ours: run.jct_mean_secs,
            });
            if label.starts_with("afs-l") {
                figures.push(ReproducedFigure {
                    case: case.clone(),
                    metric: "restarts",
                    theirs: None,
                    ours: f64::from(run.restarts),
                });
                figures.push(ReproducedFigure { case, metric: "idle_percent", theirs: None, ours: run.idle_percent });
            }
        }
    }
    for (at, (_, label, theirs)) in CONTESTANTS.iter().enumerate().skip(1) {
        let ratios: Vec<f64> = runs.iter().map(|runs| runs[at].jct_mean_secs / runs[0].jct_mean_secs).collect();
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        let most = ratios.iter().copied().fold(0.0, f64::max);
        let slower = ratios.iter().filter(|ratio| **ratio >= 1.0).count() as f64 / ratios.len() as f64;
        let case = format!("{label} over afs-l, overlapped");
        figures.push(ReproducedFigure { case: case.clone(), metric: "largest_jct_ratio", theirs: *theirs, ours: most });
        figures.push(ReproducedFigure {
            case: case.clone(),
            metric: "geometric_mean_jct_ratio",
            theirs: None,
            ours: mean,
        });
        figures.push(ReproducedFigure { case, metric: "share_of_workloads_no_faster", theirs: None, ours: slower });
    }
    Ok(figures)
}
