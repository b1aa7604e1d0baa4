//! Priorities and quotas that adapt: when quota moves and returns, how much each tenant is given, and which
//! job passes which.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{fixed, frictionless};
use goodput_agents::compose::adaptation::{Adaptation, PriorityTerms, QuotaTerms};
use goodput_agents::compose::by_name;
use goodput_env::cluster::Cluster;
use goodput_env::job::{JobSpec, Workload};
use goodput_env::scenario::Scenario;
use goodput_env::sim::{Outcome, Simulator, Status};
use goodput_env::tenant::{Group, Quota, Tenants};

fn of(tenant: u32, at: usize, gpus: u32, secs: i64, submit: i64) -> JobSpec {
    let mut job = fixed(&format!("t{tenant}-{at}-{submit}"), gpus, secs, submit);
    job.request.tenant = tenant;
    job
}

fn owner(name: &str, quota: Quota, weight_milli: u32) -> Group {
    let quotas = BTreeMap::from([("gpu".to_string(), quota)]);
    Group { cohort: Some("all".into()), quotas, weight_milli, ..Group::named(name) }
}

fn owns(nominal: u64) -> Quota {
    Quota { nominal, ..Quota::default() }
}

/// Run of the policy called `name` on one node; tells the accelerators of each tenant after each decision.
fn follow(
    name: &str,
    adaptation: &Adaptation,
    gpus: u32,
    tenants: Vec<Group>,
    jobs: Vec<JobSpec>,
    mut seen: impl FnMut(i64, &[u32]),
) -> Outcome {
    let count = tenants.len();
    let mut workload = Workload::new(Vec::new(), jobs);
    workload.tenants = Arc::new(Tenants::new(tenants, vec![Group::named("all")], vec![], &["gpu"]).unwrap());
    let scenario = Scenario::new(Arc::new(Cluster::homogeneous(1, gpus)), Arc::new(workload), frictionless(), 1);
    let mut simulator = Simulator::new(Arc::new(scenario));
    let mut policy = adaptation.around(by_name(name, 0).unwrap());
    while simulator.run_until_decision().unwrap() == Status::Decision {
        let plan = policy.decide(&simulator.view());
        simulator.apply(&plan).unwrap();
        simulator.wake_at(policy.wake_at());
        let mut held = vec![0; count];
        simulator.view().jobs().for_each(|job| held[job.request().tenant as usize] += job.gpus());
        seen(simulator.now().as_millis() / 1000, &held);
    }
    simulator.outcome()
}

fn quota(window_secs: f64, floor: f64) -> Adaptation {
    Adaptation { quota: Some(QuotaTerms { window_secs, floor }), priority: None }
}

/// Two tenants with four each. The first works until 1000 s and again from 5000 s on; the second has work for all.
fn pause() -> Vec<JobSpec> {
    let mut jobs: Vec<JobSpec> = (0..4).flat_map(|at| [of(0, at, 1, 1000, 0), of(0, at, 1, 1000, 5000)]).collect();
    jobs.extend((0..80).map(|at| of(1, at, 1, 500, 0)));
    jobs
}

#[test]
fn quota_moves_after_the_window_and_returns_when_it_is_asked_for() {
    for (name, terms, expected) in [
        // Until 1600 s the half is kept for its owner, then a quarter of it.
        ("kueue", quota(600.0, 0.25), vec![(0, [4, 4]), (1000, [0, 4]), (1600, [0, 7]), (5000, [4, 4])]),
        ("kueue", quota(0.0, 0.0), vec![(0, [4, 4]), (1000, [0, 8]), (5000, [4, 4])]),
        ("kueue-static", quota(600.0, 1.0), vec![(0, [4, 4]), (1000, [0, 4]), (5000, [4, 4])]),
    ] {
        let mut changes: Vec<(i64, [u32; 2])> = Vec::new();
        follow(name, &terms, 8, vec![owner("a", owns(4), 1000), owner("b", owns(4), 1000)], pause(), |at, held| {
            let held = [held[0], held[1]];
            if at < 6000 && changes.last().is_none_or(|(_, before)| *before != held) {
                changes.push((at, held));
            }
        });
        assert_eq!(changes, expected, "{name} {terms:?}");
    }
}

/// Without preemption the accelerators return as the borrower's jobs end: within the length of one of them.
#[test]
fn without_preemption_accelerators_return_as_jobs_end() {
    let tenants = || vec![owner("a", owns(4), 1000), owner("b", owns(4), 1000)];
    let mut full = None;
    let outcome = follow("kueue-static", &quota(600.0, 0.0), 8, tenants(), pause(), |at, held| {
        if at >= 5000 && held[0] == 4 && full.is_none() {
            full = Some(at);
        }
    });
    assert!(full.is_some_and(|at| (5000..=5500).contains(&at)), "{full:?}");
    assert!(outcome.jobs.iter().all(|job| job.restarts == 0));
}

#[test]
fn what_moves_goes_by_weight_and_within_limits() {
    // The owner of eight is idle; three tenants without quota want all of it.
    let shares = |weights: [u32; 3], limits: [Option<u64>; 3], lending_limit: Option<u64>| {
        let mut tenants = vec![owner("idle", Quota { lending_limit, ..owns(8) }, 1000)];
        tenants.extend((0..3).map(|at| {
            owner(["x", "y", "z"][at], Quota { borrowing_limit: limits[at], ..Quota::default() }, weights[at])
        }));
        let jobs = (1..4).flat_map(|tenant| (0..8).map(move |at| of(tenant, at, 1, 1000, 0))).collect();
        let mut found = Vec::new();
        follow("kueue", &quota(0.0, 0.0), 8, tenants, jobs, |at, held| {
            if at == 0 {
                found = held[1..].to_vec();
            }
        });
        found
    };
    assert_eq!(shares([1000, 1000, 2000], [None; 3], None), [2, 2, 4]);
    assert_eq!(shares([1000, 1000, 1000], [Some(1), None, None], None), [1, 4, 3]);
    assert_eq!(shares([1000, 1000, 1000], [None; 3], Some(3)), [1, 1, 1]);
}

fn ageing(age_weight: u32, fair_share_weight: u32) -> Adaptation {
    let terms = PriorityTerms { age_weight, max_age_secs: 10_000.0, fair_share_weight, ..PriorityTerms::default() };
    Adaptation { priority: Some(terms), quota: None }
}

/// A job of priority 0 comes at 0 s, and jobs of priority 10 without end. With a hundredth of a point a second it is
/// level with those that come 1000 s later.
#[test]
fn a_job_that_waits_passes_jobs_that_come_later() {
    let jobs = || -> Vec<JobSpec> {
        let mut jobs = vec![of(0, 0, 1, 100, 0), of(0, 1, 1, 100, 1)];
        jobs.extend((0..40).map(|at| of(0, at, 1, 100, 10 + 50 * at as i64)));
        jobs.iter_mut().skip(2).for_each(|job| job.request.priority = 10);
        jobs
    };
    let start = |adaptation: &Adaptation| {
        let outcome = follow("kueue-lend", adaptation, 1, vec![Group::named("a")], jobs(), |_, _| {});
        outcome.jobs[1].start.unwrap().as_millis() / 1000
    };
    assert_eq!(start(&Adaptation::default()), 4100, "after all others");
    // Twenty jobs came before 1001 s, and each takes 100 s.
    assert_eq!(start(&ageing(100, 0)), 2100);
}

/// Two tenants with jobs without end, of which the first comes first: by fair share they take turns.
#[test]
fn a_tenant_that_has_used_less_goes_first() {
    let jobs = || -> Vec<JobSpec> {
        (0..10).map(|at| of(0, at, 1, 100, 0)).chain((0..10).map(|at| of(1, at, 1, 100, 1))).collect()
    };
    let order = |adaptation: &Adaptation| -> Vec<u32> {
        let tenants = vec![Group::named("a"), Group::named("b")];
        let mut runs = Vec::new();
        follow("kubernetes", adaptation, 1, tenants, jobs(), |at, held| {
            if at % 100 == 0 {
                runs.push(held[1]);
            }
        });
        runs.truncate(6);
        runs
    };
    assert_eq!(order(&Adaptation::default()), [0, 0, 0, 0, 0, 0]);
    assert_eq!(order(&ageing(0, 1000)), [0, 1, 0, 1, 0, 1]);
}
