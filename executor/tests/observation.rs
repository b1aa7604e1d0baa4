//! A live cluster looks to a policy, bit by bit, as the same cluster does in simulation.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use goodput_agents::compose;
use goodput_env::cluster::{Cluster, NodeId, Pool};
use goodput_env::gym::{Encoder, Round, layout};
use goodput_env::job::{Elasticity, JobSpec, Work, Workload};
use goodput_env::model::FaultModel;
use goodput_env::model::fault::{Cause, Scripted};
use goodput_env::placement::ShareRequest;
use goodput_env::scenario::{Information, Scenario, SimOptions};
use goodput_env::sim::{Simulator, Status};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;
use goodput_executor::daemon::observe::{ClusterObserver, Setting};
use goodput_executor::engine::Engine;
use goodput_executor::engine::sim::SimEngine;
use rand::RngExt;

use goodput_testkit::jobs::{RandomSource, application, jobs};

/// Half of them of known duration, half of the application.
fn either(random: &mut RandomSource) -> Work {
    match random.random_bool(0.5) {
        true => Work::Fixed { duration: SimTime::from_secs(random.random_range(60..4000)) },
        false => Work::application(0),
    }
}

/// Every number of an observation, as bits.
fn bits(encoder: &mut Encoder, round: &mut Round, view: &ClusterView<'_>) -> Vec<u32> {
    round.begin(view, &encoder.layout().clone());
    encoder.begin(view, round);
    encoder.observation().iter().map(|value| value.to_bits()).collect()
}

/// Runs `policy` on a simulated cluster and compares what it sees and does with what it sees and
/// does through recorded snapshots. Returns the number of decisions compared.
fn compare(name: &str, cluster: Cluster, options: SimOptions, seed: u64) -> usize {
    compare_on(name, cluster, options, (seed, jobs(seed, 40, 60_000, either)))
}

/// As [`compare`] on given jobs.
fn compare_on(name: &str, cluster: Cluster, options: SimOptions, (seed, jobs): (u64, Vec<JobSpec>)) -> usize {
    let policies = || compose::by_name(name, seed).unwrap();
    let (mut direct, mut live) = (policies(), policies());
    let options = SimOptions { batching: direct.batching(), ..options };
    let workload = Arc::new(Workload::new(vec![application()], jobs));
    let scenario = Scenario::new(Arc::new(cluster), workload.clone(), options.clone(), seed);
    let setting = Setting {
        applications: workload.applications.clone(),
        tenants: workload.tenants.clone(),
        options,
        speedup: 1.0,
        start: SimTime::ZERO,
    };
    let mut observer = ClusterObserver::new(setting).since(0);
    let mut simulator = goodput_env::sim::Simulator::new(Arc::new(scenario));
    let mut encoders = [(); 2].map(|()| (Encoder::new(layout(32)), Round::default()));
    let mut decisions = 0;
    while simulator.run_until_decision().unwrap() == Status::Decision {
        let view = simulator.view();
        let snapshot = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(SimEngine::of(simulator.clone()).snapshot())
            .unwrap();
        // A recorded snapshot is a file: it goes through JSON.
        let snapshot = serde_json::from_str(&serde_json::to_string(&snapshot).unwrap()).unwrap();
        let cluster = observer.read(&snapshot, &[]).unwrap();
        // Why it is asked is told apart from what there is: rounds are the daemon's own.
        let mut shown = cluster.view();
        shown.trigger = view.trigger;
        let [(encoder, round), (other, other_round)] = &mut encoders;
        assert_eq!(bits(encoder, round, &view), bits(other, other_round, &shown), "{name} at {}", view.now);
        let (plan, same) = (direct.decide(&view), live.decide(&shown));
        assert_eq!(plan, same, "{name} at {}", view.now);
        simulator.apply(&plan).unwrap();
        decisions += 1;
    }
    decisions
}

#[test]
fn a_live_view_is_the_view_of_the_simulation() {
    for (name, information) in [
        ("fifo", Information::Oracle),
        ("srtf", Information::Estimate { sigma: 0.5 }),
        ("tiresias", Information::Profiled),
        ("pollux-fast", Information::Profiled),
        ("optimus", Information::Estimate { sigma: 0.3 }),
        ("afs-l", Information::Oracle),
    ] {
        let options = SimOptions { information, ..SimOptions::standard() };
        for seed in [3, 4] {
            let decisions = compare(name, Cluster::parse("gpu:4x4").unwrap(), options.clone(), seed);
            assert!(decisions > 100, "{name}: only {decisions} decisions");
        }
    }
}

#[test]
fn shared_accelerators_look_the_same() {
    let part = |(index, mut job): (usize, JobSpec)| {
        if index % 4 != 0 {
            let gpus = 1 + u32::from(index % 4 == 3);
            let (compute_percent, memory_mib) = (gpus * (20 + 7 * (index as u32 % 9)), gpus * 3_000 + 1);
            job.request.share = Some(ShareRequest { compute_percent, memory_mib });
            (job.request.gpus, job.request.elasticity) = (gpus, Elasticity::Rigid);
        }
        job
    };
    let mut cluster = Cluster::parse("gpu:4x4").unwrap();
    cluster.types[0].memory_mib = Some(15_109);
    for name in ["fgd", "best-fit", "gpu-packing", "hami-binpack", "hami-spread", "fifo-backfill"] {
        let options = SimOptions { information: Information::Oracle, ..SimOptions::standard() };
        let jobs = jobs(8, 80, 10_000, either).into_iter().enumerate().map(part).collect();
        let decisions = compare_on(name, cluster.clone(), options, (8, jobs));
        assert!(decisions > 100, "{name}: only {decisions} decisions");
    }
}

#[test]
fn broken_and_lent_machines_look_the_same() {
    let script = [(600.0, 1, Cause::Node), (1800.0, 0, Cause::Accelerator)];
    let script =
        script.map(|(at_secs, node, cause)| Scripted { at_secs, cause, node: NodeId(node), lasts_secs: Some(3000.0) });
    let faults = FaultModel::scripted(script.to_vec());
    let options = SimOptions { faults: Some(faults), information: Information::Oracle, ..SimOptions::standard() };
    assert!(compare("srtf", Cluster::parse("gpu:4x4").unwrap(), options.clone(), 5) > 50);
    let mut pools = Cluster::parse("gpu:3x4").unwrap();
    pools.add_to(Pool::Inference, "gpu", 2, 4);
    assert!(compare("fifo", pools, SimOptions { faults: None, ..options }, 6) > 50);
}

/// A simulation that goes on from an observation ends as what was observed.
#[test]
fn a_simulation_goes_on_from_what_was_observed_of_it() {
    for (name, information) in [
        ("fifo", Information::Oracle),
        ("srtf", Information::Estimate { sigma: 0.0 }),
        ("tiresias", Information::Profiled),
        ("pollux-fast", Information::Profiled),
    ] {
        let batching = compose::by_name(name, 1).unwrap().batching();
        let options = SimOptions { information, batching, ..SimOptions::standard() };
        let workload = Arc::new(Workload::new(vec![application()], jobs(3, 40, 60_000, either)));
        let last = workload.jobs.last().unwrap().request.submit;
        let cluster = Arc::new(Cluster::parse("gpu:4x4").unwrap());
        let scenario = Arc::new(Scenario::new(cluster, workload, options, 1));
        let mut policy = compose::by_name(name, 1).unwrap();
        let mut original = Simulator::new(scenario.clone());
        let mut resumed = Vec::new();
        let mut decisions = 0;
        while original.run_until_decision().unwrap() == Status::Decision {
            decisions += 1;
            if original.now() > last && decisions % 7 == 0 && resumed.len() < 6 {
                resumed.push((original.observed(), compose::by_name(name, 1).unwrap()));
            }
            let plan = policy.decide(&original.view());
            original.apply(&plan).unwrap();
            original.wake_at(policy.wake_at());
        }
        let expected = original.outcome();
        assert!(resumed.len() >= 3, "{name}: only {} observations", resumed.len());
        for (seen, mut policy) in resumed {
            let active: Vec<_> = seen.jobs.iter().map(|job| job.id).collect();
            assert!(seen.jobs.iter().any(|job| !job.placement.is_empty()));
            let ended = Simulator::resume(scenario.clone(), &seen).unwrap().run(&mut *policy).unwrap();
            let of = |outcome: &goodput_env::sim::Outcome| -> Vec<f64> {
                let jct = |id: &goodput_env::job::JobId| {
                    let record = &outcome.jobs[id.index()];
                    (record.finish.unwrap() - record.submit).as_secs_f64()
                };
                active.iter().map(jct).collect()
            };
            let (one, other) = (of(&expected), of(&ended));
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            let off = mean(&other) / mean(&one) - 1.0;
            // Ends are rounded to milliseconds from another moment on; tiresias and pollux also
            // remember what an observation does not tell.
            let allowed = if name == "fifo" || name == "srtf" { 1e-5 } else { 0.02 };
            assert!(off.abs() < allowed, "{name} from {}: mean completion {off:+.6} off", seen.now);
        }
    }
}
