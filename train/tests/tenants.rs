//! The scenarios of tenants that ship: fair elastic sharing, quotas and priorities that adapt, and the four ways to
//! divide a cluster.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;

use goodput_env::time::SimTime;
use goodput_eval::metrics::tenant_facts;

use crate::shipped::{evaluated, figures, shipped};

/// Metrics of a file by policy.
fn by_policy(name: &str, sets: &[&str], metrics: &[&str]) -> BTreeMap<String, Vec<f64>> {
    let evaluation = evaluated(&shipped(name, sets));
    let of = |run: &goodput_eval::run::PolicyRun| metrics.iter().map(|key| run.measures.get(key).unwrap()).collect();
    evaluation.layout.policies.iter().cloned().zip(evaluation.runs.iter().map(of)).collect()
}

/// As published, Pollux gives a tenant with eight times the jobs most of the cluster. The nearer `tenant_fairness` is
/// to one, the more equal is the GPU time of the two tenants.
#[test]
fn a_flood_of_elastic_jobs_gains_nothing_where_tenants_are_equal() {
    let found = by_policy("elastic-flood.toml", &[], &["tenant_jain_gpu_time"]);
    let jain = |name: &str| found[name][0];
    let (published, half, equal) =
        (jain("pollux-fast"), jain("pollux-fast(tenant_fairness=0.5)"), jain("pollux-fast(tenant_fairness=1)"));
    assert!(published < 0.8 && published < half && half < equal && equal > 0.95, "{found:?}");
}

/// The idle half of the cluster is recovered within the window, and its owner has it back at the decision at which it
/// asks for it: every job of the owner meets its deadline.
#[test]
fn quota_that_is_not_used_moves_and_returns() {
    let metrics = ["utilization", "deadlines_met", "restarts_mean"];
    let with = by_policy("quota-adaptation.toml", &[], &metrics);
    let without = by_policy("quota-adaptation.toml", &["adaptation={}"], &metrics);
    let (adapted, fixed, lending) = (&with["kueue"], &without["kueue-static"], &without["kueue"]);
    assert!(adapted[0] > fixed[0] + 0.2, "the idle half is used: {with:?} {without:?}");
    assert_eq!((adapted[1], fixed[1]), (1.0, 1.0), "the owner waits for nothing");
    assert!(adapted[2] < lending[2], "fewer restarts than where all that idles is lent at once: {with:?} {without:?}");

    // Ten minutes after its last job the owner has its floor, and all of its half when it submits its next job.
    let experiment = shipped("quota-adaptation.toml", &["evaluate.policies=[\"kueue\"]"]);
    let evaluation = evaluated(&experiment);
    let run = &evaluation.runs[0];
    let tenant = |job: goodput_env::job::JobId| run.scenario.workload.jobs[job.index()].request.tenant;
    let held_by_queue = |at: SimTime| -> u32 {
        let mut held = BTreeMap::new();
        for change in run.outcome.allocations.iter().filter(|change| change.at <= at && tenant(change.job) == 1) {
            held.insert(change.job, change.gpus);
        }
        held.values().sum()
    };
    let of_day = run.outcome.jobs.iter().filter(|job| tenant(job.job) == 0);
    let last = of_day.filter_map(|job| job.finish.filter(|at| *at < SimTime::from_secs(36_000))).max().unwrap();
    assert_eq!(held_by_queue(last + SimTime::from_secs(599)), 8, "not before the window is over");
    assert_eq!(held_by_queue(last + SimTime::from_secs(601)), 14, "all but the floor of the owner");
    assert_eq!(tenant_facts(&run.scenario, &run.outcome)[0].max_wait_secs, 0.0, "the owner has its half at once");
}

/// Jobs of low priority never run beside endless ones of high priority, and do where waiting counts.
#[test]
fn a_job_that_waits_rises_in_the_queue() {
    let longest = |sets: &[&str]| figures(&shipped("priority-ageing.toml", sets), "wait_max_secs")[0].1;
    let experiment = shipped("priority-ageing.toml", &[]);
    let run = &evaluated(&experiment).runs[0];
    let low = |run: &goodput_eval::run::PolicyRun| -> Vec<Option<SimTime>> {
        let jobs = run.outcome.jobs.iter();
        let low = jobs.filter(|job| run.scenario.workload.jobs[job.job.index()].request.priority == 0);
        low.map(|job| job.start).collect()
    };
    let started = |starts: &[Option<SimTime>]| starts.iter().flatten().count();
    let aged = low(run);
    let fixed = low(&evaluated(&shipped("priority-ageing.toml", &["adaptation={}"])).runs[0]);
    assert_eq!(started(&fixed), 0, "{fixed:?}");
    assert!(started(&aged) > 10, "{aged:?}");
    // A job that waits for an hour is level with one of priority 100 that has just come: of two such jobs the older one
    // starts first. The first job of low priority came at 600 s.
    let urgent_after = run.outcome.jobs.iter().find(|job| job.submit >= SimTime::from_secs(600 + 3600 + 60)).unwrap();
    assert!(aged[0].unwrap() <= urgent_after.start.unwrap());
    let (aged, fixed) = (longest(&[]), longest(&["adaptation={}"]));
    assert!(aged < 7200.0 && fixed > 42_000.0, "{aged} s and {fixed} s");
}

/// Static without preemption: no job is ever stopped, and the steady tenant's jobs take equally long. Dynamic with
/// preemption: a higher utilisation and a shorter mean completion time than static, paid with restarts. Static with
/// preemption stops jobs and keeps every deadline; dynamic without preemption stops none and misses most deadlines.
#[test]
fn four_ways_to_divide_a_cluster_trade_throughput_for_determinism() {
    let metrics = ["restarts_mean", "deadline_jct_deviation_secs", "deadlines_met", "utilization", "jct_mean_secs"];
    let found = by_policy("allocation-modes.toml", &[], &metrics);
    let of = |name: &str, metric: &str| found[name][metrics.iter().position(|key| *key == metric).unwrap()];
    let (fixed, urgent, lend, dynamic) = ("kueue-static", "kueue-static-preemptive", "kueue-lend", "kueue");
    assert_eq!((of(fixed, "restarts_mean"), of(fixed, "deadline_jct_deviation_secs")), (0.0, 0.0));
    assert!(of(urgent, "restarts_mean") > 0.0 && of(urgent, "deadline_jct_deviation_secs") == 0.0);
    assert!(of(lend, "restarts_mean") == 0.0 && of(lend, "deadline_jct_deviation_secs") > 0.0);
    assert!(of(dynamic, "restarts_mean") > of(urgent, "restarts_mean"));
    for name in [fixed, urgent, dynamic] {
        assert_eq!(of(name, "deadlines_met"), 1.0, "{name}: {found:?}");
    }
    assert!(of(lend, "deadlines_met") < 0.5, "lent for good: {found:?}");
    assert!(of(dynamic, "utilization") > of(fixed, "utilization"));
    assert!(of(dynamic, "jct_mean_secs") < of(fixed, "jct_mean_secs"));
}

/// The four allocations of a run. Under `kueue` they are the four policies that carry theirs in their names, to the
/// digit; under `kai` and `kubernetes-binpack` static ones keep every deadline, and those without preemption restart
/// no job. What `kai` lends with preemption is used and paid with restarts.
#[test]
fn an_allocation_is_a_preset_of_every_policy_that_knows_quotas() {
    let metrics = ["restarts_mean", "deadlines_met", "utilization", "jct_mean_secs"];
    let named = by_policy("allocation-modes.toml", &[], &metrics);
    let of = |allocation: &str| {
        let allocation = format!("environment.allocation={allocation}");
        let sets = [&*allocation, "evaluate.policies=[\"kueue\", \"kai\", \"kubernetes-binpack\"]"];
        by_policy("allocation-modes.toml", &sets, &metrics)
    };
    let [fixed, urgent, lend, dynamic] = ["static", "static-preemptive", "dynamic", "dynamic-preemptive"].map(of);
    for (own, name) in
        [(&fixed, "kueue-static"), (&urgent, "kueue-static-preemptive"), (&lend, "kueue-lend"), (&dynamic, "kueue")]
    {
        assert_eq!(own["kueue"], named[name], "{name}");
    }
    for policy in ["kai", "kubernetes-binpack"] {
        assert_eq!((fixed[policy][0], lend[policy][0]), (0.0, 0.0), "{policy} stops no job");
        assert_eq!((fixed[policy][1], urgent[policy][1]), (1.0, 1.0), "{policy} keeps every deadline");
        assert!(lend[policy][1] < 0.5, "{policy}: what is lent for good blocks the steady tenant: {lend:?}");
        assert!(lend[policy][2] > fixed[policy][2] + 0.2, "{policy} uses what idles: {lend:?} {fixed:?}");
    }
    assert!(dynamic["kai"][0] > 0.0 && dynamic["kai"][1] == 1.0, "{dynamic:?}");
    assert!(dynamic["kai"][3] < fixed["kai"][3], "{dynamic:?} {fixed:?}");
}

/// Waste, long occupation and fragmentation, before and after.
#[test]
fn what_is_wasted_is_recovered() {
    let waste = by_policy("waste.toml", &[], &["utilization", "jct_mean_secs"]);
    assert!(waste["kueue"][0] > 1.2 * waste["kueue-static"][0], "{waste:?}");
    assert!(waste["kueue"][1] < waste["kueue-static"][1], "{waste:?}");
    let long = by_policy("long-jobs.toml", &[], &["wait_max_secs", "jct_p50_secs"]);
    assert!(long["tiresias"][1] < 0.1 * long["fifo"][1], "{long:?}");
    assert!(long["las"][1] < 0.1 * long["fifo"][1], "{long:?}");
    let fragments = by_policy("fragmentation.toml", &[], &["fragmentation", "queueing_mean_secs"]);
    assert!(fragments["kubernetes-binpack"][0] < 0.5 * fragments["kubernetes"][0], "{fragments:?}");
    assert!(fragments["kubernetes-binpack"][1] < fragments["kubernetes"][1], "{fragments:?}");
}
