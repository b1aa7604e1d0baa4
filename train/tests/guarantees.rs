//! The scenarios of guarantees that ship: what a user has with the table `[resilience]`, and does not have without.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_agents::compose::resilience::Resilience;
use goodput_eval::entries::{held_out, heuristic};
use goodput_eval::run::Comparison;

use crate::shipped::{figures, shipped};

#[test]
fn key_jobs_keep_their_slo_with_the_table_and_not_without() {
    let with = figures(&shipped("key-jobs.toml", &[]), "deadlines_met");
    assert!(with.iter().all(|(_, met)| *met == 1.0), "{with:?}");
    let without = figures(&shipped("key-jobs.toml", &["resilience={}"]), "deadlines_met");
    assert!(without.iter().all(|(_, met)| *met < 0.9), "{without:?}");
}

#[test]
fn a_crash_loop_costs_the_other_tenant_less_than_two_percent() {
    let metric = "deadline_jct_mean_secs";
    let isolation = |sets: &[&str]| -> Vec<(String, f64)> {
        let attacked = figures(&shipped("crash-loop.toml", sets), metric);
        let alone = figures(&shipped("crash-loop.toml", &[sets, &["workload.bursts.0.jobs=1"]].concat()), metric);
        let pairs = attacked.into_iter().zip(alone);
        pairs.map(|((name, attacked), (_, alone))| (name, attacked / alone)).collect()
    };
    let with = isolation(&[]);
    assert!(with.iter().all(|(_, index)| (0.98..=1.02).contains(index)), "{with:?}");
    let without = isolation(&["resilience={}"]);
    assert!(without.iter().all(|(_, index)| *index > 1.02), "{without:?}");
}

/// Guarantees hide jobs for a while: a policy that forgets them would never start them again.
#[test]
fn policies_take_hidden_jobs_in_again() {
    let policies = ["tiresias", "tiresias-l", "tiresias-g", "las", "gandiva", "gavel-max-min", "gavel-fifo"];
    for scenario in ["crash-loop.toml", "key-jobs.toml"] {
        let mut experiment =
            shipped(scenario, if scenario == "crash-loop.toml" { &["workload.bursts.0.jobs=30"] } else { &[] });
        experiment.evaluate.policies = policies.map(str::to_owned).to_vec();
        let met = figures(&experiment, "deadlines_met");
        assert_eq!(met.len(), policies.len());
        // Every run has ended, which a run with a forgotten job does not. Gavel starts jobs at its rounds of 360 s
        // only, which is late for some deadlines.
        let in_time = |(name, met): &(String, f64)| *met > if name.starts_with("gavel") { 0.4 } else { 0.9 };
        assert!(met.iter().all(in_time), "{scenario}: {met:?}");
    }
}

#[test]
fn a_policy_of_services_takes_no_guarantees() {
    let mut experiment = shipped("crash-loop.toml", &[]);
    experiment.evaluate.policies = vec!["fifo+forecast".into()];
    let setup = experiment.setup().unwrap();
    let run = |resilience: Resilience| {
        let entries = vec![heuristic(&experiment, "fifo+forecast", &setup).unwrap()];
        let mut comparison = Comparison::new(entries, held_out(&experiment, 1).unwrap());
        comparison.wrappers.resilience = resilience;
        comparison.run(&|_, _| ())
    };
    let refused = run(experiment.resilience.clone()).unwrap_err().to_string();
    assert!(refused.contains("compare a policy of training jobs"), "{refused}");
}
