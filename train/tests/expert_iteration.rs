//! Expert iteration from a configuration: a queue with a known optimum, repeatable and resumable, and a change of
//! nothing that saves nothing.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;
use std::sync::atomic::AtomicBool;

use goodput_agents::bundle::{Model, PolicyBundle};
use goodput_agents::policies::utility::{Lever, Theta};
use goodput_agents::zoo;
use goodput_configs::experiment::{AgentConfig, Experiment, ExpertAgent};
use goodput_configs::seeds::HELD_OUT;
use goodput_env::cluster::NodeId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::sim::Simulator;
use goodput_env::view::ClusterView;
use goodput_train::expert_iteration::utility::ExpertEpisodes;
use goodput_train::run_dir::RunDir;
use goodput_train::validate::jct_mean_secs;
use goodput_train::{Hooks, Progress, Trained, train};

use crate::support::train_until;

/// One accelerator, free restarts, and jobs of which the name of the application tells the length.
const QUEUE: &str = r#"
name = "one-accelerator"
[[cluster.groups]]
accelerator = "t4"
nodes = 1
gpus_per_node = 1
[workload.synthetic.diurnal]
jobs = 24
jobs_per_hour = 2.0
[environment]
round_secs = 3600.0
on_churn = true
switch_cost = "zero"
batching = "catalog"
information = "oracle"
[train]
validation_seeds = 6
[evaluate]
policies = []
"#;

fn experiment(agent: ExpertAgent) -> Experiment {
    let mut experiment: Experiment = toml::from_str(QUEUE).unwrap();
    experiment.agent = Some(AgentConfig::Expert(agent));
    experiment
}

/// A start that serves the oldest job first, which is far from the optimum.
fn agent() -> ExpertAgent {
    ExpertAgent {
        teacher: "pollux-fast".into(),
        rounds: 8,
        episodes: 16,
        trials: 16,
        nudge: 1.0,
        tail: 0.0,
        start: [("log_age_secs".to_owned(), 1.0)].into(),
        ..ExpertAgent::default()
    }
}

fn bundle(trained: Trained) -> PolicyBundle {
    match trained {
        Trained::Complete(bundle) => *bundle,
        Trained::Stopped => panic!("stopped"),
    }
}

/// Serves the job with the shortest remaining time on the one accelerator.
struct Shortest;

impl Policy for Shortest {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let left = |id| view.job(id).unwrap().remaining_secs(1).unwrap();
        let shortest = view.jobs().map(|job| job.id()).min_by(|&one, &other| left(one).total_cmp(&left(other)));
        let mut plan = Plan::keep();
        for job in view.jobs() {
            match (Some(job.id()) == shortest, job.gpus()) {
                (true, 0) => plan.set(job.id(), Placement::on(NodeId::at(0), 1)),
                (false, 1) => plan.set(job.id(), Placement::none()),
                _ => {}
            }
        }
        plan
    }
}

/// Mean completion time on held-out workloads, seconds.
fn score(experiment: &Experiment, policy: impl Fn() -> Box<dyn Policy>) -> f64 {
    let setup = experiment.setup().unwrap();
    let runs = (HELD_OUT..HELD_OUT + 20).map(|seed| Simulator::new(setup.scenario(seed)).run(&mut *policy()).unwrap());
    runs.map(|outcome| jct_mean_secs(&outcome)).sum::<f64>() / 20.0
}

/// On one machine with free preemption the shortest remaining processing time first has the least mean completion time
/// (Schrage, Operations Research 16, 1968). The start is six times as far; eight rounds go at least 95 % of the way.
#[test]
fn one_accelerator_is_learned_to_serve_the_shortest_job_first() {
    let (experiment, folder) = (experiment(agent()), tempfile::tempdir().unwrap());
    let learned = bundle(train_until(&experiment, folder.path(), "iterate", None));
    let Model::Utility(utility) = &learned.model else { panic!("{}", learned.kind()) };
    let expert = ExpertEpisodes::new(
        &experiment,
        match &experiment.agent {
            Some(AgentConfig::Expert(agent)) => agent,
            _ => panic!("another agent"),
        },
    );
    let start = Theta::sia().moved(Lever::Weight, &[0.0, 0.0, 1.0]);
    let start = expert.unwrap().bundle(&start, Default::default());
    let before = score(&experiment, || start.policy(Default::default()).unwrap());
    let after = score(&experiment, || learned.policy(Default::default()).unwrap());
    let optimum = score(&experiment, || Box::new(Shortest));
    println!("mean JCT: start {before:.0} s, learned {after:.0} s, optimum {optimum:.0} s, {:?}", utility.theta);
    let closed = (before - after) / (before - optimum);
    assert!(closed >= 0.95, "learned {after:.0} s, optimum {optimum:.0} s: {closed:.3} of the way");
    assert!(before >= 5.0 * optimum, "start {before:.0} s, optimum {optimum:.0} s");
}

#[test]
fn stopping_and_resuming_changes_nothing() {
    let run = |path: &Path, stop_after| {
        let agent = ExpertAgent { rounds: 3, episodes: 2, trials: 2, ..agent() };
        train_until(&experiment(agent), path, "iterate", stop_after)
    };
    let folder = tempfile::tempdir().unwrap();
    let whole = bundle(run(&folder.path().join("whole"), None));
    let parts = folder.path().join("parts");
    assert!(matches!(run(&parts, Some(1)), Trained::Stopped));
    assert_eq!(whole.to_bytes(), bundle(run(&parts, None)).to_bytes());
    let rows = |path: &str| std::fs::read_to_string(folder.path().join(path).join("progress.csv")).unwrap();
    assert_eq!(rows("whole"), rows("parts"));
    assert_eq!(rows("whole").lines().count(), 5, "a header, the start and three rounds");
}

#[test]
fn a_change_of_nothing_saves_nothing_and_a_step_moves_only_its_lever() {
    let labels = |agent: ExpertAgent| {
        ExpertEpisodes::new(&experiment(agent.clone()), &agent).unwrap().labels(&Theta::sia(), 0).unwrap()
    };
    let none = labels(ExpertAgent { nudge: 1e-300, ..agent() });
    assert!(none.len() > 20 && none.iter().all(|label| label.saves == 0.0), "copies play on as the original does");
    assert!(labels(agent()).iter().any(|label| label.saves > 0.0));
    let constant = Lever::Exponent.features().start;
    let single = labels(ExpertAgent { jobs: 1, ..agent() });
    assert!(single.iter().all(|label| label.features[constant].abs() == 1.0), "one job, up or down");
    let sides = [1.0, -1.0].map(|side| single.iter().filter(|label| label.features[constant] == side).count());
    assert!(sides.iter().all(|&count| 4 * count > single.len()), "{sides:?}");
    let moved = Theta::sia().moved(Lever::Horizon, &[0.5, 0.25, 0.125]);
    let changed: Vec<(&str, f64)> = (moved.names().zip(moved.values()).zip(Theta::sia().values()))
        .filter_map(|((name, value), before)| (value != before).then_some((name, value - before)))
        .collect();
    assert_eq!(changed, [("log_horizon", 0.5), ("horizon_by_age", 0.25), ("horizon_by_remaining", 0.125)]);
}

#[test]
fn the_iteration_starts_from_a_policy_and_refuses_one_that_is_no_utility() {
    let shipped = |policy: &str| ExpertAgent { policy: Some(policy.into()), ..agent() };
    let from =
        ExpertAgent { rounds: 1, episodes: 1, trials: 1, step: 1e-12, start: [].into(), ..shipped("zoo:elastic") };
    let folder = tempfile::tempdir().unwrap();
    let learned = bundle(train_until(&experiment(from), folder.path(), "iterate", None));
    let theta = |bundle: PolicyBundle| match bundle.model {
        Model::Utility(utility) => utility.theta,
        _ => panic!("no utility"),
    };
    assert_eq!(
        theta(learned),
        theta(zoo::load("elastic").unwrap()),
        "no round beats the start, so that the start is exported"
    );

    let dir = RunDir::create(&folder.path().join("refused")).unwrap();
    dir.write("config.toml", b"").unwrap();
    let (stop, progress) = (AtomicBool::new(false), |_: Progress| {});
    let hooks = Hooks { stop: &stop, progress: &progress, argv: Vec::new() };
    let refused = train(&experiment(shipped("zoo:set-encoder")), &dir, &hooks).unwrap_err().to_string();
    assert!(refused.contains("agent.expert_iteration.policy") && refused.contains("zoo:set-encoder"), "{refused}");
    let unknown = experiment(shipped("zoo:elastik")).setup().unwrap_err().to_string();
    assert!(unknown.contains("no shipped policy \"elastik\" (did you mean \"elastic\"?)"), "{unknown}");
}
