//! ElasticFlow and its baselines on the public traces, beside the published shares of deadlines that are met.
#![allow(clippy::unwrap_used, reason = "tests")]

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

/// The testbed of 128 accelerators: the published order of the policies is that of the simulation.
#[test]
fn the_195_jobs_of_the_testbed_rank_as_published() {
    let figures = figures("elasticflow-testbed");
    let ours = |policy: &str| figures.iter().find(|of| of.case == format!("{policy} on 195job")).unwrap().ours;
    assert!(ours("elasticflow") > ours("tiresias") && ours("tiresias") > ours("edf"));
}
