//! Mechanisms of different papers put together by a configuration alone: the order of Tiresias, the
//! inference scheduler of DeepBoot, its fast elasticity.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fmt::Write as _;

use goodput_configs::experiment::Experiment;
use goodput_eval::entries::{heuristic_entry, seeds};
use goodput_eval::run::{Comparison, Evaluation};

fn workload() -> String {
    let mut text = String::from("name,time,application,num_replicas,batch_size,duration,num_task\n");
    for at in 0..6 {
        writeln!(text, "cifar10-{at},{},cifar10,4,512,4.0,0", 30 * at).unwrap();
    }
    for at in 0..80 {
        writeln!(text, "inference-{at},{},infer-bert-{},1,1,{}.0,5", 9 * at, at % 3, 1 + at % 8).unwrap();
    }
    text
}

fn run(switch_cost: &str, instances: &str) -> Evaluation {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.csv");
    std::fs::write(&path, workload()).unwrap();
    let config = format!(
        r#"
name = "composition"
[[cluster.groups]]
nodes = 4
gpus_per_node = 4
[workload.file]
path = {path:?}
[environment]
round_secs = 60.0
on_churn = false
switch_cost = "{switch_cost}"
batching = "requested"
information = "profiled"
{instances}
[evaluate]
policies = ["tiresias-l+ats-i", "deepboot"]
seeds = 1
"#
    );
    let experiment: Experiment = toml::from_str(&config).unwrap();
    let setup = experiment.setup().unwrap();
    let entries =
        experiment.evaluate.policies.iter().map(|name| heuristic_entry(name, setup.sharing()).unwrap()).collect();
    Comparison::new(entries, seeds(&setup, 1, 1)).run(&|_, _| ()).unwrap()
}

#[test]
fn order_request_scheduler_and_elasticity_compose_from_a_configuration() {
    let with = run("deepboot_afe", "[environment.instances]\nprotect_times = 1.0");
    for run in &with.runs {
        assert!(!run.outcome.truncated);
        assert_eq!(run.outcome.requests.len(), 80);
        let hits = run.measures.get("request_protect_hits").unwrap();
        assert!(hits > 0.0 && hits < 1.0, "{hits}");
        assert!(run.measures.get("request_latency_mean_secs").unwrap() > 4.0);
        assert!(!run.outcome.instance_usage.is_empty(), "usage over time is written");
    }
    // Each part makes a difference of its own.
    let cold = run("deepboot_full", "[environment.instances]\nprotect_times = 1.0");
    let short = run("deepboot_afe", "[environment.instances]\nkeep = false");
    assert!(cold.runs[1].outcome != with.runs[1].outcome);
    assert_eq!(short.runs[0].measures.get("request_protect_hits"), Some(0.0));
}
