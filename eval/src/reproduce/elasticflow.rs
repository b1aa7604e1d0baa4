//! ElasticFlow (Gu et al., ASPLOS'23): share of jobs that meet their deadlines, on the published traces of Microsoft's
//! clusters.
//!
//! The figures are those that the artifact's plots hold (pkusys/ElasticFlow, `plot_figure/scripts`): figure 8b of
//! its simulator, and figure 6b of a testbed of 128 A100. The speeds by number of accelerators are the artifact's
//! too, and ship with goodput. Chronus is not among our policies. The artifact's Themis is finish-time fairness as
//! Gavel computes it, at the requested sizes, so `gavel-ftf` stands beside it. Its Gandiva takes turns on fixed
//! sets of nodes; ours is the policy as its own paper has it.
//!
//! Conventions, as far as they carry over: `elasticflow@replica` is asked once a slot, 60 s in simulation and 240 s
//! on the testbed. ElasticFlow and EDF are asked at arrivals, at completions and when a planned change is due, the
//! other policies at both. A change of a job costs 9 to 21 s by its size. The artifact charges jobs that go on as
//! they were, too: 2 or 7 s at every decision, and a restart of all workers at every sixtieth.

use std::path::Path;
use std::sync::Arc;

use goodput_agents::compose;
use goodput_datasets::read_workload;
use goodput_datasets::speed_table::ShippedSpeeds;
use goodput_env::cluster::Cluster;
use goodput_env::job::Workload;
use goodput_env::model::SwitchCost;
use goodput_env::scenario::{Batching, Information, Rounds, Scenario, SimOptions};
use goodput_env::sim::Simulator;
use goodput_env::time::SimTime;
use rayon::prelude::*;

use super::{ReproduceError, ReproducedFigure, Reproduction};
use crate::metrics::deadline_facts;

/// Reproduction of figure 8b, six of eleven traces.
pub const CLUSTERS: Reproduction = Reproduction {
    name: "elasticflow",
    about: "share of deadlines met on six clusters of Microsoft; 64 or 128 nodes of 8 A100",
    source: "Gu et al., ASPLOS 2023, figure 8b; pkusys/ElasticFlow, scheduler",
    files: &[
        "data/elasticflow/cluster01.csv.xz",
        "data/elasticflow/cluster02.csv.xz",
        "data/elasticflow/cluster03.csv.xz",
        "data/elasticflow/cluster04.csv.xz",
        "data/elasticflow/cluster05.csv.xz",
        "data/elasticflow/cluster06.csv.xz",
    ],
    run: |data| runs(data, &SIMULATED),
};

/// Simulation of the testbed runs of figure 6b.
pub const TESTBED: Reproduction = Reproduction {
    name: "elasticflow-testbed",
    about: "share of deadlines met by 195 jobs on 16 nodes of 8 A100, simulated beside the measured one",
    source: "Gu et al., ASPLOS 2023, figure 6b",
    files: &["data/elasticflow/195job.csv.xz"],
    run: |data| runs(data, &[MEASURED]),
};

/// A trace with its published ratios of `POLICIES`.
struct DeadlineTrace {
    file: &'static str,
    cluster: &'static str,
    slot_secs: i64,
    theirs: [f64; 5],
}

/// Our policies in the order of the published figures. The artifact's Themis is the linear program of Gavel for
/// finish-time fairness, at the requested sizes.
const POLICIES: [&str; 6] = ["edf", "gandiva", "tiresias", "gavel-ftf", "elasticflow@replica", "elasticflow"];

const SIMULATED: [DeadlineTrace; 6] = [
    simulated("cluster01", "a100:64x8", [0.182, 0.246, 0.478, 0.464, 0.788]),
    simulated("cluster02", "a100:64x8", [0.228, 0.286, 0.470, 0.431, 0.822]),
    simulated("cluster03", "a100:64x8", [0.095, 0.314, 0.401, 0.389, 0.455]),
    simulated("cluster04", "a100:128x8", [0.007, 0.228, 0.120, 0.432, 0.631]),
    simulated("cluster05", "a100:64x8", [0.375, 0.228, 0.420, 0.430, 0.832]),
    simulated("cluster06", "a100:64x8", [0.105, 0.381, 0.466, 0.425, 0.607]),
];

const MEASURED: DeadlineTrace = DeadlineTrace {
    file: "195job",
    cluster: "a100:16x8",
    slot_secs: 240,
    theirs: [0.0872, 0.2103, 0.4564, 0.3897, 0.6667],
};

const fn simulated(file: &'static str, cluster: &'static str, theirs: [f64; 5]) -> DeadlineTrace {
    DeadlineTrace { file, cluster, slot_secs: 60, theirs }
}

fn runs(data: &Path, traces: &[DeadlineTrace]) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let mut cases = Vec::new();
    for trace in traces {
        let file = data.join(format!("data/elasticflow/{}.csv.xz", trace.file));
        let workload = Arc::new(read_workload(&file, ShippedSpeeds::ElasticFlow.catalog())?.workload);
        cases.extend(POLICIES.iter().enumerate().map(|(at, policy)| (trace, workload.clone(), *policy, at)));
    }
    let figure = |(trace, workload, policy, at): (&DeadlineTrace, Arc<Workload>, &str, usize)| {
        let case = format!("{policy} on {}", trace.file);
        let ours = deadlines_met(policy, trace.cluster, trace.slot_secs, workload, &case)?;
        // The last published figure is ElasticFlow's, with and without the artifact's departures.
        let theirs = Some(trace.theirs[at.min(trace.theirs.len() - 1)]);
        Ok(ReproducedFigure { case, metric: "deadlines_met", theirs, ours })
    };
    cases.into_par_iter().map(figure).collect()
}

/// Share of the jobs of `workload` with a deadline that meet it under `policy`.
///
/// # Errors
/// Where the run fails.
pub fn deadlines_met(
    policy: &str,
    cluster: &str,
    slot_secs: i64,
    workload: Arc<Workload>,
    case: &str,
) -> Result<f64, ReproduceError> {
    let mut built = compose::by_name(policy, 1).expect("policies of the table are in the list");
    let slot = SimTime::from_secs(slot_secs);
    let rounds = match policy {
        // The artifact gathers what happens within a slot into one decision.
        "elasticflow@replica" => Rounds { period: Some(slot), on_churn: false },
        "elasticflow" | "edf" => Rounds { period: None, on_churn: true },
        _ => Rounds { period: Some(slot), on_churn: true },
    };
    let options = SimOptions {
        rounds,
        switch_cost: SwitchCost::ElasticFlow,
        batching: Batching::Requested,
        information: Information::Oracle,
        ..SimOptions::standard()
    };
    let cluster = Cluster::parse(cluster).expect("clusters of the table are well formed");
    let scenario = Arc::new(Scenario::new(Arc::new(cluster), workload, options, 1));
    let outcome = Simulator::new(scenario.clone())
        .run(&mut *built)
        .map_err(|source| ReproduceError::Run { case: case.to_owned(), source })?;
    let jobs = deadline_facts(&scenario, &outcome);
    Ok(jobs.iter().filter(|job| job.met).count() as f64 / jobs.len().max(1) as f64)
}
