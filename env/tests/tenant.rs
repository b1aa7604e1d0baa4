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
use goodput_env::policy::Policy;
use goodput_env::scenario::{Allocation, Scenario, SimOptions};
use goodput_env::sim::{SimError, Simulator};
use goodput_env::tenant::{Group, Quota, QuotaChange, QuotaTree, ShareLimit, TenantError, TenantLimit, Tenants, Usage};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;
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

/// A policy that starts nothing.
struct Idle;

impl Policy for Idle {
    fn decide(&mut self, _: &ClusterView<'_>) -> Plan {
        Plan::keep()
    }
}

/// Two tenants share eight accelerators, and `tenant` submits one job of four. The limit that keeps the job from ever
/// starting, and the error of a run in which nothing starts.
fn stalled(tenants: Vec<Group>, tenant: u32, allocation: Option<Allocation>) -> (Option<TenantLimit>, String) {
    let mut workload = Workload::new(vec![], vec![of(tenant, "wide", 4)]);
    let cohorts = vec![Group::named("all")];
    workload.tenants = Arc::new(Tenants::new(tenants, cohorts, vec![], &["gpu"]).unwrap());
    let options = SimOptions { allocation, ..SimOptions::standard() };
    let scenario = Arc::new(Scenario::new(Arc::new(Cluster::homogeneous(2, 4)), Arc::new(workload), options, 0));
    let error = Simulator::new(scenario.clone()).run(&mut Idle).unwrap_err();
    (scenario.first_limited().map(|(_, limit)| limit), error.to_string())
}

#[test]
fn a_run_that_stalls_names_the_limit_of_the_tenant_and_a_remedy() {
    let (needed, fair) = (4, Group::named("two"));
    let weighted = |weight_milli| Group { weight_milli, ..Group::named("one") };
    let (limit, said) = stalled(vec![weighted(300), fair.clone()], 0, Some(Allocation::Static));
    assert_eq!(limit, Some(TenantLimit::Owned { tenant: "one".into(), most: 2, needed }));
    assert!(said.contains("wide, which asks for 4 of 8 accelerators; tenant \"one\" owns 2 accelerators"), "{said}");
    assert!(said.ends_with("give the tenant a larger weight or quota, or choose a dynamic allocation)"), "{said}");
    let (limit, said) = stalled(vec![weighted(300), fair.clone()], 0, Some(Allocation::Dynamic));
    assert!(limit.is_none() && said.ends_with("4 of 8 accelerators)"), "{said}");

    let member = |quota| group("one", Some("all"), 1000, &[("gpu", quota)]);
    let (limit, said) = stalled(vec![member(1), group("two", Some("all"), 1000, &[("gpu", 2)])], 0, None);
    assert_eq!(limit, Some(TenantLimit::Quota { tenant: "one".into(), most: 3, needed }));
    assert!(said.contains("raise the quota or the borrowing limit"), "{said}");
    assert_eq!(stalled(vec![member(1), group("two", Some("all"), 1000, &[("gpu", 3)])], 0, None).0, None);
    assert_eq!(stalled(vec![member(4)], 1, None).0, Some(TenantLimit::Undeclared));

    let share_limit = ShareLimit { compute_percent: Some(350), memory_mib: None };
    let (limit, said) = stalled(vec![Group { share_limit, ..Group::named("one") }], 0, None);
    let of = "% of an accelerator";
    assert_eq!(limit, Some(TenantLimit::Share { tenant: "one".into(), of, most: 350, needed: 400 }));
    assert!(said.contains("raise the share_limit"), "{said}");
}

/// A quota of a later change counts, and so does one of a cohort. Where a tenant's part is nothing, it has no room.
#[test]
fn one_predicate_says_whether_there_are_quotas() {
    let plain = || vec![Group::named("one"), group("two", None, 0, &[])];
    let weights = Tenants::new(plain(), vec![], vec![], &["gpu"]).unwrap();
    assert_eq!((weights.quota_owner(), weights.without_room()), (None, None));
    assert_eq!(weights.partitioned(&[8]).without_room().unwrap().name, "two");
    let quota = Quota { nominal: 2, ..Quota::default() };
    let change =
        |name: &str| QuotaChange { at: SimTime::from_secs(60), group: name.into(), accelerator: "gpu".into(), quota };
    let later = Tenants::new(plain(), vec![], vec![change("one"), change("two")], &["gpu"]).unwrap();
    assert_eq!(later.quota_owner().unwrap().name, "one");
    assert!(later.partitioned(&[8]).without_room().is_none());
    let cohort = group("all", None, 1000, &[("gpu", 8)]);
    let members = vec![group("one", Some("all"), 1000, &[])];
    let common = Tenants::new(members, vec![cohort], vec![], &["gpu"]).unwrap();
    assert_eq!((common.quota_owner().unwrap().name.as_str(), common.without_room()), ("all", None));
    assert_eq!(common.partitioned(&[8]).without_room().unwrap().name, "one");
}
