//! Public data beside the workspace.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

pub mod fixtures;

use std::path::PathBuf;

/// A path under `../shared`; without that folder these tests prove nothing, so its absence is a failure.
pub fn shared(path: &str) -> PathBuf {
    let full = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared")).join(path);
    assert!(full.exists(), "TEST DATA MISSING: ../shared is required beside the workspace: {}", full.display());
    full
}

/// Directory of the six measured applications.
pub fn profiles() -> PathBuf {
    shared("data/pollux/traces")
}

/// Parsed JSON under `../shared`; Python writes infinities that JSON does not have.
pub fn json(path: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(shared(path)).unwrap();
    serde_json::from_str(&text.replace("Infinity", "null").replace("NaN", "null")).unwrap()
}
