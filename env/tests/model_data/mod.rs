//! Data of `../shared` (relative to the workspace) for the tests of the model room.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_env::model::{PlacementSample, Sample, ScalabilitySample};

/// The six applications of the Pollux artifact.
pub const APPLICATIONS: [&str; 6] = ["bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"];

/// Text of a file under `../shared`; without that folder these tests prove nothing, so its absence
/// is a failure.
pub fn shared(path: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared");
    std::fs::read_to_string(format!("{root}/{path}")).unwrap_or_else(|error| {
        panic!("TEST DATA MISSING: ../shared is required beside the workspace: {root}/{path}: {error}")
    })
}

/// Parsed JSON under `../shared`; Python writes infinities and `NaN` bare, which JSON does not
/// allow, so here they are null.
pub fn shared_json(path: &str) -> serde_json::Value {
    let text = shared(path).replace("-Infinity", "null").replace("Infinity", "null").replace("NaN", "null");
    serde_json::from_str(&text).unwrap()
}

fn rows(application: &str, table: &str) -> Vec<Vec<String>> {
    let text = shared(&format!("data/pollux/traces/{application}/{table}.csv"));
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// `placements.csv`: placement, local_bsz, step_time, sync_time.
pub fn placements(application: &str) -> Vec<PlacementSample> {
    let sample = |row: Vec<String>| PlacementSample {
        shape: row[0].chars().map(|digit| digit.to_digit(10).unwrap()).collect(),
        local_bsz: row[1].parse().unwrap(),
        step_secs: row[2].parse().unwrap(),
        sync_secs: row[3].parse().unwrap(),
    };
    rows(application, "placements").into_iter().map(sample).collect()
}

/// `scalability.csv`: num_nodes, num_replicas, local_bsz, step_time, sync_time.
pub fn scalability(application: &str) -> Vec<ScalabilitySample> {
    let sample = |row: Vec<String>| ScalabilitySample {
        nodes: row[0].parse().unwrap(),
        replicas: row[1].parse().unwrap(),
        local_bsz: row[2].parse().unwrap(),
        step_secs: row[3].parse().unwrap(),
        sync_secs: row[4].parse().unwrap(),
    };
    rows(application, "scalability").into_iter().map(sample).collect()
}

/// Every measurement of an application as the fit sees it.
pub fn samples(application: &str) -> Vec<Sample> {
    let placed = placements(application).into_iter().map(|row| Sample {
        nodes: row.shape.len() as u32,
        replicas: row.shape.iter().sum(),
        atomic: row.local_bsz,
        step_secs: row.step_secs,
        sync_secs: row.sync_secs,
    });
    let spread = scalability(application).into_iter().map(|row| Sample {
        nodes: row.nodes,
        replicas: row.replicas,
        atomic: row.local_bsz,
        step_secs: row.step_secs,
        sync_secs: row.sync_secs,
    });
    placed.chain(spread).collect()
}
