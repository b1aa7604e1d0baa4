//! Energy and price of the accelerators that training and services held.

use goodput_env::cluster::{AcceleratorType, Cluster, NodeId};
use goodput_env::sim::Outcome;

const GPU_MILLIS_PER_HOUR: f64 = 3_600_000.0;

/// Energy and price of what a part of a run held.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expenses {
    /// Energy at the greatest power of each type, kilowatt-hours; `None` where the power of a type that was used is not
    /// known. Idle accelerators, and the machines around them, are left out.
    pub kwh: Option<f64>,
    /// Price, dollars; `None` where the price of a type that was used is not known.
    pub dollars: Option<f64>,
}

impl Expenses {
    /// Expenses of training on `cluster`.
    pub fn of_training(cluster: &Cluster, outcome: &Outcome) -> Self {
        Self::of(cluster, outcome.training.iter().map(|on| (on.node, on.gpu_millis)))
    }

    /// Expenses of the replicas of services on `cluster`.
    pub fn of_services(cluster: &Cluster, outcome: &Outcome) -> Self {
        let each = outcome.services.iter().flat_map(|service| &service.nodes);
        Self::of(cluster, each.map(|on| (on.node, on.gpu_millis)))
    }

    /// Expenses of accelerator time by node.
    fn of(cluster: &Cluster, held: impl Iterator<Item = (NodeId, i64)> + Clone) -> Self {
        let total = |rate: fn(&AcceleratorType) -> Option<f64>| {
            let each = held.clone().filter(|(_, gpu_millis)| *gpu_millis > 0).map(|(node, gpu_millis)| {
                let kind = cluster.types.get(cluster.type_of(node).index())?;
                Some(gpu_millis as f64 / GPU_MILLIS_PER_HOUR * rate(kind)?)
            });
            each.sum::<Option<f64>>().filter(|total| *total > 0.0)
        };
        Self {
            kwh: total(|kind| kind.watts).map(|watt_hours| watt_hours / 1000.0),
            dollars: total(|kind| kind.dollars_per_hour),
        }
    }
}
