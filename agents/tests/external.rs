//! Policies in another process decide as they would in this one, and cost their turn only where they fail.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::random_workload;
use goodput_agents::policies::external::{ExternalPolicy, ExternalProgram};
use goodput_agents::policies::rounds::RoundPlayer;
use goodput_env::cluster::Cluster;
use goodput_env::gym::layout;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::{Outcome, Simulator, Status};
use goodput_env::view::ClusterView;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/external_policy.py");
const SLOTS: usize = 8;
/// Time in which what has a limit is over on a busy machine: a tenth of the time for which the script hangs.
const SOON: Duration = Duration::from_secs(60);

/// The script with a mode, where there is a Python to run it.
fn program(mode: &str) -> Option<ExternalProgram> {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("python3 is missing: EXTERNAL POLICIES ARE NOT TESTED");
        return None;
    }
    Some(ExternalProgram::by_name(&format!("proc:python3 {SCRIPT} {mode}")).unwrap())
}

/// The script with a mode in which an answer never comes, where there is a Python to run it.
fn late_program(mode: &str) -> Option<ExternalProgram> {
    Some(program(mode)?.answering_within(Duration::from_millis(300)))
}

fn simulator() -> Simulator {
    let workload = random_workload(&mut rng(3, Stream::Workload), 4, 16);
    let cluster = Arc::new(Cluster::homogeneous(4, 4));
    Simulator::new(Arc::new(Scenario::new(cluster, Arc::new(workload), SimOptions::standard(), 3)))
}

fn at_first_decision() -> Simulator {
    let mut simulator = simulator();
    assert_eq!(simulator.run_until_decision().unwrap(), Status::Decision);
    simulator
}

fn play(policy: &mut dyn Policy) -> Outcome {
    simulator().run(policy).unwrap()
}

fn external(program: &ExternalProgram) -> ExternalPolicy {
    ExternalPolicy::new(program.clone(), &layout(SLOTS), &[], 3)
}

/// The first allowed action, in this process.
struct First(RoundPlayer);

impl Policy for First {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.0.play(view, |_, mask| mask.iter().position(|&allowed| allowed == 1).unwrap())
    }
}

#[test]
fn another_process_decides_as_this_one_does() {
    let Some(program) = program("first") else { return };
    let there = play(&mut external(&program));
    let here = play(&mut First(RoundPlayer::new(&layout(SLOTS))));
    assert_eq!(there.jobs, here.jobs);
    assert_eq!(program.faults().turns, 0, "{:?}", program.faults());
}

#[test]
fn a_process_that_dies_hangs_or_talks_nonsense_loses_turns_only() {
    for mode in ["dies", "hangs", "nonsense", "forbidden"] {
        let Some(program) = (if mode == "hangs" { late_program(mode) } else { program(mode) }) else { return };
        let outcome = play(&mut external(&program));
        assert!(outcome.jobs.iter().all(|job| job.jct().is_some()), "{mode}: some jobs are not complete");
        let faults = program.faults();
        match mode {
            "nonsense" => assert!(faults.turns > 0 && faults.last.unwrap().contains("action 4000000000 is forbidden")),
            "forbidden" => assert!(faults.turns > 0 && faults.last.unwrap().contains("is forbidden by the mask")),
            "dies" => assert!(faults.turns > 0 && faults.last.unwrap().contains("has ended")),
            _ => assert!(faults.turns > 0 && faults.last.unwrap().contains("no answer within 0.3 s")),
        }
    }
}

#[test]
fn a_late_program_is_killed_with_the_processes_that_it_started() {
    let mark = std::process::id();
    let Some(program) = late_program(&format!("forks {mark}")) else { return };
    play(&mut external(&program));
    let last = program.faults().last.unwrap();
    assert!(last.contains("no answer within"), "{last}");
    let lines = fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.unwrap().path().join("cmdline")).ok());
    let left = format!("grandchild\0{mark}\0");
    assert_eq!(lines.filter(|line| line.ends_with(left.as_bytes())).count(), 0, "a child of the program is left");
}

#[test]
fn the_reasons_of_a_program_stand_beside_its_actions() {
    for (mode, said) in [("reasons", true), ("first", false)] {
        let Some(program) = program(mode) else { return };
        let mut policy = external(&program);
        let simulator = at_first_decision();
        let (plan, told) = policy.explain(&simulator.view());
        let (last, changes) = told.split_last().unwrap();
        assert_eq!((last.id, last.action.as_str()), (None, "wait"));
        assert!(!changes.is_empty() && changes.iter().all(|told| told.job.is_some()), "{told:?}");
        let started = plan.changes.iter().all(|change| changes.iter().any(|told| told.id == Some(change.job)));
        assert!(started, "{plan:?} {told:?}");
        let expected = if said { format!("the {}th action", told.len()) } else { String::new() };
        assert_eq!(last.reason, expected);
        assert_eq!(program.faults().turns, 0);
    }
    let Some(program) = program("talks") else { return };
    let mut policy = external(&program);
    let simulator = at_first_decision();
    assert!(policy.explain(&simulator.view()).1.is_empty());
    assert!(program.faults().last.unwrap().contains("a reason of 5000 bytes"), "{:?}", program.faults());
}

#[test]
fn a_live_round_ends_in_time_and_a_process_that_starts_loses_no_more_than_its_turns() {
    let turn = Duration::from_millis(200);
    for (mode, words) in [("hangs", "the round took longer than 0.2 s"), ("mute", "")] {
        let Some(program) = program(mode) else { return };
        let program = program.deciding_within(turn);
        let began = Instant::now();
        let mut policy = external(&program);
        let simulator = at_first_decision();
        // The first rounds go by while the process starts; a later one of the process that hangs is late.
        let mut rounds = 0;
        while program.faults().turns == 0 && (mode == "hangs" || rounds < 20) {
            policy.decide(&simulator.view());
            assert!(began.elapsed() < SOON, "{mode}: {rounds} rounds in {:?}", began.elapsed());
            rounds += 1;
        }
        let faults = program.faults();
        match mode {
            "mute" => assert_eq!((faults.starting, faults.turns, faults.last), (20, 0, None)),
            _ => assert!(faults.turns == 1 && faults.last.as_deref() == Some(words), "{faults:?}"),
        }
        drop(policy);
        assert!(began.elapsed() < SOON, "{mode}: {:?}", began.elapsed());
    }
}

#[test]
fn a_missing_program_is_found_without_running_it() {
    let find = |name: &str| ExternalProgram::by_name(name).unwrap().find().map_err(|missing| missing.to_string());
    let mark = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ran-{}", std::process::id()));
    assert_eq!(find(&format!("proc:touch {}", mark.display())), Ok(()));
    assert!(!mark.exists(), "the program ran");
    assert!(find("proc:./there-is-none --greedy").unwrap_err().contains("no program \"./there-is-none\""));
    assert!(find("proc:there-is-none").unwrap_err().contains("in the folders of PATH"));
    assert!(find("proc:/etc/passwd").unwrap_err().contains("not executable"));
    if program("first").is_none() {
        return;
    }
    // Either the package that serves classes is missing, or the module.
    let missing = find("python:there.is_none:Policy").unwrap_err();
    assert!(missing.contains("goodput-gym") || missing.contains("no module \"there.is_none\""), "{missing}");
}

#[test]
fn what_cannot_be_a_policy_is_found_before_any_run() {
    let Some(rude) = program("rude") else { return };
    assert!(rude.check(&layout(SLOTS), &[]).unwrap_err().to_string().contains("the first line is \"hello\""));
    let missing = ExternalProgram::by_name("proc:./there-is-none").unwrap();
    assert!(missing.check(&layout(SLOTS), &[]).unwrap_err().to_string().contains("cannot start ./there-is-none"));
    program("first").unwrap().check(&layout(SLOTS), &[]).unwrap();
    for wrong in ["proc:", "python:module", "python::Class", "python:module:", "fifo"] {
        assert!(ExternalProgram::by_name(wrong).is_none(), "{wrong}");
    }
    let python = ExternalProgram::by_name("python:pkg.mod:Class").unwrap();
    assert!(python.command().ends_with(&["-m", "goodput_gym.policy", "pkg.mod:Class"].map(String::from)));
}
