//! Dominant resource fairness: the paper's example, its properties, and the policy on a cluster.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;

use crate::support::{fixed, frictionless, jcts, oracle, run};
use goodput_agents::heuristic::drf::{Drf, dominant_share, fill};
use goodput_env::cluster::{AcceleratorType, Cluster, Node, TypeId};
use goodput_env::job::{JobSpec, Workload};
use proptest::prelude::*;

#[test]
fn the_papers_example() {
    let expected = oracle("drf");
    let found = fill(&[9, 18], &[vec![1, 4], vec![3, 1]]);
    assert_eq!(serde_json::json!(found.tasks), expected[0]);
    let shares: Vec<String> = found
        .shares
        .iter()
        .map(|share| {
            let divisor = (1..=share.whole).rev().find(|d| share.part % d == 0 && share.whole % d == 0).unwrap();
            format!("{}/{}", share.part / divisor, share.whole / divisor)
        })
        .collect();
    assert_eq!(serde_json::json!(shares), expected[1]);
    assert_eq!(serde_json::json!(found.order), expected[2]);
}

#[test]
fn a_user_without_demand_gets_nothing_and_missing_resources_do_not_divide() {
    let found = fill(&[4, 0], &[vec![0, 0], vec![1, 0], vec![1, 1]]);
    assert_eq!(found.tasks, [0, 4, 0]);
    assert_eq!(dominant_share(&[2, 5], &[4, 0]).value(), 0.5);
}

fn of_tenant(name: &str, tenant: u32, gpus: u32, secs: i64, submit: i64) -> JobSpec {
    let mut job = fixed(name, gpus, secs, submit);
    job.request.tenant = tenant;
    job
}

/// Two tenants, eight accelerators: the tenant that asked first with much does not keep the other
/// out for longer than a job lasts.
#[test]
fn a_flood_does_not_starve_the_other_tenant() {
    let mut jobs: Vec<JobSpec> = (0..8).map(|at| of_tenant(&format!("flood-{at}"), 0, 2, 100, 0)).collect();
    jobs.extend((0..2).map(|at| of_tenant(&format!("calm-{at}"), 1, 2, 100, 1)));
    let found = jcts(&mut Drf::default(), 8, jobs);
    assert_eq!((found["calm-0"], found["calm-1"]), (199.0, 199.0), "both run in the second wave");
    let mut floods: Vec<f64> =
        found.iter().filter(|(name, _)| name.starts_with("flood")).map(|(_, jct)| *jct).collect();
    floods.sort_by(f64::total_cmp);
    assert_eq!(floods, [100.0, 100.0, 100.0, 100.0, 200.0, 200.0, 300.0, 300.0]);
}

/// Shares of two types: a tenant with half of the scarce type waits for a tenant with a quarter of
/// the plentiful one.
#[test]
fn the_dominant_type_counts() {
    let types = ["scarce", "plentiful"].map(AcceleratorType::named);
    let nodes = [(0, 4), (1, 8)].map(|(accelerator, gpus)| Node::new(TypeId(accelerator), gpus));
    let cluster = Cluster { types: types.into(), nodes: nodes.into() };
    let jobs = vec![
        of_tenant("a0", 0, 6, 1000, 0), // six of eight plentiful: 3/4
        of_tenant("b0", 1, 2, 1000, 1), // two of four scarce: 1/2
        of_tenant("a1", 0, 2, 10, 2),   // the other scarce
        of_tenant("b1", 1, 2, 10, 2),   // must go first
        of_tenant("c0", 2, 2, 10, 2),
    ];
    let workload = Workload::new(Vec::new(), jobs);
    let names: Vec<String> = workload.jobs.iter().map(|job| job.request.name.clone()).collect();
    let outcome = run(&mut Drf::default(), cluster, workload, frictionless());
    let jct: BTreeMap<String, f64> =
        names.into_iter().zip(&outcome.jobs).map(|(name, job)| (name, job.jct().unwrap().as_secs_f64())).collect();
    assert_eq!((jct["c0"], jct["b1"]), (10.0, 10.0), "nothing held, then a half");
    assert_eq!(jct["a1"], 18.0 - 8.0 + 10.0, "three quarters wait for the first to end");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// No user gets more than there is, no user's next task would fit, and no user would rather
    /// have another's bundle.
    #[test]
    fn filling_is_feasible_complete_and_envy_free(
        capacity in prop::collection::vec(1_u64..60, 1..4),
        seeds in prop::collection::vec(prop::collection::vec(0_u64..7, 3), 1..6),
    ) {
        let demands: Vec<Vec<u64>> = seeds.iter().map(|seed| seed[..capacity.len()].to_vec()).collect();
        let found = fill(&capacity, &demands);
        let used = |resource: usize| -> u64 {
            demands.iter().zip(&found.tasks).map(|(demand, tasks)| demand[resource] * tasks).sum()
        };
        for (resource, &whole) in capacity.iter().enumerate() {
            prop_assert!(used(resource) <= whole);
        }
        for demand in demands.iter().filter(|demand| demand.iter().any(|&amount| amount > 0)) {
            let fits = demand.iter().enumerate().all(|(resource, amount)| used(resource) + amount <= capacity[resource]);
            prop_assert!(!fits, "room for one more task was left");
        }
        for (user, demand) in demands.iter().enumerate() {
            for (other, theirs) in demands.iter().enumerate() {
                let tasks_of_theirs = demand.iter().zip(theirs).filter(|(mine, _)| **mine > 0)
                    .map(|(mine, theirs)| theirs * found.tasks[other] / mine).min().unwrap_or(0);
                // Whole tasks: envy of less than one task of either is rounding.
                prop_assert!(tasks_of_theirs <= found.tasks[user] + largest_task(demand, theirs), "{user} envies {other}");
            }
        }
    }
}

/// Tasks of `mine` that one task of `theirs` is worth, rounded up, plus one.
fn largest_task(mine: &[u64], theirs: &[u64]) -> u64 {
    let worth = mine.iter().zip(theirs).filter(|(mine, _)| **mine > 0).map(|(mine, theirs)| theirs.div_ceil(*mine));
    worth.min().unwrap_or(0) + 1
}
