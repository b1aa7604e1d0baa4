//! Demonstrations of a teacher's plans where accelerator types are told apart.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use crate::support::{on_slow_and_fast, random_workload};
use goodput_agents::compose::by_name;
use goodput_agents::learning::teacher::Teacher;
use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::gym::{Action, Round, layout};
use goodput_env::scenario::{Batching, Information, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::{Simulator, Status};

/// Rounds of Sia, which moves jobs between types: the result of the demonstrated actions is
/// compared with the plan, job by job. Ladders have sizes that Sia's configurations lack and the
/// other way round, and two jobs cannot change places within a round, so not all can be equal.
#[test]
fn the_actions_shown_end_in_the_plan() {
    let layout = layout(64).by_type(2);
    let (mut same, mut all, mut moves, mut shown) = (0, 0, 0, 0);
    for seed in 0..10 {
        let options =
            SimOptions { batching: Batching::Catalog, information: Information::Oracle, ..SimOptions::standard() };
        let workload = on_slow_and_fast(random_workload(&mut rng(seed, Stream::Workload), 40, 8));
        let cluster = Cluster::parse("slow:4x4,fast:2x8").unwrap();
        let scenario = Scenario::new(Arc::new(cluster), Arc::new(workload), options, seed);
        let mut simulator = Simulator::new(Arc::new(scenario));
        let (mut policy, mut teacher) = (by_name("sia", 0).unwrap(), Teacher::new(by_name("sia", 0).unwrap()));
        let mut round = Round::default();
        while simulator.run_until_decision().unwrap() == Status::Decision {
            let view = simulator.view();
            let plan = policy.decide(&view);
            round.begin(&view, &layout);
            teacher.begin(&view, &round);
            loop {
                let action = teacher.action(&round, &layout);
                match Action::decode(action, &layout) {
                    Some(Action::Change { slot, verb }) => assert!(round.change(slot, verb), "{verb} of {slot}"),
                    _ => break,
                }
            }
            for change in &plan.changes {
                let slot = round.slots().iter().find(|slot| slot.job == change.job).unwrap();
                let held = &view.job(change.job).unwrap().state.placement;
                let kind = |node: NodeId| view.cluster().type_of(node);
                let wanted = change.placement.slices().first().map(|slice| kind(slice.node));
                let before = held.slices().first().map(|slice| kind(slice.node));
                let kept =
                    slot.working == change.placement.gpus() && wanted.is_none_or(|kind| kind == slot.accelerator);
                (same, all) = (same + u32::from(kept), all + 1);
                if before.is_some() && wanted.is_some() && before != wanted {
                    moves += 1;
                    shown += u32::from(wanted == Some(slot.accelerator) && slot.working > 0);
                }
            }
            simulator.apply(&plan).unwrap();
        }
    }
    println!("{same} of {all} as planned; {shown} of {moves} moves");
    assert!(moves > 100 && f64::from(shown) > 0.7 * f64::from(moves), "{shown} of {moves} moves");
    assert!(f64::from(same) > 0.9 * f64::from(all), "{same} of {all} as planned");
}
