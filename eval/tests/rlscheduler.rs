//! The published heuristics of RLScheduler, to the last published digit.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use goodput_agents::policies::queue::{JOB_FEATURES, LearnedQueue, QueueRule, QueueScore};
use goodput_eval::reproduce::REPRODUCTIONS;
use goodput_eval::reproduce::rlscheduler::{JudgedOrder, judge};

/// A score that falls with the requested run time alone is shortest job first, and is judged as it.
#[test]
fn a_learned_order_is_judged_beside_the_repaired_heuristics() {
    let data = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    assert!(data.exists(), "{} is absent: this test needs the public data in it", data.display());
    let mut weights = [0.0; JOB_FEATURES.len()];
    weights[1] = -1.0;
    let queue = LearnedQueue { score: QueueScore::Linear(weights), rule: QueueRule::ArtifactBackfill };
    let rows = judge(data, &[JudgedOrder { label: "learned".into(), queue }]).unwrap();
    assert_eq!(rows.len(), 2 * 10, "nine heuristics and one learned order on each trace");
    let row = |trace: &str, order: &str| rows.iter().find(|row| (row.trace, &*row.order) == (trace, order)).unwrap();
    for (trace, repaired) in [("Lublin-1", ["126.50", "103.10", "73.31"]), ("Lublin-2", ["135.12", "111.19", "91.99"])]
    {
        let found = ["wfp3", "unicep", "sjf"].map(|order| format!("{:.2}", row(trace, order).published));
        assert_eq!(found, repaired, "{trace}");
        let (learned, sjf) = (row(trace, "learned"), row(trace, "sjf"));
        assert_eq!((learned.known, learned.published, learned.held_out), (sjf.known, sjf.published, sjf.held_out));
        let to_beat: Vec<_> = rows.iter().filter(|row| row.trace == trace && row.against.is_empty()).collect();
        let [best] = to_beat[..] else { panic!("{trace}: one heuristic is the one to beat") };
        assert!(rows.iter().filter(|row| row.trace == trace).all(|row| row.known >= best.known));
        // Each of the nine is compared with, and only shortest job first does not differ at all.
        let names: Vec<&str> = learned.against.iter().map(|difference| &*difference.heuristic).collect();
        assert_eq!(names, ["fcfs", "sjf", "saf", "wfp3", "unicep", "f1", "f2", "f3", "f4"], "{trace}");
        for difference in &learned.against {
            let theirs = row(trace, &difference.heuristic);
            let mean = learned.held_out - theirs.held_out;
            assert!((difference.held_out.value - mean).abs() < 1e-9, "windows have equally many jobs");
            assert!(difference.held_out.ci.unwrap().contains(mean));
            let (p, corrected) = (difference.p, difference.p_holm.unwrap());
            assert!(p > 0.0 && p <= corrected && corrected <= (9.0 * p).min(1.0), "{p} {corrected}");
            assert_eq!(difference.heuristic == "sjf", difference.held_out.value == 0.0 && p == 1.0);
        }
        let fcfs = &learned.against[0];
        assert!(fcfs.held_out.excludes(0.0) && fcfs.p_holm < Some(0.05) && fcfs.better >= 19, "{fcfs:?}");
    }
}

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
