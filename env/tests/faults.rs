//! Effects of faults on jobs, to the second, and the rules that hold under every fault.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::support::{Chaos, elastic, fixed, mixed_jobs, scenario};
use goodput_env::cluster::{NodeId, TypeId};
use goodput_env::guard::Violation;
use goodput_env::job::{JobId, JobSpec};
use goodput_env::model::fault::{Bugs, Cause, Causes, LogNormal, Scripted};
use goodput_env::model::{Checkpointing, FaultModel, Interval, Store, SwitchCost};
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Resize, Rounds, SimOptions};
use goodput_env::sim::{SimError, Simulator, Status};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;
use proptest::prelude::*;

/// Gives each waiting job what it asks for, in order, where it fits.
struct FirstFit;

impl Policy for FirstFit {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        let mut free = view.free().to_vec();
        for job in view.jobs().filter(|job| job.gpus() == 0) {
            let gpus = job.request().max_gpus().min(free.iter().sum()).max(job.min_gpus());
            if let Some(placement) = goodput_env::placement::pack(view.cluster(), &mut free, TypeId(0), gpus) {
                plan.set(job.id(), placement);
            }
        }
        plan
    }
}

fn fault(at: f64, cause: Cause, node: u32, lasts: f64) -> Scripted {
    Scripted { at_secs: at, cause, node: NodeId(node), lasts_secs: Some(lasts) }
}

fn options(script: Vec<Scripted>) -> SimOptions {
    SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        switch_cost: SwitchCost::Zero,
        faults: Some(FaultModel::scripted(script)),
        ..SimOptions::standard()
    }
}

/// Twenty seconds of work, then a write of two, of a job on eight accelerators.
fn every_20(store: Store) -> Option<Checkpointing> {
    let bytes = Checkpointing::default().bytes("", 8);
    let interval = Interval::Fixed { secs: 20.0 };
    Some(Checkpointing { interval, store, gb_per_sec: Some(bytes / 2e9), ..Checkpointing::default() })
}

fn run(cluster: &str, jobs: Vec<JobSpec>, options: SimOptions) -> goodput_env::sim::Outcome {
    Simulator::new(scenario(cluster, jobs, options)).run(&mut FirstFit).unwrap()
}

fn secs(secs: i64) -> Option<SimTime> {
    Some(SimTime::from_secs(secs))
}

#[test]
fn a_gang_loses_what_it_did_since_its_last_checkpoint_and_waits() {
    let gang = || vec![fixed("gang", 0, 8, 100)];
    let script = vec![fault(50.0, Cause::Node, 0, 20.0)];
    let job = run("2x4", gang(), options(script.clone())).jobs[0];
    assert_eq!((job.finish, job.restarts, job.faults.hits, job.faults.lost_gpu_millis), (secs(170), 1, 1, 400_000));

    // Checkpoints are complete at 22 and 44 s; 60 s of work are left at 70 s, with two writes among them.
    let saved = SimOptions { checkpoint: every_20(Store::Shared), ..options(script.clone()) };
    let job = run("2x4", gang(), saved).jobs[0];
    assert_eq!((job.finish, job.faults.lost_gpu_millis, job.faults.writing_gpu_millis), (secs(134), 48_000, 64_000));
    assert_eq!(job.kept_gpu_millis(), 800_000);

    // In the memory of the node that failed nothing is left; in that of one that lost an accelerator all is.
    let local = SimOptions { checkpoint: every_20(Store::Memory), ..options(script) };
    assert_eq!(run("2x4", gang(), local).jobs[0].faults.lost_gpu_millis, 8 * 46_000);
    let one = options(vec![fault(50.0, Cause::Accelerator, 0, 20.0)]);
    let job = run("2x4", gang(), SimOptions { checkpoint: every_20(Store::Memory), ..one }).jobs[0];
    assert_eq!((job.finish, job.faults.lost_gpu_millis), (secs(134), 48_000));
}

#[test]
fn a_restart_after_a_fault_costs_what_a_restart_costs() {
    let options = SimOptions {
        switch_cost: SwitchCost::Constant { millis: 5_000 },
        checkpoint: every_20(Store::Shared),
        ..options(vec![fault(50.0, Cause::Node, 0, 20.0), fault(72.0, Cause::Node, 1, 8.0)])
    };
    let job = run("2x4", vec![fixed("gang", 0, 8, 100)], options).jobs[0];
    // Runs from 5 s, saved at 27 and 49 s; the second fault falls into the restart and undoes
    // nothing. 60 s and two writes from 85 s.
    assert_eq!((job.finish, job.restarts, job.faults.hits), (secs(149), 2, 2));
    assert_eq!((job.faults.lost_gpu_millis, job.restarting), (8_000, SimTime::from_secs(12)));
}

#[test]
fn an_elastic_job_goes_on_with_what_is_left() {
    let scenario = scenario("2x4", vec![elastic("a", 0, 8)], options(vec![fault(50.0, Cause::Node, 1, 100.0)]));
    let mut simulator = Simulator::new(scenario);
    simulator.run_until_decision().unwrap();
    let mut plan = Plan::keep();
    plan.set(JobId(0), Placement::from_iter([(NodeId(0), 4), (NodeId(1), 4)]));
    simulator.apply(&plan).unwrap();
    assert_eq!(simulator.run_until_decision().unwrap(), Status::Decision);
    let view = simulator.view();
    assert!(view.trigger.fault && view.healthy(NodeId(0)) && !view.healthy(NodeId(1)) && !view.healthy(NodeId(2)));
    let job = view.job(JobId(0)).unwrap();
    assert_eq!((job.state.placement.clone(), job.state.restarts), (Placement::on(NodeId(0), 4), 1));
    assert_eq!((view.total_free(), view.cluster().total_gpus()), (0, 4));
    let mut plan = Plan::keep();
    plan.set(JobId(0), Placement::on(NodeId(1), 4));
    let Err(SimError::Refused { violations, .. }) = simulator.apply(&plan) else { panic!("accepted") };
    assert!(violations.contains(&Violation::Unhealthy { job: JobId(0), node: NodeId(1) }));
    // The node comes back at 150 s.
    assert_eq!(simulator.run_until_decision().unwrap(), Status::Decision);
    assert_eq!((simulator.now(), simulator.view().total_free()), (SimTime::from_secs(150), 4));
}

#[test]
fn one_accelerator_takes_one_job_and_overlapping_faults_add_up() {
    let jobs = vec![fixed("a", 0, 2, 100), fixed("b", 0, 2, 100)];
    let script = vec![
        fault(10.0, Cause::Accelerator, 0, 20.0),
        fault(15.0, Cause::Node, 0, 50.0),
        fault(16.0, Cause::Node, 0, 10.0),
        fault(17.0, Cause::Accelerator, 0, 10.0),
    ];
    let outcome = run("1x4", jobs, options(script));
    // The first job is hit at 10 s and waits, the second runs on to 15 s; both start again when the
    // node is back at 65 s.
    let hits: Vec<u32> = outcome.jobs.iter().map(|job| job.faults.hits).collect();
    assert_eq!((hits, outcome.jobs[0].finish, outcome.jobs[1].finish), (vec![1, 1], secs(165), secs(165)));
    assert_eq!((outcome.hardware.accelerators, outcome.hardware.nodes), (1, 2));
    assert_eq!(outcome.hardware.out_gpu_millis, 1000 * (5 + 4 * 50));
}

#[test]
fn a_bad_network_slows_those_who_use_it() {
    let finish = |placement: Placement, script: Vec<Scripted>| {
        let mut simulator = Simulator::new(scenario("2x4", vec![elastic("a", 0, 4)], options(script)));
        simulator.run_until_decision().unwrap();
        let mut plan = Plan::keep();
        plan.set(JobId(0), placement);
        simulator.apply(&plan).unwrap();
        simulator.run(&mut FirstFit).unwrap().jobs[0].finish.unwrap().as_secs_f64()
    };
    let bad = || vec![fault(5.0, Cause::Network, 1, 20.0)];
    let spread = || Placement::from_iter([(NodeId(0), 2), (NodeId(1), 2)]);
    let (well, badly) = (finish(spread(), Vec::new()), finish(spread(), bad()));
    assert!(badly > well + 1.0 && badly < well + 20.0, "{well} {badly}");
    assert_eq!(finish(Placement::on(NodeId(1), 4), Vec::new()), finish(Placement::on(NodeId(1), 4), bad()));
}

#[test]
fn a_buggy_job_is_tried_again_and_given_up() {
    let bugs = Bugs { share: 1.0, tenant: Some(0), retries: 3, after: LogNormal { median_secs: 60.0, sigma: 0.0 } };
    let faults = Some(FaultModel { bugs: Some(bugs), ..FaultModel::scripted(Vec::new()) });
    let mut honest = fixed("honest", 0, 2, 500);
    honest.request.tenant = 1;
    let jobs = vec![fixed("long", 0, 1, 1000), fixed("short", 0, 1, 20), honest];
    let outcome = run("1x4", jobs, SimOptions { faults, ..options(Vec::new()) });
    let [long, short, honest] = outcome.jobs[..] else { panic!() };
    assert!(!outcome.truncated);
    assert_eq!((long.finish, long.faults.failures, long.faults.failed), (None, 4, secs(240)));
    // One that would be done before fails at its end.
    assert_eq!((short.faults.failures, short.faults.failed), (4, secs(80)));
    assert_eq!((long.faults.lost_gpu_millis, long.kept_gpu_millis()), (240_000, 0));
    assert_eq!((honest.finish, honest.faults.failures), (secs(500), 0));
}

#[test]
fn nothing_is_decided_while_the_scheduler_is_away() {
    let jobs = vec![fixed("a", 0, 2, 50), fixed("b", 20, 2, 50), fixed("c", 100, 4, 50)];
    let outcome = run("1x4", jobs, options(vec![fault(10.0, Cause::Scheduler, 0, 30.0)]));
    let times: Vec<_> = outcome.jobs.iter().map(|job| (job.start, job.finish)).collect();
    assert_eq!(times, [(secs(0), secs(50)), (secs(40), secs(90)), (secs(100), secs(150))]);
}

#[test]
fn faults_that_never_come_change_nothing() {
    let with = |faults| {
        let options = SimOptions { faults, batching: Batching::Agent, interference: 0.2, ..SimOptions::standard() };
        Simulator::new(scenario("4x4", mixed_jobs(3, 24, 60), options)).run(&mut Chaos::new(3)).unwrap()
    };
    assert_eq!(with(None), with(Some(FaultModel::scripted(Vec::new()))));
}

#[test]
fn every_policy_meets_the_same_faults() {
    let options = SimOptions {
        faults: Some(FaultModel { mtbf_hours: 20.0, ..FaultModel::default() }),
        horizon: Some(SimTime::from_secs(200 * 3600)),
        ..SimOptions::standard()
    };
    let jobs = || (0..40).map(|at| fixed(&at.to_string(), 9000 * at, 4, 200_000)).collect::<Vec<_>>();
    let first = Simulator::new(scenario("8x4", jobs(), options.clone())).run(&mut FirstFit).unwrap();
    let chaos = Simulator::new(scenario("8x4", jobs(), options)).run(&mut Chaos::new(1)).unwrap();
    assert!(first.truncated && chaos.truncated && first.jobs != chaos.jobs);
    assert!(first.hardware.nodes > 5 && first.hardware.accelerators > 5 && first.hardware.networks > 0);
    assert_eq!(first.hardware, chaos.hardware);
}

fn storm(seed: u64, interval: Option<Interval>, resize: Resize, horizon: Option<i64>) -> SimOptions {
    let faults = FaultModel {
        mtbf_hours: 4.0,
        causes: Causes { accelerator: 1.0, node: 1.0, network: 1.0 },
        repair: LogNormal { median_secs: 200.0, sigma: 1.0 },
        bugs: Some(Bugs { share: 0.3, ..Bugs::default() }),
        script: vec![fault(700.0, Cause::Scheduler, 0, 300.0)],
        ..FaultModel::default()
    };
    let store = [Store::Shared, Store::Nvme, Store::Memory][(seed % 3) as usize];
    SimOptions {
        faults: Some(faults),
        checkpoint: interval.map(|interval| Checkpointing { interval, store, ..Checkpointing::default() }),
        resize,
        interference: [0.0, 0.2][(seed / 2 % 2) as usize],
        batching: if seed.is_multiple_of(2) { Batching::Agent } else { Batching::Catalog },
        horizon: horizon.map(SimTime::from_secs),
        log_allocations: true,
        ..SimOptions::standard()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn books_balance_whatever_breaks(
        seed in 0u64..10_000,
        interval in prop::option::of(prop::sample::select(vec![
            Interval::Fixed { secs: 30.0 }, Interval::Young, Interval::Daly, Interval::Adaptive,
        ])),
        resize in prop::sample::select(vec![Resize::StopRestart, Resize::Overlapped, Resize::OverlappedMerge]),
        horizon in prop::option::of(500i64..9000),
    ) {
        let scenario = scenario("4x4", mixed_jobs(seed, 24, 60), storm(seed, interval, resize, horizon));
        let outcome = crate::support::soak::run(&scenario, &mut Chaos::new(seed));
        prop_assert_eq!(Simulator::new(scenario.clone()).run(&mut Chaos::new(seed)).unwrap(), outcome.clone());
        if let (Some(Interval::Fixed { secs }), Store::Shared) = (interval, scenario.options.checkpoint.unwrap_or_default().store) {
            for job in outcome.jobs.iter().filter(|job| job.faults.failed.is_none()) {
                let most = i64::from(scenario.workload.jobs[job.job.index()].request.max_gpus());
                let times = i64::from(job.faults.hits + job.faults.failures);
                prop_assert!(job.faults.lost_gpu_millis <= times * most * (secs * 1000.0) as i64);
            }
        }
    }

    #[test]
    fn a_snapshot_continues_like_the_original_while_things_break(seed in 0u64..10_000, at in 1usize..60) {
        let options = storm(seed, Some(Interval::Young), Resize::Overlapped, None);
        let (mut simulator, mut policy) = (Simulator::new(scenario("4x4", mixed_jobs(seed, 16, 60), options)), Chaos::new(seed));
        for _ in 0..at {
            if simulator.run_until_decision().unwrap() != Status::Decision { break }
            let plan = policy.decide(&simulator.view());
            simulator.apply(&plan).unwrap();
        }
        let (copy, mut same) = (simulator.clone(), Chaos(policy.0.clone()));
        prop_assert_eq!(simulator.run(&mut policy).unwrap(), copy.run(&mut same).unwrap());
    }
}
