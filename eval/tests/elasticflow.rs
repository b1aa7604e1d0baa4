//! ElasticFlow and its baselines on the public traces, beside the published shares of deadlines that are met.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests; figures for the reader of a failure")]

use std::path::Path;

use goodput_eval::reproduce::{REPRODUCTIONS, ReproducedFigure};

fn figures(name: &str) -> Vec<ReproducedFigure> {
    let data = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    assert!(data.exists(), "{} is absent: this test needs the public data in it", data.display());
    let figures = REPRODUCTIONS.iter().find(|table| table.name == name).unwrap().run(data).unwrap();
    for figure in &figures {
        println!("{:<32} theirs {:?} ours {:.3}", figure.case, figure.theirs, figure.ours);
    }
    figures
}

/// The testbed of 128 accelerators. The policies that the artifact has as published by others meet as many deadlines as
/// published, within 3 %; ElasticFlow meets more, as the page of results says why.
#[test]
fn the_195_jobs_of_the_testbed_rank_as_published() {
    let figures = figures("elasticflow-testbed");
    let ours = |policy: &str| figures.iter().find(|of| of.case == format!("{policy} on 195job")).unwrap().ours;
    assert!((ours("edf") - 17.0 / 195.0).abs() < 1e-9, "17 jobs, as the artifact's simulator counts and as published");
    for (policy, theirs) in [("tiresias", 0.4564), ("gavel-ftf", 0.3897)] {
        assert!((ours(policy) / theirs - 1.0).abs() < 0.03, "{policy}: {}", ours(policy));
    }
    assert!(ours("elasticflow") > ours("elasticflow@replica") && ours("elasticflow@replica") > 0.6667);
}
