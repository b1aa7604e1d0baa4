//! Parity with Shockwave's artifact on 32 accelerators: its simulation, and its run on machines.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests; figures for the reader of a failure")]

use std::path::PathBuf;

use goodput_agents::heuristic::gavel::GavelForm;
use goodput_env::scenario::{Batching, Information, Preset};
use goodput_eval::reproduce::shockwave::measured::{LIMITS, simulate};
use goodput_eval::reproduce::shockwave::{ShockwavePolicy, ShockwaveRun, ShockwaveTrace};

/// Public data beside the checkout; `None`, and a line that says so, where there are none.
fn data() -> Option<PathBuf> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    let there = root.join("data/shockwave").exists();
    if !there {
        println!("SKIPPED: {} has no data/shockwave, which this test compares with", root.display());
    }
    there.then_some(root)
}

/// Relative differences of mean completion time and makespan.
fn off(ours: &ShockwaveRun, theirs: &ShockwaveRun) -> [f64; 2] {
    [ours.mean_jct() / theirs.mean_jct() - 1.0, ours.makespan() / theirs.makespan() - 1.0]
}

#[test]
fn every_policy_is_within_three_percent_of_the_artifacts_simulation() {
    let Some(data) = data() else { return };
    let trace = ShockwaveTrace::read(&data).unwrap();
    let mut missed = Vec::new();
    for policy in ShockwavePolicy::ALL {
        let key = format!("tacc_32gpus/{}-simulation", policy.name());
        let theirs = ShockwaveRun::published(&data, &key, &trace.workload).unwrap();
        let options = Preset::ShockwaveNsdi23.options(Batching::Requested, Information::Oracle);
        let ours = policy.simulate(GavelForm::ShockwaveSimulator, &trace.workload, options).unwrap();
        let off = off(&ShockwaveRun::of(&ours), &theirs);
        println!("{:>26} mean {:+.2} %, makespan {:+.2} %", policy.name(), 100.0 * off[0], 100.0 * off[1]);
        if off.iter().any(|off| off.abs() > 0.03) {
            missed.push(policy);
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn every_policy_is_within_eight_percent_of_the_run_on_machines() {
    let Some(data) = data() else { return };
    let trace = ShockwaveTrace::read(&data).unwrap();
    let mut missed = Vec::new();
    for (policy, limit) in LIMITS {
        let key = format!("tacc_32gpus_comparison/{}-physical", policy.name());
        let theirs = ShockwaveRun::published(&data, &key, &trace.workload).unwrap();
        let off = off(&simulate(policy, &trace, limit).unwrap(), &theirs);
        println!("{:>26} mean {:+.2} %, makespan {:+.2} %", policy.name(), 100.0 * off[0], 100.0 * off[1]);
        if off.iter().any(|off| off.abs() > 0.08) {
            missed.push(policy);
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}
