//! A scheduling policy written outside goodput, compared with two published ones on five workloads.

use std::error::Error;
use std::sync::Arc;

use goodput::agents::compose;
use goodput::agents::placement::{Free, Packer};
use goodput::datasets::Catalog;
use goodput::datasets::synth::{DiurnalSynth, SynthConfig};
use goodput::eval::report::leaderboard::leaderboard;
use goodput::eval::run::{Comparison, NamedScenario, PolicyEntry};
use goodput::prelude::*;

/// Smallest job first: waiting jobs start in ascending order of the accelerators that they ask for.
/// Running jobs are never stopped.
#[derive(Default)]
struct SmallestFirst {
    free: Free,
}

impl Policy for SmallestFirst {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        self.free.reset(view.free());
        let mut waiting: Vec<_> = view.jobs().filter(|job| !job.state.is_allocated()).collect();
        // The sort is stable: jobs of one size keep their order of arrival.
        waiting.sort_by_key(|job| job.request().gpus);
        for job in waiting {
            let gpus = job.request().gpus;
            if let Some(placement) = Packer::FewestNodes.place(view.cluster(), &mut self.free, gpus) {
                plan.set(job.id(), placement);
            }
        }
        plan
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let policies = vec![
        PolicyEntry::new("own-policy", |_| Box::new(SmallestFirst::default())),
        published("fifo"),
        published("srtf"),
    ];
    let cluster = Arc::new(Cluster::parse("16x4")?);
    let generator = SynthConfig::Diurnal(DiurnalSynth::default()).build(Catalog::shipped())?;
    let scenario = |seed| {
        let workload = Arc::new(generator.generate(seed));
        let scenario = Arc::new(Scenario::new(cluster.clone(), workload, SimOptions::standard(), seed));
        NamedScenario { name: "diurnal".into(), seed, scenario }
    };
    let evaluation = Comparison::new(policies, (0..5).map(scenario).collect()).run(&|_, _| {})?;
    println!("{}", leaderboard(&evaluation.summary));
    Ok(())
}

fn published(name: &'static str) -> PolicyEntry {
    PolicyEntry::new(name, move |seed| compose::by_name(name, seed).expect("the policy is published"))
}
