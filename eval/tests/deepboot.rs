//! Parity with DeepBoot's simulator on its smallest workload.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

use goodput_eval::reproduce::ReproducedFigure;
use goodput_eval::reproduce::deepboot::SMALL;

fn shared() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"))
}

/// Under every reading of the artifact's conventions, and on the mean of them
/// (docs/src/results/deepboot.md).
#[test]
fn deepboot_and_tiresias_are_as_fast_as_in_the_artifact_and_in_its_order() {
    let figures = SMALL.run(shared()).unwrap();
    let of = |case: &str| -> &ReproducedFigure {
        let found = figures.iter().find(|figure| figure.case == case && figure.metric == "train_jct_mean_secs");
        found.unwrap_or_else(|| panic!("{case} is not in {figures:?}"))
    };
    let mean = |policy: &str| of(&format!("{policy}, mean of these"));
    for policy in ["deepboot@replica", "tiresias+ats-i"] {
        let difference = mean(policy).difference().unwrap();
        assert!(difference.abs() < 0.05, "{policy}: {difference}");
        for figure in figures.iter().filter(|one| one.case.starts_with(policy) && one.metric == "train_jct_mean_secs") {
            assert!(figure.difference().unwrap().abs() < 0.08, "{figure:?}");
        }
    }
    assert!(mean("deepboot@replica").ours < mean("tiresias+ats-i").ours);
    assert!(of("deepboot@replica").ours < of("tiresias+ats-i").ours);
    // Each defect of the artifact brings ours nearer to it.
    let off = |case: &str| of(case).difference().unwrap().abs();
    assert!(off("deepboot@replica") < off("deepboot@replica, fits to the minimum"));
    let warm = |case: &str| -> f64 {
        let found = figures.iter().find(|figure| figure.case == case && figure.metric == "warm_requests");
        found.unwrap_or_else(|| panic!("{case} has no warm requests")).difference().unwrap().abs()
    };
    for policy in ["deepboot@replica", "tiresias+ats-i"] {
        assert!(warm(policy) < 0.05, "{policy}: {}", warm(policy));
        assert!(warm(policy) < warm(&format!("{policy}, no answers of evicted instances")), "{policy}");
    }
}
