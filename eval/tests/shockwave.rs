//! Parity with Shockwave's artifact on 32 accelerators: its simulation, and its run on machines.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests; figures for the reader of a failure")]

use std::path::PathBuf;

use goodput_eval::reproduce::Reproduction;
use goodput_eval::reproduce::shockwave::{measured, simulated};

/// Public data beside the checkout; `None`, and a line that says so, where there are none.
fn data() -> Option<PathBuf> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    let there = root.join("data/shockwave").exists();
    if !there {
        println!("SKIPPED: {} has no data/shockwave, which this test compares with", root.display());
    }
    there.then_some(root)
}

/// Mean completion times and makespans of `table` that are off by more than `most`, but for `wider`: a case, a metric
/// and its own limit. Cases with a note behind a comma are beside the published figures and have no limit.
fn missed(table: &Reproduction, most: f64, wider: &[(&str, &str, f64)]) -> Vec<String> {
    let Some(data) = data() else { return Vec::new() };
    let figures = table.run(&data).unwrap();
    let mut missed = Vec::new();
    for figure in &figures {
        let (case, metric, off) = (figure.case.as_str(), figure.metric, figure.difference().unwrap_or(0.0));
        let theirs = figure.theirs.unwrap_or(0.0);
        println!("{case:>60} {metric:>16} {theirs:>10.1} {:>10.1} {:+.2} %", figure.ours, 100.0 * off);
        let own = wider.iter().find(|(of, what, _)| *of == case && *what == metric).map(|(_, _, limit)| *limit);
        let bounded = metric != "unfair_percent" && !case.contains(',');
        if bounded && off.abs() > own.unwrap_or(most) {
            missed.push(format!("{case} {metric}: {off:+.4}"));
        }
    }
    missed
}

/// Within 3 %, but for the makespan under finish-time fairness. The shares that reach its optimum are not unique:
/// Gurobi chose among them there, and Clarabel does here. How much of the difference that makes is not known.
#[test]
fn policies_follow_the_artifacts_simulation() {
    let wider = [("finish_time_fairness", "makespan_secs", 0.04)];
    let missed = missed(&simulated::TABLE, 0.03, &wider);
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Within 8 %, but for one makespan: under OSSP on machines the last job ended 1,917 s after all others.
#[test]
fn policies_follow_the_run_on_machines() {
    let wider = [("min_total_duration", "makespan_secs", 0.09)];
    let missed = missed(&measured::TABLE, 0.08, &wider);
    assert!(missed.is_empty(), "{missed:#?}");
}
