//! Quotas: shares as Kueue computes them, usage that bubbles up and returns to nothing, changes
//! during a run, and the guard.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use crate::support::fixed;
use goodput_env::cluster::{Cluster, NodeId, TypeId};
use goodput_env::guard::Violation;
use goodput_env::job::{JobId, JobSpec, Workload};
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::scenario::{Allocation, Scenario, SimOptions};
use goodput_env::sim::{SimError, Simulator};
use goodput_env::tenant::{Group, Quota, QuotaChange, QuotaTree, TenantError, Tenants, Usage};
use goodput_env::time::SimTime;
use proptest::prelude::*;

const GPU: TypeId = TypeId(0);

fn group(name: &str, cohort: Option<&str>, weight_milli: u32, quotas: &[(&str, u64)]) -> Group {
    let quota = |nominal| Quota { nominal, ..Quota::default() };
    let quotas = quotas.iter().map(|&(of, nominal)| (of.to_string(), quota(nominal))).collect();
    Group { cohort: cohort.map(Into::into), weight_milli, quotas, ..Group::named(name) }
}

/// Thousandths, rounded up, and the deciding resource of the first of two tenants in one cohort.
fn share(own: &Group, usage: &[u64], peer: &Group) -> (Option<u64>, Option<usize>) {
    let groups = [own.clone(), peer.clone(), group("all", None, 1000, &[])];
    let tree = QuotaTree::new(&groups, 2, &["cpu", "gpu"]).unwrap();
    let mut used = Usage::default();
    used.reset(&tree);
    for (resource, &amount) in usage.iter().enumerate() {
        tree.add(&mut used, 0, TypeId::at(resource), amount);
    }
    let share = tree.share(&used, 0, None);
    assert_eq!(share.is_borrowing(), share.resource().is_some());
    (share.permille(), share.resource().map(TypeId::index))
}

/// The expectations of Kueue's `TestDominantResourceShare` that the specification lists.
#[test]
fn dominant_shares_of_kueue() {
    let own = |weight, quotas: &[(&str, u64)]| group("own", Some("all"), weight, quotas);
    let peer = |quotas: &[(&str, u64)]| group("peer", Some("all"), 1000, quotas);
    let both = (own(1000, &[("cpu", 2), ("gpu", 5)]), peer(&[("cpu", 8), ("gpu", 5)]));
    assert_eq!(share(&both.0, &[1, 2], &both.1), (Some(0), None));
    assert_eq!(share(&both.0, &[3, 7], &both.1), (Some(200), Some(1)));
    assert_eq!(share(&both.0, &[3, 3], &both.1), (Some(100), Some(0)));
    assert_eq!(share(&own(1000, &[("gpu", 500)]), &[0, 501], &peer(&[("gpu", 1000)])), (Some(1), Some(1)));
    assert_eq!(share(&own(300_000, &[("gpu", 500)]), &[0, 800], &peer(&[("gpu", 1000)])), (Some(1), Some(1)));
    assert_eq!(share(&own(2000, &[("gpu", 4)]), &[0, 8], &peer(&[("gpu", 12)])), (Some(125), Some(1)));
    assert_eq!(share(&own(0, &[("gpu", 4)]), &[0, 8], &peer(&[("gpu", 12)])), (None, Some(1)));
    let mut lender = peer(&[("gpu", 12)]);
    lender.quotas.get_mut("gpu").unwrap().lending_limit = Some(6);
    assert_eq!(share(&own(1000, &[("gpu", 4)]), &[0, 8], &lender), (Some(400), Some(1)));
}

#[test]
fn limits_bound_borrowing_and_lending() {
    let mut lender = group("lender", Some("all"), 1000, &[("gpu", 10)]);
    lender.quotas.get_mut("gpu").unwrap().lending_limit = Some(4);
    let mut borrower = group("borrower", Some("all"), 1000, &[("gpu", 2)]);
    borrower.quotas.get_mut("gpu").unwrap().borrowing_limit = Some(3);
    let tree = QuotaTree::new(&[lender, borrower, group("all", None, 1000, &[])], 2, &["gpu"]).unwrap();
    let mut used = Usage::default();
    used.reset(&tree);
    assert_eq!((tree.available(&used, 0, GPU), tree.available(&used, 1, GPU)), (12, 5));
    tree.add(&mut used, 1, GPU, 5);
    assert_eq!((tree.available(&used, 0, GPU), tree.available(&used, 1, GPU)), (7, 0));
    tree.add(&mut used, 0, GPU, 6);
    assert_eq!(tree.used(&used, 2, GPU), 5, "what is not lent does not bubble up");
    assert_eq!(tree.available(&used, 0, GPU), 1);
}

#[test]
fn contradictions_are_named() {
    let types = ["gpu"];
    let error = |tenants: Vec<Group>, cohorts: Vec<Group>| Tenants::new(tenants, cohorts, vec![], &types).unwrap_err();
    let lone = |name: &str, cohort| group(name, cohort, 1000, &[]);
    assert!(matches!(error(vec![lone("a", None), lone("a", None)], vec![]), TenantError::Twice { .. }));
    let unknown = error(vec![lone("a", Some("b"))], vec![lone("c", None)]);
    assert_eq!(unknown.to_string(), "`a` is in cohort `b`, which is not declared; there are: c");
    let round = vec![lone("x", Some("y")), lone("y", Some("x"))];
    assert!(matches!(error(vec![], round), TenantError::Cycle { .. }));
    assert!(matches!(error(vec![group("a", None, 1, &[("t4", 1)])], vec![]), TenantError::UnknownType { .. }));
    let mut limited = group("a", None, 1, &[("gpu", 1)]);
    limited.quotas.get_mut("gpu").unwrap().borrowing_limit = Some(1);
    assert!(matches!(error(vec![limited], vec![]), TenantError::LimitWithoutCohort { .. }));
    assert!(Tenants::new(vec![lone("a", None)], vec![], vec![], &types).unwrap().quotas(SimTime::ZERO).is_none());
}

fn of(tenant: u32, name: &str, gpus: u32) -> JobSpec {
    let mut job = fixed(name, 0, gpus, 1000);
    job.request.tenant = tenant;
    job
}

/// Two tenants with half of eight accelerators each, one of them with nothing from t = 100 s on.
fn halves() -> Tenants {
    let tenants = ["a", "b"].map(|name| group(name, None, 1000, &[("gpu", 4)]));
    let change = QuotaChange {
        at: SimTime::from_secs(100),
        group: "a".into(),
        accelerator: "gpu".into(),
        quota: Quota::default(),
    };
    Tenants::new(tenants.into(), vec![], vec![change], &["gpu"]).unwrap()
}

#[test]
fn quotas_change_during_a_run() {
    let tenants = halves();
    let nominal = |secs| tenants.quotas(SimTime::from_secs(secs)).unwrap().subtree(0, GPU);
    assert_eq!((nominal(0), nominal(99), nominal(100), nominal(1000)), (4, 4, 0, 0));
    assert_eq!(tenants.next_change(SimTime::ZERO), Some(SimTime::from_secs(100)));
    assert_eq!(tenants.next_change(SimTime::from_secs(100)), None);
}

#[test]
fn the_guard_refuses_what_exceeds_a_quota() {
    let mut workload = Workload::new(vec![], vec![of(0, "small", 4), of(0, "more", 1), of(1, "other", 4)]);
    workload.tenants = Arc::new(halves());
    let cluster = Arc::new(Cluster::homogeneous(1, 8));
    let scenario = Arc::new(Scenario::new(cluster, Arc::new(workload), SimOptions::standard(), 0));
    let mut simulator = Simulator::new(scenario);
    simulator.run_until_decision().unwrap();
    let mut plan = Plan::keep();
    plan.set(JobId(0), Placement::on(NodeId(0), 4));
    plan.set(JobId(1), Placement::on(NodeId(0), 1));
    let Err(SimError::Refused { violations, .. }) = simulator.apply(&plan) else { panic!("it must be refused") };
    assert_eq!(violations, [Violation::Quota { tenant: 0, accelerator: "gpu".into(), excess: 1 }]);
    let mut plan = Plan::keep();
    plan.set(JobId(0), Placement::on(NodeId(0), 4));
    plan.set(JobId(2), Placement::on(NodeId(0), 4));
    simulator.apply(&plan).unwrap();
    while simulator.now() < SimTime::from_secs(120) {
        simulator.run_until_decision().unwrap();
        simulator.apply(&Plan::keep()).unwrap();
    }
    let mut plan = Plan::keep();
    plan.set(JobId(0), Placement::none());
    plan.set(JobId(1), Placement::on(NodeId(0), 1));
    simulator.apply(&plan).unwrap();
    let mut plan = Plan::keep();
    plan.set(JobId(1), Placement::none());
    simulator.apply(&plan).unwrap();
    plan.changes[0].placement = Placement::on(NodeId(0), 1);
    assert!(simulator.apply(&plan).is_err(), "the quota is gone, and from nothing to one is growth");
}

proptest! {
    /// Whatever is used and given back in any order, nothing is left; what is available falls by
    /// exactly what is added.
    #[test]
    fn usage_returns_to_nothing(
        quotas in prop::collection::vec((0_u64..9, prop::option::of(0_u64..9), prop::option::of(0_u64..9)), 7),
        steps in prop::collection::vec((0_usize..4, 1_u64..6), 1..60),
    ) {
        let parents = [Some("p"), Some("p"), Some("q"), Some("r"), Some("r"), Some("r"), None];
        let names = ["a", "b", "c", "d", "p", "q", "r"];
        let groups: Vec<Group> = (0..7).map(|at| {
            let (nominal, borrowing_limit, lending_limit) = quotas[at];
            let limits = parents[at].map_or((None, None), |_| (borrowing_limit, lending_limit));
            let quota = Quota { nominal, borrowing_limit: limits.0, lending_limit: limits.1 };
            let mut group = group(names[at], parents[at], 1000, &[]);
            group.quotas.insert("gpu".into(), quota);
            group
        }).collect();
        let tree = QuotaTree::new(&groups, 4, &["gpu"]).unwrap();
        let (mut used, mut empty) = (Usage::default(), Usage::default());
        used.reset(&tree);
        empty.reset(&tree);
        for &(tenant, amount) in &steps {
            let before = tree.available(&used, tenant, GPU);
            tree.add(&mut used, tenant, GPU, amount);
            prop_assert_eq!(tree.available(&used, tenant, GPU), before - amount as i64);
        }
        for &(tenant, amount) in steps.iter().rev() {
            tree.remove(&mut used, tenant, GPU, amount);
        }
        prop_assert_eq!(used, empty);
        // No group can use more than its potential, however the potential grows one by one.
        let mut used = Usage::default();
        used.reset(&tree);
        for tenant in 0..4 {
            while tree.available(&used, tenant, GPU) > 0 {
                tree.add(&mut used, tenant, GPU, 1);
            }
            prop_assert!(tree.used(&used, tenant, GPU) <= tree.potential(tenant, GPU));
        }
        prop_assert!(tree.used(&used, 6, GPU) <= tree.subtree(6, GPU));
    }
}

/// Plan that a policy which knows neither quotas nor preemption would make, and what the guard says of it.
fn under(allocation: Allocation, tenants: Tenants, plan: &[(u32, Placement)]) -> Result<(), Vec<Violation>> {
    let mut workload = Workload::new(vec![], vec![of(0, "a", 4), of(0, "b", 2), of(1, "c", 4)]);
    workload.tenants = Arc::new(tenants);
    let options = SimOptions { allocation: Some(allocation), ..SimOptions::standard() };
    let scenario = Scenario::new(Arc::new(Cluster::homogeneous(2, 4)), Arc::new(workload), options, 0);
    let mut simulator = Simulator::new(Arc::new(scenario));
    simulator.run_until_decision().unwrap();
    let set = |plan: &mut Plan, &(job, ref placement): &(u32, Placement)| plan.set(JobId(job), placement.clone());
    let mut first = Plan::keep();
    set(&mut first, &(0, Placement::on(NodeId(0), 4)));
    simulator.apply(&first).unwrap();
    let mut next = Plan::keep();
    plan.iter().for_each(|change| set(&mut next, change));
    match simulator.apply(&next) {
        Ok(()) => Ok(()),
        Err(SimError::Refused { violations, .. }) => Err(violations),
        Err(other) => panic!("{other}"),
    }
}

/// Two tenants of eight accelerators. Static: neither holds more than its half, with quotas or by weights; dynamic: one
/// holds what the other leaves idle. Without preemption no job is stopped.
#[test]
fn an_allocation_binds_every_policy() {
    let weights = || Tenants::new(vec![Group::named("one"), Group::named("two")], vec![], vec![], &["gpu"]).unwrap();
    let own = |name| group(name, Some("all"), 1000, &[("gpu", 4)]);
    let quotas = || Tenants::new(vec![own("one"), own("two")], vec![Group::named("all")], vec![], &["gpu"]).unwrap();
    let more = || [(1, Placement::on(NodeId(1), 2))];
    let stop = || [(0, Placement::none()), (2, Placement::on(NodeId(0), 4))];
    let excess = Violation::Quota { tenant: 0, accelerator: "gpu".into(), excess: 2 };
    for allocation in Allocation::ALL {
        for tenants in [weights(), quotas()] {
            let lent = if allocation.lends() { Ok(()) } else { Err(vec![excess.clone()]) };
            assert_eq!(under(allocation, tenants.clone(), &more()), lent, "{allocation:?}");
            let stopped =
                if allocation.preempts() { Ok(()) } else { Err(vec![Violation::Preempted { job: JobId(0) }]) };
            assert_eq!(under(allocation, tenants, &stop()), stopped, "{allocation:?}");
        }
    }
}
