//! Themis: its auction against hand-worked examples and exhaustive search, and its leases in the
//! simulator.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests; figures for the reader")]

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{fixed, frictionless, jcts, oracle, random_model, run};
use goodput_agents::heuristic::themis::auction::{AuctionWin, exact, greedy, partial_allocation};
use goodput_agents::heuristic::themis::{Themis, ThemisConfig};
use goodput_env::application::{Application, EpochTable, GradientTable};
use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::job::{Elasticity, JobId, JobSpec, Work, Workload};
use goodput_env::model::{BatchLimits, MeasuredStepTimes, PlacementSample};
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::{Simulator, Status};
use goodput_env::time::SimTime;
use proptest::prelude::*;
use rand::RngExt;

/// `1 / rho` on 0 to `gpus` accelerators of a job that speeds up linearly to `cap`.
fn linear(elapsed: f64, work: f64, cap: u32, ideal: f64, gpus: u32) -> Vec<f64> {
    let value = |n: u32| if n == 0 { 0.0 } else { ideal / (elapsed + work / f64::from(n.min(cap))) };
    (0..=gpus).map(value).collect()
}

#[test]
fn the_oracle() {
    let expected = oracle("themis");
    let bids = [linear(0.0, 80.0, 4, 20.0, 4), linear(20.0, 40.0, 4, 20.0, 4), linear(10.0, 60.0, 2, 35.0, 4)];
    for wins in [exact(4, &bids), greedy(4, &bids), partial_allocation(4, &bids)] {
        let product: f64 = wins.iter().zip(&bids).map(|(win, bid)| bid[win.gpus as usize]).product();
        assert!((product - expected["pf"][0].as_f64().unwrap()).abs() < 1e-12);
        for ((win, name), gpus) in wins.iter().zip(["A", "B", "C"]).zip([2, 1, 1]) {
            assert_eq!(win.gpus, gpus);
            let (fraction, kept) = (&expected["pay"][name]["c"], &expected["pay"][name]["kept"]);
            assert!((win.kept_fraction - fraction.as_f64().unwrap()).abs() < 1e-6, "{name}: {win:?}");
            assert!((f64::from(win.gpus) * win.kept_fraction - kept.as_f64().unwrap()).abs() < 1e-6);
            assert_eq!(win.kept(), 0, "whole accelerators");
        }
    }
}

#[test]
fn a_bidder_alone_pays_nothing() {
    assert_eq!(exact(3, &[linear(0.0, 9.0, 4, 9.0, 3)]), [AuctionWin { gpus: 3, kept_fraction: 1.0 }]);
    assert_eq!(greedy(3, &[linear(0.0, 9.0, 2, 9.0, 3)]), [AuctionWin { gpus: 2, kept_fraction: 1.0 }]);
}

/// Largest sum of logarithms by trying everything, over the bidders but `without`.
fn brute(gpus: usize, bids: &[Vec<f64>], without: Option<usize>) -> f64 {
    let Some((first, rest)) = bids.split_first() else { return 0.0 };
    let rest_without = without.and_then(|at| at.checked_sub(1));
    if without == Some(0) {
        return brute(gpus, rest, None);
    }
    let sizes = 0..=gpus.min(first.len() - 1);
    sizes.map(|n| first[n].ln() + brute(gpus - n, rest, rest_without)).fold(f64::NEG_INFINITY, f64::max)
}

fn bids(rng: &mut rand_chacha::ChaCha8Rng, count: usize, gpus: u32, concave: bool) -> Vec<Vec<f64>> {
    (0..count)
        .map(|_| {
            let (elapsed, work) = (rng.random_range(0..100), rng.random_range(10..1000));
            let exponent = 0.3 + 0.7 * rng.random::<f64>();
            let mut best = 0.0_f64;
            let value = |n: u32| {
                let bump = if concave { 1.0 } else { [1.0, 0.7, 1.2][rng.random_range(0..3)] };
                let secs = f64::from(elapsed) + f64::from(work) / (bump * f64::from(n).powf(exponent));
                best = best.max(secs.recip());
                if n == 0 { 0.0 } else { best }
            };
            (0..=gpus).map(value).collect()
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exact_is_exact_and_so_are_its_payments(seed in any::<u64>(), count in 1_usize..5, more in 0_u32..5, concave in any::<bool>()) {
        let gpus = count as u32 + more;
        let bids = bids(&mut rng(seed, Stream::Workload), count, gpus, concave);
        let wins = exact(gpus, &bids);
        let of = |at: usize| bids[at][wins[at].gpus as usize].ln();
        let sum: f64 = (0..count).map(of).sum();
        prop_assert!(wins.iter().map(|win| win.gpus).sum::<u32>() <= gpus);
        prop_assert!((sum - brute(gpus as usize, &bids, None)).abs() < 1e-9);
        for (at, win) in wins.iter().enumerate() {
            let fraction = (sum - of(at) - brute(gpus as usize, &bids, Some(at))).exp();
            prop_assert!((win.kept_fraction - fraction).abs() < 1e-9, "{} {}", win.kept_fraction, fraction);
        }
    }

    #[test]
    fn greedy_is_exact_where_logarithms_are_concave(seed in any::<u64>(), count in 1_usize..12, more in 0_u32..40) {
        // Without time elapsed, log(1 / rho) = exponent x log n + constant is concave.
        let gpus = count as u32 + more;
        let mut rng = rng(seed, Stream::Workload);
        let bids: Vec<Vec<f64>> = (0..count).map(|_| {
            let (exponent, base) = (0.3 + 0.7 * rng.random::<f64>(), 0.1 + rng.random::<f64>());
            (0..=gpus).map(|n| base * f64::from(n).powf(exponent)).collect()
        }).collect();
        for (found, best) in greedy(gpus, &bids).into_iter().zip(exact(gpus, &bids)) {
            prop_assert_eq!(found.gpus, best.gpus);
            prop_assert!((found.kept_fraction - best.kept_fraction).abs() < 1e-9);
        }
    }
}

/// With dips in the speeds the greedy division loses little: the worst geometric mean of values,
/// relative to the best.
#[test]
fn greedy_loses_little_elsewhere() {
    let mut worst = 1.0_f64;
    let mut mean = 0.0;
    let cases = 300;
    for seed in 0..cases {
        let mut rng = rng(seed, Stream::Workload);
        let (count, gpus) = (rng.random_range(2..12), rng.random_range(12..64));
        let bids = bids(&mut rng, count, gpus, false);
        let sum = |wins: Vec<AuctionWin>| -> f64 {
            assert!(wins.iter().map(|win| win.gpus).sum::<u32>() <= gpus);
            wins.iter().zip(&bids).map(|(win, bid)| bid[win.gpus as usize].ln()).sum()
        };
        let kept = ((sum(greedy(gpus, &bids)) - sum(exact(gpus, &bids))) / count as f64).exp();
        assert!(kept <= 1.0 + 1e-12);
        worst = worst.min(kept);
        mean += kept / cases as f64;
    }
    println!("geometric mean of values kept by the greedy division: mean {mean:.5}, worst {worst:.5}");
    assert!(worst > 0.9 && mean > 0.995, "{worst} {mean}");
}

/// Two rigid jobs that cannot run together take turns, a lease each.
#[test]
fn leases_alternate_between_two_that_do_not_fit_together() {
    let jobs = vec![fixed("a", 4, 3000, 0), fixed("b", 4, 3000, 0)];
    let mut policy = Themis::new(ThemisConfig { lease: SimTime::from_secs(600), ..ThemisConfig::default() });
    let found = jcts(&mut policy, 4, jobs);
    let (first, second) = (found["a"].min(found["b"]), found["a"].max(found["b"]));
    assert!((5000.0..=5800.0).contains(&first) && second == 6000.0, "{found:?}");
}

/// A lease is kept: no accelerator is taken from a job before the lease ends, whatever arrives.
#[test]
fn an_arrival_waits_for_the_end_of_leases() {
    let jobs = vec![fixed("a", 4, 3000, 0), fixed("b", 2, 100, 100)];
    let options = SimOptions { log_allocations: true, ..frictionless() };
    let workload = Workload::new(Vec::new(), jobs);
    let outcome = run(&mut Themis::new(ThemisConfig::default()), Cluster::homogeneous(1, 4), workload, options);
    assert_eq!(outcome.jobs[1].start, Some(SimTime::from_secs(1200)));
}

/// Application that trains at `packed` iterations per second for each accelerator on one node, and at `spread`
/// over two.
fn application(name: &str, packed: f64, spread: f64) -> Arc<Application> {
    let sample = |shape: Vec<u32>, speed: f64| {
        let gpus = shape.iter().sum::<u32>();
        let step_secs = (speed * f64::from(gpus)).recip();
        PlacementSample { shape, local_bsz: 12 / gpus, step_secs, sync_secs: 0.0 }
    };
    let alone = (1..=4).map(|gpus| sample(vec![gpus], packed));
    let apart = [[1, 1], [2, 1], [2, 2], [3, 1]].map(|shape| sample(shape.to_vec(), spread));
    let samples: Vec<PlacementSample> = alone.chain(apart).collect();
    let table = || EpochTable::new(vec![12.0], vec![1.0]).unwrap();
    Arc::new(Application {
        name: name.into(),
        limits: BatchLimits::new(12, 12, 1, 12).unwrap(),
        max_replicas: 4,
        fixed_batch: None,
        tensors: None,
        epochs: vec![1000.0],
        gradients: GradientTable { sqr: table(), var: table() },
        iterations: None,
        reference: "gpu".into(),
        local_limits: Default::default(),
        params: BTreeMap::from([("gpu".into(), random_model(&mut rng(0, Stream::Workload)).params)]),
        measured: BTreeMap::from([("gpu".into(), Arc::new(MeasuredStepTimes::new(&samples, &[], &[]).unwrap()))]),
    })
}

/// Placements that Themis decides for the jobs that arrive at 1 s, where jobs from before hold these slices.
fn decided(
    held: &[(u32, u32)],
    arriving: Vec<(u16, Elasticity)>,
    applications: Vec<Arc<Application>>,
) -> Vec<Placement> {
    let mut jobs: Vec<JobSpec> = (0..held.len()).map(|at| fixed(&format!("held{at}"), held[at].1, 9000, 0)).collect();
    jobs.extend(arriving.iter().enumerate().map(|(at, &(index, elasticity))| {
        let mut job = fixed(&format!("new{at}"), 4, 1, 1);
        (job.work, job.request.batch_size, job.request.elasticity) = (Work::application(index), Some(12), elasticity);
        job
    }));
    let options = SimOptions { batching: Batching::Requested, ..frictionless() };
    let scenario =
        Scenario::new(Arc::new(Cluster::homogeneous(3, 4)), Arc::new(Workload::new(applications, jobs)), options, 0);
    let mut simulator = Simulator::new(Arc::new(scenario));
    let mut policy = Themis::new(ThemisConfig::default());
    assert_eq!(simulator.run_until_decision().unwrap(), Status::Decision);
    let mut plan = Plan::keep();
    for (at, &(node, gpus)) in held.iter().enumerate() {
        plan.set(JobId(at as u32), Placement::on(NodeId(node), gpus));
    }
    simulator.apply(&plan).unwrap();
    assert_eq!(simulator.run_until_decision().unwrap(), Status::Decision);
    let plan = policy.decide(&simulator.view());
    let new = (held.len()..held.len() + arriving.len()).map(|at| JobId(at as u32));
    new.map(|id| plan.changes.iter().find(|change| change.job == id).unwrap().placement.clone()).collect()
}

/// One node is whole, and two have two accelerators left each. The first job is as fast apart as together, and the
/// second is not: the second gets the whole node, although it comes later.
#[test]
fn accelerators_together_go_to_the_job_that_needs_them() {
    let applications = vec![application("robust", 1.0, 1.0), application("sensitive", 1.0, 0.4)];
    let arriving = vec![(0, Elasticity::Rigid), (1, Elasticity::Rigid)];
    let placements = decided(&[(1, 2), (2, 2)], arriving, applications);
    assert_eq!(placements[0].nodes(), 2);
    assert_eq!(placements[1], Placement::on(NodeId(0), 4));
}

/// Three accelerators are free together and one apart. A job that is slower on all four than on three takes three,
/// and one that is not takes all.
#[test]
fn a_bid_knows_that_the_fourth_accelerator_is_on_another_node() {
    let elastic = Elasticity::Elastic { min: 1, max: 4 };
    let held = [(0, 1), (1, 3), (2, 4)];
    let placed = |spread: f64| decided(&held, vec![(0, elastic)], vec![application("job", 1.0, spread)]).remove(0);
    assert_eq!(placed(0.5), Placement::on(NodeId(0), 3));
    assert_eq!(placed(0.9).gpus(), 4);
}
