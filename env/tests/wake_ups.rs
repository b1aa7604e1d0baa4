//! Policies that are asked as soon as a restart has ended.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use crate::support::{elastic, scenario};
use goodput_env::cluster::NodeId;
use goodput_env::model::SwitchCost;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Rounds, SimOptions};
use goodput_env::sim::Simulator;
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

/// Starts each job on one accelerator when the policy is first asked, and gives the first job four at the first round
/// after that. Notes when the policy is asked.
#[derive(Default)]
struct Asked(Vec<i64>);

impl Policy for Asked {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let now = view.now.as_millis();
        self.0.push(now);
        let mut plan = Plan::keep();
        for job in view.jobs() {
            let gpus = if now >= 300_000 { 4 } else { 1 };
            if job.gpus() < gpus {
                plan.set(job.id(), Placement::on(NodeId(0), gpus));
            }
        }
        plan
    }
}

fn asked(wake_after_restarts: bool) -> Vec<i64> {
    let rounds = Rounds { period: Some(SimTime::from_secs(300)), on_churn: true };
    let switch_cost = SwitchCost::by_name("100s").unwrap();
    let options = SimOptions { rounds, switch_cost, wake_after_restarts, ..SimOptions::standard() };
    let scenario = scenario("1x8", vec![elastic("job", 0, 4)], options);
    let mut policy = Asked::default();
    Simulator::new(Arc::clone(&scenario)).run(&mut policy).unwrap();
    policy.0
}

#[test]
fn policies_are_asked_a_millisecond_after_each_restart() {
    let [rounds, woken] = [false, true].map(asked);
    let more: Vec<i64> = woken.iter().copied().filter(|at| !rounds.contains(at)).collect();
    // The job starts at 0 and grows at 300 s, with a restart of 100 s after the growth.
    assert!(more.contains(&400_001), "{more:?} beside {rounds:?}");
    assert!(rounds.iter().all(|at| woken.contains(at)), "no round is lost: {woken:?}");
    assert!(more.len() <= 2, "once for each restart: {more:?}");
}
