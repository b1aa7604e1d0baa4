//! Published constants of restarts, and moves between equal nodes that some published simulators do
//! not charge.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use crate::support::fixed;
use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::job::Workload;
use goodput_env::model::SwitchCost;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Preset, Scenario, SimOptions};
use goodput_env::sim::{Outcome, Simulator};
use goodput_env::view::ClusterView;

/// Gives the first two jobs a node each and swaps them at every round; the third job gets what is free.
#[derive(Default)]
struct Swap(u32);

impl Policy for Swap {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.0 += 1;
        let mut plan = Plan::keep();
        for job in view.jobs() {
            let id = job.id();
            match id.0 {
                0 | 1 => plan.set(id, Placement::on(NodeId((id.0 + self.0) % 2), 2)),
                _ => plan.set(id, Placement::on(NodeId(0), 1)), // stays while the others swap
            }
        }
        plan
    }
}

fn run(free_moves: bool) -> Outcome {
    let jobs = vec![fixed("a", 0, 2, 300), fixed("b", 0, 2, 300), fixed("c", 0, 1, 300)];
    let workload = Workload::new(Vec::new(), jobs);
    let options = SimOptions { free_moves, ..Preset::SiaSosp23.options(Batching::Requested, Information::Profiled) };
    let scenario = Scenario::new(Arc::new(Cluster::homogeneous(2, 3)), Arc::new(workload), options, 0);
    Simulator::new(Arc::new(scenario)).run(&mut Swap::default()).unwrap()
}

#[test]
fn a_move_between_equal_nodes_is_free_only_where_the_run_says_so() {
    let outcome = run(true);
    // One start of 30 s, then 300 s undisturbed.
    let held = |at: usize| (outcome.jobs[at].finish.unwrap() - outcome.jobs[at].start.unwrap()).as_secs_f64();
    assert_eq!([0, 1, 2].map(held), [330.0; 3]);
    assert_eq!([0, 1, 2].map(|at| outcome.jobs[at].restarts), [0; 3]);
    let outcome = run(false);
    assert!(outcome.jobs[0].restarts >= 5 && outcome.jobs[2].restarts == 0);
    assert!(outcome.jobs[0].jct().unwrap().as_secs_f64() > 500.0);
}

#[test]
fn restarts_cost_what_was_published() {
    let secs = |name: &str, application: &str| SwitchCost::by_name(name).unwrap().cost_millis(application, 1, 2) / 1000;
    let apps = ["imagenet", "bert", "yolov3", "cifar10", "deepspeech2", "ncf", "gpt_pmp"];
    let row = |name: &str| apps.map(|application| secs(name, application));
    assert_eq!(row("sia_full"), [250, 120, 80, 50, 25, 15, 30]);
    assert_eq!(row("sia_policy"), [250, 120, 80, 20, 25, 30, 30]);
    assert_eq!(row("sia_simulated_policy"), [250, 120, 45, 30, 25, 30, 30]);
    assert_eq!(row("deepboot_full")[..6], [35, 103, 26, 24, 18, 25]);
    assert_eq!(row("deepboot_uniform"), [60; 7]);
    for application in ["bert", "imagenet"] {
        assert!(secs("zero", application) < secs("deepboot_full", application));
        assert!(secs("deepboot_full", application) < secs("sia_full", application));
    }
    assert!(SwitchCost::names().iter().all(|name| SwitchCost::by_name(name).is_some()));
}
