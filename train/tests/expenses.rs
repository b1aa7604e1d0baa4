//! Power and price of accelerator types as objectives.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;

use crate::shipped::{figures, shipped};

/// Each objective spends the least of what it counts, and the fastest of the three spends the most time-saving types.
#[test]
fn an_objective_per_watt_saves_energy_and_one_per_dollar_saves_money() {
    let experiment = shipped("expenses.toml", &[]);
    let of = |metric: &str| figures(&experiment, metric).into_iter().collect::<BTreeMap<_, _>>();
    let (energy, price, jct) = (of("training_kwh"), of("training_dollars"), of("jct_mean_secs"));
    let (fast, watt, dollar) = ("gavel-max-throughput", "gavel-per-watt", "gavel-per-dollar");
    assert!(energy[watt] < 0.9 * energy[fast], "{energy:?}");
    assert!(price[dollar] < 0.9 * price[fast], "{price:?}");
    assert!(energy[watt] <= energy[dollar] && price[dollar] <= price[watt], "{energy:?} {price:?}");
    assert!(jct[fast] < jct[watt], "what is saved is paid in time: {jct:?}");
}
