//! The scenarios of rented nodes that ship: what a rule costs, and that every key of the table says something.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

use goodput_configs::experiment::Experiment;
use goodput_configs::reader;
use goodput_eval::entries::{held_out, heuristic};
use goodput_eval::run::{Comparison, PolicyRun};

/// Run of the first policy of a shipped scenario on the first held-out seed.
fn run(name: &str, sets: &[&str]) -> PolicyRun {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/scenario").join(name);
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let experiment: Experiment = reader::read(&path, &sets).unwrap().0;
    let setup = experiment.setup().unwrap();
    let entry = heuristic(&experiment, &experiment.evaluate.policies[0], &setup).unwrap();
    let comparison = Comparison::new(vec![entry], held_out(&experiment, 1).unwrap());
    comparison.run(&|_, _| ()).unwrap().runs.remove(0)
}

/// Pollux, OSDI'21, section 5.3.3: 25 % cheaper at a completion time that is 6 % longer than with a rule that goes by
/// throughput and a batch as large as the limits allow.
#[test]
fn imagenet_is_cheaper_by_goodput_than_by_throughput_at_little_more_time() {
    let of = |rule: &str, batching: &str| {
        let sets = [format!("environment.rental.rule={rule}"), format!("environment.batching={batching}")];
        let run = run("autoscaling.toml", &sets.each_ref().map(String::as_str));
        (run.measures.get("cost").unwrap(), run.measures.get("jct_mean_secs").unwrap())
    };
    let (goodput, slower) = of("goodput", "agent");
    let (throughput, faster) = of("throughput", "throughput");
    assert!(goodput < 0.9 * throughput, "{goodput} {throughput}");
    assert!(slower <= 1.1 * faster, "{slower} {faster}");
}

#[test]
fn every_key_of_the_table_changes_the_run() {
    const SHORT: [&str; 2] = ["workload.synthetic.pollux.jobs=12", "evaluate.policies=[\"pollux-fast\"]"];
    let with = |set: &str| {
        let sets: Vec<&str> = SHORT.iter().copied().chain((!set.is_empty()).then_some(set)).collect();
        let run = run("autoscaling-jobs.toml", &sets);
        (run.outcome.rental.clone(), run.measures.get("cost"), run.measures.get("jct_mean_secs"))
    };
    let plain = with("");
    assert_eq!(plain, with(""), "equal runs have equal bills");
    for set in [
        "min_nodes=4",
        "rule=throughput",
        "low=0.5",
        "high=0.9",
        "window=5",
        "interval_secs=30",
        "start_up_secs=600",
        "price_per_hour=8",
        "spot.mean_hours=0.5",
        "spot.price_per_hour=2",
        "spot.notice_secs=600",
    ] {
        assert_ne!(plain, with(&format!("environment.rental.{set}")), "{set}");
    }
}
