//! Tenants from configuration to metrics: both attacks, isolation, strategy-proofness, envy, and
//! errors that name the remedy.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_agents::compose::by_name;
use goodput_configs::scenario::{Burst, ClusterConfig, EnvironmentConfig, NodeGroup, Setup, WorkloadConfig};
use goodput_configs::tenants::{CohortConfig, TenantConfig};
use goodput_env::cluster::Pool;
use goodput_env::scenario::{Batching, Information, Scenario};
use goodput_env::sim::{Simulator, Status};
use goodput_env::tenant::{Quota, ShareLimit};
use goodput_eval::metrics::{
    Measures, RunFacts, TenantFacts, envy_pairs, isolation_index, jain_index, measure, tenant_facts,
};

const HOUR: f64 = 3600.0;

fn tenant(name: &str, weight: f64) -> TenantConfig {
    let (quota, quota_changes) = (BTreeMap::new(), Vec::new());
    TenantConfig {
        name: name.into(),
        weight,
        cohort: None,
        priority: 0,
        quota,
        share_limit: ShareLimit::default(),
        quota_changes,
    }
}

fn burst(tenant: &str, at_secs: f64, jobs: u32, run_secs: f64) -> Burst {
    Burst {
        tenant: tenant.into(),
        at_secs,
        jobs,
        every_secs: 0.0,
        gpus: 1,
        compute_percent: None,
        memory_mib: None,
        run_secs,
        priority: None,
        deadline_secs: None,
    }
}

fn cluster() -> ClusterConfig {
    ClusterConfig {
        groups: vec![NodeGroup {
            accelerator: "gpu".into(),
            nodes: 2,
            gpus_per_node: 4,
            memory_mib: None,
            pool: Pool::Shared,
        }],
    }
}

fn environment(horizon_secs: Option<f64>) -> EnvironmentConfig {
    EnvironmentConfig {
        round_secs: Some(60.0),
        switch_cost: "zero".into(),
        batching: Batching::Requested,
        information: Information::Profiled,
        horizon_secs,
        ..EnvironmentConfig::default()
    }
}

fn scenario(tenants: &[TenantConfig], bursts: Vec<Burst>, horizon_secs: Option<f64>) -> Arc<Scenario> {
    let setup = Setup::new(&cluster(), &WorkloadConfig::Bursts(bursts), &environment(horizon_secs)).unwrap();
    setup.with_tenants(tenants, &[]).unwrap().scenario(0)
}

fn run(policy: &str, scenario: &Arc<Scenario>) -> (Measures, Vec<TenantFacts>) {
    let outcome = Simulator::new(scenario.clone()).run(&mut *by_name(policy, 0).unwrap()).unwrap();
    (measure(&RunFacts::new(scenario, &outcome)), tenant_facts(scenario, &outcome))
}

fn two() -> Vec<TenantConfig> {
    vec![tenant("alice", 1.0), tenant("bob", 1.0)]
}

/// By priority, and by numbers.
fn attacks() -> [Vec<Burst>; 2] {
    let urgent = Burst { priority: Some(100), ..burst("alice", 1.0, 16, 2.0 * HOUR) };
    [
        vec![burst("bob", 0.0, 16, 2.0 * HOUR), urgent],
        vec![burst("alice", 0.0, 50, 2.0 * HOUR), burst("bob", 1.0, 8, 2.0 * HOUR)],
    ]
}

/// K2 to K5: one tenant has everything under the default queue; under fair policies both have half,
/// and the honest one waits for nothing.
#[test]
fn attacks_on_the_default_queue() {
    for bursts in attacks() {
        let scenario = scenario(&two(), bursts, Some(2.0 * HOUR));
        let (measures, tenants) = run("kubernetes", &scenario);
        let jain = measures.get("tenant_jain_gpu_time").unwrap();
        assert!((jain - 0.5).abs() < 1e-3, "{jain}");
        assert!(tenants[1].max_wait_secs > 1.99 * HOUR || tenants[1].gpu_secs < 10.0);
        assert!(measures.get("tenant_max_share").unwrap() > 0.999);
        for fair in ["kueue", "kai"] {
            let (measures, tenants) = run(fair, &scenario);
            let jain = measures.get("tenant_jain_gpu_time").unwrap();
            assert!(jain > 0.999_999, "{fair}: {jain}");
            assert!((tenants[1].share - 0.5).abs() < 1e-3);
        }
    }
}

#[test]
fn weights_divide_the_cluster() {
    let tenants = [tenant("alice", 1.0), tenant("bob", 3.0)];
    let bursts = vec![burst("alice", 0.0, 20, 2.0 * HOUR), burst("bob", 0.0, 20, 2.0 * HOUR)];
    for fair in ["kueue", "kai"] {
        let (measures, found) = run(fair, &scenario(&tenants, bursts.clone(), Some(HOUR)));
        assert_eq!((found[0].share, found[1].share), (0.25, 0.75), "{fair}");
        assert_eq!(measures.get("tenant_jain_weighted_share"), Some(1.0));
        assert!((measures.get("tenant_jain_gpu_time").unwrap() - jain_index(&[1.0, 3.0])).abs() < 1e-12);
    }
}

/// An honest tenant that stays within half of the cluster beside a tenant that floods it.
#[test]
fn isolation_from_a_flood() {
    let honest = || (0..6).map(|at| burst("bob", 600.0 * f64::from(at), 2, 1000.0));
    let alone = scenario(&two(), honest().collect(), None);
    let flood: Vec<Burst> = honest().chain([burst("alice", 0.0, 200, 1000.0)]).collect();
    let beside = scenario(&two(), flood, None);
    let index = |policy: &str| isolation_index(&run(policy, &beside).1, &run(policy, &alone).1, 0).unwrap();
    assert!(index("kueue") <= 1.02, "{}", index("kueue"));
    assert!(index("kai") <= 1.02, "{}", index("kai"));
    assert!(index("kubernetes") > 5.0, "{}", index("kubernetes"));
}

/// A claim of twice as much gains a tenant nothing under fair policies, and much under the default
/// queue.
#[test]
fn exaggeration_does_not_pay() {
    let utility = |policy: &str, claim: u32| {
        let bursts =
            vec![burst("alice", 0.0, 16, 100.0), burst("bob", 0.0, claim, 100.0), burst("alice", 0.5, 400, 100.0)];
        run(policy, &scenario(&two(), bursts, Some(2.0 * HOUR))).1[1].gpu_secs
    };
    for fair in ["kueue", "kai", "drf"] {
        let (honest, doubled) = (utility(fair, 400), utility(fair, 800));
        assert!(doubled <= 1.01 * honest, "{fair}: {honest} {doubled}");
    }
    assert!(utility("kubernetes", 800) > 1.2 * utility("kubernetes", 400));
}

/// At every decision no tenant would rather have what another holds, scaled by weight, and no
/// accelerator idles that a waiting job could use.
#[test]
fn no_envy_and_no_waste() {
    let weights = [1.0, 2.0, 1.0];
    let tenants: Vec<TenantConfig> =
        ["a", "b", "c"].iter().zip(weights).map(|(name, weight)| tenant(name, weight)).collect();
    let bursts = vec![
        burst("a", 0.0, 9, 1000.0),
        burst("b", 100.0, 9, 1000.0),
        burst("c", 200.0, 1, 3000.0),
        burst("c", 2500.0, 8, 500.0),
    ];
    for fair in ["kueue", "kai"] {
        let mut simulator = Simulator::new(scenario(&tenants, bursts.clone(), None));
        let mut policy = by_name(fair, 0).unwrap();
        while simulator.run_until_decision().unwrap() == Status::Decision {
            let plan = policy.decide(&simulator.view());
            simulator.apply(&plan).unwrap();
            simulator.wake_at(policy.wake_at());
            let view = simulator.view();
            let (mut held, mut wanted) = ([0.0; 3], [0.0; 3]);
            for job in view.jobs() {
                let tenant = job.request().tenant as usize;
                held[tenant] += f64::from(job.gpus());
                wanted[tenant] += f64::from(job.request().gpus);
            }
            // Whole accelerators: less than one of them is no envy.
            let utility = |tenant: usize, gpus: f64| gpus.min(wanted[tenant]).max(held[tenant] + 1.0 - 1e-9);
            assert!(envy_pairs(&held, &weights, utility).is_empty(), "{fair} at {}: {held:?} of {wanted:?}", view.now);
            assert!(view.total_free() == 0 || held == wanted, "{fair} at {}: idle", view.now);
        }
    }
}

#[test]
fn errors_name_the_remedy() {
    let error = |tenants: &[TenantConfig], cohorts: &[CohortConfig], bursts: Vec<Burst>| {
        let setup = Setup::new(&cluster(), &WorkloadConfig::Bursts(bursts), &environment(None));
        setup.and_then(|setup| setup.with_tenants(tenants, cohorts)).unwrap_err().to_string()
    };
    let bursts = || vec![burst("bob", 0.0, 1, 1.0)];
    let unknown = error(&[tenant("alice", 1.0)], &[], bursts());
    assert_eq!(unknown, "workload.bursts.tenant is bob, expected one of the declared tenants: alice");
    let lost = TenantConfig { cohort: Some("all".into()), ..tenant("bob", 1.0) };
    assert_eq!(
        error(std::slice::from_ref(&lost), &[], bursts()),
        "tenants: `bob` is in cohort `all`, which is not declared; there are: "
    );
    let quota = Quota { nominal: 1, borrowing_limit: None, lending_limit: None };
    let foreign = TenantConfig { quota: BTreeMap::from([("a100".into(), quota)]), ..tenant("bob", 1.0) };
    assert_eq!(
        error(&[foreign], &[], bursts()),
        "tenants: `bob` has a quota of accelerator type `a100`; the cluster has: gpu"
    );
    assert!(error(&[tenant("bob", -1.0)], &[], bursts()).starts_with("tenants.weight is -1"));
    assert!(
        error(&[tenant("bob", 1.0)], &[], vec![burst("bob", 0.0, 0, 1.0)]).starts_with("workload.bursts.jobs is 0")
    );
}

/// A policy that does not know quotas is refused where there are some, and says so.
#[test]
fn quotas_bind_every_policy() {
    let quota = Quota { nominal: 4, borrowing_limit: None, lending_limit: None };
    let mut tenants = two();
    for tenant in &mut tenants {
        tenant.quota = BTreeMap::from([("gpu".to_string(), quota)]);
    }
    let scenario = scenario(&tenants, vec![burst("alice", 0.0, 8, 100.0), burst("bob", 0.0, 8, 100.0)], None);
    for knows in ["kubernetes", "kueue", "kueue-lend", "kueue-static", "kai"] {
        let (measures, _) = run(knows, &scenario);
        assert_eq!(measures.get("makespan_secs"), Some(200.0), "{knows}: four and four at a time");
    }
    let refused = Simulator::new(scenario).run(&mut *by_name("fifo", 0).unwrap()).unwrap_err().to_string();
    assert!(refused.contains("tenant 0 would hold 4 accelerators of type gpu more than its quota allows"), "{refused}");
}
