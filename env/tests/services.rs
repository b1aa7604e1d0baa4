//! Services, pools and loans in the simulator.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::fixed;
use goodput_env::cluster::{Cluster, NodeId, Pool};
use goodput_env::guard::Violation;
use goodput_env::job::{JobId, JobSpec, Workload};
use goodput_env::model::FaultModel;
use goodput_env::model::fault::{Cause, Scripted};
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::scenario::{Rounds, Scenario, SimOptions};
use goodput_env::service::{RateSeries, Service, ServiceId, ServingPoint, ServingProfile, Slo};
use goodput_env::sim::{SimError, Simulator, Status};
use goodput_env::state::Loan;
use goodput_env::time::SimTime;
use goodput_env::view::TrainingViewBuffers;

const WEB: ServiceId = ServiceId(0);

fn secs(secs: i64) -> SimTime {
    SimTime::from_secs(secs)
}

/// 100 requests a second and replica, one at a time; 6 s cold start, 2 s drain.
fn service(per_sec: &[f64]) -> Service {
    let profile = ServingProfile::new(vec![ServingPoint { concurrency: 1, latency_secs: 0.01 }]).unwrap();
    Service {
        name: "web".into(),
        tenant: 0,
        rates: RateSeries::new(secs(60), per_sec).unwrap(),
        arrival_cv2: 1.0,
        work_cv2: 0.0,
        profiles: BTreeMap::from([("gpu".to_string(), profile)]),
        reference: "gpu".into(),
        gpus_per_replica: 1,
        slo: Slo { class: "interactive".into(), latency: SimTime::from_millis(100), target: 0.99 },
        cold_start: secs(6),
        drain: secs(2),
        min_replicas: 0,
        max_replicas: 64,
    }
}

/// Two nodes for training, two for inference, of 4 accelerators each.
fn cluster() -> Cluster {
    let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
    cluster.add_to(Pool::Training, "gpu", 2, 4);
    cluster.add_to(Pool::Inference, "gpu", 2, 4);
    cluster
}

fn simulator(jobs: Vec<JobSpec>, services: Vec<Service>) -> Simulator {
    let services = services.into_iter().map(Arc::new).collect();
    let workload = Workload { services, ..Workload::new(Vec::new(), jobs) };
    let options =
        SimOptions { rounds: Rounds { period: None, on_churn: true }, log_allocations: true, ..SimOptions::standard() };
    Simulator::new(Arc::new(Scenario::new(Arc::new(cluster()), Arc::new(workload), options, 0)))
}

fn refused(simulator: &mut Simulator, plan: &Plan) -> Vec<Violation> {
    match simulator.apply(plan) {
        Err(SimError::Refused { violations, .. }) => violations,
        other => panic!("{other:?}"),
    }
}

fn plan(make: impl FnOnce(&mut Plan)) -> Plan {
    let mut plan = Plan::keep();
    make(&mut plan);
    plan
}

#[test]
fn replicas_start_cold_answer_and_drain() {
    let mut run = simulator(vec![], vec![service(&[0.0, 10.0, 0.0, 0.0])]);
    assert_eq!(run.run_until_decision().unwrap(), Status::Decision);
    assert_eq!((run.now(), run.view().trigger.load), (secs(60), true));
    assert_eq!(run.view().service(WEB).unwrap().history(), [0, 10_000]);
    run.apply(&plan(|plan| plan.scale(WEB, NodeId(2), 1))).unwrap();
    assert_eq!(run.view().free_for_service(NodeId(2)), 3);

    run.run_until_decision().unwrap();
    let view = run.view();
    let web = view.service(WEB).unwrap();
    assert_eq!((run.now(), web.state.ready()), (secs(66), 1), "ready after the cold start");
    assert_eq!(web.backlog(), 60.0, "what came meanwhile waits");

    run.run_until_decision().unwrap();
    assert_eq!((run.now(), run.view().service(WEB).unwrap().backlog()), (secs(120), 0.0));
    run.apply(&plan(|plan| plan.scale(WEB, NodeId(2), 0))).unwrap();
    assert_eq!(run.view().free_for_service(NodeId(2)), 3, "it still drains");
    run.run_until_decision().unwrap();
    assert_eq!((run.now(), run.view().free_for_service(NodeId(2))), (secs(122), 4));

    assert_eq!(run.run_until_decision().unwrap(), Status::Decision, "the series ends");
    assert_eq!(run.run_until_decision().unwrap(), Status::Complete);
    let outcome = run.outcome();
    let record = &outcome.services[0];
    assert_eq!((record.requests, record.waiting, record.gpu_millis), (600_000_000, 0, 62_000));
    assert_eq!((record.nodes.len(), record.nodes[0].node, record.nodes[0].gpu_millis), (1, NodeId(2), 62_000));
}

#[test]
fn pools_keep_training_and_services_apart() {
    let mut run = simulator(vec![fixed("a", 0, 4, 100)], vec![service(&[1.0; 10])]);
    run.run_until_decision().unwrap();
    assert_eq!(run.view().free(), [4, 4, 0, 0]);
    let job = JobId(0);
    let found = refused(&mut run, &plan(|plan| plan.set(job, Placement::on(NodeId(2), 4))));
    assert_eq!(found, [Violation::NotForTraining { job, node: NodeId(2) }]);
    let found = refused(&mut run, &plan(|plan| plan.scale(WEB, NodeId(0), 1)));
    assert!(matches!(found[..], [Violation::Service { node: NodeId(0), .. }]), "{found:?}");
    let found = refused(&mut run, &plan(|plan| plan.scale(WEB, NodeId(2), 5)));
    assert!(matches!(
        found[..],
        [Violation::Service { node: NodeId(2), .. }, Violation::Capacity { node: NodeId(2), missing: 1 }]
    ));
    let found = refused(&mut run, &plan(|plan| plan.lend(NodeId(1))));
    assert!(matches!(found[..], [Violation::Loan { node: NodeId(1), .. }]));
    // Lent and used by one plan.
    run.apply(&plan(|plan| {
        plan.lend(NodeId(2));
        plan.set(job, Placement::on(NodeId(2), 4));
    }))
    .unwrap();
    assert!(run.view().lent(NodeId(2)) && !run.view().may_serve(NodeId(2)));
    let found = refused(&mut run, &plan(|plan| plan.scale(WEB, NodeId(2), 1)));
    assert!(matches!(found[0], Violation::Service { node: NodeId(2), .. }));
}

/// No replica answers one request a second, and nothing happens to the service itself for ten
/// minutes.
#[test]
fn violations_are_counted_up_to_the_present() {
    let mut run = simulator(vec![fixed("a", 0, 4, 1000), fixed("b", 100, 4, 1000)], vec![service(&[1.0; 10])]);
    for (at, late) in [(0, 0), (100, 100)] {
        assert_eq!(run.run_until_decision().unwrap(), Status::Decision);
        assert_eq!((run.now(), run.violated_micros()), (secs(at), 1_000_000 * late));
        assert_eq!(run.violated_micros(), run.clone().outcome().services[0].violated, "as if it ended here");
    }
}

/// The buffers of one policy in two runs with as many nodes, but other types, sizes and pools.
#[test]
fn training_sees_the_machines_of_its_own_run() {
    let mut after = TrainingViewBuffers::default();
    for (kind, gpus, training) in [("gpu", 4, 2), ("t4", 2, 1), ("gpu", 8, 3), ("gpu", 4, 2)] {
        let mut machines = Cluster { types: Vec::new(), nodes: Vec::new() };
        machines.add_to(Pool::Training, kind, training, gpus);
        machines.add_to(Pool::Inference, "gpu", 4 - training, gpus);
        let workload = Workload::new(Vec::new(), vec![fixed("a", 0, 1, 10)]);
        let scenario = Scenario::new(Arc::new(machines.clone()), Arc::new(workload), SimOptions::standard(), 0);
        let mut run = Simulator::new(Arc::new(scenario));
        run.run_until_decision().unwrap();
        let view = run.view();
        let seen = view.for_training(&Plan::keep(), &mut after);
        // Servers of the inference pool are there, without accelerators.
        machines.nodes[training as usize..].iter_mut().for_each(|node| node.gpus = 0);
        assert_eq!(*seen.cluster(), machines);
        assert_eq!(seen.total_free(), training * gpus);
    }
}

#[test]
fn servers_with_replicas_are_not_lent() {
    let mut run = simulator(vec![fixed("a", 0, 4, 100)], vec![service(&[1.0; 10])]);
    run.run_until_decision().unwrap();
    run.apply(&plan(|plan| plan.scale(WEB, NodeId(3), 1))).unwrap();
    let found = refused(&mut run, &plan(|plan| plan.lend(NodeId(3))));
    assert!(matches!(found[..], [Violation::Loan { node: NodeId(3), .. }]));
    // A replica that is still starting goes at once.
    run.apply(&plan(|plan| {
        plan.scale(WEB, NodeId(3), 0);
        plan.lend(NodeId(3));
    }))
    .unwrap();
    assert_eq!(run.view().free(), [4, 4, 0, 4]);
}

#[test]
fn a_server_called_back_comes_home_at_once_with_its_last_job_or_at_its_deadline() {
    for (moves, home) in [(true, 60), (false, 90)] {
        let mut run = simulator(vec![fixed("a", 0, 4, 1000)], vec![service(&[1.0, 2.0, 3.0])]);
        run.run_until_decision().unwrap();
        run.apply(&plan(|plan| {
            plan.lend(NodeId(2));
            plan.set(JobId(0), Placement::on(NodeId(2), 4));
        }))
        .unwrap();
        while run.now() < secs(60) {
            run.run_until_decision().unwrap();
        }
        run.apply(&plan(|plan| {
            plan.reclaim(NodeId(2), secs(90));
            if moves {
                plan.set(JobId(0), Placement::on(NodeId(0), 4));
                plan.scale(WEB, NodeId(2), 2);
            }
        }))
        .unwrap();
        if !moves {
            let view = run.view();
            assert!(matches!(view.loan(NodeId(2)), Loan::Returning { deadline, .. } if deadline == secs(90)));
            assert!(view.lent(NodeId(2)) && !view.may_train(NodeId(2)) && !view.may_serve(NodeId(2)));
            run.run_until_decision().unwrap();
            assert!(run.view().trigger.load);
            assert_eq!(run.view().job(JobId(0)).unwrap().gpus(), 0, "evicted");
        }
        assert_eq!((run.now(), run.view().lent(NodeId(2))), (secs(home), false));
        let record = run.loan_record();
        assert_eq!((record.lent, record.returned, record.evictions), (1, 1, u64::from(!moves)));
        assert_eq!((record.lent_gpu_millis, record.reclaim_millis), (4000 * home, 1000 * (home - 60)));
    }
}

#[test]
fn replicas_on_a_node_that_fails_are_gone_and_others_answer() {
    let script = vec![
        Scripted { at_secs: 70.0, cause: Cause::Node, node: NodeId(2), lasts_secs: Some(30.0) },
        Scripted { at_secs: 80.0, cause: Cause::Accelerator, node: NodeId(3), lasts_secs: Some(30.0) },
    ];
    let services = vec![Arc::new(service(&[0.0, 10.0, 10.0]))];
    let workload = Workload { services, ..Workload::new(Vec::new(), vec![]) };
    let faults = Some(FaultModel::scripted(script));
    let options = SimOptions { rounds: Rounds { period: None, on_churn: true }, faults, ..SimOptions::standard() };
    let mut run = Simulator::new(Arc::new(Scenario::new(Arc::new(cluster()), Arc::new(workload), options, 0)));
    run.run_until_decision().unwrap();
    run.apply(&plan(|plan| {
        plan.scale(WEB, NodeId(2), 3);
        plan.scale(WEB, NodeId(3), 2);
    }))
    .unwrap();
    let mut seen = Vec::new();
    while run.run_until_decision().unwrap() == Status::Decision {
        let view = run.view();
        let replicas = view.service(WEB).unwrap().state.ready();
        seen.push((run.now().as_millis() / 1000, replicas, view.idle_on(NodeId(2)), view.idle_on(NodeId(3))));
    }
    // The first accelerator of node 3 was a replica's.
    assert_eq!(seen, [(66, 5, 1, 2), (70, 2, 0, 2), (80, 1, 0, 2), (100, 1, 4, 2), (110, 1, 4, 3), (180, 1, 4, 3)]);
    let record = &run.outcome().services[0];
    assert_eq!(record.requests, 1_200_000_000);
    let held: i64 = record.nodes.iter().map(|node| node.gpu_millis).sum();
    assert_eq!((held, record.gpu_millis), (3 * 10_000 + 20_000 + 120_000, 170_000));
}

/// Random plans, refused or not: no accelerator is held twice, training and services keep to their
/// pools, requests and accelerator time add up.
#[test]
fn no_plan_breaks_the_books() {
    use goodput_env::seed::{Stream, rng};
    use rand::RngExt;
    let mut applied = 0;
    for seed in 0..40 {
        let mut rng = rng(seed, Stream::Policy);
        let rates: Vec<f64> = (0..30).map(|_| f64::from(rng.random_range(0..800_u32))).collect();
        let mut large = service(&rates);
        (large.gpus_per_replica, large.drain, large.work_cv2) = (2, SimTime::ZERO, 2.0);
        let jobs = crate::support::mixed_jobs(seed, 12, 60).into_iter().filter(|job| job.request.gpus <= 4).collect();
        let services = vec![Arc::new(service(&rates)), Arc::new(large)];
        let workload = Workload { services, ..Workload::new(vec![crate::support::application()], jobs) };
        let mut mixed = cluster();
        mixed.add_to(Pool::Shared, "gpu", 1, 4);
        let options = SimOptions {
            rounds: Rounds { period: Some(secs(30)), on_churn: true },
            horizon: Some(secs(4000)),
            ..SimOptions::standard()
        };
        let mut run = Simulator::new(Arc::new(Scenario::new(Arc::new(mixed), Arc::new(workload), options, seed)));
        let expected: u64 = rates.iter().map(|rate| (rate * 1e6) as u64 * 60).sum();
        while run.run_until_decision().unwrap() == Status::Decision {
            for _ in 0..4 {
                let mut plan = Plan::keep();
                let view = run.view();
                for _ in 0..rng.random_range(1..3) {
                    let node = NodeId(rng.random_range(0..5));
                    match rng.random_range(0..4) {
                        0 => plan.scale(ServiceId(rng.random_range(0..2)), node, rng.random_range(0..4)),
                        1 => plan.lend(node),
                        2 => plan.reclaim(node, view.now + secs(rng.random_range(0..90))),
                        _ => {
                            let jobs: Vec<_> = view.jobs().collect();
                            if let Some(job) = jobs.get(rng.random_range(0..jobs.len().max(1))) {
                                plan.set(job.id(), Placement::on(node, rng.random_range(0..5)));
                            }
                        }
                    }
                }
                applied += u32::from(run.apply(&plan).is_ok());
                let view = run.view();
                for node in NodeId::first(5) {
                    let held: u32 = view
                        .jobs()
                        .flat_map(|job| job.state.placement.slices().to_vec())
                        .filter(|s| s.node == node)
                        .map(|s| s.gpus)
                        .sum();
                    let replicas = |service: goodput_env::view::ServiceView<'_>| {
                        let here = service.state.replicas.iter().filter(|replica| replica.node == node).count();
                        here as u32 * service.gpus_per_replica()
                    };
                    let served: u32 = view.services().map(replicas).sum();
                    assert_eq!(view.idle_on(node) + held + served, 4);
                    assert_eq!((held, served), (view.trained_on(node), view.served_on(node)));
                    let returning = matches!(view.loan(node), Loan::Returning { .. });
                    assert!(held == 0 || view.may_train(node) || returning);
                    assert!(served == 0 || view.may_serve(node));
                    assert!(!returning || held > 0, "an empty server is home");
                }
            }
        }
        let outcome = run.outcome();
        let trained: i64 = outcome.training.iter().map(|on| on.gpu_millis).sum();
        assert_eq!(trained, outcome.jobs.iter().map(|job| job.attained_gpu_millis).sum::<i64>());
        for record in &outcome.services {
            assert_eq!(record.requests, expected);
            assert!(record.violated <= record.requests && record.waiting <= record.requests);
            assert_eq!(record.latencies.iter().sum::<u64>(), record.requests);
            assert_eq!(record.nodes.iter().map(|on| on.gpu_millis).sum::<i64>(), record.gpu_millis);
            assert!(record.nodes.iter().map(|on| on.requests).sum::<u64>() <= record.requests);
            assert!(record.nodes.iter().all(|on| on.violated <= on.requests));
        }
    }
    assert!(applied > 1000, "{applied} plans were applied");
}
