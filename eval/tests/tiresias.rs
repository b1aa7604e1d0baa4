//! Parity with the public simulator of Tiresias: per-job ends of every schedule that it completes.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests; figures for the reader of a failure")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use goodput_agents::heuristic::srtf::{Shortest, Srtf};
use goodput_agents::placement::Yarn;
use goodput_datasets::{Catalog, read_workload};
use goodput_env::cluster::Cluster;
use goodput_env::sim::Outcome;
use goodput_eval::reproduce::tiresias::play;
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
    let replica: Vec<&Figure> = figures.iter().filter(|figure| !figure.case.contains(", ")).collect();
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

/// With `yarn` placement the preemptive schedules of the artifact run out of memory that their per-event reset forgets to give back, and end
/// with 9 to 17 jobs done. Without that leak their results are those of `count`, which do complete.
#[test]
fn preemptive_schedules_under_yarn_without_the_leak() {
    for (trace, prefix, nodes) in [("60_job.csv", "60-n4g4", 4), ("gen480_job.csv", "gen480-n15g4", 15)] {
        let path = shared().join("reference/tiresias").join(trace);
        let workload = Arc::new(read_workload(&path, Catalog::shipped()).unwrap().workload);
        let cluster = Cluster::homogeneous(nodes, 4);
        let yarn = Yarn { nodes_per_switch: nodes };
        for (name, shortest) in
            [("sjf", Shortest::Size), ("shortest", Shortest::Time), ("shortest-gpu", Shortest::Service)]
        {
            let count = play(&cluster, &workload, &mut Srtf::artifact(shortest)).unwrap();
            let placed = play(&cluster, &workload, &mut Srtf::artifact(shortest).placed_anew_by(yarn)).unwrap();
            let same = count.jobs.iter().zip(&placed.jobs).filter(|(a, b)| a.finish == b.finish).count();
            let mean = |outcome: &Outcome| {
                outcome.jobs.iter().map(|job| job.jct().unwrap().as_secs_f64()).sum::<f64>() / outcome.jobs.len() as f64
            };
            println!(
                "{prefix} {name}: {same} of {} ends as count; mean {:.2} s, count {:.2} s",
                count.jobs.len(),
                mean(&placed),
                mean(&count)
            );
            assert!(placed.jobs.iter().all(|job| job.finish.is_some()));
        }
    }
}
