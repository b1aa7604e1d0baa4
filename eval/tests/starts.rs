//! Predicted starts: a start that is known, what must not leak, and coverage on a public trace.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;
use std::sync::Arc;

use goodput_agents::compose::by_name;
use goodput_agents::start_time::RoomMade;
use goodput_datasets::{Catalog, read_workload};
use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::job::{JobRequest, JobSpec, Work, Workload};
use goodput_env::scenario::{Rounds, Scenario, SimOptions};
use goodput_env::sim::Simulator;
use goodput_env::time::SimTime;
use goodput_eval::studies::starts::{
    AskedJob, HeldOn, RunningSeen, SeenJob, SeenQueue, StartAnswer, StartError, StartStudy,
};

fn study(workload: Workload, cluster: Cluster, policy: &str) -> StartStudy {
    StartStudy {
        cluster: Arc::new(cluster),
        workload: Arc::new(workload),
        policy: policy.parse().unwrap(),
        futures: 40,
        sigma: 0.5,
    }
}

fn job(name: usize, submit: i64, secs: i64) -> JobSpec {
    let request = JobRequest { name: format!("j{name}"), submit: SimTime::from_secs(submit), ..JobRequest::default() };
    JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(secs) } }
}

fn answer(study: &StartStudy, at: i64) -> StartAnswer {
    let request = JobRequest { submit: SimTime::from_secs(at), ..JobRequest::default() };
    study.answer(request, 50, &|_, _| ()).unwrap()
}

/// All jobs before ran for 600 s, and the one on the single accelerator has run for 100 s and started 30 s before that.
#[test]
fn where_all_jobs_are_alike_the_start_is_known() {
    let jobs = (0..30).map(|at| job(at, 1000 * at as i64, 600)).chain([job(30, 30_000, 600)]).collect();
    let study = study(Workload::new(Vec::new(), jobs), Cluster::homogeneous(1, 1), "fifo");
    let found = answer(&study, 30_130);
    assert!((found.wait.median - 500.0).abs() < 1.0, "{found:?}");
    assert_eq!((found.running, found.waiting, found.free), ((1, 1), (0, 0), 0));
    let [end] = &found.frees[..] else { panic!("{found:?}") };
    assert_eq!((end.job.as_str(), end.share), ("j30", 1.0));
    assert_eq!(end.on, [HeldOn { node: "node 0".into(), gpus: 1 }]);
    assert!((end.ends.low - 500.0).abs() < 1.0 && end.ends.low == end.ends.high, "{end:?}");
    assert_eq!(found.room, Some(RoomMade { jobs: 1, gpus: 1, ahead: 0 }));
    // On an accelerator that is free it starts at once.
    let free = answer(&study, 29_900);
    assert_eq!((free.wait.low, free.wait.median, free.wait.high), (0.0, 0.0, 0.0));
    assert_eq!((free.frees.len(), free.room), (0, None));
}

fn seen(name: &str, gpus: u32, age: i64, run: Option<(i64, Vec<(NodeId, u32)>)>) -> SeenJob {
    let limit = Some(SimTime::from_secs(1000));
    let request = JobRequest { name: name.to_owned(), gpus, limit, ..JobRequest::default() };
    let run = run.map(|(ran, on)| RunningSeen { ran: SimTime::from_secs(ran), on });
    SeenJob { request, age: SimTime::from_secs(age), run }
}

/// All jobs of the trace ran for 600 s of the 1000 s that they asked for. On the cluster one has run for 100 s and one
/// for 400 s; a job of two accelerators waits ahead of the asked one.
#[test]
fn a_start_in_the_queue_of_a_cluster_is_predicted_with_the_trace_as_its_past() {
    let limited = |at: usize| {
        let of = job(at, 1000 * at as i64, 600);
        JobSpec { request: JobRequest { limit: Some(SimTime::from_secs(1000)), ..of.request }, ..of }
    };
    let study = study(Workload::new(Vec::new(), (0..40).map(limited).collect()), Cluster::homogeneous(2, 1), "fifo");
    let (young, old) = (Some((100, vec![(NodeId(0), 1)])), Some((400, vec![(NodeId(1), 1)])));
    let jobs = vec![seen("large", 2, 50, None), seen("young", 1, 100, young), seen("old", 1, 900, old)];
    let queue = SeenQueue { jobs, nodes: vec!["n1".into(), "n2".into()], service: Vec::new() };
    let ask = |queue: &SeenQueue, asked: &AskedJob| {
        study.answer_queue(queue, asked, SimTime::from_secs(39_000), 10, &|_, _| ()).unwrap()
    };
    let large = ask(&queue, &AskedJob::Waits(0));
    assert!((large.wait.median - 500.0).abs() < 1.0, "{large:?}");
    assert_eq!((large.running, large.waiting, large.free), ((2, 2), (0, 0), 0));
    let ends: Vec<(&str, &str, f64)> =
        large.frees.iter().map(|end| (end.job.as_str(), end.on[0].node.as_str(), end.ends.median.round())).collect();
    assert_eq!(ends, [("old", "n2", 200.0), ("young", "n1", 500.0)]);
    assert_eq!(large.room, Some(RoomMade { jobs: 2, gpus: 2, ahead: 0 }));
    assert_eq!(large.as_stated_secs.map(f64::round), Some(900.0), "time limits are a thousand seconds");

    let limit = Some(SimTime::from_secs(1000));
    let new = AskedJob::New(JobRequest { name: "new".into(), limit, ..JobRequest::default() });
    let behind = ask(&queue, &new);
    assert!((behind.wait.median - 1100.0).abs() < 1.0, "{behind:?}");
    assert_eq!((behind.ahead[0].job.as_str(), behind.ahead[0].share), ("large", 1.0));
    // A node that is out of service leaves no room for the large one, and no job passes it.
    let drained = SeenQueue { service: vec![1, 0], jobs: queue.jobs[..2].to_vec(), ..queue.clone() };
    let never = ask(&drained, &new);
    assert_eq!(never.wait.median, f64::INFINITY);
    // The end of the job that runs is known all the same.
    let [end] = &never.frees[..] else { panic!("{never:?}") };
    assert!(end.job == "young" && (end.ends.median - 500.0).abs() < 1.0, "{end:?}");
}

#[test]
fn a_queue_without_time_limits_is_refused_by_a_policy_that_plans_by_them() {
    let study = study(busy(), Cluster::homogeneous(1, 2), "easy");
    let unlimited = SeenJob { request: JobRequest { name: "x".into(), ..JobRequest::default() }, ..SeenJob::default() };
    let queue = SeenQueue { jobs: vec![unlimited], ..SeenQueue::default() };
    let limit = Some(SimTime::from_secs(1000));
    let new = AskedJob::New(JobRequest { limit, ..JobRequest::default() });
    let refused = study.answer_queue(&queue, &new, SimTime::from_secs(90_000), 10, &|_, _| ());
    assert!(matches!(&refused, Err(StartError::QueueLimit { job, count: 1, .. }) if job == "x"), "{refused:?}");
}

/// Arrivals and run times with a queue most of the time.
fn busy() -> Workload {
    let jobs =
        (0..400).map(|at| job(at, 300 * at as i64 + (at as i64 * 7919) % 200, 100 + (at as i64 * 104_729) % 1100));
    Workload::new(Vec::new(), jobs.collect())
}

#[test]
fn what_is_not_known_yet_does_not_change_the_answer() {
    let at = SimTime::from_secs(90_000);
    let known = study(busy(), Cluster::homogeneous(1, 2), "fifo-backfill");
    let before = answer(&known, 90_000);
    assert!(before.wait.median > 0.0 && before.calibrated_on > 0, "{before:?}");
    // Jobs that are submitted later, and all that runs or waits then, get other run times.
    let options = SimOptions { rounds: Rounds { period: None, on_churn: true }, ..SimOptions::standard() };
    let scenario = Scenario::new(known.cluster.clone(), known.workload.clone(), options, 0);
    let mut policy = by_name("fifo-backfill", 0).unwrap();
    let records = Simulator::new(Arc::new(scenario)).run(&mut *policy).unwrap().jobs;
    let mut other = busy();
    let mut changed = 0;
    for (spec, record) in other.jobs.iter_mut().zip(&records) {
        if record.finish.is_none_or(|finish| finish > at) {
            let running = record.start.is_some_and(|start| start <= at);
            // A running job has to last at least as long as it has.
            let secs = if running { 4000 } else { 77 };
            spec.work = Work::Fixed { duration: SimTime::from_secs(secs) };
            changed += 1;
        }
    }
    assert!(changed > 100);
    assert_eq!(answer(&study(other, Cluster::homogeneous(1, 2), "fifo-backfill"), 90_000), before);
}

#[test]
fn a_policy_that_plans_by_run_times_needs_a_time_limit() {
    let study = study(busy(), Cluster::homogeneous(1, 2), "easy");
    let asked = |limit| JobRequest { submit: SimTime::from_secs(60_000), limit, ..JobRequest::default() };
    let refused = study.answer(asked(None), 10, &|_, _| ());
    assert!(matches!(refused, Err(StartError::Limit { .. })));
    assert!(study.answer(asked(Some(SimTime::from_secs(600))), 10, &|_, _| ()).is_ok());
}

/// Nine of ten intervals are to hold the wait that came.
#[test]
fn intervals_hold_what_they_promise_on_a_public_trace() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/rlscheduler/lublin_256_new2.swf.gz");
    let trace = Path::new(trace);
    assert!(trace.exists(), "{} is absent: this test needs the public data in it", trace.display());
    let workload = read_workload(trace, Catalog::shipped()).unwrap().workload;
    let check = study(workload, Cluster::homogeneous(256, 1), "fifo-backfill").check(150, 0.5, &|_, _| ()).unwrap();
    assert!(check.predictions >= 100, "{}", check.predictions);
    let (coverage, before) = (check.coverage.unwrap(), check.uncalibrated_coverage.unwrap());
    assert!((0.8..=0.97).contains(&coverage) && before < coverage, "{before} {coverage}");
}
