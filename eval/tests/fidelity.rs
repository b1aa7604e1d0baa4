//! Parity with the published simulator of Pollux (OSDI'21 artifact): per-job completion times under
//! its own conventions and measurements, and how far the shipped catalog alone is from them.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests; figures for the reader of a failure")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use goodput_agents::compose;
use goodput_datasets::{Catalog, import, read_workload};
use goodput_env::cluster::Cluster;
use goodput_env::scenario::{Preset, Scenario, SimOptions};
use goodput_env::sim::Simulator;

/// Workloads with per-job results in the artifact: load, workload numbers.
const PUBLISHED: [(&str, &str, &[u32]); 2] =
    [("1.0", "workloads", &[1, 2, 4, 6, 7]), ("0.5", "workloads-0.5", &[1, 2])];

fn shared(path: &str) -> PathBuf {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    assert!(root.exists(), "{} is absent: these tests compare with the public data in it", root.display());
    root.join(path)
}

fn measured() -> &'static Catalog {
    static MEASURED: OnceLock<Catalog> = OnceLock::new();
    MEASURED.get_or_init(|| {
        let step_times =
            PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/pollux_step_times.parquet"));
        import::pollux_profiles::catalog(&shared("data/pollux/traces"), Some(&step_times)).unwrap()
    })
}

/// The reference table as it was handed over. It was made by one batched query, which gives other
/// simplices than the artifact's point queries in 2.8 % of the rows (see
/// `fixtures/make_step_times.py`).
fn batched() -> Catalog {
    let step_times = shared("reference/pollux/interpolated_step_times.parquet");
    import::pollux_profiles::catalog(&shared("data/pollux/traces"), Some(&step_times)).unwrap()
}

/// Completion times by job, seconds: `published[(config, workload)][job]`.
fn published() -> BTreeMap<(String, String), BTreeMap<String, f64>> {
    let mut results: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    let text = std::fs::read_to_string(shared("reference/pollux/published_jct.csv")).unwrap();
    for line in text.lines().skip(1) {
        let [_, config, workload, job, jct] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
        results.entry((config.into(), workload.into())).or_default().insert(job.into(), jct.parse().unwrap());
    }
    results
}

/// Our completion times of one run, seconds by job.
fn simulate(
    policy: &str,
    seed: u64,
    folder: &str,
    workload: u32,
    catalog: &Catalog,
    interference: f64,
) -> BTreeMap<String, f64> {
    let path = shared(&format!("data/pollux/{folder}/workload-{workload}.csv"));
    let jobs = read_workload(&path, catalog).unwrap().workload;
    let mut made = compose::by_name(policy, seed).unwrap();
    let options = SimOptions { interference, ..Preset::PolluxOsdi21.options_for(&*made) };
    let scenario = Arc::new(Scenario::new(Arc::new(Cluster::parse("16x4").unwrap()), Arc::new(jobs), options, seed));
    let outcome = Simulator::new(scenario.clone()).run(&mut *made).unwrap();
    let name = |job: &goodput_env::sim::JobRecord| scenario.workload.jobs[job.job.index()].request.name.clone();
    outcome.jobs.iter().map(|job| (name(job), job.jct().unwrap().as_secs_f64())).collect()
}

fn mean(jct: &BTreeMap<String, f64>) -> f64 {
    jct.values().sum::<f64>() / jct.len() as f64
}

/// Jobs within a second, and all jobs, over the published workloads of a policy.
fn agreement(policy: &str, catalog: &Catalog) -> (usize, usize) {
    let published = published();
    let (mut close, mut all) = (0, 0);
    for (load, folder, workloads) in PUBLISHED {
        for &workload in workloads {
            let expected = &published[&(format!("{policy}-{load}"), format!("workload-{workload}"))];
            let ours = simulate(policy, 0, folder, workload, catalog, 0.0);
            let here = expected.iter().filter(|(job, jct)| (ours[*job] - **jct).abs() <= 1.0).count();
            println!(
                "{policy} {folder}/workload-{workload}: {here} of {} jobs within 1 s; mean {:.1} s, published {:.1} s",
                expected.len(),
                mean(&ours),
                mean(expected)
            );
            close += here;
            all += expected.len();
        }
    }
    (close, all)
}

#[test]
fn tiresias_reproduces_every_published_job() {
    assert_eq!(agreement("tiresias", measured()), (960, 960));
    assert_eq!(agreement("tiresias", &batched()), (960, 960));
}

#[test]
fn optimus_reproduces_every_published_job() {
    assert_eq!(agreement("optimus", measured()), (960, 960));
}

/// With the batched table Optimus, which asks for step times of large placements, misses some jobs;
/// this keeps the figure that the documentation quotes.
#[test]
fn optimus_with_batched_step_times_misses_few() {
    let (close, all) = agreement("optimus", &batched());
    assert!(close >= 920 && all == 960, "{close} of {all} jobs within 1 s");
}

/// The genetic search draws random numbers, so only means compare. One seed of one workload here;
/// all of them by `cargo xtask bench fidelity`.
#[test]
fn pollux_reproduces_the_published_mean() {
    let published = published();
    for (policy, config, interference) in [("pollux", "pollux-1.0", 0.0), ("pollux-noavoid", "inter25", 0.25)] {
        let expected = mean(&published[&(config.to_string(), "workload-1".to_string())]);
        let ours = mean(&simulate(policy, 1, "workloads", 1, measured(), interference));
        println!("{policy} {config} workload-1: mean {ours:.1} s, published {expected:.1} s");
        assert!((ours / expected - 1.0).abs() < 0.05, "{policy} {config}: {ours} {expected}");
    }
}

#[test]
fn the_shipped_catalog_alone_is_within_a_tenth() {
    let mut ranking = Vec::new();
    for policy in ["tiresias", "optimus"] {
        let (mut with, mut without) = (0.0, 0.0);
        for workload in [1, 2, 4, 6, 7] {
            with += mean(&simulate(policy, 0, "workloads", workload, measured(), 0.0));
            without += mean(&simulate(policy, 0, "workloads", workload, Catalog::shipped(), 0.0));
        }
        println!("{policy}: mean {:.1} s with measurements, {:.1} s from the catalog", with / 5.0, without / 5.0);
        assert!((without / with - 1.0).abs() < 0.10, "{policy}: {without} {with}");
        ranking.push((with, without));
    }
    assert!(ranking[0].0 < ranking[1].0 && ranking[0].1 < ranking[1].1, "the policies rank differently");
}
