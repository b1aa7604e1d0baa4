//! Cost of ImageNet under goodput-based autoscaling beside a throughput-based rule (Pollux, OSDI'21, section 5.3.3:
//! 25 % cheaper at a completion time that is 6 % longer).
//!
//! One ImageNet job on up to 16 nodes of four T4, by the artifact's profiles and conventions: rounds of 60 s, restarts
//! of 30 s, nodes that are there at once. Neither the paper's thresholds nor its number of nodes are in the artifact,
//! so the table has four pairs of thresholds, of which the first is that of AdaptDL. The published baseline also trains
//! with the largest batch from the first minutes; the table has the throughput-based rule with the batch of highest
//! goodput and with the largest batch.

use std::path::Path;
use std::sync::Arc;

use goodput_agents::compose;
use goodput_datasets::Catalog;
use goodput_datasets::import::pollux_profiles;
use goodput_env::cluster::Cluster;
use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work, Workload};
use goodput_env::model::{Rental, SizeRule};
use goodput_env::scenario::{Batching, Preset, Scenario, SimOptions};
use goodput_env::sim::{Outcome, Simulator};
use rayon::prelude::*;

use super::{ReproduceError, ReproducedFigure, Reproduction};
use crate::metrics::RentalFacts;

/// Reproduction of the cost of ImageNet on rented nodes.
pub const TABLE: Reproduction = Reproduction {
    name: "pollux-autoscaling",
    about: "cost and completion time of one ImageNet job on up to 16 rented nodes of 4 GPUs, by the rule \
            of their number",
    source: "Qiao et al., OSDI 2021, section 5.3.3; petuum/adaptdl, branch osdi21-artifact",
    files: &["data/pollux/traces"],
    run,
};

const POLICY: &str = "pollux";
const SEED: u64 = 1;
const NODES: u32 = 16;
const GPUS_PER_NODE: u32 = 4;
/// Published difference of cost and of completion time, percent.
const PUBLISHED: (f64, f64) = (-25.0, 6.0);
/// Thresholds of the utility: those of AdaptDL, then lower ones.
const THRESHOLDS: [(f64, f64); 4] = [(0.35, 0.65), (0.25, 0.55), (0.2, 0.5), (0.15, 0.45)];

/// A rule with the batches of the job under it.
#[derive(Clone, Copy)]
enum RentalCase {
    Goodput,
    Throughput,
    /// By throughput, and the job trains with its largest batch.
    LargestBatch,
}

impl RentalCase {
    const ALL: [Self; 3] = [Self::Goodput, Self::Throughput, Self::LargestBatch];

    fn name(self) -> &'static str {
        match self {
            Self::Goodput => "goodput",
            Self::Throughput => "throughput",
            Self::LargestBatch => "throughput, largest batch",
        }
    }
}

/// Time and cost of a run, in hours and node-hours.
struct Bill {
    hours: f64,
    node_hours: f64,
}

fn run(data: &Path) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let catalog = pollux_profiles::catalog(&data.join("data/pollux/traces"), None)?;
    let rows: Result<Vec<_>, ReproduceError> =
        THRESHOLDS.into_par_iter().map(|thresholds| figures(thresholds, &catalog)).collect();
    Ok(rows?.concat())
}

/// Figures of all contestants under one pair of thresholds.
fn figures(thresholds: (f64, f64), catalog: &Catalog) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let bills: Result<Vec<Bill>, _> =
        RentalCase::ALL.into_par_iter().map(|contestant| bill(contestant, thresholds, catalog)).collect();
    let bills = bills?;
    let (low, high) = thresholds;
    let figure = |case: String, metric, theirs, ours| ReproducedFigure { case, metric, theirs, ours };
    let mut figures = Vec::new();
    for (contestant, bill) in RentalCase::ALL.iter().zip(&bills) {
        let case = format!("{low} to {high}, {}", contestant.name());
        figures.push(figure(case.clone(), "hours", None, bill.hours));
        figures.push(figure(case, "node_hours", None, bill.node_hours));
    }
    for (contestant, bill) in RentalCase::ALL.iter().zip(&bills).skip(1) {
        let case = format!("{low} to {high}, goodput against {}", contestant.name());
        let percent = |mine: f64, other: f64| 100.0 * (mine / other - 1.0);
        let (cost, time) = PUBLISHED;
        let less = percent(bills[0].node_hours, bill.node_hours);
        figures.push(figure(case.clone(), "cost_percent", Some(cost), less));
        figures.push(figure(case, "time_percent", Some(time), percent(bills[0].hours, bill.hours)));
    }
    Ok(figures)
}

fn bill(contestant: RentalCase, thresholds: (f64, f64), catalog: &Catalog) -> Result<Bill, ReproduceError> {
    let (low, high) = thresholds;
    let rule = match contestant {
        RentalCase::Goodput => SizeRule::Goodput,
        RentalCase::Throughput | RentalCase::LargestBatch => SizeRule::Throughput,
    };
    let terms = Rental { rule, low, high, start_up_secs: 0.0, ..Rental::default() };
    let outcome = simulate(contestant, terms, catalog)?;
    let node_hours = RentalFacts::new(&terms, GPUS_PER_NODE, &outcome).node_hours;
    Ok(Bill { hours: outcome.end.as_secs_f64() / 3600.0, node_hours })
}

/// One ImageNet job on rented nodes.
fn simulate(contestant: RentalCase, terms: Rental, catalog: &Catalog) -> Result<Outcome, ReproduceError> {
    let reference = |problem: &str| ReproduceError::Reference { path: "imagenet".into(), problem: problem.into() };
    let index = catalog.index("imagenet").ok_or_else(|| reference("there are no profiles of it"))?;
    let application = &catalog.applications[index as usize];
    let mut policy = compose::by_name(POLICY, SEED).ok_or_else(|| reference("its policy is not in the list"))?;
    let options = Preset::PolluxOsdi21.options_for(&*policy);
    let batching = match contestant {
        RentalCase::LargestBatch => Batching::Throughput,
        RentalCase::Goodput | RentalCase::Throughput => options.batching,
    };
    let request = JobRequest {
        name: "imagenet".into(),
        elasticity: Elasticity::Elastic { min: 1, max: application.max_replicas },
        ..JobRequest::default()
    };
    let jobs = vec![JobSpec { request, work: Work::application(index) }];
    let workload = Workload::new(catalog.applications.clone(), jobs);
    let options = SimOptions { batching, rental: Some(terms), ..options };
    let cluster = Arc::new(Cluster::homogeneous(NODES, GPUS_PER_NODE));
    let scenario = Scenario::new(cluster, Arc::new(workload), options, SEED);
    let case = || contestant.name().to_owned();
    Simulator::new(Arc::new(scenario)).run(&mut *policy).map_err(|source| ReproduceError::Run { case: case(), source })
}
