//! Kueue: fair preemption against upstream's expected results, the admission tournament of
//! KEP-1714, and the policy on a cluster.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{fixed, frictionless};
use goodput_agents::heuristic::kueue::Kueue;
use goodput_agents::heuristic::kueue::claim::JobClaim;
use goodput_agents::heuristic::kueue::preemption::{
    Evict, EvictionReason, FairSharingStrategy, PreemptionRules, fair_preemption,
};
use goodput_agents::heuristic::kueue::tournament::winner;
use goodput_env::cluster::{Cluster, TypeId};
use goodput_env::job::{JobId, JobSpec, Workload};
use goodput_env::policy::Policy;
use goodput_env::scenario::Scenario;
use goodput_env::sim::{Outcome, Simulator, Status};
use goodput_env::tenant::{Group, Quota, QuotaChange, QuotaTree, Tenants, Usage};
use goodput_env::time::SimTime;
use proptest::prelude::*;
use serde_json::Value;

/// A group with its nominal quota in thousandths.
fn group(name: &str, cohort: Option<&str>, weight_milli: u32, nominal: u64) -> Group {
    let quotas = BTreeMap::from([("cpu".to_string(), Quota { nominal, ..Quota::default() })]);
    Group { cohort: cohort.map(Into::into), weight_milli, quotas, ..Group::named(name) }
}

fn expectations() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/oracles/kueue.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Amounts are numbers or decimal fractions in quotes; thousandths.
fn milli(value: &Value) -> u64 {
    let number = value.as_f64().or_else(|| value.as_str().and_then(|text| text.parse().ok())).unwrap();
    (number * 1000.0).round() as u64
}

/// Tenants first, then cohorts, and the rules of preemption.
fn upstream_groups(case: &Value) -> (Vec<Group>, usize, Evict) {
    let weight = |name: &str| case["weights"][name].as_f64().map_or(1000, |weight| (weight * 1000.0) as u32);
    match case["case"].as_str().unwrap() {
        "hierarchical" => {
            let groups = vec![
                group("a", Some("LEFT"), 2000, 1000),
                group("b", Some("LEFT"), 1000, 1000),
                group("c", Some("ROOT"), 1000, 1000),
                group("d", Some("RIGHT"), 1000, 1000),
                group("e", Some("RIGHT"), 990, 1000),
                group("ROOT", None, 1000, 5000),
                group("LEFT", Some("ROOT"), 2000, 5000),
                group("RIGHT", Some("ROOT"), 1000, 5000),
            ];
            (groups, 5, Evict::Never)
        }
        "borrowing CQ in a non-borrowing cohort is protected" => {
            let groups = vec![
                group("a", Some("ROOT"), 10_000, 5000),
                group("b", Some("RIGHT"), 100, 0),
                group("ROOT", None, 1000, 0),
                group("RIGHT", Some("ROOT"), 100, 1000),
            ];
            (groups, 2, Evict::LowerPriority)
        }
        _ => {
            let mut groups: Vec<Group> =
                ["a", "b", "c"].map(|name| group(name, Some("all"), weight(name), 3000)).into();
            groups.push(group("preemptible", Some("all"), 1000, 0));
            groups.push(group("all", None, 1000, 0));
            (groups, 4, Evict::LowerPriority)
        }
    }
}

#[test]
fn all_expectations_of_upstream() {
    let all = expectations();
    let cases = all["fair_preemptions"].as_array().unwrap();
    assert_eq!(cases.len(), 23);
    for case in cases {
        let (groups, tenants, within_tenant) = upstream_groups(case);
        let tree = QuotaTree::new(&groups, tenants, &["cpu"]).unwrap();
        let mut usage = Usage::default();
        usage.reset(&tree);
        let mut names = Vec::new();
        let mut claim = |name: &str, of: &Value, amount: &Value, priority: Option<i64>, since| {
            names.push(name.to_string());
            JobClaim {
                job: JobId(names.len() as u32 - 1),
                tenant: groups.iter().position(|group| group.name == of.as_str().unwrap()).unwrap(),
                resource: TypeId(0),
                amount: milli(amount),
                priority: priority.unwrap_or(0) as i32,
                since: SimTime::from_secs(since),
            }
        };
        let admitted: Vec<JobClaim> = case["admitted"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| claim(row[0].as_str().unwrap(), &row[1], &row[2], row[3].as_i64(), 0))
            .collect();
        let row = &case["incoming"];
        let incoming = claim("incoming", &row[0], &row[1], row[2].as_i64(), 1);
        for claim in &admitted {
            tree.add(&mut usage, claim.tenant, claim.resource, claim.amount);
        }
        let strategy = |name: &Value| match name.as_str().unwrap() {
            "FinalShare" => FairSharingStrategy::FinalShare,
            _ => FairSharingStrategy::InitialShare,
        };
        let strategies = case["strategies"].as_array().unwrap().iter().map(strategy).collect();
        let rules = PreemptionRules { within_tenant, within_cohort: Evict::Any, strategies };
        let before = usage.clone();
        let found = fair_preemption(&tree, &mut usage, &admitted, &incoming, &rules);
        assert_eq!(usage, before, "usage is put back");
        let reason = |reason: &EvictionReason| format!("{reason:?}");
        let mut found: Vec<(String, String)> =
            found.iter().map(|(job, why)| (names[job.index()].clone(), reason(why))).collect();
        found.sort();
        let text = |value: &Value| value.as_str().unwrap().to_string();
        let expected: Vec<(String, String)> =
            case["want"].as_array().unwrap().iter().map(|row| (text(&row[0]), text(&row[1]))).collect();
        assert_eq!(found, expected, "{}", case["case"]);
    }
}

/// KEP-1714, story 3: 300 accelerators, two cohorts, an endless backlog of jobs of one accelerator.
#[test]
fn the_tournament_of_story_3() {
    let all = expectations();
    let names = ["1A", "1B", "1C", "2A", "own"];
    let groups = [
        group("1A", Some("C1"), 1000, 0),
        group("1B", Some("C1"), 1000, 0),
        group("1C", Some("C1"), 3000, 0),
        group("2A", Some("C2"), 1000, 0),
        group("own", Some("CS"), 1000, 300),
        group("root", None, 1000, 0),
        group("CS", Some("root"), 1000, 0),
        group("C1", Some("root"), 1000, 0),
        group("C2", Some("root"), 1000, 0),
    ];
    let tree = QuotaTree::new(&groups, 5, &["cpu"]).unwrap();
    let mut usage = Usage::default();
    usage.reset(&tree);
    let nominees: Vec<JobClaim> = (0..4)
        .map(|tenant| JobClaim {
            job: JobId(tenant as u32),
            tenant,
            resource: TypeId(0),
            amount: 1,
            priority: 0,
            since: SimTime::ZERO,
        })
        .collect();
    let mut order = Vec::new();
    while let Some(next) = winner(&tree, &mut usage, &nominees) {
        if tree.available(&usage, next.tenant, TypeId(0)) < 1 {
            break;
        }
        tree.add(&mut usage, next.tenant, TypeId(0), 1);
        order.push(names[next.tenant]);
    }
    let held: BTreeMap<&str, u64> =
        (0..4).map(|tenant| (names[tenant], tree.used(&usage, tenant, TypeId(0)))).collect();
    assert_eq!(serde_json::json!(held), all["story3"]);
    assert_eq!(held, BTreeMap::from([("1A", 30), ("1B", 30), ("1C", 90), ("2A", 150)]));
    assert_eq!(serde_json::json!(order[..12]), all["first12"]);
}

fn of(tenant: u32, name: String, gpus: u32, secs: i64, submit: i64) -> JobSpec {
    let mut job = fixed(&name, gpus, secs, submit);
    job.request.tenant = tenant;
    job
}

fn simulator(gpus: u32, jobs: Vec<JobSpec>, tenants: Tenants) -> Simulator {
    let mut workload = Workload::new(Vec::new(), jobs);
    workload.tenants = Arc::new(tenants);
    let cluster = Arc::new(Cluster::homogeneous(1, gpus));
    Simulator::new(Arc::new(Scenario::new(cluster, Arc::new(workload), frictionless(), 1)))
}

/// Accelerators held by tenant at each decision.
fn follow(policy: &mut dyn Policy, mut simulator: Simulator, mut seen: impl FnMut(SimTime, [u32; 3])) -> Outcome {
    while simulator.run_until_decision().unwrap() == Status::Decision {
        let plan = policy.decide(&simulator.view());
        simulator.apply(&plan).unwrap();
        simulator.wake_at(policy.wake_at());
        let mut held = [0; 3];
        for job in simulator.view().jobs() {
            held[job.request().tenant as usize] += job.gpus();
        }
        seen(simulator.now(), held);
    }
    simulator.outcome()
}

fn gpu(name: &str, cohort: Option<&str>, nominal: u64) -> Group {
    let quotas = BTreeMap::from([("gpu".to_string(), Quota { nominal, ..Quota::default() })]);
    Group { quotas, cohort: cohort.map(Into::into), ..Group::named(name) }
}

fn cohort_of(nominal: [u64; 2], changes: Vec<QuotaChange>) -> Tenants {
    let tenants = vec![gpu("a", Some("all"), nominal[0]), gpu("b", Some("all"), nominal[1])];
    Tenants::new(tenants, vec![Group::named("all")], changes, &["gpu"]).unwrap()
}

/// Idle quota is lent at once and taken back at once, and its owner does not lose it again.
#[test]
fn what_is_lent_comes_back_and_stays() {
    let jobs = || {
        let mut jobs: Vec<JobSpec> = (0..12).map(|at| of(0, format!("a{at}"), 1, 1000, 0)).collect();
        jobs.extend((0..6).map(|at| of(1, format!("b{at}"), 1, 1000, 100)));
        jobs
    };
    let mut states = Vec::new();
    let outcome = follow(&mut Kueue::default(), simulator(8, jobs(), cohort_of([4, 4], vec![])), |at, held| {
        states.push((at.as_secs_f64(), held[0], held[1]));
    });
    assert_eq!(states[..2], [(0.0, 8, 0), (100.0, 4, 4)]);
    assert!(states.iter().filter(|(at, ..)| (100.0..1000.0).contains(at)).all(|&(_, a, b)| (a, b) == (4, 4)));
    assert_eq!(
        outcome.jobs.iter().map(|job| job.restarts).sum::<u32>(),
        4,
        "each of the four evicted jobs restarts once"
    );

    let lending = follow(&mut Kueue::lending(), simulator(8, jobs(), cohort_of([4, 4], vec![])), |at, held| {
        assert!(at > SimTime::ZERO || held[0] == 8);
    });
    assert!(lending.jobs.iter().all(|job| job.restarts == 0));
    let fixed =
        follow(&mut Kueue::partitioned(Evict::Never), simulator(8, jobs(), cohort_of([4, 4], vec![])), |_, held| {
            assert!(held[0] <= 4 && held[1] <= 4);
        });
    assert!(fixed.jobs.iter().all(|job| job.restarts == 0));
}

/// A quota that moves from one tenant to the other is taken back at the moment it moves, without
/// any job coming or going.
#[test]
fn a_changed_quota_is_reclaimed_in_the_next_cycle() {
    let to = |group: &str, nominal| QuotaChange {
        at: SimTime::from_secs(200),
        group: group.into(),
        accelerator: "gpu".into(),
        quota: Quota { nominal, ..Quota::default() },
    };
    let mut jobs: Vec<JobSpec> = (0..8).map(|at| of(0, format!("a{at}"), 1, 1000, 0)).collect();
    jobs.extend((0..8).map(|at| of(1, format!("b{at}"), 1, 1000, 0)));
    let tenants = cohort_of([6, 2], vec![to("a", 2), to("b", 6)]);
    let mut states = Vec::new();
    follow(&mut Kueue::default(), simulator(8, jobs, tenants), |at, held| {
        states.push((at.as_secs_f64(), held[0], held[1]))
    });
    assert_eq!(states[..2], [(0.0, 6, 2), (200.0, 2, 6)]);
}

/// Without quotas and whatever the order and priority of arrivals, two tenants with enough to do
/// hold half each.
#[test]
fn both_attacks_end_in_halves() {
    let flood = |priority: i32, flood_at: i64, calm_at: i64| {
        let mut jobs: Vec<JobSpec> = (0..50).map(|at| of(0, format!("a{at}"), 1, 1000, flood_at)).collect();
        jobs.iter_mut().for_each(|job| job.request.priority = priority);
        jobs.extend((0..4).map(|at| of(1, format!("b{at}"), 1, 1000, calm_at)));
        jobs
    };
    for jobs in [flood(0, 0, 10), flood(100, 10, 0), flood(100, 0, 10)] {
        follow(&mut Kueue::default(), simulator(8, jobs, Tenants::default()), |at, held| {
            if (10.0..500.0).contains(&at.as_secs_f64()) {
                assert_eq!(held, [4, 4, 0], "at {at}");
            }
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Quotas are kept (the guard sees to it), all jobs end, and no job flaps: with repeated
    /// decisions at one moment the plan comes to rest.
    #[test]
    fn decisions_come_to_rest(
        sizes in prop::collection::vec((0_u32..3, 1_u32..4, -1_i32..2, 0_i64..3), 1..40),
        nominal in prop::collection::vec(0_u64..5, 3),
        weights in prop::collection::vec(0_u32..4, 3),
    ) {
        let jobs: Vec<JobSpec> = sizes.iter().enumerate().map(|(at, &(tenant, gpus, priority, submit))| {
            let mut job = of(tenant, format!("j{at}"), gpus, 500, submit);
            job.request.priority = priority;
            job
        }).collect();
        let mut tenants: Vec<Group> = (0..3).map(|at| gpu(["x", "y", "z"][at], Some("all"), nominal[at])).collect();
        for (tenant, weight) in tenants.iter_mut().zip(&weights) {
            tenant.weight_milli = weight * 500;
        }
        let left = 12 - nominal.iter().sum::<u64>();
        let tenants = Tenants::new(tenants, vec![gpu("all", None, left)], vec![], &["gpu"]).unwrap();
        let mut simulator = simulator(12, jobs, tenants);
        let mut policy = Kueue::default();
        while simulator.run_until_decision().unwrap() == Status::Decision {
            let mut rounds = 0;
            loop {
                let plan = policy.decide(&simulator.view());
                if plan.changes.is_empty() {
                    break;
                }
                simulator.apply(&plan).unwrap();
                rounds += 1;
                prop_assert!(rounds < 10, "flaps at {}", simulator.now());
            }
        }
        prop_assert!(!simulator.outcome().truncated);
    }
}
