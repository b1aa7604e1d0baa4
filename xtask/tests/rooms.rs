//! The rooms of `goodput-env` and of `goodput-agents` stand in an order, and the live cluster does
//! not lean on the simulator.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::fs;

use xtask::source::{files, product, room_uses, root, used_rooms};

/// Rooms of `goodput-env` from the ground up. A room uses earlier rooms only, so no rooms import one
/// another in a circle.
const ORDER: [&str; 20] = [
    "time",
    "seed",
    "cluster",
    "placement",
    "service",
    "request",
    "tenant",
    "model",
    "application",
    "job",
    "tie_break",
    "model_names",
    "plan",
    "scenario",
    "state",
    "view",
    "guard",
    "policy",
    "sim",
    "gym",
];

/// Rooms of `goodput-agents` from the ground up, in the same sense.
const AGENTS: [&str; 11] = [
    "placement",
    "allocation",
    "nets",
    "futures",
    "heuristic",
    "compose",
    "learning",
    "start_time",
    "policies",
    "bundle",
    "zoo",
];

/// Rooms of `goodput-env` that may use the simulator.
const MAY_SIMULATE: [&str; 1] = ["gym"];

/// Files of the executor that may use the simulator: the engine that is one, and the rollouts of
/// shadow policies.
const SIMULATING_EXECUTOR: [&str; 2] = ["engine/sim", "daemon/shadow/rollout.rs"];

/// Rooms below `src` that are not in `order`, and uses of rooms that do not come before their user.
fn offences(src: &str, order: &[&str]) -> Vec<String> {
    let place = |room: &str| order.iter().position(|known| *known == room);
    let mut offences = Vec::new();
    for (room, used) in room_uses(&root().join(src)).unwrap() {
        let Some(at) = place(&room) else {
            offences.push(format!("room {room} has no place in the order of {src}"));
            continue;
        };
        for (other, files) in used {
            if place(&other).is_none_or(|other| other >= at) {
                offences.push(format!("{room} uses {other}, which does not come before it: {files:?}"));
            }
        }
    }
    offences
}

#[test]
fn rooms_of_env_use_earlier_rooms_only() {
    let offences = offences("env/src", &ORDER);
    assert!(offences.is_empty(), "{}", offences.join("\n"));
}

#[test]
fn rooms_of_agents_use_earlier_rooms_only() {
    let offences = offences("agents/src", &AGENTS);
    assert!(offences.is_empty(), "{}", offences.join("\n"));
}

#[test]
fn only_the_gym_uses_the_simulator() {
    let uses = room_uses(&root().join("env/src")).unwrap();
    let simulating: BTreeSet<&str> =
        uses.iter().filter(|(_, used)| used.contains_key("sim")).map(|(room, _)| room.as_str()).collect();
    assert_eq!(simulating, BTreeSet::from(MAY_SIMULATE));
}

#[test]
fn the_executor_reads_states_and_not_simulators() {
    let src = root().join("executor/src");
    let mut offences = Vec::new();
    for file in files(&src, "rs").unwrap() {
        let path = file.strip_prefix(&src).unwrap().to_string_lossy().into_owned();
        let source = fs::read_to_string(&file).unwrap();
        let simulates = ["goodput_env::sim", "env::sim"].iter().any(|name| product(&source).contains(name));
        if simulates && !SIMULATING_EXECUTOR.iter().any(|allowed| path.starts_with(allowed)) {
            offences.push(path);
        }
    }
    assert!(offences.is_empty(), "these files use goodput_env::sim: {offences:?}");
}

#[test]
fn uses_of_rooms_are_found_in_groups_and_not_in_comments_or_tests() {
    let source = "use crate::time::SimTime;\nuse crate::{job::{JobId, Work}, plan};\n// crate::gym\nfn f() { crate::seed::rng(); }\n#[cfg(test)]\nmod tests {\n    use crate::sim;\n}\n";
    let expected = ["job", "plan", "seed", "time"].map(String::from);
    assert_eq!(used_rooms(source), BTreeSet::from(expected));
}

/// Rooms of the executor's daemon from the ground up. Files beside them (the daemon itself, its
/// settings) may use all of them.
const ORDER_OF_DAEMON: [&str; 7] = ["shadow", "observe", "guard", "durability", "predict", "interface", "decide"];

#[test]
fn rooms_of_the_daemon_use_earlier_rooms_only() {
    let folder = root().join("executor/src/daemon");
    let mut found = Vec::new();
    for (at, room) in ORDER_OF_DAEMON.iter().enumerate() {
        for file in files(&folder.join(room), "rs").unwrap() {
            let text = fs::read_to_string(&file).unwrap();
            let uses = |other: &&&str| product(&text).contains(&format!("daemon::{other}::"));
            let later: Vec<_> = ORDER_OF_DAEMON[at + 1..].iter().filter(uses).collect();
            if !later.is_empty() {
                found.push(format!("{} uses {later:?}", file.display()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
