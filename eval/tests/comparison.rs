//! Comparisons as a whole: determinism, order, errors, overrides.

use std::sync::Mutex;

use crate::common::{Fifo, Shortest, comparison, policies, scenarios};
use goodput_env::scenario::{Batching, Information};
use goodput_eval::{Comparison, PolicyEntry, RunError};

fn quiet(_done: usize, _total: usize) {}

#[test]
fn the_number_of_threads_changes_nothing() {
    let with_threads = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| comparison(3, 20).run(&quiet).unwrap())
    };
    let (one, four) = (with_threads(1), with_threads(4));
    assert_eq!(one.summary.to_json(), four.summary.to_json());
    assert_eq!(one.runs.len(), 18);
    for (a, b) in one.runs.iter().zip(&four.runs) {
        assert_eq!((a.policy, a.workload, a.seed), (b.policy, b.workload, b.seed));
        assert_eq!(a.outcome, b.outcome);
    }
}

#[test]
fn runs_come_in_the_order_policy_then_scenario() {
    let evaluation = comparison(2, 5).run(&quiet).unwrap();
    let order: Vec<_> = evaluation.runs.iter().map(|run| (run.policy, run.workload, run.seed)).collect();
    let expected: Vec<_> =
        (0..3).flat_map(|policy| [(policy, 0, 0), (policy, 0, 1), (policy, 1, 100), (policy, 1, 101)]).collect();
    assert_eq!(order, expected);
    assert!(evaluation.runs_of(1).iter().all(|run| run.policy == 1));
}

#[test]
fn progress_counts_every_run_once() {
    let seen = Mutex::new(Vec::new());
    comparison(2, 5).run(&|done, total| seen.lock().unwrap().push((done, total))).unwrap();
    let mut seen = seen.into_inner().unwrap();
    seen.sort_unstable();
    assert_eq!(seen, (1..=12).map(|done| (done, 12)).collect::<Vec<_>>());
}

#[test]
fn the_summary_reads_back_as_it_was_written() {
    let summary = comparison(3, 10).run(&quiet).unwrap().summary;
    let json = summary.to_json();
    let back: goodput_eval::Summary = serde_json::from_str(&json).unwrap();
    assert_eq!(back, summary);
    assert_eq!(back.to_json(), json);
}

#[test]
fn the_summary_is_what_it_was() {
    insta::assert_snapshot!(comparison(2, 6).run(&quiet).unwrap().summary.to_json());
}

#[test]
fn one_seed_gives_means_without_intervals() {
    let summary = comparison(1, 6).run(&quiet).unwrap().summary;
    assert!(summary.policies.iter().all(|policy| policy.metrics["jct_mean_secs"].ci.is_none()));
}

#[test]
fn differences_are_paired_and_against_the_reference() {
    let mut comparison = comparison(4, 15);
    comparison.reference = Some("shortest".into());
    let summary = comparison.run(&quiet).unwrap().summary;
    assert!(summary.policy("shortest").unwrap().versus_reference.is_none());
    let fifo = summary.policy("fifo").unwrap();
    let versus = fifo.versus_reference.as_ref().unwrap();
    let means = |name: &str| summary.policy(name).unwrap().metrics["jct_mean_secs"].value;
    let difference = versus.difference["jct_mean_secs"];
    assert!((difference.value - (means("fifo") - means("shortest"))).abs() < 1e-9);
    assert!(difference.ci.unwrap().contains(difference.value));
    assert!((versus.ratio["jct_mean_secs"].value - means("fifo") / means("shortest")).abs() < 1e-12);
}

#[test]
fn an_override_holds_for_its_policy_only() {
    let mut entries = policies();
    entries[1] = PolicyEntry::new("shortest", |_| Box::new(Shortest)).as_published();
    let evaluation = Comparison::new(entries, scenarios("steady", 0..1, 5, 1000.0)).run(&quiet).unwrap();
    let options = |policy: usize| &evaluation.runs_of(policy)[0].scenario.options;
    assert_eq!(options(0).batching, Batching::Catalog);
    assert_eq!(options(1).batching, Batching::Requested);
    assert_eq!(options(1).information, Information::Estimate { sigma: 0.5 });
}

#[test]
fn errors_name_policy_and_workload() {
    let error = |comparison: Comparison| comparison.run(&quiet).unwrap_err();
    let all = || scenarios("steady", 0..2, 5, 1000.0);

    let mut blind = policies();
    blind[1].information = Some(Information::Profiled);
    insta::assert_snapshot!(error(Comparison::new(blind, all())), @"policy shortest on workload steady: needs information level estimate (sigma 0.5), the run gives profiled");

    struct Idle;
    impl goodput_env::policy::Policy for Idle {
        fn decide(&mut self, _: &goodput_env::view::ClusterView<'_>) -> goodput_env::plan::Plan {
            goodput_env::plan::Plan::keep()
        }
    }
    let mut idle = policies();
    idle.push(PolicyEntry::new("idle", |_| Box::new(Idle)));
    assert!(
        error(Comparison::new(idle, all())).to_string().starts_with("policy idle on workload steady, seed 0: stalled")
    );

    let twice = vec![PolicyEntry::new("fifo", |_| Box::new(Fifo)), PolicyEntry::new("fifo", |_| Box::new(Fifo))];
    assert!(matches!(error(Comparison::new(twice, all())), RunError::DuplicatePolicy { .. }));

    let mut uneven = all();
    uneven.extend(scenarios("burst", 0..1, 5, 1000.0));
    insta::assert_snapshot!(error(Comparison::new(policies(), uneven)), @"workload burst has 1 seeds but steady has 2: each workload needs the same number");

    let mut unknown = Comparison::new(policies(), all());
    unknown.reference = Some("pollux".into());
    insta::assert_snapshot!(error(unknown), @"the reference policy pollux is not compared; there are: fifo, shortest, equal");

    let repeated = [all(), all()].concat();
    assert!(matches!(error(Comparison::new(policies(), repeated)), RunError::DuplicateScenario { .. }));
    assert!(matches!(error(Comparison::new(Vec::new(), all())), RunError::Empty));
}
