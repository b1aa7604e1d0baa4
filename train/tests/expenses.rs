//! Power and price of accelerator types as objectives.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;

use goodput_eval::run::PolicyRun;

use crate::shipped::{evaluated, figures, shipped};

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

/// Share of the accelerator time of a service on each type.
fn on_types(run: &PolicyRun, service: &str) -> BTreeMap<String, f64> {
    let (scenario, outcome) = (&run.scenario, &run.outcome);
    let at = scenario.workload.services.iter().position(|known| known.name == service).unwrap();
    let record = &outcome.services[at];
    let mut shares = BTreeMap::new();
    for on in &record.nodes {
        let kind = &scenario.cluster.types[scenario.cluster.type_of(on.node).index()].name;
        *shares.entry(kind.clone()).or_insert(0.0) += on.gpu_millis as f64 / record.gpu_millis as f64;
    }
    shares
}

/// By power, an FPGA answers the requests of a recurrent net that come one at a time: with an eighth of the energy
/// that the GPU takes for them, and alone in time where the objective is 20 ms. Images are on T4 at night and on A100
/// at noon.
#[test]
fn an_fpga_serves_low_batches_for_less_power_and_keeps_the_objective() {
    let experiment = shipped("frugal-services.toml", &[]);
    let of = |metric: &str| figures(&experiment, metric).into_iter().collect::<BTreeMap<_, _>>();
    let (energy, kept) = (of("serving_kwh"), of("slo_attainment_worst"));
    let (first, frugal) = ("fifo+none", "fifo+per-watt");
    assert!(energy[frugal] < 0.3 * energy[first], "{energy:?}");
    assert!(kept[frugal] > 0.99 && kept[first] < 0.5, "{kept:?}");
    let evaluation = evaluated(&experiment);
    let run = evaluation.runs.iter().find(|run| evaluation.layout.policies[run.policy] == frugal).unwrap();
    for service in ["dictation", "captions"] {
        assert!(on_types(run, service)["stratix-10-280"] > 0.99, "{:?}", on_types(run, service));
    }
    let images = on_types(run, "images");
    assert!(images["t4"] > 0.2 && images["a100-pcie"] > 0.05, "{images:?}");
}

/// On one seed, and at all of the ideal speed. Over the five seeds of the scenario the means are level.
#[test]
fn t4_as_fractions_of_workers_shorten_jobs_of_one_seed_at_the_ideal_speed() {
    let mean = |sets: &[&str]| {
        let found = figures(&shipped("mixed-types.toml", sets), "jct_mean_secs");
        found.into_iter().find(|(name, _)| name == "aryl+reactive").unwrap().1
    };
    let (one_type, mixed) = (mean(&[]), mean(&["environment.mixing=1.0"]));
    assert!(mixed < one_type, "{mixed} and {one_type}");
}
