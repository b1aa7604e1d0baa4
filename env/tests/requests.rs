//! Inference requests one at a time: the life of an instance, what the guard refuses, and that
//! accelerators are never in two hands.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use goodput_env::cluster::{Cluster, NodeId, Pool};
use goodput_env::guard::{Guard, Violation};
use goodput_env::job::{Elasticity, JobId, JobRequest, JobSpec, Work, Workload};
use goodput_env::model::fault::{Cause, Scripted};
use goodput_env::model::{FaultModel, SwitchCost};
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::request::{Assign, InferenceRequest, InstanceId, RequestId, ServedModel, Target};
use goodput_env::scenario::{InstanceOptions, Rounds, Scenario, SimOptions};
use goodput_env::sim::{Outcome, Served, SimError, Simulator, Status};
use goodput_env::state::InstanceState;
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

fn secs(secs: i64) -> SimTime {
    SimTime::from_secs(secs)
}

fn served(names: &[&str]) -> Vec<ServedModel> {
    names.iter().map(|name| ServedModel { name: (*name).into(), application: "cifar10".into() }).collect()
}

fn request(model: u16, submit: i64, duration: i64) -> InferenceRequest {
    InferenceRequest { model, submit: secs(submit), duration: secs(duration) }
}

fn fixed_job(submit: i64, gpus: u32, duration: i64) -> JobSpec {
    let elasticity = Elasticity::Rigid;
    let request = JobRequest {
        name: format!("job-{submit}"),
        tenant: 0,
        submit: secs(submit),
        gpus,
        batch_size: None,
        elasticity,
        ..JobRequest::default()
    };
    JobSpec { request, work: Work::Fixed { duration: secs(duration) } }
}

fn simulator(nodes: u32, gpus: u32, jobs: Vec<JobSpec>, models: &[&str], requests: Vec<InferenceRequest>) -> Simulator {
    let workload = Workload { requests, served: served(models), ..Workload::new(Vec::new(), jobs) };
    let options = SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        switch_cost: SwitchCost::Zero,
        log_allocations: true,
        ..SimOptions::standard()
    };
    let cluster = Cluster::homogeneous(nodes, gpus);
    Simulator::new(Arc::new(Scenario::new(Arc::new(cluster), Arc::new(workload), options, 1)))
}

/// Policy that serves requests in order of arrival: an idle instance of the model, else any free
/// accelerator. Jobs start where they fit.
struct Greedy;

impl Policy for Greedy {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut free = view.free().to_vec();
        let mut plan = Plan::keep();
        for job in view.jobs().filter(|job| !job.state.is_allocated()) {
            let gpus = job.request().gpus;
            if let Some(node) = free.iter().position(|&free| free >= gpus) {
                free[node] -= gpus;
                plan.set(job.id(), Placement::on(NodeId::at(node), gpus));
            }
        }
        for &request in view.waiting_requests() {
            let model = view.request(request).unwrap().model;
            let named = |id: InstanceId| plan.assign.iter().any(|assign| assign.target == Target::Instance(id));
            let idle = view.instances().of_model(model).find(|(id, instance)| {
                instance.is_idle() && !named(*id) && (!instance.is_free() || free[instance.node.index()] > 0)
            });
            let target = match idle {
                Some((id, instance)) => {
                    free[instance.node.index()] -= u32::from(instance.is_free());
                    Some(Target::Instance(id))
                }
                None => free.iter().position(|&free| free > 0).map(|node| {
                    free[node] -= 1;
                    Target::Node(NodeId::at(node))
                }),
            };
            plan.assign.extend(target.map(|target| Assign { request, target }));
        }
        plan
    }
}

fn run(simulator: Simulator) -> Outcome {
    simulator.run(&mut Greedy).unwrap()
}

#[test]
fn protection_grows_with_hits_to_a_limit() {
    let protection = |hits| InstanceOptions::DEEPBOOT.protection(hits).as_millis() / 1000;
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7, 8].map(protection), [30, 45, 60, 75, 90, 105, 120, 120, 120]);
    let longer = InstanceOptions { protect_times: 8.0, ..InstanceOptions::DEEPBOOT };
    assert_eq!((longer.protection(0), longer.protection(20)), (secs(240), secs(960)));
}

/// One accelerator, requests of 10 s at 0, 20, 60, 130 and 400, cold start 6 s.
#[test]
fn the_life_of_an_instance() {
    let requests = [0, 20, 60, 130, 400].map(|at| request(0, at, 10)).to_vec();
    // A job keeps the run going until the last protection is over.
    let jobs = vec![fixed_job(1000, 1, 1)];
    let mut simulator = simulator(1, 1, jobs, &["infer-cifar10-1"], requests);
    let mut states = Vec::new();
    while simulator.run_until_decision().unwrap() == Status::Decision {
        let plan = Greedy.decide(&simulator.view());
        simulator.apply(&plan).unwrap();
        states.push(simulator.view().instances().iter().map(|(_, one)| (one.state, one.hits)).collect::<Vec<_>>());
    }
    let run =
        |request, until, hits| vec![(InstanceState::Run { request: RequestId(request), until: secs(until) }, hits)];
    let expected = vec![run(0, 16, 0), run(1, 30, 1), run(2, 70, 2), run(3, 140, 3), run(4, 410, 0), vec![]];
    assert_eq!(states[..6], expected, "130 s is within the protection; the job of 1000 s takes the accelerator");
    let outcome = simulator.outcome();
    let finish: Vec<_> = outcome.requests.iter().map(|one| one.finish.unwrap().as_millis() / 1000).collect();
    assert_eq!(finish, [16, 30, 70, 140, 410]);
    let served: Vec<_> = outcome.requests.iter().map(|one| one.served.unwrap()).collect();
    assert_eq!(served, [Served::Cold, Served::Hit, Served::Hit, Served::Hit, Served::Reused]);
    // Protected from 16, 30, 70, 140 and 410: until 20, 60, 130, 215 and 440, each end a
    // millisecond later where no request came.
    let protected = 4 + 30 + 60 + 75 + 30;
    assert_eq!(outcome.instance_protect_millis, 1000 * protected + 2);
    assert_eq!((outcome.instance_run_millis, outcome.instance_cold_millis), (56_000, 6_000));
    let usage: Vec<_> =
        outcome.instance_usage.iter().map(|one| (one.at.as_millis(), one.running, one.protected)).collect();
    assert_eq!(usage[..3], [(0, 1, 0), (16_000, 0, 1), (20_000, 1, 0)]);
    assert_eq!(usage[7..9], [(140_000, 0, 1), (215_001, 0, 0)], "protected at 215 s, free after it");
}

#[test]
fn without_keeping_every_request_starts_cold() {
    let requests = [0, 20, 60].map(|at| request(0, at, 10)).to_vec();
    let base = simulator(1, 1, Vec::new(), &["m"], requests);
    let mut scenario = (**base.scenario()).clone();
    scenario.options.instances.keep = false;
    let outcome = run(Simulator::new(Arc::new(scenario)));
    assert!(outcome.requests.iter().all(|one| one.served == Some(Served::Cold)));
    assert_eq!((outcome.instance_protect_millis, outcome.instance_cold_millis), (0, 18_000));
}

#[test]
fn a_job_takes_the_accelerator_of_a_free_instance_and_never_of_a_protected_one() {
    let job = |submit| fixed_job(submit, 2, 100);
    let outcome = run(simulator(1, 2, vec![job(10), job(200)], &["m"], vec![request(0, 0, 10)]));
    // Runs to 16, protected to 46 with both ends: the first job, which needs both accelerators,
    // starts when the instance is free.
    let starts: Vec<_> = outcome.jobs.iter().map(|job| job.start.unwrap().as_millis()).collect();
    assert_eq!(starts[1], 200_000, "{starts:?}");
    assert_eq!(starts[0], 46_001);
}

#[test]
fn the_guard_refuses_bad_assignments_and_changes_nothing() {
    let requests = vec![request(0, 0, 10), request(1, 1, 10), request(0, 1, 10), request(0, 99, 1)];
    let mut simulator = simulator(2, 1, Vec::new(), &["m", "n"], requests);
    assert_eq!(simulator.run_until_decision().unwrap(), Status::Decision);
    let to = |request, target| Assign { request: RequestId(request), target };
    let check = |simulator: &Simulator, assign: &[Assign]| {
        let plan = Plan { assign: assign.to_vec(), ..Plan::keep() };
        Guard::default().check(&simulator.view(), &plan).err().unwrap_or_default()
    };
    assert!(check(&simulator, &[to(0, Target::Node(NodeId(1)))]).is_empty());
    let plan = Plan { assign: vec![to(0, Target::Node(NodeId(0)))], ..Plan::keep() };
    simulator.apply(&plan).unwrap();
    assert_eq!(simulator.run_until_decision().unwrap(), Status::Decision);
    let first = InstanceId(0);
    for (assign, says) in [
        (vec![to(0, Target::Node(NodeId(1)))], "does not wait"),
        (vec![to(3, Target::Node(NodeId(1)))], "does not wait"),
        (vec![to(2, Target::Node(NodeId(7)))], "no such node"),
        (vec![to(2, Target::Instance(InstanceId(9)))], "no such instance"),
        (vec![to(2, Target::Instance(first))], "busy"),
        (vec![to(1, Target::Instance(first))], "another model"),
        (vec![to(2, Target::Node(NodeId(1))), to(2, Target::Node(NodeId(1)))], "named twice"),
        (vec![to(1, Target::Node(NodeId(0)))], "short of 1"),
        (vec![to(1, Target::Node(NodeId(1))), to(2, Target::Node(NodeId(1)))], "short of 1"),
    ] {
        let violations: Vec<Violation> = check(&simulator, &assign);
        assert!(violations.iter().any(|one| one.to_string().contains(says)), "{assign:?}: {violations:?}");
        let plan = Plan { assign, ..Plan::keep() };
        assert!(matches!(simulator.apply(&plan), Err(SimError::Refused { .. })));
        assert_eq!(simulator.view().waiting_requests(), [RequestId(1), RequestId(2)]);
    }
    let mut mixed = Plan { assign: vec![to(1, Target::Node(NodeId(1)))], ..Plan::keep() };
    mixed.set(JobId(0), Placement::on(NodeId(1), 1));
    assert!(simulator.apply(&mixed).is_err(), "the job does not exist");
}

/// One node for training, two servers for inference, of two accelerators each: where a request may
/// be answered, and when a server may be lent.
#[test]
fn requests_stay_off_servers_that_are_called_back_or_elsewhere_and_lent_ones_are_whole() {
    let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
    cluster.add_to(Pool::Training, "gpu", 1, 2);
    cluster.add_to(Pool::Inference, "gpu", 2, 2);
    let requests =
        vec![request(0, 0, 10), request(0, 1, 10), request(0, 100, 10), request(0, 200, 10), request(0, 300, 10)];
    let jobs = vec![fixed_job(0, 1, 1000)];
    let workload = Workload { requests, served: served(&["m"]), ..Workload::new(Vec::new(), jobs) };
    let options = SimOptions { rounds: Rounds { period: None, on_churn: true }, ..SimOptions::standard() };
    let mut run = Simulator::new(Arc::new(Scenario::new(Arc::new(cluster), Arc::new(workload), options, 1)));
    let to = |request, target| Assign { request: RequestId(request), target };
    let plan = |assign: Option<Assign>, loans: &dyn Fn(&mut Plan)| {
        let mut plan = Plan { assign: assign.into_iter().collect(), ..Plan::keep() };
        loans(&mut plan);
        plan
    };
    let refused = |run: &Simulator, plan: &Plan, says: &str| {
        let violations = Guard::default().check(&run.view(), plan).unwrap_err();
        assert!(violations.iter().any(|one| one.to_string().contains(says)), "{says}: {violations:?}");
    };
    let next = |run: &mut Simulator, request: u32| {
        while !run.view().waiting_requests().contains(&RequestId(request)) {
            assert_eq!(run.run_until_decision().unwrap(), Status::Decision);
        }
    };

    next(&mut run, 0);
    refused(&run, &plan(Some(to(0, Target::Node(NodeId(0)))), &|_| {}), "the node is for training");
    refused(&run, &plan(Some(to(0, Target::Node(NodeId(1)))), &|plan| plan.lend(NodeId(1))), "lent by the same plan");
    run.apply(&plan(Some(to(0, Target::Node(NodeId(1)))), &|_| {})).unwrap();
    // The first request is being answered on node 1, so node 1 stays. Node 2 goes, with a job on one half.
    next(&mut run, 1);
    refused(&run, &plan(None, &|plan| plan.lend(NodeId(1))), "a request is being answered on it");
    let lend = |plan: &mut Plan| {
        plan.lend(NodeId(2));
        plan.set(JobId(0), Placement::on(NodeId(2), 1));
    };
    run.apply(&plan(None, &lend)).unwrap();
    run.apply(&plan(Some(to(1, Target::Node(NodeId(2)))), &|_| {})).expect("the other half may answer");
    // Both instances are warm by now.
    next(&mut run, 2);
    let on = |run: &Simulator, node: NodeId| {
        run.view().instances().iter().find(|(_, one)| one.node == node).map(|(id, _)| id)
    };
    let warm = on(&run, NodeId(2)).unwrap();
    let call = |plan: &mut Plan| plan.reclaim(NodeId(2), secs(250));
    refused(&run, &plan(Some(to(2, Target::Instance(warm))), &call), "called back");
    run.apply(&plan(None, &call)).unwrap();
    refused(&run, &plan(Some(to(2, Target::Instance(warm))), &|_| {}), "called back");
    refused(&run, &plan(Some(to(2, Target::Node(NodeId(2)))), &|_| {}), "called back");
    // Node 1 goes to another cluster and leaves its instance behind.
    next(&mut run, 3);
    assert!(on(&run, NodeId(1)).is_some() && run.hand_over(NodeId(1)));
    assert_eq!(on(&run, NodeId(1)), None);
    refused(&run, &plan(Some(to(2, Target::Node(NodeId(1)))), &|_| {}), "belongs to another cluster");
    assert!(run.take_over(NodeId(1)));
    // Node 2 is home since its deadline.
    next(&mut run, 4);
    let both = Plan { assign: vec![to(2, Target::Node(NodeId(1))), to(3, Target::Node(NodeId(2)))], ..Plan::keep() };
    run.apply(&both).unwrap();
}

#[test]
fn requests_that_nobody_answers_are_an_error() {
    struct Idle;
    impl Policy for Idle {
        fn decide(&mut self, _: &ClusterView<'_>) -> Plan {
            Plan::keep()
        }
    }
    let simulator = simulator(1, 1, Vec::new(), &["infer-bert-1"], vec![request(0, 5, 1)]);
    let error = simulator.run(&mut Idle).unwrap_err().to_string();
    assert!(error.contains("infer-bert-1") && error.contains("ats-i"), "{error}");
}

#[test]
fn random_loads_conserve_accelerators() {
    for seed in 0..20_u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1;
        let mut draw = |below: i64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            i64::from((state >> 40) as u32) % below
        };
        let mut requests: Vec<_> = (0..400).map(|_| request(draw(5) as u16, draw(4000), 1 + draw(30))).collect();
        requests.sort_by_key(|one| one.submit);
        let jobs: Vec<_> = (0..40).map(|_| fixed_job(draw(4000), 1 + draw(4) as u32, 1 + draw(600))).collect();
        let mut simulator = simulator(3, 4, jobs, &["a", "b", "c", "d", "e"], requests);
        while simulator.run_until_decision().unwrap() == Status::Decision {
            let plan = Greedy.decide(&simulator.view());
            simulator.apply(&plan).unwrap();
            let view = simulator.view();
            for node in NodeId::first(3) {
                let jobs: u32 = view
                    .jobs()
                    .flat_map(|job| job.state.placement.slices().to_vec())
                    .filter(|slice| slice.node == node)
                    .map(|slice| slice.gpus)
                    .sum();
                let on_node = || view.instances().iter().filter(|(_, one)| one.node == node);
                let busy = on_node().filter(|(_, one)| !one.is_free()).count() as u32;
                let free = on_node().filter(|(_, one)| one.is_free()).count() as u32;
                assert_eq!(jobs + busy + view.free_on(node), 4);
                assert_eq!(view.instances().sleeping_on(node), free);
                assert!(free <= view.free_on(node), "a free instance sits on a free accelerator");
            }
        }
        let outcome = simulator.outcome();
        assert!(!outcome.truncated);
        let work: i64 = outcome.requests.iter().map(|one| (one.finish.unwrap() - one.start.unwrap()).as_millis()).sum();
        assert_eq!(work, outcome.instance_run_millis, "what ran is what was answered");
    }
}

#[test]
fn a_request_whose_node_fails_waits_again() {
    let base = simulator(2, 2, vec![], &["bert"], vec![request(0, 0, 100), request(0, 10, 20)]);
    let script = vec![Scripted { at_secs: 50.0, cause: Cause::Node, node: NodeId(0), lasts_secs: Some(500.0) }];
    let scenario = base.scenario();
    let options = SimOptions { faults: Some(FaultModel::scripted(script)), ..scenario.options.clone() };
    let whole = run(Simulator::new(scenario.clone()));
    let outcome = run(Simulator::new(Arc::new(Scenario { options, ..(**scenario).clone() })));
    let cold = whole.requests[0].finish.unwrap() - secs(100);
    // The second had been answered, and its instance is gone with the node: the first starts cold
    // on the other one.
    assert_eq!(outcome.requests[1], whole.requests[1]);
    let first = &outcome.requests[0];
    assert_eq!((first.start, first.finish), (Some(secs(50)), Some(secs(150) + cold)));
    assert_eq!(first.served, Some(goodput_env::sim::Served::Cold));
}
