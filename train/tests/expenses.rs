//! Power and price of accelerator types as objectives.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;

use crate::shipped::{figures, shipped};

/// Placement per watt takes less than 90 % of the energy of placement on the fastest type left, and placement per
/// dollar less than 90 % of its price.
#[test]
fn an_objective_per_watt_saves_energy_and_one_per_dollar_saves_money() {
    let experiment = shipped("expenses.toml", &[]);
    let of = |metric: &str| figures(&experiment, metric).into_iter().collect::<BTreeMap<_, _>>();
    let (energy, price) = (of("training_kwh"), of("training_dollars"));
    let (fastest, watt, dollar) = ("gavel-fifo-perf", "gavel-per-watt", "gavel-per-dollar");
    assert!(energy[watt] < 0.9 * energy[fastest], "{energy:?}");
    assert!(price[dollar] < 0.9 * price[fastest], "{price:?}");
}
