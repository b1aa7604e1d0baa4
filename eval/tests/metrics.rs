//! Metrics on a run small enough to work by hand.
//!
//! Two GPUs, four jobs without a model. Times in seconds:
//!
//! | job | submit | start | finish | GPUs | restarting | restarts |
//! |-----|--------|-------|--------|------|------------|----------|
//! | a   | 0      | 0     | 100    | 1    | 0          | 0        |
//! | b   | 0      | 0     | 200    | 1    | 20         | 1        |
//! | c   | 50     | 100   | 150    | 1    | 0          | 0        |
//! | d   | 60     | 200   | 204    | 2    | 0          | 0        |
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_env::job::JobId;
use goodput_env::sim::{JobRecord, Outcome};
use goodput_env::time::SimTime;
use goodput_eval::metrics::{
    IsolatedReference, METRICS, Measures, RunFacts, isolated_secs, measure, reference_gpu_secs,
};

fn job(id: u32, submit: i64, start: i64, finish: i64, gpus: i64) -> JobRecord {
    JobRecord {
        job: JobId(id),
        submit: SimTime::from_secs(submit),
        start: Some(SimTime::from_secs(start)),
        finish: Some(SimTime::from_secs(finish)),
        restarts: 0,
        attained_gpu_millis: gpus * (finish - start) * 1000,
        executed: SimTime::from_secs(finish - start),
        restarting: SimTime::ZERO,
        faults: Default::default(),
        refused: None,
    }
}

fn run() -> Outcome {
    let mut jobs = vec![job(0, 0, 0, 100, 1), job(1, 0, 0, 200, 1), job(2, 50, 100, 150, 1), job(3, 60, 200, 204, 2)];
    jobs[1].restarts = 1;
    jobs[1].restarting = SimTime::from_secs(20);
    Outcome { jobs, end: SimTime::from_secs(204), decisions: 7, ..Outcome::default() }
}

fn measures(outcome: &Outcome) -> Measures {
    // Isolated times are given: c would have taken 125 s alone on its share, d is not known.
    let isolated = [Some(100.0), Some(160.0), Some(125.0), None];
    measure(&RunFacts::with_isolated(outcome, 2, &isolated, Some(306.0)))
}

#[track_caller]
fn check(measures: &Measures, key: &str, want: f64) {
    let got = measures.get(key).unwrap();
    assert!((got - want).abs() < 1e-9, "{key}: {got} is not {want}");
}

#[test]
fn worked_by_hand() {
    let measures = measures(&run());
    // JCTs 100, 200, 100, 144.
    check(&measures, "jct_mean_secs", 136.0);
    check(&measures, "jct_p50_secs", 122.0);
    check(&measures, "jct_p90_secs", 144.0 + 0.7 * 56.0);
    check(&measures, "jct_p99_secs", 144.0 + 0.97 * 56.0);
    check(&measures, "makespan_secs", 204.0);
    check(&measures, "queueing_mean_secs", (50.0 + 140.0) / 4.0);
    // Held 100 + 200 + 50 + 8 of 408 GPU-seconds; b restarted for a tenth of its time.
    check(&measures, "utilization", 358.0 / 408.0);
    check(&measures, "productive_share", 338.0 / 408.0);
    check(&measures, "goodput", 306.0 / 408.0);
    check(&measures, "restarts_mean", 0.25);
    // rho 1, 1.25, 0.8.
    check(&measures, "fairness_mean", 3.05 / 3.0);
    check(&measures, "fairness_max", 1.25);
    check(&measures, "fairness_p99", 1.0 + 0.98 * 0.25);
    check(&measures, "unfair_share", 1.0 / 3.0);
    // Slowdowns 1, 1, 2 and, d's 4 s counting as 10, 14.4.
    check(&measures, "slowdown_bounded_mean", 18.4 / 4.0);
    check(&measures, "jain_slowdown", 18.4 * 18.4 / (4.0 * (1.0 + 1.0 + 4.0 + 14.4 * 14.4)));
    check(&measures, "unfinished_jobs", 0.0);
    check(&measures, "decisions", 7.0);
    assert_eq!(measures.iter().count(), METRICS.len());
}

#[test]
fn a_run_that_was_cut_off_counts_completed_jobs_and_says_so() {
    let mut outcome = run();
    outcome.jobs[3] =
        JobRecord { start: None, finish: None, attained_gpu_millis: 0, executed: SimTime::ZERO, ..outcome.jobs[3] };
    outcome.truncated = true;
    let measures = measures(&outcome);
    check(&measures, "jct_mean_secs", 400.0 / 3.0);
    check(&measures, "queueing_mean_secs", 50.0 / 3.0);
    check(&measures, "unfinished_jobs", 1.0);
    check(&measures, "makespan_secs", 204.0);
}

#[test]
fn an_empty_run_has_no_times() {
    let outcome = Outcome::default();
    let measures = measure(&RunFacts::with_isolated(&outcome, 2, &[], Some(0.0)));
    for key in ["jct_mean_secs", "jct_p99_secs", "queueing_mean_secs", "utilization", "fairness_mean", "jain_slowdown"]
    {
        assert_eq!(measures.get(key), None, "{key}");
    }
}

#[test]
fn a_job_alone_on_the_whole_cluster_is_treated_fairly() {
    let mut comparison = crate::common::comparison(1, 1);
    comparison.policies.retain(|entry| entry.name == "equal");
    comparison.scenarios.truncate(1);
    let evaluation = comparison.run(&|_, _| {}).unwrap();
    let run = &evaluation.runs[0];
    let reference = IsolatedReference::new(&run.scenario);
    let alone = isolated_secs(&run.scenario, &reference, &run.outcome)[0].unwrap();
    let jct = run.outcome.jobs[0].jct().unwrap().as_secs_f64();
    // It had the cluster to itself: what is left of the ratio is its one start-up of 30 s.
    assert!((jct - 30.0 - alone).abs() < 0.1, "{jct} - 30 is not {alone}");
    // No size does the work in less GPU time than the reference.
    let least = reference_gpu_secs(&run.scenario, &reference, JobId(0)).unwrap();
    assert!(run.outcome.jobs[0].attained_gpu_millis as f64 / 1000.0 >= least);
    check(&run.measures, "goodput", least / (16.0 * jct));
}
