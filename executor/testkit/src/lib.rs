//! Test support for the executor. Only tests, drills and benchmarks depend on this crate.
//!
//! # Layout
//! - [`slurm`]: a private Slurm cluster on this machine, without accelerators.
//! - [`etcd`]: a private etcd, on this machine or in a network namespace.
//! - [`kubernetes`]: a private control plane of Kubernetes; [`kubelet`]: kubelets that are played; [`kueue`]: Kueue.
//! - [`jobs`]: an application and random jobs that train it, and jobs that run a script.
//!
//! The executor itself keeps the test doubles that its users have as well: accelerators that do not
//! exist (`devices = "fake:8xA100"`), the bench job (`goodput live bench-job`), recorded snapshots
//! (`goodput live replay`) and the simulated engine.

pub mod etcd;
pub mod jobs;
pub mod kubelet;
pub mod kubernetes;
pub mod kueue;
pub mod slurm;

use std::io::Write;

/// Says loudly that a test could not run here, and why: straight to stderr, since the harness swallows what a test that
/// passes prints by `eprintln!`.
pub fn not_tested(reason: &str) {
    let _ = std::io::stderr().write_all(format!("NOT TESTED: {reason}\n").as_bytes());
}

// The tests of `env` cannot depend on this crate, which depends on the executor, so the file lies there.
#[path = "../../../env/tests/support/toy.rs"]
mod toy;
