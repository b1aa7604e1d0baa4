//! Cost of rented nodes.

use goodput_env::model::Rental;
use goodput_env::sim::{Outcome, RentalRecord};

/// Cost of the nodes of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RentalFacts {
    /// Price of all nodes, US dollars.
    pub cost: f64,
    /// Price of all nodes over the number of completed jobs, US dollars; `None` where none is complete.
    pub cost_per_job: Option<f64>,
    /// Time of all nodes from order to end, node-hours.
    pub node_hours: f64,
    /// Accelerators of these nodes times their time, GPU-seconds.
    pub gpu_secs: f64,
    /// Spot nodes that the provider took back.
    pub taken_back: u32,
}

impl RentalFacts {
    /// Prices the nodes of a run by its terms; each node has `gpus_per_node` accelerators.
    pub fn new(terms: &Rental, gpus_per_node: u32, outcome: &Outcome) -> Self {
        let RentalRecord { on_demand_millis, spot_millis, taken_back, .. } = outcome.rental;
        let cost = terms.cost(on_demand_millis, spot_millis);
        let completed = outcome.jobs.iter().filter(|job| job.finish.is_some()).count();
        Self {
            cost,
            cost_per_job: (completed > 0).then(|| cost / completed as f64),
            node_hours: (on_demand_millis + spot_millis) as f64 / 3.6e6,
            gpu_secs: (on_demand_millis + spot_millis) as f64 / 1e3 * f64::from(gpus_per_node),
            taken_back,
        }
    }
}
