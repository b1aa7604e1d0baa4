//! DeepBoot (TPDS'23): its simulator's own results on its smallest workload, and the comparison it
//! would have to win on equal terms.

mod elasticity;
mod fair;
mod lending;
mod loads;
mod small;

use std::sync::Arc;

use goodput_agents::compose;
use goodput_agents::heuristic::deepboot::DeepBoot;
use goodput_agents::heuristic::deepboot::requests::RequestScheduler;
use goodput_agents::heuristic::deepboot::sizes::StartValue;
use goodput_env::cluster::Cluster;
use goodput_env::job::Workload;
use goodput_env::model::SwitchCost;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Rounds, Scenario, SimOptions};
use goodput_env::sim::{Outcome, Simulator};
use goodput_env::time::SimTime;

pub use elasticity::ELASTICITY;
pub use fair::FAIR;
pub use lending::LENDING;
pub use small::{SMALL, artifact_run};

use super::ReproduceError;

/// Nodes and accelerators a node of the published experiments.
const SHAPE: (u32, u32) = (16, 4);
const SEED: u64 = 1;

/// Options of a fair comparison: decisions every 60 s, accelerators returned at once, and equal
/// measurements for all policies.
fn fair_options(batching: Batching, information: Information, switch_cost: SwitchCost) -> SimOptions {
    SimOptions {
        rounds: Rounds { period: Some(SimTime::from_secs(60)), on_churn: false },
        switch_cost,
        batching,
        information,
        ..SimOptions::standard()
    }
}

/// Cost models under which every headline is reported.
const COSTS: [&str; 3] = ["pollux_const", "deepboot_full", "sia_full"];

fn cost(name: &str) -> SwitchCost {
    SwitchCost::by_name(name).expect("cost models of the tables are in the list")
}

/// Runs the policy called `name` on `nodes` nodes.
fn simulate(
    name: &str,
    nodes: u32,
    workload: &Arc<Workload>,
    options: SimOptions,
    case: &str,
) -> Result<Outcome, ReproduceError> {
    let policy = compose::by_name(name, SEED).expect("policies of the table are in the list");
    simulate_policy(policy, nodes, workload, options, case)
}

fn simulate_policy(
    mut policy: Box<dyn Policy>,
    nodes: u32,
    workload: &Arc<Workload>,
    options: SimOptions,
    case: &str,
) -> Result<Outcome, ReproduceError> {
    let cluster = Arc::new(Cluster::homogeneous(nodes, SHAPE.1));
    let scenario = Scenario::new(cluster, workload.clone(), options, SEED);
    Simulator::new(Arc::new(scenario))
        .run(&mut *policy)
        .map_err(|source| ReproduceError::Run { case: case.into(), source })
}

/// DeepBoot on half of the nodes, with no requests: what training has where inference keeps its
/// nodes to itself.
fn without_lending(load: &Arc<Workload>, options: SimOptions, case: &str) -> Result<Outcome, ReproduceError> {
    let alone = Arc::new(Workload { requests: Vec::new(), served: Vec::new(), ..(**load).clone() });
    simulate("deepboot", SHAPE.0 / 2, &alone, options, case)
}

/// DeepBoot on all nodes, with requests on the second half: training may use whatever is idle
/// there.
fn with_lending(load: &Arc<Workload>, options: SimOptions, case: &str) -> Result<Outcome, ReproduceError> {
    let inference = (0..SHAPE.0).map(|node| node >= SHAPE.0 / 2).collect();
    let policy = DeepBoot::new(StartValue::Full).answering(RequestScheduler::default().on(inference));
    simulate_policy(Box::new(policy), SHAPE.0, load, options, case)
}

fn mean_secs(times: impl Iterator<Item = SimTime>) -> f64 {
    let (sum, count) = times.fold((0.0, 0.0_f64), |(sum, count), time| (sum + time.as_secs_f64(), count + 1.0));
    sum / count.max(1.0)
}

fn jct_mean_secs(outcome: &Outcome) -> f64 {
    mean_secs(outcome.jobs.iter().filter_map(|job| job.jct()))
}

/// Accelerators held by jobs or by instances that run, over the time in which training jobs arrive
/// and run.
fn usage_percent(outcome: &Outcome) -> f64 {
    let held: i64 = outcome.jobs.iter().map(|job| job.attained_gpu_millis).sum();
    let end = outcome.jobs.iter().filter_map(|job| job.finish).max().unwrap_or_default();
    let capacity = f64::from(SHAPE.0 * SHAPE.1) * end.as_millis() as f64;
    100.0 * (held + outcome.instance_run_millis) as f64 / capacity.max(1.0)
}
