//! Every policy on rented nodes: no plan is refused, and no work is left undone.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use goodput_agents::compose::{by_name, names};
use goodput_agents::heuristic::pollux::Pollux;
use goodput_agents::heuristic::pollux::genetic::GeneticConfig;
use goodput_env::cluster::Cluster;
use goodput_env::model::{Checkpointing, Rental, SizeRule, Spot};
use goodput_env::policy::Policy;
use goodput_env::scenario::{Preset, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::Simulator;
use goodput_env::time::SimTime;

use crate::support::random_workload;

/// Policy of this name; the genetic searches with smaller settings.
fn policy(name: &str, seed: u64) -> Box<dyn Policy> {
    let small = GeneticConfig { population: 10, generations: 6, ..GeneticConfig::default() };
    match name {
        "pollux" => Box::new(Pollux::new(small, seed)),
        "pollux-noavoid" => Box::new(Pollux::new(GeneticConfig { avoid_interference: false, ..small }, seed)),
        _ => by_name(name, seed).unwrap(),
    }
}

#[test]
fn no_policy_trips_over_nodes_that_come_and_go() {
    for seed in 0..6 {
        let notice_secs = if seed % 2 == 0 { 0.0 } else { 120.0 };
        let rental = Rental {
            rule: [SizeRule::Goodput, SizeRule::Throughput, SizeRule::Fixed][seed as usize % 3],
            window: 5,
            spot: Some(Spot { mean_hours: 0.5, price_per_hour: 0.3, notice_secs }),
            ..Rental::default()
        };
        let cluster = Arc::new(Cluster::homogeneous(6, 4));
        let workload = Arc::new(random_workload(&mut rng(seed, Stream::Workload), 20, cluster.total_gpus()));
        for name in names() {
            let made = policy(name, seed);
            let (batching, information) = (made.batching(), made.information());
            let plain = match seed % 2 {
                0 => Preset::PolluxOsdi21.options(batching, information),
                _ => SimOptions { batching, information, ..SimOptions::standard() },
            };
            let (rental, checkpoint) = (Some(rental), Some(Checkpointing::default()));
            let horizon = Some(SimTime::from_secs(5 * 86_400));
            let options = SimOptions { rental, checkpoint, horizon, ..plain };
            let scenario = Arc::new(Scenario::new(cluster.clone(), workload.clone(), options, seed));
            let outcome = Simulator::new(scenario).run(&mut *policy(name, seed));
            let outcome = outcome.unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
            assert!(!outcome.truncated, "{name}, seed {seed} left work undone");
            assert!(outcome.rental.on_demand_millis > 0, "{name}");
        }
    }
}
