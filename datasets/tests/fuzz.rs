//! Broken input is an error, never a panic.
#![allow(clippy::unwrap_used)] // a test fails by panicking, helpers too

use std::path::Path;

use goodput_datasets::catalog::Catalog;
use goodput_datasets::import::pollux_profiles::{placements, run, spreads};
use goodput_datasets::jobs::into_workload;
use goodput_datasets::store::jobs::{self, from_bytes};
use goodput_datasets::validate::validate;
use goodput_datasets::workload::parse_jobs;
use goodput_datasets::{import, inspect};
use proptest::prelude::*;

const PIECES: [&str; 24] = [
    "",
    "-1",
    "0",
    "NaN",
    "inf",
    "-inf",
    "1e309",
    "1e12",
    "999999999999999999999",
    "0.5",
    "\"",
    "\"\"",
    ",",
    ",,",
    "\n",
    "\r\n",
    "\r",
    "\u{0}",
    "é",
    "\u{feff}",
    "2017-02-30 00:00:00",
    "9999-12-31 23:59:59",
    "-0",
    "4294967296",
];

/// Damage to a text: at a share of its length, so many bytes are replaced by a piece.
fn breaks() -> impl Strategy<Value = Vec<(f64, usize, usize)>> {
    prop::collection::vec((0.0..1.0, 0_usize..12, 0..PIECES.len()), 1..6)
}

fn mutate(text: &[u8], breaks: &[(f64, usize, usize)]) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for &(at, length, piece) in breaks {
        let start = (at * bytes.len() as f64) as usize;
        let end = (start + length).min(bytes.len());
        bytes.splice(start..end, PIECES[piece].bytes());
    }
    bytes
}

/// The first lines of a real file.
fn head(path: &str, lines: usize) -> Vec<u8> {
    let text = std::fs::read_to_string(crate::shared::shared(path)).unwrap();
    text.lines().take(lines).flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

fn exercise(bytes: &[u8]) {
    let path = Path::new("fuzzed");
    if let Ok(imported) = parse_jobs(path, bytes.to_vec()) {
        assert_eq!(imported.report.kept as usize, imported.jobs.len());
        let _ = imported.report.to_string();
        let _ = validate(&imported, Catalog::shipped(), Some(64));
        let _ = inspect::summarise(&imported.jobs, Catalog::shipped(), Some(64));
        let _ = into_workload(imported.jobs, Catalog::shipped());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_workloads(breaks in breaks()) {
        thread_local!(static TEXT: Vec<u8> = head("data/pollux/workloads/workload-1.csv", 12));
        TEXT.with(|text| exercise(&mutate(text, &breaks)));
    }

    #[test]
    fn mutated_traces(breaks in breaks()) {
        thread_local!(static TEXT: Vec<u8> = head("data/philly/philly.csv", 12));
        TEXT.with(|text| exercise(&mutate(text, &breaks)));
    }

    #[test]
    fn mutated_tiresias_traces_clusters_and_samples(breaks in breaks()) {
        thread_local!(static TEXT: Vec<u8> = head("reference/tiresias/60_job.csv", 12));
        TEXT.with(|text| exercise(&mutate(text, &breaks)));
        let path = Path::new("fuzzed");
        let cluster = b"num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n5,32,8,128,256\n";
        if let Ok(found) = import::tiresias_cluster::parse(path, &mutate(cluster, &breaks)) {
            let _ = found.cluster();
        }
        let _ = import::tiresias_samples::parse(path, &mutate(b"duration\n121\n122\n124\n", &breaks));
    }

    #[test]
    fn mutated_tables_of_ones_own(breaks in breaks()) {
        exercise(&mutate(b"job_id,submit_secs,duration_secs,gpus,tenant\na,0,3600,4,x\nb,95,12000,1,\n", &breaks));
    }

    #[test]
    fn mutated_profiles(breaks in breaks()) {
        thread_local!(static TEXTS: [Vec<u8>; 3] = [
            head("data/pollux/traces/bert/placements.csv", 30),
            head("data/pollux/traces/bert/scalability.csv", 30),
            head("data/pollux/traces/cifar10/validation-256.csv", 30),
        ]);
        TEXTS.with(|[placed, spread, validation]| {
            let path = Path::new("fuzzed");
            let _ = placements(path, &mutate(placed, &breaks));
            let _ = spreads(path, &mutate(spread, &breaks));
            let _ = run(path, &mutate(validation, &breaks), 256);
        });
    }

    #[test]
    fn mutated_catalogs(breaks in breaks()) {
        let bytes = mutate(include_bytes!("../catalog/applications.toml"), &breaks);
        let _ = Catalog::parse(Path::new("fuzzed"), &String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        exercise(&bytes);
    }

    #[test]
    fn truncated_parquet(at in 0.0..1.0, flip in any::<u8>()) {
        thread_local!(static BYTES: Vec<u8> = {
            let rows = import::pollux::parse(Path::new("w"), &head("data/pollux/workloads/workload-1.csv", 20)).unwrap().jobs;
            jobs::table(&rows).to_parquet(Path::new("w")).unwrap()
        });
        BYTES.with(|bytes| {
            let path = Path::new("fuzzed");
            let cut = (at * bytes.len() as f64) as usize;
            prop_assert!(from_bytes(path, bytes[..cut].to_vec()).is_err());
            // One wrong byte may go unnoticed, but must not bring the reader down.
            let mut flipped = bytes.clone();
            flipped[cut] ^= flip;
            let _ = from_bytes(path, flipped);
            Ok(())
        })?;
    }
}
