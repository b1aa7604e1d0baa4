//! Cost of one ImageNet job on rented nodes beside the published figures.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests; figures for the reader")]

use std::path::Path;

use goodput_eval::reproduce::REPRODUCTIONS;

/// As published, with the artifact's profiles: the run of the table is the artifact's simulator but for the defects
/// that the page of the rule lists.
#[test]
fn the_published_direction_holds_under_the_thresholds_of_adaptdl() {
    let data = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    assert!(data.exists(), "{} is absent: this test needs the public data in it", data.display());
    let table = REPRODUCTIONS.iter().find(|table| table.name == "pollux-autoscaling").unwrap();
    let figures = table.run(data).unwrap();
    for figure in &figures {
        println!("{:52} {:14} {:10.2}", figure.case, figure.metric, figure.ours);
    }
    let case = "0.35 to 0.65, goodput against throughput, largest batch";
    let of = |metric: &str| figures.iter().find(|row| row.case == case && row.metric == metric).unwrap().ours;
    assert!(of("cost_percent") < -15.0 && of("time_percent") < 10.0);
}
