//! The published heuristics of RLScheduler, to the last published digit.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use goodput_eval::reproduce::REPRODUCTIONS;

#[test]
fn all_twenty_published_heuristics_come_out_to_the_last_digit() {
    let data = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    assert!(data.exists(), "{} is absent: this test needs the public data in it", data.display());
    let table = REPRODUCTIONS.iter().find(|table| table.name == "rlscheduler").unwrap();
    let figures = table.run(data).unwrap();
    let published: Vec<_> = figures.iter().filter_map(|figure| Some((figure, figure.theirs?))).collect();
    assert_eq!(published.len(), 20);
    for (figure, theirs) in published {
        assert_eq!(format!("{:.2}", figure.ours), format!("{theirs:.2}"), "{}", figure.case);
    }
    let ours = |case: &str| figures.iter().find(|figure| figure.case == case).unwrap().ours;
    // What the artifact's clock costs, and what its choice costs that is kept until the job runs.
    assert!(ours("Lublin-1, no backfill, WFP3") > 50.0 * ours("Lublin-1, no backfill, WFP3, waits repaired"));
    assert!(ours("Lublin-1, no backfill, SJF") > 5.0 * ours("Lublin-1, no backfill by the rule, SJF"));
}
