//! Predicted starts of a live daemon: by jobs that have ended, by what users stated, and of jobs that are not
//! submitted.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work};
use goodput_env::time::SimTime;
use goodput_executor::daemon::Daemon;
use goodput_executor::daemon::predict::PredictedStart;
use goodput_executor::daemon::predict::answer::{Quantiles, RoomMade, StartBasis, TriedSubmission};
use goodput_executor::engine::{JobPhase, Submission};

use super::lab::{Lab, SCALES, block, open, rounds};

/// Run time that users state, seconds.
const STATED: i64 = 7200;

/// Adds a job that keeps its size.
fn add(lab: &mut Lab, key: &str, gpus: u32) {
    lab.add(key, SCALES, None);
    let spec = &mut lab.jobs.get_mut(key).unwrap().seen.spec;
    (spec.request.gpus, spec.request.elasticity) = (gpus, Elasticity::Rigid);
    spec.work = Work::Fixed { duration: SimTime::from_secs(STATED) };
}

pub(super) fn end(lab: &mut Lab, key: &str) {
    let seen = &mut lab.jobs.get_mut(key).unwrap().seen;
    (seen.attempt, seen.phase) = (None, JobPhase::Done);
}

/// A cluster on which `count` jobs of 8 accelerators have run for `minutes` each, two at a time.
fn with_past(directory: &Path, policy: &str, count: usize, minutes: u32) -> Daemon<Lab> {
    let mut daemon = open(Lab::new(), directory, policy);
    rounds(&mut daemon, 1);
    for pair in 0..count / 2 {
        let keys = [format!("past-{pair}-a"), format!("past-{pair}-b")];
        keys.iter().for_each(|key| add(daemon.engine_mut(), key, 8));
        rounds(&mut daemon, minutes);
        keys.iter().for_each(|key| end(daemon.engine_mut(), key));
        rounds(&mut daemon, 1);
    }
    daemon
}

/// Two jobs of 8 accelerators that have run for four minutes, one of 16 that waits, and behind it one of 4.
fn full(daemon: &mut Daemon<Lab>) {
    ["run-1", "run-2"].iter().for_each(|key| add(daemon.engine_mut(), key, 8));
    rounds(daemon, 1);
    add(daemon.engine_mut(), "large", 16);
    rounds(daemon, 1);
    add(daemon.engine_mut(), "small", 4);
    rounds(daemon, 2);
    let held = ["run-1", "run-2", "large", "small"].map(|key| daemon.engine_mut().gpus(key));
    assert_eq!(held, [8, 8, 0, 0]);
}

fn start(daemon: &Daemon<Lab>, key: &str) -> Result<PredictedStart, String> {
    let (reply, replied) = mpsc::channel();
    daemon.predict_start(key, Box::new(move |predicted| reply.send(predicted).unwrap()));
    replied.recv_timeout(Duration::from_secs(60)).unwrap()
}

fn tried(daemon: &mut Daemon<Lab>, job: &Submission) -> TriedSubmission {
    let (reply, replied) = mpsc::channel();
    block(daemon.try_submission(job, move |tried| reply.send(tried.unwrap()).unwrap()));
    replied.recv_timeout(Duration::from_secs(60)).unwrap()
}

fn asks_for(gpus: u32) -> Submission {
    let request = JobRequest { name: "new".into(), gpus, ..JobRequest::default() };
    let work = Work::Fixed { duration: SimTime::from_secs(STATED) };
    Submission::new(JobSpec { request, work }, vec!["true".into()])
}

/// Users state two hours, and jobs run for twenty minutes: the prediction learns that from those that have ended.
#[test]
fn a_start_is_predicted_by_the_jobs_that_have_ended() {
    let directory = tempfile::tempdir().unwrap();
    let mut daemon = with_past(directory.path(), "fifo", 24, 20);
    full(&mut daemon);
    let large = start(&daemon, "large").unwrap();
    let StartBasis::Futures { futures, ended, came, .. } = large.basis else { panic!("{large:?}") };
    assert!(futures >= 1 && ended == 24 && came == 28, "{large:?}");
    // Jobs that run for twenty minutes and have run for four.
    let left = 16.0 * 60.0;
    let Quantiles { low, median, high } = large.wait;
    assert!((median.unwrap() - left).abs() <= 90.0, "{large:?}");
    assert!(low <= median && median <= high);
    let mut freed: Vec<&str> = large.frees.iter().map(|job| job.name.as_str()).collect();
    freed.sort_unstable();
    assert_eq!(freed, ["run-1", "run-2"]);
    assert!(large.frees.iter().all(|job| job.placement.iter().map(|on| on.gpus).sum::<u32>() == 8));
    assert!(large.ahead.is_empty(), "{large:?}");
    assert_eq!((large.free, large.room), (0, Some(RoomMade { jobs: 2, gpus: 16, ahead: 0 })));
    for end in &large.frees {
        assert!((end.ends.median.unwrap() - left).abs() <= 90.0, "{end:?}");
    }
    assert!(large.words().contains("16 accelerators are free after run-1 and run-2 end"), "{}", large.words());

    let small = start(&daemon, "small").unwrap();
    assert_eq!(small.ahead[0].name, "large", "first come, first served");
    assert!(small.ahead[0].share > 0.9 && small.ahead_in_most == 1, "{small:?}");
    assert_eq!(small.room, None, "the ends of running jobs leave no room beside the large one");
    assert!((small.wait.median.unwrap() - left - 20.0 * 60.0).abs() <= 180.0, "{small:?}");
    let words = small.words();
    assert!(
        words.contains("ahead of it: large (16 accelerators)") && words.contains("24 jobs that have ended"),
        "{words}"
    );

    // The journal remembers the past for another daemon.
    block(daemon.resign());
    let mut daemon = open(daemon.into_engine(), directory.path(), "fifo");
    rounds(&mut daemon, 1);
    let again = start(&daemon, "large").unwrap();
    assert!(matches!(again.basis, StartBasis::Futures { ended: 24, .. }), "{again:?}");
}

#[test]
fn a_policy_that_lets_small_jobs_pass_is_predicted_as_one() {
    let directory = tempfile::tempdir().unwrap();
    let mut daemon = with_past(directory.path(), "fifo-backfill", 24, 20);
    full(&mut daemon);
    end(daemon.engine_mut(), "run-2");
    rounds(&mut daemon, 1);
    assert_eq!(daemon.engine_mut().gpus("small"), 4, "it passed the large one");
    assert_eq!(start(&daemon, "small").unwrap_err(), "it runs, or an order to start it is under way");
    // Jobs of 8 accelerators come as they came before, and pass the large one when the other running job ends.
    let large = start(&daemon, "large").unwrap();
    assert!(large.overtaking > 0.0 && large.wait.high.is_none_or(|high| high > 20.0 * 60.0), "{large:?}");
}

#[test]
fn with_too_little_past_a_start_goes_by_what_users_stated() {
    let directory = tempfile::tempdir().unwrap();
    let mut daemon = with_past(directory.path(), "fifo", 4, 20);
    full(&mut daemon);
    let large = start(&daemon, "large").unwrap();
    assert_eq!(large.basis, StartBasis::Stated { ended: 4, needed: 10, assumed: 0 });
    let Quantiles { low, median, high } = large.wait;
    assert!(low == median && median == high, "nothing is drawn at random");
    assert!((median.unwrap() - (STATED - 240) as f64).abs() <= 90.0, "{large:?}");
    assert!(large.words().contains("4 jobs have ended, and 10 are needed"), "{}", large.words());
}

#[test]
fn a_submission_is_tried_without_a_trace() {
    let directory = tempfile::tempdir().unwrap();
    let mut daemon = with_past(directory.path(), "fifo", 24, 20);
    full(&mut daemon);
    let before = (daemon.journal().counts().unwrap(), std::fs::read(directory.path().join("audit.jsonl")).unwrap());
    let behind = tried(&mut daemon, &asks_for(8));
    assert!(behind.refused.is_empty(), "{behind:?}");
    let start = behind.start.unwrap();
    let ahead: Vec<&str> = start.ahead.iter().map(|ahead| ahead.name.as_str()).collect();
    assert_eq!(ahead, ["large"], "the small one starts together with the new one: {start:?}");
    let never = tried(&mut daemon, &asks_for(64)).start.unwrap();
    assert_eq!(never.wait, Quantiles::default(), "{never:?}");
    let note = "it needs 64 accelerators of one type, and the cluster has 16 in service";
    assert!(never.notes.iter().any(|said| said == note), "{never:?}");
    assert!(never.words().starts_with("predicted start: in more than two months"), "{}", never.words());
    let unknown = Submission { application: Some("bert".into()), ..asks_for(1) };
    let refused = tried(&mut daemon, &unknown);
    assert!(refused.start.is_none() && refused.refused[0].contains("not in the catalog"), "{refused:?}");
    let after = (daemon.journal().counts().unwrap(), std::fs::read(directory.path().join("audit.jsonl")).unwrap());
    assert_eq!(before, after, "nothing was written");
    assert!(!daemon.engine_mut().jobs.contains_key("new"));
}

/// Predictions that have come true are what later ones are calibrated on: jobs run for ten minutes where others ran for
/// five before.
#[test]
fn quantiles_are_moved_by_earlier_predictions() {
    let directory = tempfile::tempdir().unwrap();
    let mut daemon = with_past(directory.path(), "fifo", 20, 5);
    add(daemon.engine_mut(), "job-0", 16);
    rounds(&mut daemon, 1);
    let mut last = None;
    for next in 1..=24 {
        let (now, behind) = (format!("job-{}", next - 1), format!("job-{next}"));
        add(daemon.engine_mut(), &behind, 16);
        rounds(&mut daemon, 1);
        last = Some(start(&daemon, &behind).unwrap());
        rounds(&mut daemon, 9);
        end(daemon.engine_mut(), &now);
        rounds(&mut daemon, 1);
        assert_eq!(daemon.engine_mut().gpus(&behind), 16);
    }
    let last = last.unwrap();
    let StartBasis::Futures { calibrated_on, .. } = last.basis else { panic!("{last:?}") };
    assert!(calibrated_on >= 20, "{last:?}");
    assert!(last.words().contains("earlier predictions"), "{}", last.words());
    // The first ones were too early by five minutes.
    assert!(last.wait.high.unwrap() > last.wait.median.unwrap() + 60.0, "{last:?}");
}
