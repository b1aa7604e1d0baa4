//! Energy and price of the accelerators that training held.

use goodput_env::cluster::{AcceleratorType, Cluster};
use goodput_env::sim::Outcome;

const GPU_MILLIS_PER_HOUR: f64 = 3_600_000.0;

/// Energy and price of a run's training.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expenses {
    /// Energy at the greatest power of each type, kilowatt-hours; `None` where the power of a type that was used is not
    /// known. Idle accelerators, and the machines around them, are left out.
    pub kwh: Option<f64>,
    /// Price, dollars; `None` where the price of a type that was used is not known.
    pub dollars: Option<f64>,
}

impl Expenses {
    /// Expenses of a run on `cluster`.
    pub fn of(cluster: &Cluster, outcome: &Outcome) -> Self {
        let total = |rate: fn(&AcceleratorType) -> Option<f64>| {
            let held = outcome.training.iter().filter(|on| on.gpu_millis > 0);
            let each = held.map(|on| {
                let kind = cluster.types.get(cluster.type_of(on.node).index())?;
                Some(on.gpu_millis as f64 / GPU_MILLIS_PER_HOUR * rate(kind)?)
            });
            each.sum::<Option<f64>>().filter(|total| *total > 0.0)
        };
        Self {
            kwh: total(|kind| kind.watts).map(|watt_hours| watt_hours / 1000.0),
            dollars: total(|kind| kind.dollars_per_hour),
        }
    }
}
