//! Decisions that look only at what changed equal decisions that look at everything, plan for plan: under faults,
//! checkpoints, interference, estimates, plans that are not carried out as they are, and views that hide jobs.
#![allow(clippy::unwrap_used, reason = "a failure is the test's")]

use std::sync::Arc;

use goodput_agents::heuristic::fifo::Fifo;
use goodput_agents::heuristic::gittins::{GittinsHorizon, LengthSample};
use goodput_agents::heuristic::srtf::{Shortest, Srtf};
use goodput_agents::heuristic::tiresias::{DemotionTiming, ServiceMeasure, Tiresias, TiresiasConfig};
use goodput_env::cluster::{Cluster, NodeId, TypeId};
use goodput_env::job::{JobId, JobSpec, Workload};
use goodput_env::model::fault::{FaultModel, LogNormal};
use goodput_env::model::{Checkpointing, SwitchCost};
use goodput_env::placement::pack;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Rounds, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::{Simulator, Status};
use goodput_env::state::ClusterState;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, Restriction};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::naive::{NaiveSrtf, NaiveTiresias};
use crate::support::{fixed, on_slow_and_fast, random_workload};

/// A run with whatever may come between two decisions of a policy.
fn scenario(seed: u64, rng: &mut ChaCha8Rng, information: Information) -> Arc<Scenario> {
    let two_types = rng.random_bool(0.3);
    let cluster = if two_types { "slow:3x4,fast:2x8" } else { "5x4,2x8" };
    let workload = match rng.random_range(0..3) {
        0 => random_workload(rng, 60, 16),
        _ => Workload::new(Vec::new(), known_lengths(rng)),
    };
    let workload = if two_types { on_slow_and_fast(workload) } else { workload };
    let costs = [SwitchCost::Zero, SwitchCost::Constant { millis: 30_000 }];
    let faults =
        FaultModel { mtbf_hours: 2.0, repair: LogNormal { median_secs: 600.0, sigma: 1.0 }, ..FaultModel::default() };
    let options = SimOptions {
        rounds: Rounds { period: rng.random_bool(0.5).then(|| SimTime::from_secs(60)), on_churn: rng.random_bool(0.8) },
        switch_cost: costs[rng.random_range(0..2)],
        interference: if rng.random_bool(0.2) { 0.3 } else { 0.0 },
        batching: Batching::Catalog,
        information,
        faults: rng.random_bool(0.5).then_some(faults),
        checkpoint: rng.random_bool(0.3).then(Checkpointing::default),
        horizon: Some(SimTime::from_secs(40_000)),
        ..SimOptions::standard()
    };
    let options = match options.rounds {
        Rounds { period: None, .. } => SimOptions { rounds: Rounds { period: None, on_churn: true }, ..options },
        _ => options,
    };
    Arc::new(Scenario::new(Arc::new(Cluster::parse(cluster).unwrap()), Arc::new(workload), options, seed))
}

/// Jobs of known length, some of them equal, and more of them than fit.
fn known_lengths(rng: &mut ChaCha8Rng) -> Vec<JobSpec> {
    let job = |at: usize, rng: &mut ChaCha8Rng| {
        let gpus = [1, 1, 1, 2, 2, 4, 8, 16][rng.random_range(0..8)];
        let secs = if rng.random_bool(0.3) { 600 } else { rng.random_range(1..6000) };
        fixed(&format!("j{at}"), gpus, secs, rng.random_range(0..6000))
    };
    (0..120).map(|at| job(at, rng)).collect()
}

/// Compares two policies on the moments of one run, which the first of them steers.
fn compare(seed: u64, information: Information, policies: &mut dyn FnMut(&mut ChaCha8Rng) -> [Box<dyn Policy>; 2]) {
    let mut rng = rng(seed, Stream::Policy);
    let [mut fast, mut naive] = policies(&mut rng);
    let mut run = Simulator::new(scenario(seed, &mut rng, information));
    let (disturbed, hides) = (rng.random_bool(0.5), rng.random_bool(0.3));
    let mut decisions = 0_u32;
    // A run in which the last job is kept from starting ends there.
    while run.run_until_decision().is_ok_and(|status| status == Status::Decision) {
        decisions += 1;
        let view = run.view();
        waiting_jobs_are_listed(&view);
        if decisions % 7 == 0 {
            // What a live cluster shows makes a state anew.
            let seen = ClusterState::observed(run.scenario().clone(), &run.observed(), decisions).unwrap();
            waiting_jobs_are_listed(&seen.view());
            assert!(seen.view().waiting().map(|job| job.id()).eq(view.waiting().map(|job| job.id())));
            assert_eq!(seen.view().free_nodes(), view.free_nodes());
        }
        let hidden: Vec<JobId> = view.jobs().map(|job| job.id()).filter(|_| hides && rng.random_bool(0.05)).collect();
        let mut part = Restriction::of(&view);
        part.jobs.retain(|job| !hidden.contains(job));
        let view = if hidden.is_empty() { view } else { view.within(&part) };
        let mut plan = fast.decide(&view);
        assert_eq!(plan, naive.decide(&view), "seed {seed}, decision {decisions} at {}", view.now);
        assert_eq!(awake(&*fast, view.now), awake(&*naive, view.now), "seed {seed}, decision {decisions}");
        if disturbed {
            // Something around the policy keeps jobs from starting.
            plan.changes.retain(|change| change.placement.is_empty() || rng.random_bool(0.9));
        }
        run.apply(&plan).unwrap();
        run.wake_at(fast.wake_at());
    }
    assert!(decisions > 20, "seed {seed}");
}

/// When a simulator asks the policy again; a moment that has passed is no wish.
fn awake(policy: &dyn Policy, now: SimTime) -> Option<SimTime> {
    policy.wake_at().filter(|at| *at > now)
}

fn waiting_jobs_are_listed(view: &ClusterView<'_>) {
    let walked = view.jobs().filter(|job| !job.state.is_allocated()).map(|job| job.id());
    assert!(view.waiting().map(|job| job.id()).eq(walked));
    let free = view.free_nodes();
    assert_eq!(free.total(), view.free().iter().sum::<u32>());
    for kind in view.cluster().type_ids() {
        let (nodes, of_kind) = (view.cluster().node_ids(), |node: &NodeId| view.cluster().type_of(*node) == kind);
        let emptiest = nodes.filter(of_kind).max_by_key(|&node| (view.free_on(node), std::cmp::Reverse(node)));
        assert_eq!(free.emptiest(kind), emptiest.filter(|&node| view.free_on(node) > 0));
        for gpus in [1, 3, 9, 20] {
            let mut plain = view.free().to_vec();
            assert_eq!(free.clone().pack(kind, gpus), pack(view.cluster(), &mut plain, kind, gpus));
        }
    }
}

#[test]
fn shortest_first() {
    for seed in 0..150 {
        let sigma = if seed % 5 == 0 { 0.5 } else { 0.0 };
        compare(seed, Information::Estimate { sigma }, &mut |rng| {
            let shortest = if rng.random_bool(0.5) { Shortest::Time } else { Shortest::Service };
            [Box::new(Srtf::new(shortest)), Box::new(NaiveSrtf(shortest))]
        });
    }
}

#[test]
fn attained_service() {
    for seed in 0..300 {
        compare(seed, Information::Profiled, &mut |rng| {
            let service = if rng.random_bool(0.5) { ServiceMeasure::GpuTime } else { ServiceMeasure::Time };
            let config = match rng.random_range(0..4) {
                0 => TiresiasConfig::pollux_artifact(),
                1 => TiresiasConfig::artifact(service),
                2 => TiresiasConfig::gittins(LengthSample::default(), GittinsHorizon::Supremum),
                _ => TiresiasConfig::simulator(service),
            };
            let config = TiresiasConfig {
                limits: if rng.random_bool(0.5) { vec![400, 900, 3000] } else { config.limits.clone() },
                starvation_knob: [0.0, 0.5, 4.0][rng.random_range(0..3)],
                running_first: rng.random_bool(0.5),
                demotion: if rng.random_bool(0.2) { DemotionTiming::Artifact } else { config.demotion },
                ..config
            };
            [Box::new(Tiresias::new(config.clone())), Box::new(NaiveTiresias::new(config))]
        });
    }
}

/// First in, first out as a walk over all jobs.
struct NaiveFifo {
    backfill: bool,
}

impl Policy for NaiveFifo {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let (mut plan, mut free) = (Plan::keep(), view.free().to_vec());
        let cluster = view.cluster();
        for job in view.jobs().filter(|job| !job.state.is_allocated()) {
            let of_kind = |kind: TypeId| -> u32 {
                cluster.node_ids().filter(|node| cluster.type_of(*node) == kind).map(|node| free[node.index()]).sum()
            };
            let roomiest = cluster.type_ids().max_by_key(|&kind| (of_kind(kind), std::cmp::Reverse(kind))).unwrap();
            match pack(cluster, &mut free, roomiest, job.request().gpus) {
                Some(placement) => plan.set(job.id(), placement),
                None if self.backfill => {}
                None => break,
            }
        }
        plan
    }
}

#[test]
fn first_come() {
    for seed in 0..100 {
        compare(seed, Information::Profiled, &mut |rng| {
            let backfill = rng.random_bool(0.5);
            let fifo = if backfill { Fifo::backfill() } else { Fifo::strict() };
            [Box::new(fifo), Box::new(NaiveFifo { backfill })]
        });
    }
}
