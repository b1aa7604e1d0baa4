//! Facade of goodput: the one crate that a program outside this repository depends on.
//!
//! Each module is a crate of the workspace under a short name:
//!
//! - [`env`](mod@env): cluster, jobs, simulator, guard, and the environment for reinforcement learning.
//! - [`agents`]: published scheduling policies, learned policies, and the bundles that hold them.
//! - [`forecast`]: probabilistic forecasts of load.
//! - `datasets` and `eval` (feature `eval`, on by default): traces and generated workloads; comparisons of policies
//!   with paired statistics.
//! - `configs` (feature `eval`): configuration files, and the scenarios that they describe.
//! - `train` (feature `train`): the learning loops.
//! - `cli` (feature `cli`): the program `goodput`, to be run with policies of one's own.
//!
//! # Example
//!
//! First in, first out on two nodes with four accelerators each:
//!
//! ```
//! use std::sync::Arc;
//!
//! use goodput::agents::compose;
//! use goodput::prelude::*;
//!
//! let request = JobRequest { name: "bert".into(), gpus: 4, ..JobRequest::default() };
//! let work = Work::Fixed { duration: SimTime::from_secs(600) };
//! let workload = Workload::new(Vec::new(), vec![JobSpec { request, work }]);
//! let cluster = Cluster::parse("2x4")?;
//! let scenario = Scenario::new(Arc::new(cluster), Arc::new(workload), SimOptions::standard(), 0);
//!
//! let mut fifo = compose::by_name("fifo", 0).ok_or("no policy is called fifo")?;
//! let outcome = Simulator::new(Arc::new(scenario)).run(&mut *fifo)?;
//! assert_eq!(outcome.jobs.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/own-policy` in the repository is the program `goodput` with a policy of its own.

pub use goodput_agents as agents;
#[cfg(feature = "cli")]
pub use goodput_cli as cli;
#[cfg(feature = "eval")]
pub use goodput_configs as configs;
#[cfg(feature = "eval")]
pub use goodput_datasets as datasets;
pub use goodput_env as env;
#[cfg(feature = "eval")]
pub use goodput_eval as eval;
pub use goodput_forecast as forecast;
#[cfg(feature = "train")]
pub use goodput_train as train;

/// The names that nearly every program needs.
pub mod prelude {
    pub use goodput_agents::heuristic::parameters::Fixed;
    pub use goodput_agents::heuristic::{ListedPolicy, Traits};
    pub use goodput_env::cluster::{Cluster, NodeId, TypeId};
    pub use goodput_env::job::{JobId, JobRequest, JobSpec, Work, Workload};
    pub use goodput_env::placement::Placement;
    pub use goodput_env::plan::Plan;
    pub use goodput_env::policy::Policy;
    pub use goodput_env::scenario::{Scenario, SimOptions};
    pub use goodput_env::sim::{Outcome, Simulator};
    pub use goodput_env::time::SimTime;
    pub use goodput_env::view::ClusterView;
}
