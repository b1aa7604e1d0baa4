//! Policies that put jobs on parts of cards.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use goodput_agents::compose::loaning::{Sharing, Variant};
use goodput_agents::heuristic::card_sharing::{LISTED, PartsPolicy};
use goodput_agents::heuristic::fifo::Fifo;
use goodput_agents::placement::fractional::strategy::by_name;
use goodput_agents::placement::fractional::{Fragmentation, Kinds, Node, Placer, Request, TieBreak};
use goodput_env::cluster::{Cluster, Pool, TypeId};
use goodput_env::job::{JobId, JobSpec, Workload};
use goodput_env::model::sharing::{ShareRequest, Spread};
use goodput_env::policy::Policy;
use goodput_env::scenario::Scenario;
use goodput_env::seed::{Stream, rng};
use goodput_env::service::{RateSeries, Service, ServingPoint, ServingProfile, Slo};
use goodput_env::sim::{Outcome, Simulator, Status};
use goodput_env::time::SimTime;
use rand::RngExt;

use super::support::{fixed, frictionless};

fn sharing(name: &str, submit: i64, cards: u32, compute_percent: u32, memory_mib: u32, secs: i64) -> JobSpec {
    let mut job = fixed(name, cards, secs, submit);
    job.request.share = Some(ShareRequest { compute_percent, memory_mib });
    job
}

fn scenario(nodes: u32, cards: u32, jobs: Vec<JobSpec>) -> Arc<Scenario> {
    let mut cluster = Cluster::homogeneous(nodes, cards);
    cluster.types[0].memory_mib = Some(16_384);
    Arc::new(Scenario::new(Arc::new(cluster), Arc::new(Workload::new(Vec::new(), jobs)), frictionless(), 1))
}

fn outcome(policy: &mut dyn Policy, nodes: u32, cards: u32, jobs: Vec<JobSpec>) -> Outcome {
    Simulator::new(scenario(nodes, cards, jobs)).run(policy).unwrap()
}

/// Node and cards of each job after the first decision.
fn first_places(policy: &mut dyn Policy, nodes: u32, cards: u32, jobs: Vec<JobSpec>) -> Vec<Option<(u32, Vec<u16>)>> {
    let count = jobs.len() as u32;
    let mut run = Simulator::new(scenario(nodes, cards, jobs));
    assert_eq!(run.run_until_decision().unwrap(), Status::Decision);
    let plan = policy.decide(&run.view());
    run.apply(&plan).unwrap();
    let place = |job| {
        let placement = &run.view().job(JobId(job)).unwrap().state.placement;
        match placement.share() {
            Some((node, share)) => Some((node.0, share.cards.to_vec())),
            None => placement.slices().first().map(|slice| (slice.node.0, Vec::new())),
        }
    };
    (0..count).map(place).collect()
}

#[test]
fn full_and_empty_cards_as_hami_chooses_them() {
    let jobs = || {
        vec![
            sharing("a", 0, 1, 40, 4_000, 100),
            sharing("b", 0, 1, 30, 4_000, 100),
            sharing("wide", 0, 2, 150, 9_000, 100),
            fixed("whole", 1, 100, 0),
        ]
    };
    let packed = first_places(&mut PartsPolicy::filled(Spread::Fullest), 2, 4, jobs());
    assert_eq!(packed, [Some((0, vec![0])), Some((0, vec![0])), Some((0, vec![1, 2])), Some((0, vec![]))]);
    let spread = first_places(&mut PartsPolicy::filled(Spread::Emptiest), 2, 4, jobs());
    assert_eq!(spread, [Some((0, vec![0])), Some((1, vec![0])), Some((1, vec![1, 2])), Some((0, vec![]))]);
}

#[test]
fn memory_keeps_jobs_apart_that_compute_would_join() {
    let jobs = vec![sharing("a", 0, 1, 10, 9_000, 100), sharing("b", 0, 1, 10, 9_000, 100)];
    for listed in LISTED {
        let places = first_places(&mut *listed.build(1), 1, 2, jobs.clone());
        assert_eq!(places.iter().flatten().map(|(_, cards)| cards[0]).collect::<Vec<_>>().len(), 2, "{}", listed.name);
        assert_ne!(places[0], places[1], "{}", listed.name);
    }
}

/// Jobs of parts of cards and of whole ones, more than the cluster holds.
fn mixed(count: usize, seed: u64) -> Vec<JobSpec> {
    let mut random = rng(seed, Stream::Workload);
    let job = |index: usize| {
        let (submit, secs) = (5 * index as i64, random.random_range(60..1_200));
        match random.random_range(0..4) {
            0 => fixed(&format!("whole-{index}"), [1, 2, 4][random.random_range(0..3)], secs, submit),
            1 => sharing(&format!("wide-{index}"), submit, 2, random.random_range(110..180), 12_000, secs),
            _ => {
                let percent = [10, 25, 46, 50, 70][random.random_range(0..5)];
                sharing(&format!("part-{index}"), submit, 1, percent, 150 * percent, secs)
            }
        }
    };
    (0..count).map(job).collect()
}

#[test]
fn every_listed_policy_ends_a_mixed_workload_and_beats_whole_cards() {
    let whole = outcome(&mut Fifo::backfill(), 4, 8, mixed(400, 3));
    let mean = |outcome: &Outcome| {
        outcome.jobs.iter().map(|job| job.jct().unwrap().as_secs_f64()).sum::<f64>() / outcome.jobs.len() as f64
    };
    for listed in LISTED {
        let shared = outcome(&mut *listed.build(1), 4, 8, mixed(400, 3));
        assert!(!shared.truncated);
        // A job that asked for a part holds a whole card under a policy that knows no parts, and others wait for it.
        assert!(mean(&shared) < 0.8 * mean(&whole), "{}: {} and {}", listed.name, mean(&shared), mean(&whole));
    }
}

/// Without processors, the placer of the FGD reproduction and the policy are one rule: both place arrivals one by one.
#[test]
fn the_policy_places_as_the_placer_of_the_reproduction() {
    let mut random = rng(5, Stream::Workload);
    let job = |index: usize| match random.random_range(0..3) {
        0 => fixed(&format!("{index}"), [1, 2, 4, 8][random.random_range(0..4)], 1_000_000, index as i64),
        _ => {
            sharing(&format!("{index}"), index as i64, 1, [10, 20, 46, 50, 81][random.random_range(0..5)], 1, 1_000_000)
        }
    };
    let jobs: Vec<JobSpec> = (0..300).map(job).collect();
    let request = |job: &JobSpec| {
        let milli = job.request.share.map_or(1_000, |share| 10 * share.compute_percent);
        Request { cpu_milli: 0, memory_mib: 0, accelerators: job.request.gpus, milli, kinds: Kinds::ANY }
    };
    for name in ["best-fit", "gpu-packing", "gpu-clustering", "dot-product"] {
        let strategy = by_name(name, &Fragmentation::new(Vec::new())).unwrap();
        let nodes = vec![Node::idle(TypeId(0), 0, 0, 8); 20];
        let mut placer = Placer::new(nodes, strategy, TieBreak::LowestIndex, 0);
        let expected: Vec<Option<u32>> = jobs.iter().map(|job| placer.place(&request(job)).map(|at| at.node)).collect();
        let mut run = Simulator::new(scenario(20, 8, jobs.clone()));
        let mut policy = PartsPolicy::scored(name, 0);
        let mut found = vec![None; jobs.len()];
        for (arrived, found) in found.iter_mut().enumerate() {
            assert_eq!(run.run_until_decision().unwrap(), Status::Decision);
            let plan = policy.decide(&run.view());
            // What the placer drops is not to be tried again.
            let mut kept = goodput_env::plan::Plan::keep();
            for change in plan.changes.into_iter().filter(|change| change.job.index() == arrived) {
                *found = change.placement.slices().first().map(|slice| slice.node.0);
                kept.changes.push(change);
            }
            run.apply(&kept).unwrap();
        }
        assert_eq!(found, expected, "{name}");
        assert!(found.iter().filter(|place| place.is_none()).count() > 20, "{name}: nothing was contended");
    }
}

/// A policy that knows no parts takes over from one that placed them: a shared card is not free for it twice, or while
/// another job holds the rest of it.
#[test]
fn every_other_policy_takes_over_from_jobs_on_parts() {
    let parts = |index: i64| sharing(&format!("part-{index}"), 0, 1, 25, 2_000, 600 + 60 * index);
    let jobs: Vec<JobSpec> = (0..8).map(parts).chain((0..6).map(|at| fixed("whole", 2, 300, at))).collect();
    let others =
        goodput_agents::compose::policies().filter(|listed| LISTED.iter().all(|sharing| sharing.name != listed.name));
    for listed in others {
        let mut run = Simulator::new(scenario(2, 4, jobs.clone()));
        let (mut first, mut then) = (LISTED[0].build(1), listed.build(1));
        for decision in 0..60 {
            if run.run_until_decision().unwrap() != Status::Decision {
                break;
            }
            let policy: &mut dyn Policy = if decision == 0 { &mut *first } else { &mut *then };
            let plan = policy.decide(&run.view());
            run.apply(&plan).unwrap_or_else(|error| panic!("{}, decision {decision}: {error}", listed.name));
            let wake = policy.wake_at();
            run.wake_at(wake);
            let on_parts = run.view().jobs().filter(|job| job.state.placement.share().is_some()).count();
            assert!(decision > 0 || on_parts == 8, "eight jobs on at most six cards");
        }
    }
}

/// Two cards of 16,384 MiB. Tenant 0 asks eight times for half of a card's compute and little memory, tenant 1 eight times
/// for a tenth of the compute and half of the memory: each job takes a quarter of its tenant's dominant resource. In order
/// of submission tenant 0 fills both cards. By dominant shares both tenants have two jobs.
#[test]
fn dominant_shares_count_parts_as_parts() {
    let of = |tenant: u32, at: i64| {
        let (compute, memory) = if tenant == 0 { (50, 100) } else { (10, 8_192) };
        let mut job = sharing(&format!("{tenant}-{at}"), 0, 1, compute, memory, 1_000);
        job.request.tenant = tenant;
        job
    };
    let jobs: Vec<JobSpec> = (0..8).map(|at| of(0, at)).chain((0..8).map(|at| of(1, at))).collect();
    let started = |name: &str| {
        let listed = LISTED.iter().find(|listed| listed.name == name).unwrap();
        let places = first_places(&mut *listed.build(1), 1, 2, jobs.clone());
        let count = |places: &[Option<(u32, Vec<u16>)>]| places.iter().flatten().count();
        (count(&places[..8]), count(&places[8..]))
    };
    assert_eq!(started("best-fit"), (4, 0));
    assert_eq!(started("drf-parts"), (2, 2));
}

/// Parts on servers that inference lends: they are lent, come back at their deadlines, and every job ends. A job on a
/// part of a card that is called back is stopped and starts again elsewhere.
#[test]
fn parts_run_on_lent_servers_and_leave_them_in_time() {
    let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
    cluster.add_to(Pool::Training, "gpu", 1, 4);
    cluster.add_to(Pool::Inference, "gpu", 4, 4);
    cluster.types[0].memory_mib = Some(16_384);
    let waves: Vec<f64> = (0..144).map(|step| if step / 6 % 2 == 0 { 50.0 } else { 900.0 }).collect();
    let profile = ServingProfile::new(vec![ServingPoint { concurrency: 1, latency_secs: 0.01 }]).unwrap();
    let service = Service {
        name: "web".into(),
        tenant: 0,
        rates: RateSeries::new(SimTime::from_secs(300), &waves).unwrap(),
        arrival_cv2: 1.0,
        work_cv2: 0.0,
        profiles: [("gpu".to_string(), profile)].into(),
        reference: "gpu".into(),
        gpus_per_replica: 1,
        slo: Slo { class: "interactive".into(), latency: SimTime::from_millis(100), target: 0.99 },
        cold_start: SimTime::from_secs(10),
        drain: SimTime::from_secs(2),
        min_replicas: 1,
        max_replicas: 16,
    };
    let workload = Workload { services: vec![Arc::new(service)], ..Workload::new(Vec::new(), mixed(300, 7)) };
    let scenario = Arc::new(Scenario::new(Arc::new(cluster), Arc::new(workload), frictionless(), 1));
    for listed in LISTED {
        let mut policy = Variant::Reactive.around(listed.build(1), &Sharing::default());
        let mut run = Simulator::new(scenario.clone());
        while run.run_until_decision().unwrap() == Status::Decision {
            let plan = policy.decide(&run.view());
            run.apply(&plan).unwrap_or_else(|error| panic!("{}: {error}", listed.name));
            run.wake_at(policy.wake_at());
            let view = run.view();
            for node in view.cluster().node_ids().filter(|&node| view.pool(node) == Pool::Inference && !view.lent(node))
            {
                assert!(view.cards_on(node).is_empty(), "{}: a part on a server at home", listed.name);
            }
        }
        let outcome = run.outcome();
        assert!(outcome.jobs.iter().all(|job| job.finish.is_some()), "{}", listed.name);
        assert!(outcome.loans.returned > 0 && outcome.loans.evictions == 0, "{}: {:?}", listed.name, outcome.loans);
        assert!(outcome.jobs.iter().any(|job| job.restarts > 0), "{}: no part was called back", listed.name);
    }
}
