//! Another policy in a running daemon: set, kept, rolled back, and rolled back by itself.

use std::path::Path;

use goodput_agents::bundle::PolicyBundle;
use goodput_agents::zoo;
use goodput_configs::live::rollback::RollbackConfig;
use goodput_env::cluster::AcceleratorType;
use goodput_executor::daemon::Daemon;
use goodput_executor::daemon::decide::regression::{DelayVerdict, Delays, judge};
use goodput_executor::daemon::durability::journal::ChangeVerb;
use goodput_executor::daemon::interface::api::PolicyRequest;

use super::lab::{DOES_NOT, Lab, SCALES, block, open_with, rounds};
use super::starts::end;

fn asked(policy: impl Into<String>) -> PolicyRequest {
    PolicyRequest { policy: policy.into(), reason: "a test".into(), ..PolicyRequest::default() }
}

fn policy(daemon: &Daemon<Lab>) -> String {
    daemon.status().lock().unwrap().policy.clone()
}

fn alerts(daemon: &Daemon<Lab>) -> Vec<String> {
    daemon.status().lock().unwrap().alerts.clone()
}

fn started(directory: &Path, policy: &str) -> Daemon<Lab> {
    let mut lab = Lab::new();
    lab.add("a", SCALES, None);
    let mut daemon = open_with(lab, directory, policy, "");
    rounds(&mut daemon, 1);
    daemon
}

fn again(mut daemon: Daemon<Lab>, directory: &Path, policy: &str) -> Daemon<Lab> {
    block(daemon.resign());
    let mut daemon = open_with(daemon.into_engine(), directory, policy, "");
    rounds(&mut daemon, 1);
    daemon
}

#[test]
fn a_policy_that_is_set_decides_at_once_and_after_a_restart_and_goes_back_step_by_step() {
    let directory = tempfile::tempdir().unwrap();
    let mut daemon = started(directory.path(), "fifo");
    block(daemon.set_policy("anna", &asked("tiresias(starvation_knob=2.0)"))).unwrap();
    assert_eq!(policy(&daemon), "tiresias(starvation_knob=2)");
    block(daemon.set_policy("ben", &asked("zoo:elastic"))).unwrap();
    rounds(&mut daemon, 2);
    let said = std::fs::read_to_string(directory.path().join("audit.jsonl")).unwrap();
    assert!(said.lines().any(|line| line.contains("\"policy\":\"zoo:elastic\"") && line.contains("orders")), "{said}");

    let mut daemon = again(daemon, directory.path(), "fifo");
    assert_eq!(policy(&daemon), "zoo:elastic", "the journal keeps it");
    block(daemon.roll_back_policy("anna", "slow", ChangeVerb::Rollback)).unwrap();
    assert_eq!(policy(&daemon), "tiresias(starvation_knob=2)");
    block(daemon.roll_back_policy("anna", "slow", ChangeVerb::Rollback)).unwrap();
    assert_eq!(policy(&daemon), "fifo");
    let error = block(daemon.roll_back_policy("anna", "", ChangeVerb::Rollback)).unwrap_err().to_string();
    assert!(error.contains("first policy") && error.contains("live policy set"), "{error}");

    let history = daemon.policy_history().unwrap();
    let told: Vec<_> =
        history.iter().rev().map(|change| (change.verb, change.name.as_str(), change.by.as_str())).collect();
    let expected = [
        (ChangeVerb::File, "fifo", "deployment file"),
        (ChangeVerb::Set, "tiresias(starvation_knob=2)", "anna"),
        (ChangeVerb::Set, "zoo:elastic", "ben"),
        (ChangeVerb::Rollback, "tiresias(starvation_knob=2)", "anna"),
        (ChangeVerb::Rollback, "fifo", "anna"),
    ];
    assert_eq!(told, expected);
    assert_eq!(history[2].sha256, zoo::load("elastic").unwrap().sha256());
    assert!(history.iter().all(|change| change.at_ms > 1_000_000_000_000));
    // The policy of the file decides again, so the file rules from now on.
    let daemon = again(daemon, directory.path(), "srtf");
    assert_eq!(policy(&daemon), "srtf");
}

#[test]
fn a_policy_that_cannot_decide_here_is_refused_and_the_one_before_decides_on() {
    let directory = tempfile::tempdir().unwrap();
    let mut daemon = started(directory.path(), "tiresias");
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.bundle");
    zoo::load("elastic").unwrap().save(&whole).unwrap();
    let torn = folder.path().join("torn.bundle");
    std::fs::write(&torn, &std::fs::read(&whole).unwrap()[..500]).unwrap();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let other = PolicyRequest { sha256: Some("0".repeat(64)), ..asked(path(&whole)) };
    for (request, said) in [
        (asked("tiresais"), "did you mean \"tiresias\"?"),
        (asked("tiresias"), "decides already"),
        (asked("tiresias(starvation_knob=0)"), "decides already"),
        (asked("tiresias(starvation_nob=2)"), "did you mean \"starvation_knob\"?"),
        (asked("tiresias(starvation_knob=-2)"), "starvation_knob is -2, expected a number of at least 0"),
        (asked("zoo:elastik"), "elastik"),
        (asked(path(&folder.path().join("none.bundle"))), "none.bundle"),
        (asked(path(&torn)), "torn.bundle"),
        (other, "has the SHA-256"),
        // A net that was trained on 64 accelerators decides on 32 to 128, and this cluster has 16.
        (asked("zoo:set-encoder"), "does not fit this cluster: cluster_gpus is 16"),
        // Neither the power nor the price of its types is known to this daemon.
        (asked("gavel-per-watt"), "does not fit this cluster: gavel-per-watt weighs accelerator types by watts"),
        (asked("gavel-per-dollar"), "and dollars_per_hour is known of none of a100"),
    ] {
        let error = block(daemon.set_policy("anna", &request)).unwrap_err().to_string();
        assert!(error.contains(said), "{request:?}: {error}");
        assert_eq!(policy(&daemon), "tiresias");
    }
    rounds(&mut daemon, 2);
    block(daemon.set_policy("anna", &asked(path(&whole)))).unwrap();
    // The copy in the state directory serves where the file is gone, and is refused where it was changed.
    std::fs::remove_file(&whole).unwrap();
    let daemon = again(daemon, directory.path(), "tiresias");
    assert_eq!(policy(&daemon), path(&whole));
    let hash = zoo::load("elastic").unwrap().sha256();
    zoo::load("elastic-16").unwrap().save(&directory.path().join(format!("policies/{hash}.bundle"))).unwrap();
    let daemon = again(daemon, directory.path(), "tiresias");
    assert_eq!(policy(&daemon), "tiresias");
    assert!(alerts(&daemon).iter().any(|alert| alert.starts_with("policy: ")), "{:?}", alerts(&daemon));
}

/// A policy of the file that goes by the power of types is not relied on where no type's is known: the fallback
/// decides, and the status says why and what to do.
#[test]
fn a_policy_per_watt_without_figures_leaves_the_decision_to_the_fallback() {
    let directory = tempfile::tempdir().unwrap();
    let mut lab = Lab::new();
    lab.add("a", SCALES, None);
    let mut daemon = open_with(lab, directory.path(), "gavel-per-watt", "");
    daemon.engine_mut().at_ms += 60_000;
    block(daemon.cycle()).unwrap();
    let fallback = daemon.status().lock().unwrap().fallback.clone();
    assert!(fallback.contains("weighs accelerator types by watts"), "{fallback}");
    assert!(fallback.contains("`goodput list accelerators` has the figure"), "{fallback}");
    let known = AcceleratorType { watts: Some(400.0), ..AcceleratorType::named("a100") };
    let mut lab = Lab::new();
    lab.add("a", SCALES, None);
    let other = tempfile::tempdir().unwrap();
    let mut daemon = open_with(lab, other.path(), "gavel-per-watt", "").knowing(vec![known]);
    rounds(&mut daemon, 1);
    assert_eq!(daemon.status().lock().unwrap().fallback, "");
}

#[test]
fn a_daemon_that_stands_by_sets_no_policy_and_follows_the_one_that_leads() {
    let directory = tempfile::tempdir().unwrap();
    let mut leads = started(directory.path(), "fifo");
    let more = "";
    let mut lab = Lab::new();
    lab.add("a", SCALES, None);
    let mut stands_by = open_with(lab, directory.path(), "fifo", more);
    assert!(!block(stands_by.cycle()).unwrap().leads);
    let error = block(stands_by.set_policy("anna", &asked("srtf"))).unwrap_err().to_string();
    assert!(error.contains("stands by"), "{error}");
    block(leads.set_policy("anna", &asked("tiresias"))).unwrap();
    block(stands_by.cycle()).unwrap();
    assert_eq!(policy(&stands_by), "tiresias");
    block(leads.roll_back_policy("anna", "", ChangeVerb::Rollback)).unwrap();
    block(stands_by.cycle()).unwrap();
    assert_eq!(policy(&stands_by), "fifo");
}

/// Small jobs arrive, one a round where `named`; each ends after a few rounds.
fn pass(daemon: &mut Daemon<Lab>, count: u32, named: Option<&str>) {
    for at in 0..count {
        let lab = daemon.engine_mut();
        if let Some(name) = named {
            lab.add(&format!("small-{name}-{at:03}"), SCALES, None);
        }
        lab.jobs.retain(|key, job| {
            let begun = job.seen.attempt.as_ref().map_or(i64::MAX, |attempt| attempt.since_ms);
            !key.starts_with("small") || begun == i64::MAX || begun + 150_000 > lab.at_ms
        });
        rounds(daemon, 1);
    }
}

#[test]
fn jobs_that_wait_longer_bring_the_policy_before_back() {
    for (next, falls_back) in [("fifo", true), ("srtf", false)] {
        let directory = tempfile::tempdir().unwrap();
        let mut lab = Lab::new();
        lab.add("long", SCALES, None);
        let mut daemon = open_with(lab, directory.path(), "fifo-backfill", "");
        rounds(&mut daemon, 1);
        pass(&mut daemon, 35, Some("a"));
        block(daemon.set_policy("anna", &asked(next))).unwrap();
        // The whole cluster for one job: while the long one runs, strict order lets none pass.
        let whole = {
            let lab = daemon.engine_mut();
            lab.add("whole", SCALES, None);
            &mut lab.jobs.get_mut("whole").unwrap().seen.spec.request
        };
        (whole.gpus, whole.elasticity) = (16, goodput_env::job::Elasticity::Rigid);
        pass(&mut daemon, 28, Some("b"));
        assert_eq!(policy(&daemon), next, "fewer than thirty jobs can be judged yet");
        pass(&mut daemon, 10, Some("c"));
        let told = alerts(&daemon);
        let regressed: Vec<_> = told.iter().filter(|alert| alert.starts_with("regression: ")).collect();
        assert_eq!(regressed.len(), usize::from(falls_back), "{next}: {told:?}");
        assert_eq!(policy(&daemon), if falls_back { "fifo-backfill" } else { next });
        let last = daemon.policy_history().unwrap().remove(0);
        assert_eq!(last.verb == ChangeVerb::Regression, falls_back);
        pass(&mut daemon, 30, None);
        let waiting = daemon.engine_mut().jobs.values().filter(|job| job.seen.attempt.is_none()).count();
        assert!(waiting < 4, "{next}: {waiting} jobs wait");
    }
}

#[test]
fn jobs_are_judged_once_the_mark_is_behind_them() {
    let rule = RollbackConfig { jobs: 10, ..RollbackConfig::default() };
    let before: Vec<i64> = (1..=100).map(|secs| secs * 1000).collect();
    let since = |age: i64, delay: Option<i64>, count: usize| vec![(age, delay); count];
    let verdict =
        |since_ms: Vec<(i64, Option<i64>)>| judge(&rule, 10_000, &Delays { before_ms: before.clone(), since_ms });
    // The mark is 90 s and the slack 10 s.
    let judged = |late, judged, regression| DelayVerdict::Judged { mark_ms: 100_000, late, judged, regression };
    assert_eq!(
        verdict(since(99_000, None, 50)),
        DelayVerdict::TooFew { before: 100, since: 0 },
        "none could be late yet"
    );
    assert_eq!(verdict(since(101_000, None, 10)), judged(10, 10, true), "jobs that starve count");
    assert_eq!(verdict(since(500_000, Some(5000), 20)), judged(0, 20, false));
    let mixed = |late: usize| [since(500_000, Some(200_000), late), since(500_000, Some(0), 20 - late)].concat();
    assert_eq!(verdict(mixed(6)), judged(6, 20, false), "30 % are not more than 30 %");
    assert_eq!(verdict(mixed(7)), judged(7, 20, true));
    let few = Delays { before_ms: before[..9].to_vec(), since_ms: mixed(20) };
    assert_eq!(judge(&rule, 0, &few), DelayVerdict::TooFew { before: 9, since: 20 });
}

/// Every shipped bundle has an equal hash once it is copied.
#[test]
fn the_copy_of_a_bundle_has_its_hash() {
    let folder = tempfile::tempdir().unwrap();
    for shipped in zoo::ZOO {
        let bundle = zoo::load(shipped.name).unwrap();
        let path = folder.path().join(shipped.name);
        bundle.save(&path).unwrap();
        assert_eq!(PolicyBundle::load(&path).unwrap().sha256(), bundle.sha256(), "{}", shipped.name);
    }
}

/// Jobs that scale and jobs that do not, under a policy that plans ahead with the measured speeds: what it simulated
/// stands in the status and, beside the orders that followed, in the audit log.
#[test]
fn a_policy_that_looks_ahead_says_what_it_simulated() {
    let directory = tempfile::tempdir().unwrap();
    let mut lab = Lab::new();
    ["a", "b"].iter().for_each(|key| lab.add(key, SCALES, None));
    lab.add("c", DOES_NOT, None);
    let policy = "lookahead(tiresias)(every_secs=120, rivals=[sia])";
    let mut daemon = open_with(lab, directory.path(), policy, "[reliance]\ntimeout_ms = 20000\n");
    rounds(&mut daemon, 6);
    let look = daemon.status().lock().unwrap().look.clone().unwrap();
    let names: Vec<&str> = look.ways.iter().map(|way| way.name.as_str()).collect();
    // The policy that is played comes first, and last comes leaving its running jobs as they are.
    let other = if names[0] == "tiresias" { "sia" } else { "tiresias" };
    assert_eq!(names, [names[0], other, format!("{}, running jobs left as they are", names[0]).as_str()]);
    assert!(look.ways.iter().all(|way| way.futures >= 2 && way.cost_secs > 0.0), "{look:?}");
    assert_eq!(look.ways.iter().filter(|way| way.chosen).count(), 1, "{look:?}");
    assert!(look.ways[0].difference_secs.is_none() && look.ways[1].difference_secs.is_some(), "{look:?}");
    let said = std::fs::read_to_string(directory.path().join("audit.jsonl")).unwrap();
    let decisions = said.lines().filter(|line| line.contains("\"orders\":[{"));
    assert!(decisions.filter(|line| line.contains("\"horizon_secs\":7200.0")).count() > 0, "{said}");
    // A measured job ends, and a new one takes over its number: the looks go on.
    end(daemon.engine_mut(), "a");
    rounds(&mut daemon, 2);
    daemon.engine_mut().add("d", SCALES, None);
    rounds(&mut daemon, 6);
    assert!(daemon.status().lock().unwrap().look.as_ref().is_some_and(|later| later.at_secs > look.at_secs));
    // A policy that does not look ahead has simulated nothing.
    block(daemon.set_policy("anna", &asked("fifo"))).unwrap();
    rounds(&mut daemon, 1);
    assert_eq!(daemon.status().lock().unwrap().look, None);
}
