//! Jobs of one application that share what their agents measure.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use crate::support::{elastic, scenario};
use goodput_env::cluster::{NodeId, TypeId};
use goodput_env::job::{JobId, JobSpec, Work};
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, SimOptions};
use goodput_env::sim::Simulator;
use goodput_env::view::ClusterView;

/// The first job on four accelerators, the second on one; writes down what is known of each.
#[derive(Default)]
struct Witness {
    /// By job, at each decision: most replicas measured, step time on four believed, secs.
    seen: [Vec<(u32, Option<f64>)>; 2],
}

impl Policy for Witness {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        for job in view.jobs() {
            let model = job.goodput_model_on(TypeId(0));
            let step = model.map(|model| model.params.optim_time(1, 4, 32));
            self.seen[job.id().index()].push((job.state.profile.max_replicas(), step));
            if job.gpus() == 0 {
                plan.set(job.id(), Placement::on(NodeId(0), if job.id() == JobId(0) { 4 } else { 1 }));
            }
        }
        plan
    }

    fn batching(&self) -> Batching {
        Batching::Agent
    }
}

fn run(shared_profiles: bool) -> Witness {
    let options = SimOptions {
        batching: Batching::Agent,
        information: Information::Profiled,
        shared_profiles,
        ..SimOptions::standard()
    };
    let job =
        |name, submit| JobSpec { work: Work::Application { index: 0, work_milli: 1000 }, ..elastic(name, submit, 4) };
    let scenario = scenario("1x8", vec![job("first", 0), job("second", 120)], options);
    let mut witness = Witness::default();
    Simulator::new(Arc::clone(&scenario)).run(&mut witness).unwrap();
    witness
}

#[test]
fn a_job_knows_from_its_submission_on_what_others_have_measured() {
    let [alone, shared] = [false, true].map(run);
    assert_eq!(alone.seen[1][0], (0, None), "as published it starts from nothing");
    let (replicas, step) = shared.seen[1][0];
    assert_eq!(replicas, 4);
    let first = shared.seen[0].iter().find(|(replicas, _)| *replicas == 4).unwrap();
    assert!(step.is_some());
    assert_eq!(step, first.1, "it is believed to be as fast as the first one is");
    assert_eq!(alone.seen[1].last().unwrap().0, 1, "without, it never learns of four");
    assert_eq!(shared.seen[1].last().unwrap().0, 4, "its own measurement on one takes nothing away");
}
