//! Names of applications: a policy that is blind to names does with many names what it does with one.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_agents::compose;
use goodput_configs::experiment::Experiment;
use goodput_configs::reader::{self, Document};
use goodput_env::sim::Simulator;
use goodput_env::time::SimTime;

/// Times at which the jobs of a workload end under `policy`, with these settings.
fn ends(policy: &str, set: &[&str]) -> Vec<Option<SimTime>> {
    let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
    let document = Document::new("x.toml", include_str!("../experiment/heterogeneous.toml"), &set).unwrap();
    let experiment: Experiment = reader::of_document(&document).unwrap();
    let scenario = experiment.setup().unwrap().scenario(7);
    let outcome = Simulator::new(scenario).run(&mut *compose::by_name(policy, 7).unwrap()).unwrap();
    outcome.jobs.iter().map(|job| job.finish).collect()
}

#[test]
fn names_change_no_speed() {
    let jobs = "workload.synthetic.pollux.jobs=40";
    for (policy, settings) in [
        ("tiresias", &[jobs, "environment.batching=catalog"][..]),
        ("pollux-fast", &[jobs, "cluster.groups=[{ accelerator = \"t4\", nodes = 8, gpus_per_node = 4 }]"]),
    ] {
        let own = ends(policy, settings);
        assert!(own.iter().flatten().count() > 30, "{policy}: most of the forty jobs end: {own:?}");
        let named = ends(policy, &[settings, &["environment.names_per_application=5"]].concat());
        assert_eq!(named, own, "{policy}");
    }
}
