//! Speeds belong to an accelerator type: where a job is placed decides how fast it is, and a type
//! without a speed is refused.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{application, elastic, fixed};
use goodput_env::application::Application;
use goodput_env::cluster::{AcceleratorType, Cluster, Node, NodeId, TypeId};
use goodput_env::job::{BatchStage, JobClass, JobSpec, Work, Workload};
use goodput_env::model::{SwitchCost, ThroughputParams};
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Rounds, Scenario, SimOptions};
use goodput_env::sim::{Outcome, SimError, Simulator};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

/// One node of each type, with 4 and 8 accelerators.
fn cluster() -> Cluster {
    let kind = |name: &str| AcceleratorType::named(name);
    let node = |accelerator, gpus| Node::new(accelerator, gpus);
    Cluster { types: vec![kind("slow"), kind("fast")], nodes: vec![node(TypeId(0), 4), node(TypeId(1), 8)] }
}

/// Puts each job on the node its name says, at the size it asked for, and checks what the view says of it.
struct ByName;

impl Policy for ByName {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        for job in view.jobs().filter(|job| job.gpus() == 0) {
            let node = u32::from(job.request().name.contains("fast"));
            plan.set(job.id(), Placement::on(NodeId(node), job.request().gpus));
        }
        plan
    }
}

fn options(batching: Batching) -> SimOptions {
    SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        switch_cost: SwitchCost::Zero,
        batching,
        information: Information::Oracle,
        ..SimOptions::standard()
    }
}

fn run(workload: Workload, batching: Batching) -> Result<Outcome, SimError> {
    let scenario = Scenario::new(Arc::new(cluster()), Arc::new(workload), options(batching), 0);
    Simulator::new(Arc::new(scenario)).run(&mut ByName)
}

fn finish_secs(outcome: &Outcome) -> Vec<f64> {
    outcome.jobs.iter().map(|job| job.finish.unwrap().as_secs_f64()).collect()
}

/// The toy application, `times` faster in every respect on the second type.
pub fn two_speeds(times: f64) -> Arc<Application> {
    let mut app = Arc::unwrap_or_clone(application());
    let slow = app.params["gpu"];
    let fast = ThroughputParams {
        alpha_c: slow.alpha_c / times,
        beta_c: slow.beta_c / times,
        alpha_n: slow.alpha_n / times,
        beta_n: slow.beta_n / times,
        alpha_r: slow.alpha_r / times,
        beta_r: slow.beta_r / times,
        gamma: slow.gamma,
    };
    app.params = BTreeMap::from([("slow".to_string(), slow), ("fast".to_string(), fast)]);
    Arc::new(app)
}

#[test]
fn an_application_is_as_fast_as_the_type_it_is_on() {
    for batching in [Batching::Requested, Batching::Agent, Batching::Catalog] {
        let jobs = vec![elastic("on slow", 0, 8), elastic("on fast", 0, 8)];
        let finish = finish_secs(&run(Workload::new(vec![two_speeds(3.0)], jobs), batching).unwrap());
        assert!((finish[0] / finish[1] - 3.0).abs() < 1e-4, "{batching:?}: {finish:?}");
    }
}

fn steps(name: &str, gpus: u32, class: u16, steps: f64) -> JobSpec {
    JobSpec { work: Work::Steps { class, steps }, ..fixed(name, 0, gpus, 1) }
}

fn class(rates: &[(&str, f64)]) -> Arc<JobClass> {
    let steps_per_sec = rates.iter().map(|&(name, rate)| (name.to_string(), rate)).collect();
    Arc::new(JobClass { name: "class".into(), gpus: 2, steps_per_sec, ..JobClass::default() })
}

#[test]
fn a_job_in_steps_runs_at_the_speed_of_its_class() {
    let classes = vec![class(&[("slow", 2.0), ("fast", 5.0)])];
    let jobs = vec![steps("on slow", 2, 0, 1000.0), steps("on fast", 2, 0, 1000.0)];
    let outcome = run(Workload::of_classes(classes, jobs), Batching::Requested).unwrap();
    assert_eq!(finish_secs(&outcome), [500.0, 200.0]);
}

#[test]
fn a_class_changes_its_batch_size_at_its_stages() {
    // 400 steps at 2 a second, then 600 of the first batch at 3 steps a second that do the work of 4 each.
    let mut staged = Arc::unwrap_or_clone(class(&[("slow", 2.0)]));
    let steps_per_sec = [("slow".to_string(), 3.0)].into();
    staged.later = vec![BatchStage { begins: 400.0, step_work: 4.0, steps_per_sec }];
    let jobs = vec![steps("long", 2, 0, 1000.0), steps("short", 2, 0, 300.0)];
    let workload = Workload::of_classes(vec![Arc::new(staged)], jobs);
    let scenario = Scenario::new(Arc::new(cluster()), Arc::new(workload.clone()), options(Batching::Requested), 0);
    assert_eq!(scenario.mean_work_per_sec(0, 1000.0, TypeId(0)), Some(4.0));
    assert_eq!(scenario.mean_work_per_sec(0, 300.0, TypeId(0)), Some(2.0));
    assert_eq!(finish_secs(&run(workload, Batching::Requested).unwrap()), [200.0 + 50.0, 150.0]);
}

#[test]
fn a_type_without_a_speed_is_an_error_that_names_both() {
    let jobs = vec![steps("on fast", 2, 0, 1000.0)];
    let error = run(Workload::of_classes(vec![class(&[("slow", 2.0)])], jobs), Batching::Requested).unwrap_err();
    assert!(
        matches!(&error, SimError::NoSpeed { application, accelerator } if application == "class" && accelerator == "fast")
    );
    let mut app = Arc::unwrap_or_clone(two_speeds(2.0));
    app.params.remove("fast");
    let error = run(Workload::new(vec![Arc::new(app)], vec![elastic("on fast", 0, 8)]), Batching::Catalog).unwrap_err();
    assert!(error.to_string().contains("toy") && error.to_string().contains("fast"), "{error}");
}

#[test]
fn the_view_tells_types_apart() {
    let jobs = vec![elastic("a", 0, 8), steps("b", 2, 0, 1.0)];
    let mut workload = Workload::new(vec![two_speeds(3.0)], jobs);
    workload.classes = vec![class(&[("fast", 5.0)])];
    let scenario = Scenario::new(Arc::new(cluster()), Arc::new(workload), options(Batching::Catalog), 0);
    let mut simulator = Simulator::new(Arc::new(scenario));
    simulator.run_until_decision().unwrap();
    let view = simulator.view();
    let jobs: Vec<_> = view.jobs().collect();
    let [slow, fast] = [0, 1].map(|kind| jobs[0].rate_on(TypeId(kind), 2).unwrap());
    assert!((fast / slow - 3.0).abs() < 1e-6);
    assert_eq!(jobs[0].rate(2), Some(slow), "blind to types means the first type");
    // Six replicas are one node of the fast type but two of the slow one, which synchronise over the network.
    assert!(jobs[0].rate_on(TypeId(1), 6).unwrap() > 3.0 * jobs[0].rate_on(TypeId(0), 6).unwrap());
    assert_eq!(
        (jobs[1].rate_on(TypeId(0), 2), jobs[1].rate_on(TypeId(1), 2), jobs[1].rate_on(TypeId(1), 1)),
        (None, Some(5.0), None)
    );
    assert!(jobs[0].runs_on(TypeId(0)) && !jobs[1].runs_on(TypeId(0)) && jobs[1].runs_on(TypeId(1)));
    assert_eq!(view.now, SimTime::ZERO);
}
