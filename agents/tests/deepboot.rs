//! DeepBoot: the knapsack's table, placement, the order in which requests are answered, the
//! interval of 60 s, and composition with other policies.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::oracle;
use goodput_agents::compose;
use goodput_agents::heuristic::deepboot::SizeChoice;
use goodput_agents::heuristic::deepboot::requests::RequestScheduler;
use goodput_agents::placement::{Free, Packer};
use goodput_env::application::{Application, EpochTable, GradientTable};
use goodput_env::cluster::{Cluster, NodeId, Pool};
use goodput_env::guard::Guard;
use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work, Workload};
use goodput_env::model::{BatchLimits, SwitchCost, ThroughputParams};
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::request::{InferenceRequest, ServedModel, Target};
use goodput_env::scenario::{Batching, Information, Rounds, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::{Outcome, Served, Simulator, Status};
use goodput_env::state::InstanceState;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, TrainingViewBuffers};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// An application that gains less with every accelerator.
fn application() -> Application {
    let params = ThroughputParams {
        alpha_c: 0.02,
        beta_c: 0.001,
        alpha_n: 0.05,
        beta_n: 0.002,
        alpha_r: 0.02,
        beta_r: 0.001,
        gamma: 1.5,
    };
    let table = |values: Vec<f64>| EpochTable::new(vec![1.0], values).unwrap();
    Application {
        name: "cifar10".into(),
        limits: BatchLimits::new(128, 4096, 32, 512).unwrap(),
        max_replicas: 16,
        fixed_batch: None,
        tensors: None,
        epochs: vec![1000.0, 3000.0],
        gradients: GradientTable { sqr: table(vec![1.0; 2]), var: table(vec![10.0, 20.0]) },
        iterations: None,
        reference: "gpu".into(),
        local_limits: Default::default(),
        params: BTreeMap::from([("gpu".into(), params)]),
        measured: Default::default(),
    }
}

fn secs(secs: i64) -> SimTime {
    SimTime::from_secs(secs)
}

const TABLE: [[f64; 4]; 3] = [[1.0, 1.8, 2.4, 2.8], [1.0, 1.5, 1.7, 1.8], [1.0, 1.95, 2.85, 3.7]];

fn rows() -> Vec<Vec<(u32, f64)>> {
    TABLE.iter().map(|row| (1..).zip(row.iter().copied()).collect()).collect()
}

#[test]
fn the_knapsack_chooses_the_published_sizes() {
    let expected = oracle("mckp_deepboot");
    let mut choice = SizeChoice::default();
    for (gpus, entry) in expected.as_object().unwrap() {
        let ways: Vec<u32> = entry["ways"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as u32).collect();
        assert_eq!(choice.sizes(gpus.parse().unwrap(), rows()), ways, "{gpus}");
        assert!((choice.value() - entry["value"].as_f64().unwrap()).abs() < 1e-9);
    }
}

#[test]
fn the_knapsack_equals_brute_force() {
    let value = |sizes: &[usize]| -> f64 {
        sizes.iter().zip(TABLE).map(|(&size, row)| if size == 0 { 0.0 } else { row[size - 1] }).sum()
    };
    for gpus in 0..=12 {
        let mut best = 0.0_f64;
        for code in 0..125_usize {
            let sizes = [code % 5, code / 5 % 5, code / 25];
            if sizes.iter().sum::<usize>() <= gpus {
                best = best.max(value(&sizes));
            }
        }
        let mut choice = SizeChoice::default();
        let sizes = choice.sizes(gpus as u32, rows());
        assert!((value(&sizes.iter().map(|&size| size as usize).collect::<Vec<_>>()) - best).abs() < 1e-9);
    }
}

/// Jobs of 1, 2 and 4 on 1, 2 and 4 free accelerators (figure 7): each on one node.
#[test]
fn small_jobs_leave_large_holes_alone() {
    let cluster = Cluster::homogeneous(3, 4);
    let nodes = |packer: Packer| -> Vec<u32> {
        let mut free = Free::listed(&cluster, &[1, 2, 4]);
        [1, 2, 4].map(|gpus| packer.place(&cluster, &mut free, gpus).unwrap().nodes()).to_vec()
    };
    assert_eq!(nodes(Packer::FewestNodes), [1, 1, 1]);
    assert_eq!(nodes(Packer::MostFreeFirst), [1, 1, 3], "as most schedulers place");
}

fn elastic(name: &str, submit: i64, gpus: u32) -> JobSpec {
    let request = JobRequest {
        name: name.into(),
        tenant: 0,
        submit: secs(submit),
        gpus,
        batch_size: None,
        elasticity: Elasticity::Elastic { min: 1, max: 16 },
        priority: 0,
        weight_milli: 1000,
        deadline: None,
        limit: None,
        share: None,
    };
    JobSpec { request, work: Work::application(0) }
}

fn request(model: u16, submit: i64, duration: i64) -> InferenceRequest {
    InferenceRequest { model, submit: secs(submit), duration: secs(duration) }
}

fn scenario(jobs: Vec<JobSpec>, requests: Vec<InferenceRequest>, nodes: u32) -> Scenario {
    let served = (0..6)
        .map(|at| ServedModel { name: format!("infer-cifar10-{at}").into(), application: "cifar10".into() })
        .collect();
    let workload = Workload { requests, served, ..Workload::new(vec![Arc::new(application())], jobs) };
    let options = SimOptions {
        rounds: Rounds { period: Some(secs(60)), on_churn: false },
        switch_cost: SwitchCost::DeepbootAfe,
        batching: Batching::Catalog,
        information: Information::Oracle,
        log_allocations: true,
        ..SimOptions::standard()
    };
    Scenario::new(Arc::new(Cluster::homogeneous(nodes, 4)), Arc::new(workload), options, 1)
}

fn busy_requests() -> Vec<InferenceRequest> {
    (0..200).map(|at| request((at % 6) as u16, 7 * at, 1 + at % 9)).collect()
}

fn run(scenario: &Scenario, policy: &str) -> Outcome {
    Simulator::new(Arc::new(scenario.clone())).run(&mut *compose::by_name(policy, 1).unwrap()).unwrap()
}

/// A job grows at most every 60 s, whatever the reason; shrinking may come any second.
#[test]
fn training_grows_at_most_once_a_minute() {
    let jobs = (0..6).map(|at| elastic(&format!("job-{at}"), 40 * at, 2)).collect();
    let outcome = run(&scenario(jobs, busy_requests(), 4), "deepboot");
    let mut last_growth = vec![None; outcome.jobs.len()];
    let mut held = vec![0; outcome.jobs.len()];
    let mut shrinks = 0;
    for change in &outcome.allocations {
        let job = change.job.index();
        if change.gpus > held[job] {
            assert_eq!(change.at.as_millis() % 60_000, 0, "{change:?}");
            if let Some(last) = last_growth[job].replace(change.at) {
                assert!(change.at - last >= secs(60), "{change:?}");
            }
        }
        shrinks += usize::from(change.gpus > 0 && change.gpus < held[job] && change.at.as_millis() % 60_000 != 0);
        // A restart is logged as leaving and coming back.
        if change.gpus > 0 || outcome.jobs[job].finish == Some(change.at) {
            held[job] = change.gpus;
        }
    }
    assert!(shrinks > 0, "requests take accelerators between rounds");
    assert!(outcome.jobs.iter().all(|job| job.finish.is_some()));
    assert!(outcome.requests.iter().all(|request| request.finish.is_some()));
}

/// Plan of ATS-I for the first request that came at `at`.
fn assigned(
    jobs: Vec<JobSpec>,
    requests: Vec<InferenceRequest>,
    nodes: u32,
    at: i64,
    placements: &[(u32, Placement)],
) -> Plan {
    let mut simulator = Simulator::new(Arc::new(scenario(jobs, requests, nodes)));
    let mut scheduler = RequestScheduler::default();
    loop {
        assert_eq!(simulator.run_until_decision().unwrap(), Status::Decision);
        let view: ClusterView<'_> = simulator.view();
        let mut plan = Plan::keep();
        if view.trigger.round {
            for (job, placement) in placements {
                let held = view.job(goodput_env::job::JobId(*job)).filter(|job| job.state.placement != *placement);
                if let Some(held) = held {
                    plan.set(held.id(), placement.clone());
                }
            }
        }
        scheduler.place(&view, &mut plan);
        if view.now == secs(at) {
            return plan;
        }
        simulator.apply(&plan).unwrap();
    }
}

#[test]
fn a_warm_instance_comes_first_and_the_one_with_most_hits_before_others() {
    // Two instances of model 0 by 20 s; the first one answers again at 40 s and has a hit, and is
    // taken again at 60.5 s.
    let requests = vec![request(0, 1, 10), request(0, 2, 10), request(0, 40, 5), request(0, 55, 5)];
    let plan = assigned(Vec::new(), requests, 2, 55, &[]);
    assert_eq!(plan.assign[0].target, Target::Instance(goodput_env::request::InstanceId(0)));
    assert!(plan.changes.is_empty());
}

#[test]
fn then_an_empty_accelerator_where_training_has_fewest() {
    let placements = [(0, Placement::on(NodeId(0), 3)), (1, Placement::on(NodeId(1), 1))];
    let jobs = vec![elastic("a", 0, 3), elastic("b", 0, 1)];
    let plan = assigned(jobs, vec![request(0, 61, 5)], 2, 61, &placements);
    assert_eq!(plan.assign[0].target, Target::Node(NodeId(1)));
    assert!(plan.changes.is_empty());
}

#[test]
fn last_it_takes_what_training_loses_least_by() {
    // Both nodes are full. The second job has three times the accelerators for the same
    // application, so its last one is worth less.
    let placements = [(0, Placement::on(NodeId(0), 1)), (1, [(NodeId(0), 3), (NodeId(1), 4)].into_iter().collect())];
    let jobs = vec![elastic("a", 0, 1), elastic("b", 0, 7)];
    let plan = assigned(jobs, vec![request(0, 61, 5)], 2, 61, &placements);
    let Target::Node(node) = plan.assign[0].target else { panic!("{plan:?}") };
    let [change] = &plan.changes[..] else { panic!("{plan:?}") };
    assert_eq!((change.job.0, change.placement.gpus()), (1, 6));
    let left = change.placement.slices().iter().find(|slice| slice.node == node).map_or(0, |slice| slice.gpus);
    assert_eq!(left, if node == NodeId(0) { 2 } else { 3 }, "from the node on which the instance starts");
}

#[test]
fn what_is_running_or_protected_is_never_taken_by_training() {
    let jobs: Vec<JobSpec> = (0..8).map(|at| elastic(&format!("job-{at}"), 25 * at, 4)).collect();
    let scenario = scenario(jobs, busy_requests(), 3);
    for name in ["deepboot", "deepboot@replica", "optimus+ats-i", "afs-l+ats-i", "tiresias+ats-i", "fifo+ats-i"] {
        let mut simulator = Simulator::new(Arc::new(scenario.clone()));
        let mut policy = compose::by_name(name, 1).unwrap();
        while simulator.run_until_decision().unwrap() == Status::Decision {
            let busy = |simulator: &Simulator| -> Vec<_> {
                let view = simulator.view();
                view.instances().iter().filter(|(_, one)| !one.is_free()).map(|(id, one)| (id, one.node)).collect()
            };
            let before = busy(&simulator);
            let plan = policy.decide(&simulator.view());
            simulator.apply(&plan).unwrap();
            simulator.wake_at(policy.wake_at());
            let after = busy(&simulator);
            assert!(before.iter().all(|one| after.contains(one)), "{name}");
            for node in NodeId::first(3) {
                let here = |held: &Placement| -> u32 {
                    held.slices().iter().filter(|slice| slice.node == node).map(|slice| slice.gpus).sum()
                };
                let view = simulator.view();
                let jobs: u32 = view.jobs().map(|job| here(&job.state.placement)).sum();
                let instances = view.instances().iter().filter(|(_, one)| one.node == node && !one.is_free()).count();
                assert_eq!(jobs + instances as u32 + view.free_on(node), 4, "{name}");
            }
        }
        let outcome = simulator.outcome();
        assert!(!outcome.truncated, "{name}");
        assert!(outcome.requests.iter().any(|one| one.served == Some(Served::Hit)), "{name}");
    }
}

/// Life of an instance under ATS-I, on one accelerator without competitors.
#[test]
fn the_timeline_of_the_paper() {
    let requests: Vec<_> = [0, 20, 60, 130, 400].map(|at| request(0, at, 10)).to_vec();
    let mut scenario = scenario(vec![elastic("late", 1000, 1)], requests, 1);
    scenario.cluster = Arc::new(Cluster::homogeneous(1, 1));
    let mut simulator = Simulator::new(Arc::new(scenario));
    let mut policy = compose::by_name("deepboot", 1).unwrap();
    let mut ends = Vec::new();
    while simulator.run_until_decision().unwrap() == Status::Decision && simulator.now() < secs(1000) {
        let plan = policy.decide(&simulator.view());
        simulator.apply(&plan).unwrap();
        for (_, one) in simulator.view().instances().iter() {
            if let InstanceState::Run { until, .. } = one.state {
                ends.push((until.as_millis() / 1000, one.hits));
            }
        }
    }
    ends.dedup();
    assert_eq!(ends, [(16, 0), (30, 1), (70, 2), (140, 3), (410, 0)]);
}

#[test]
fn names_compose() {
    assert!(compose::by_name("tiresias-l+ats-i", 1).is_some());
    assert!(compose::by_name("nonsense+ats-i", 1).is_none());
    assert!(compose::by_name("+ats-i", 1).is_none());
    assert_eq!(compose::by_name("deepboot+ats-i", 1).unwrap().batching(), Batching::Agent);
}

/// Two equal runs give equal bits.
#[test]
fn runs_are_deterministic() {
    let jobs: Vec<JobSpec> = (0..5).map(|at| elastic(&format!("job-{at}"), 25 * at, 4)).collect();
    let scenario = scenario(jobs, busy_requests(), 3);
    for name in ["deepboot", "pollux+ats-i"] {
        assert_eq!(run(&scenario, name), run(&scenario, name), "{name}");
    }
}

/// On a cluster with pools requests are answered on the inference servers at home, which training
/// may not take.
#[test]
fn requests_are_answered_at_home() {
    let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
    cluster.add_to(Pool::Training, "gpu", 1, 4);
    cluster.add_to(Pool::Inference, "gpu", 1, 4);
    let plain = scenario(vec![elastic("a", 0, 2)], busy_requests(), 2);
    let scenario = Scenario::new(Arc::new(cluster), plain.workload.clone(), plain.options.clone(), 0);
    let outcome = run(&scenario, "fifo+ats-i");
    assert!(outcome.requests.iter().all(|request| request.finish.is_some()));
    assert!(outcome.jobs.iter().all(|job| job.finish.is_some() && job.restarts == 0), "nothing is taken from it");
}

/// Policy that lends and calls back servers at random, trains by FIFO on what is left, and answers
/// requests after both.
struct Lender {
    random: ChaCha8Rng,
    training: Box<dyn Policy>,
    requests: RequestScheduler,
    after: TrainingViewBuffers,
    guard: Guard,
}

impl Policy for Lender {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        for node in 0..view.cluster().nodes.len() as u32 {
            let before = plan.clone();
            match self.random.random_range(0..6) {
                0 => plan.lend(NodeId(node)),
                1 => plan.reclaim(NodeId(node), view.now + secs(self.random.random_range(0..90))),
                _ => {}
            }
            if self.guard.check(view, &plan).is_err() {
                plan = before;
            }
        }
        plan.changes = self.training.decide(&view.for_training(&plan, &mut self.after)).changes;
        self.requests.place(view, &mut plan);
        plan
    }
}

/// The guard refuses requests on servers that are called back, and loans of servers at work: ATS-I
/// proposes neither, warm instances included.
#[test]
fn requests_avoid_servers_that_come_and_go() {
    let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
    cluster.add_to(Pool::Training, "gpu", 1, 4);
    cluster.add_to(Pool::Inference, "gpu", 4, 4);
    cluster.add_to(Pool::Shared, "gpu", 1, 4);
    let jobs = (0..12).map(|at| elastic("a", 60 * at, 3)).collect();
    let plain = scenario(jobs, busy_requests(), 1);
    let scenario = Arc::new(Scenario::new(Arc::new(cluster), plain.workload.clone(), plain.options.clone(), 0));
    let (mut lent, mut back) = (0, 0);
    for seed in 0..20 {
        let mut policy = Lender {
            random: rng(seed, Stream::Policy),
            training: compose::by_name("fifo", 1).unwrap(),
            requests: RequestScheduler::default(),
            after: TrainingViewBuffers::default(),
            guard: Guard::default(),
        };
        let outcome = Simulator::new(scenario.clone()).run(&mut policy).unwrap();
        assert!(outcome.requests.iter().all(|request| request.finish.is_some()));
        (lent, back) = (lent + outcome.loans.lent, back + outcome.loans.returned);
    }
    assert!(lent > 100 && back > 100, "{lent} lent, {back} came back");
}

/// One accelerator, no rounds: the job that waits gets it when the instance's protection is over.
#[test]
fn what_an_instance_gives_up_is_offered_to_jobs() {
    for keep in [true, false] {
        let plain = scenario(vec![elastic("a", 1, 1)], vec![request(0, 0, 10)], 1);
        let options = SimOptions {
            rounds: Rounds { period: None, on_churn: true },
            instances: goodput_env::scenario::InstanceOptions { keep, ..plain.options.instances },
            ..plain.options.clone()
        };
        let cluster = Arc::new(Cluster::homogeneous(1, 1));
        let scenario = Scenario::new(cluster, plain.workload.clone(), options, 0);
        assert!(run(&scenario, "fifo+ats-i").jobs[0].finish.is_some(), "instances stay: {keep}");
    }
}
