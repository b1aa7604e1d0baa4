//! Evolution from a configuration: repeatable, resumable, on seeds of its own, and never exported
//! where it is worse than its teacher.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

use goodput_agents::bundle::{Model, PolicyBundle};
use goodput_agents::policies::utility::{Experience, Group, Theta, Utility};
use goodput_configs::experiment::{AgentConfig, Experiment, GateRivals, TrainConfig};
use goodput_configs::seeds::{HELD_OUT, VALIDATION, training_seed};
use goodput_eval::entries;
use goodput_eval::entries::learned_entry;
use goodput_eval::run::Comparison;
use goodput_train::Trained;
use goodput_train::gate::judge;
use goodput_train::validate::Validation;

use crate::support::train_until;

const ELASTIC: &str = include_str!("../../configs/experiment/elastic.toml");

/// The headline's experiment, small.
fn experiment() -> Experiment {
    let text = ELASTIC.replace("work_spread = 1.0", "work_spread = 1.0\njobs = 20\nhours = 1");
    let mut experiment: Experiment = toml::from_str(&text).unwrap();
    experiment.cluster.groups[0].nodes = 4;
    experiment.train.loads = vec![0.5, 1.0];
    experiment.train.validation_seeds = 1;
    experiment.train.gate = GateRivals::Teacher;
    experiment.evaluate.loads = vec![0.5, 1.0];
    let Some(AgentConfig::Evolution(agent)) = &mut experiment.agent else { panic!("not an evolution") };
    (agent.population, agent.generations, agent.episodes, agent.validate_every) = (4, 3, 2, 2);
    experiment
}

fn run(path: &Path, stop_after: Option<u64>) -> Trained {
    train_until(&experiment(), path, "evolve", stop_after)
}

fn bundle(trained: Trained) -> PolicyBundle {
    match trained {
        Trained::Complete(bundle) => *bundle,
        Trained::Stopped => panic!("stopped"),
    }
}

#[test]
fn stopping_and_resuming_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let whole = bundle(run(&folder.path().join("whole"), None));
    let parts = folder.path().join("parts");
    assert!(matches!(run(&parts, Some(1)), Trained::Stopped));
    let resumed = bundle(run(&parts, None));
    assert_eq!(whole.to_bytes(), resumed.to_bytes());
    let Model::Utility(utility) = &whole.model else { panic!("{}", whole.kind()) };
    assert_ne!(utility.theta, Theta::sia(), "it has moved");
    assert!(utility.experience.models().any(|(model, _)| model == "cifar10"));

    // What was trained runs on the held-out seeds of every load.
    let scenarios = entries::held_out(&experiment(), 2).unwrap();
    let names: Vec<&str> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
    assert_eq!(names, ["load 0.5", "load 0.5", "load 1", "load 1"]);
    let jobs: Vec<usize> = scenarios.iter().map(|named| named.scenario.workload.jobs.len()).collect();
    assert_eq!(jobs, [10, 10, 20, 20]);
    let setup = experiment().setup().unwrap();
    let entries = ["pollux-fast", "optimus"].map(|name| entries::heuristic(&experiment(), name, &setup).unwrap());
    let policies = std::iter::once(learned_entry("learned", &whole, Default::default(), setup.sharing()).unwrap())
        .chain(entries)
        .collect();
    let evaluation = Comparison::new(policies, scenarios).run(&|_, _| ()).unwrap();
    assert!(evaluation.runs.iter().all(|run| !run.outcome.truncated));
    let levels: Vec<&str> = evaluation.summary.policies.iter().map(|policy| policy.information.as_str()).collect();
    assert_eq!(levels, ["profiled", "profiled", "estimate (sigma 0.5)"]);
    let versus = evaluation.summary.policies[1].versus_reference.as_ref().unwrap();
    let differences = versus.by_workload.values().map(|on| on.difference["jct_mean_secs"].value);
    let mean = differences.sum::<f64>() / 2.0;
    assert!((mean - versus.difference["jct_mean_secs"].value).abs() < 1e-6, "the loads count alike");
}

#[test]
fn what_is_worse_than_its_teacher_does_not_pass() {
    let folder = tempfile::tempdir().unwrap();
    let good = bundle(run(&folder.path().join("run"), None));
    // The elastic term is off: no job is given a second accelerator.
    let mut values = Theta::sia().values();
    values[Theta::sia().names().position(|name| name == "log_horizon").unwrap()] = -20.0;
    let utility = Utility {
        theta: Theta::new(&values).unwrap(),
        experience: Experience::default(),
        siblings: false,
        efficiency: true,
    };
    let bad = PolicyBundle { model: Model::Utility(utility), ..good };
    let verdict = judge(&experiment(), &bad).unwrap().unwrap();
    assert!(!verdict.passes(), "{verdict:?}");
    assert_eq!(verdict.rival, "pollux-fast");
    let itself = goodput_train::gate::GateVerdict { learned_jct_secs: verdict.rival_jct_secs, ..verdict };
    assert!(itself.passes());
}

#[test]
fn the_best_heuristic_stands_at_the_gate_and_shares_what_jobs_measure() {
    let folder = tempfile::tempdir().unwrap();
    let learned = bundle(run(&folder.path().join("run"), None));
    let mut experiment = experiment();
    let Some(AgentConfig::Evolution(agent)) = &mut experiment.agent else { panic!("not an evolution") };
    agent.teacher = "fifo".into();
    let taught = judge(&experiment, &learned).unwrap().unwrap();
    assert_eq!(taught.rival, "fifo");
    experiment.train.gate = GateRivals::Heuristics;
    // The genetic search would take minutes, under whatever name.
    experiment.evaluate.policies = ["pollux", "pollux(population=50)", "tiresias", "sia"].map(String::from).to_vec();
    let best = judge(&experiment, &learned).unwrap().unwrap();
    assert_eq!(best.rival, "sia");
    assert!(best.rival_jct_secs < taught.rival_jct_secs);
    // Sia, told what other jobs measured.
    (experiment.train.gate, experiment.environment.shared_profiles) = (GateRivals::Teacher, true);
    let Some(AgentConfig::Evolution(agent)) = &mut experiment.agent else { panic!("not an evolution") };
    agent.teacher = "sia".into();
    let told = judge(&experiment, &learned).unwrap().unwrap();
    assert_eq!((told.rival_jct_secs, told.learned_jct_secs), (best.rival_jct_secs, best.learned_jct_secs));
    experiment.environment.shared_profiles = false;
    assert_ne!(judge(&experiment, &learned).unwrap().unwrap().rival_jct_secs, told.rival_jct_secs);
}

#[test]
fn training_never_meets_validation_or_held_out_seeds() {
    let reserved = HELD_OUT..VALIDATION + 1_000_000;
    for master in 0..200 {
        for index in 0..64 {
            // Episodes count up from here, a million of them at most.
            let first = training_seed(master, index);
            assert!(first > reserved.end && first.checked_add(1_000_000).is_some(), "{master} {index}: {first}");
        }
    }
}

#[test]
fn a_training_over_switching_costs_is_validated_at_each_of_them() {
    let mut experiment = experiment();
    experiment.evaluate.policies = vec!["sia".into()];
    let validated = |costs: &[&str]| {
        let costs = costs.iter().map(|&cost| cost.to_owned()).collect();
        let experiment =
            Experiment { train: TrainConfig { switch_costs: costs, ..experiment.train.clone() }, ..experiment.clone() };
        Validation::new(&experiment, &experiment.setup().unwrap()).unwrap().best_heuristic_jct_secs
    };
    let (none, long) = (validated(&["zero"]), validated(&["600s"]));
    assert!(none < long, "{none} {long}");
    assert!((validated(&["zero", "600s"]) - f64::midpoint(none, long)).abs() < 1e-6);

    experiment.train.switch_costs = vec!["zero".into(), "600s".into()];
    let Some(AgentConfig::Evolution(agent)) = &mut experiment.agent else { panic!("not an evolution") };
    (agent.generations, agent.episodes) = (1, 4);
    let folder = tempfile::tempdir().unwrap();
    let found = bundle(train_until(&experiment, &folder.path().join("run"), "evolve", None));
    let Model::Utility(utility) = &found.model else { panic!("{}", found.kind()) };
    assert_eq!(utility.theta.groups().iter().collect::<Vec<_>>(), [&Group::Restarts]);
}

#[test]
fn frozen_parameters_stay_where_they_start() {
    let mut experiment = experiment();
    let frozen = ["log_remaining_gpu_secs", "exponent", "log_doubt"];
    let Some(AgentConfig::Evolution(agent)) = &mut experiment.agent else { panic!("not an evolution") };
    agent.generations = 1;
    agent.start = [("exponent".to_owned(), -0.375)].into();
    agent.freeze = frozen.map(String::from).to_vec();
    let folder = tempfile::tempdir().unwrap();
    let found = bundle(train_until(&experiment, &folder.path().join("run"), "evolve", None));
    let Model::Utility(utility) = &found.model else { panic!("{}", found.kind()) };
    let theta = &utility.theta;
    let moved: Vec<&str> = theta
        .names()
        .zip(theta.values().into_iter().zip(Theta::sia().values()))
        .filter(|(_, (found, start))| (found - start).abs() > 1e-6)
        .map(|(name, _)| name)
        .collect();
    assert_eq!(theta.names().count() - moved.len(), frozen.len() - 1, "{moved:?}");
    assert!(!moved.contains(&"log_doubt") && !moved.contains(&"log_remaining_gpu_secs"));
    let exponent = theta.names().zip(theta.values()).find(|(name, _)| *name == "exponent");
    assert_eq!(exponent, Some(("exponent", -0.375)));

    let Some(AgentConfig::Evolution(agent)) = &mut experiment.agent else { panic!("not an evolution") };
    agent.freeze = vec!["loan_caution".into()];
    let refused = experiment.setup().map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("agent.evolution.freeze") && refused.contains("loan_caution"), "{refused}");
}

#[test]
fn experiments_have_the_groups_of_parameters_that_they_give_a_meaning() {
    let groups = |text: &str| toml::from_str::<Experiment>(text).unwrap().groups().collect::<Vec<_>>();
    assert_eq!(groups(ELASTIC), []);
    assert_eq!(groups(include_str!("../../configs/experiment/mixed.toml")), [Group::Loans]);
    assert_eq!(groups(include_str!("../../configs/experiment/tenants.toml")), [Group::Tenants]);
    assert_eq!(groups(include_str!("../../configs/experiment/faults.toml")), [Group::Faults]);
    assert_eq!(groups(include_str!("../../configs/experiment/restart-costs.toml")), [Group::Restarts]);
}
