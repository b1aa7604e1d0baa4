//! Parity with the public simulator of Sia (SOSP'23 artifact) on its 19-job run.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests; figures for the reader of a failure")]

use std::path::PathBuf;

use goodput_eval::reproduce::{REPRODUCTIONS, ReproducedFigure};

fn shared() -> PathBuf {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    assert!(root.exists(), "{} is absent: these tests compare with the public data in it", root.display());
    root
}

fn figures(name: &str) -> Vec<ReproducedFigure> {
    let table = REPRODUCTIONS.iter().find(|table| table.name == name).unwrap();
    let figures = table.run(&shared()).unwrap();
    for figure in &figures {
        println!(
            "{:40} {:18} {:>9.1} {:>9.1}",
            figure.case,
            figure.metric,
            figure.theirs.unwrap_or(f64::NAN),
            figure.ours
        );
    }
    figures
}

#[test]
fn the_19_job_run_is_within_5_percent_of_the_artifact() {
    let figures = figures("sia-19");
    let jct = |case: &str| figures.iter().find(|f| f.case == case && f.metric == "jct_mean_secs").unwrap();
    for solver in ["GLPK_MI", "SCIPY_HIGHS"] {
        let figure = jct(&format!("sia@replica against {solver}"));
        assert!(figure.difference().unwrap().abs() < 0.05, "{figure:?}");
    }
}

#[test]
fn sia_is_ahead_of_every_rival_on_each_philly_workload() {
    let figures = figures("sia-philly");
    let jct = |case: &str| figures.iter().find(|f| f.case == case && f.metric == "jct_mean_secs").unwrap().ours;
    for number in 1..=4 {
        let ours = jct(&format!("sia workload-{number}"));
        for figure in
            figures.iter().filter(|f| f.metric == "jct_mean_secs" && f.case.ends_with(&format!("workload-{number}")))
        {
            assert!(figure.case.starts_with("sia") || ours < figure.ours, "sia {ours}: {figure:?}");
        }
    }
}

#[test]
#[ignore = "half a minute; `goodput reproduce sia-deviations` prints these figures"]
fn the_departures_of_the_artifact_matter_little_but_for_moves() {
    let figures = figures("sia-deviations");
    let change = |case: &str| figures.iter().find(|figure| figure.case == case).unwrap().difference().unwrap();
    assert_eq!(change("paper"), 0.0);
    assert!(change("artifact").abs() < 0.1);
    assert!(change("artifact, moves charged") > change("artifact"), "packing anew is only free in its simulator");
}
