//! Parity with the public simulator of Tiresias: per-job ends of every schedule that it completes.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests; figures for the reader of a failure")]

use std::path::{Path, PathBuf};

use goodput_eval::reproduce::{Figure, REPRODUCTIONS};

fn shared() -> PathBuf {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    assert!(root.exists(), "{} is absent: these tests compare with the public data in it", root.display());
    root
}

fn figures(name: &str, data: &Path) -> Vec<Figure> {
    let table = REPRODUCTIONS.iter().find(|table| table.name == name).unwrap();
    let figures = table.run(data).unwrap();
    for Figure { case, metric, theirs, ours } in &figures {
        println!("{case:<60} {metric:<20} {:>12.2} {ours:>12.2}", theirs.unwrap());
    }
    figures
}

/// Every case: at least 95 of 100 ends to the second, mean and makespan within half a percent.
fn assert_parity(figures: &[Figure], cases: usize) {
    let replica: Vec<&Figure> = figures.iter().filter(|figure| !figure.case.ends_with("by the rule")).collect();
    assert_eq!(replica.len(), 3 * cases);
    for figure in replica {
        match figure.metric {
            "exact_ends_percent" => assert!(figure.ours >= 95.0, "{figure:?}"),
            _ => assert!(figure.difference().unwrap().abs() <= 0.005, "{figure:?}"),
        }
    }
}

#[test]
fn sixty_jobs() {
    assert_parity(&figures("tiresias-60", &shared()), 18);
}

#[test]
fn four_hundred_and_eighty_jobs() {
    assert_parity(&figures("tiresias-480", &shared()), 18);
}

/// With the artifact's sample of service times beside its results.
#[test]
fn gittins_and_expected_remainder() {
    let data = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(data.path().join("data/tiresias")).unwrap();
    std::os::unix::fs::symlink(shared().join("reference"), data.path().join("reference")).unwrap();
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tiresias_gpu_time_samples.csv");
    std::fs::copy(samples, data.path().join("data/tiresias/yarn-gput1000.csv")).unwrap();
    assert_parity(&figures("tiresias-gittins", data.path()), 6);
}
