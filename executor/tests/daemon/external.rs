//! A policy in another process, live: whatever the process does, it costs no more than its turn.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use goodput_configs::live::policy::RelianceConfig;
use goodput_executor::daemon::Daemon;
use goodput_executor::daemon::interface::api::PolicyRequest;

use super::lab::{Lab, SCALES, block, open_relying, open_with, rounds};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../agents/tests/fixtures/external_policy.py");
/// Time in which a daemon's cycle must be over, whatever the policy does.
const SOON: Duration = Duration::from_secs(5);

/// The name of the script as a policy, where there is a Python to run it.
fn program(mode: &str) -> Option<String> {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("python3 is missing: EXTERNAL POLICIES ARE NOT TESTED LIVE");
        return None;
    }
    Some(format!("proc:python3 {SCRIPT} {mode}"))
}

/// A daemon with two jobs that relies on the program for every decision.
fn daemon(directory: &Path, name: &str) -> Daemon<Lab> {
    let mut lab = Lab::new();
    lab.add("a", SCALES, None);
    lab.add("b", SCALES, None);
    let reliance = RelianceConfig { timeout_ms: 600, invalid_of_ten: 10, ..RelianceConfig::default() };
    open_relying(lab, directory, &format!("name = \"{name}\""), "", reliance)
}

/// Lets a round of a minute pass. Gives the fallback and the reason where the fallback decided, and nothing where the
/// policy itself did.
fn round(daemon: &mut Daemon<Lab>) -> String {
    daemon.engine_mut().at_ms += 60_000;
    loop {
        let began = Instant::now();
        let open = block(daemon.cycle()).unwrap().open;
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        if open == 0 {
            break;
        }
    }
    daemon.status().lock().unwrap().fallback.clone()
}

#[test]
fn a_program_decides_live_and_the_fallback_decides_the_turns_that_it_loses() {
    for (mode, fault) in [
        ("first", ""),
        ("dies@40", "the process has ended"),
        ("hangs@40", "the round took longer than 0.54 s"),
        ("nonsense@40", "action 4000000000 is forbidden by the mask"),
        ("forbidden@40", "is forbidden by the mask"),
    ] {
        let Some(name) = program(mode) else { return };
        let directory = tempfile::tempdir().unwrap();
        let mut daemon = daemon(directory.path(), &name);
        assert_eq!(daemon.status().lock().unwrap().policy, name);
        let said: Vec<String> = (0..40).map(|_| round(&mut daemon)).collect();
        let own = said.iter().filter(|said| said.is_empty()).count();
        let lost: Vec<&String> = said.iter().filter(|said| said.contains("Failed")).collect();
        assert!(own > 0, "{mode}: the program never decided: {said:?}");
        match fault {
            "" => assert!(lost.is_empty(), "{said:?}"),
            fault => {
                assert!(lost.iter().all(|said| said.starts_with("fifo: ") && said.contains(fault)), "{mode}: {lost:?}");
                let first = said.iter().position(|said| said.contains("Failed")).unwrap();
                assert!(said[first..].iter().any(String::is_empty), "{mode}: it did not decide again: {said:?}");
            }
        }
        let held: u32 = ["a", "b"].iter().map(|job| daemon.engine_mut().gpus(job)).sum();
        assert!(held > 0, "{mode}: the jobs wait");
    }
}

#[test]
fn a_program_that_loses_too_many_turns_is_not_asked_for_a_while() {
    let Some(name) = program("rude") else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut lab = Lab::new();
    lab.add("a", SCALES, None);
    let reliance = RelianceConfig { timeout_ms: 600, invalid_of_ten: 0, ..RelianceConfig::default() };
    let mut daemon = open_relying(lab, directory.path(), &format!("name = \"{name}\""), "", reliance);
    // Rounds go by while the process starts, and one lost turn is too many.
    let lost = (0..100).map(|_| round(&mut daemon)).find(|said| said.contains("Failed")).unwrap();
    assert!(lost.contains("the first line is"), "{lost}");
    let alerts = daemon.status().lock().unwrap().alerts.len();
    assert!((0..3).all(|_| round(&mut daemon) == lost), "the fallback decides on");
    assert_eq!(daemon.status().lock().unwrap().alerts.len(), alerts, "the program is not asked");
    assert!(daemon.engine_mut().gpus("a") > 0, "the fallback started the job");
}

#[test]
fn a_program_is_set_while_the_daemon_runs_once_it_has_shown_that_it_decides() {
    let Some(good) = program("first") else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut lab = Lab::new();
    lab.add("a", SCALES, None);
    let mut daemon = open_with(lab, directory.path(), "fifo", "");
    rounds(&mut daemon, 1);
    let mut set = |policy: &str| {
        let request = PolicyRequest { policy: policy.into(), reason: "a test".into(), ..PolicyRequest::default() };
        block(daemon.set_policy("anna", &request)).map_err(|error| error.to_string())
    };
    // A name that cannot be a program is refused as a request; a program that was started says what decides on.
    for (policy, words, decides_on) in [
        ("proc:", "names no program", false),
        ("proc:/there/is-none", "there is no program \"/there/is-none\"", false),
        ("python:there.is_none:Policy", "there.is_none", false),
        (program("rude").unwrap().as_str(), "the first line is \"hello\"", true),
    ] {
        let error = set(policy).unwrap_err();
        // Where the package that serves classes is missing, the module is not looked for.
        let no_package = policy.starts_with("python:") && error.contains("goodput-gym");
        assert!(error.contains(words) || no_package, "{error}");
        assert_eq!(error.contains("fifo decides on"), decides_on, "{error}");
    }
    let change = set(&good).unwrap();
    assert_eq!((change.name.as_str(), change.sha256.as_str()), (good.as_str(), ""));
    rounds(&mut daemon, 3);
    assert_eq!(daemon.status().lock().unwrap().policy, good);
    // The journal keeps the name.
    block(daemon.resign());
    let mut daemon = open_with(daemon.into_engine(), directory.path(), "fifo", "");
    rounds(&mut daemon, 2);
    assert_eq!(daemon.status().lock().unwrap().policy, good);
}
