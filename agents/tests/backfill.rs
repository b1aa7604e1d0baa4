//! Batch queues: a case worked by hand for each kind of backfill, and what reservations promise.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;

use crate::support::{fixed, frictionless, jcts, random_jobs, run};
use goodput_agents::heuristic::backfill::{Backfill, BatchQueue, JobOrder};
use goodput_env::cluster::Cluster;
use goodput_env::job::{JobSpec, Workload};
use goodput_env::scenario::{Information, SimOptions};
use goodput_env::sim::Outcome;
use goodput_env::time::SimTime;

/// Four accelerators. `runs` holds two of them until 100 s, and `wide` waits for four. Of the jobs behind, `short` ends
/// in time, `narrow` does not, and `late` fits beside neither.
fn queue() -> Vec<JobSpec> {
    vec![
        fixed("runs", 2, 100, 0),
        fixed("wide", 3, 50, 1),
        fixed("narrow", 1, 500, 2),
        fixed("short", 1, 90, 3),
        fixed("late", 1, 300, 4),
    ]
}

fn waits(backfill: Backfill) -> BTreeMap<String, f64> {
    let jobs = queue();
    let lengths: BTreeMap<String, f64> =
        [("runs", 100.0), ("wide", 50.0), ("narrow", 500.0), ("short", 90.0), ("late", 300.0)]
            .map(|(name, secs)| (name.to_owned(), secs))
            .into();
    let all = jcts(&mut BatchQueue::new(JobOrder::Fcfs, backfill), 4, jobs);
    all.into_iter().map(|(name, jct)| (name.clone(), jct - lengths[&name])).collect()
}

fn waits_of(backfill: Backfill, names: [&str; 5]) -> [f64; 5] {
    let waits = waits(backfill);
    names.map(|name| waits[name])
}

#[test]
fn who_passes_a_waiting_job_is_as_published() {
    let names = ["runs", "wide", "narrow", "short", "late"];
    // No job passes `wide`; at 100 s it starts, with `narrow` beside it, and the two others follow it at 150 s.
    assert_eq!(waits_of(Backfill::None, names), [0.0, 99.0, 98.0, 147.0, 146.0]);
    // `wide` leaves one accelerator over at 100 s, so `narrow` passes it. `short` ends before 100 s and passes too.
    // `late` would hold what `wide` needs.
    assert_eq!(waits_of(Backfill::First, names), [0.0, 99.0, 0.0, 0.0, 146.0]);
    // Each job in turn has its place: `late` waits for `wide` to end.
    assert_eq!(waits_of(Backfill::Every, names), [0.0, 99.0, 0.0, 0.0, 146.0]);
}

/// Reservations for every job hold what a reservation for the first alone does not: here `third` keeps its place.
#[test]
fn conservative_backfill_keeps_the_place_of_every_job() {
    let jobs = vec![
        fixed("runs", 3, 100, 0),
        fixed("second", 4, 10, 1),
        fixed("third", 4, 10, 2),
        // One accelerator is free, but the job would run into the time of `second`.
        fixed("passes", 1, 200, 3),
    ];
    let of = |backfill| jcts(&mut BatchQueue::new(JobOrder::Fcfs, backfill), 4, jobs.clone());
    for backfill in [Backfill::First, Backfill::Every] {
        let found = of(backfill);
        assert_eq!([found["second"], found["third"]], [109.0, 118.0], "{backfill:?}");
        assert_eq!(found["passes"], 317.0, "{backfill:?}");
    }
    // With a shorter first wait the two differ: `passes` leaves the first reservation alone and puts off the second.
    let jobs =
        vec![fixed("runs", 2, 100, 0), fixed("second", 3, 10, 1), fixed("third", 4, 10, 2), fixed("passes", 1, 200, 3)];
    let of = |backfill| jcts(&mut BatchQueue::new(JobOrder::Fcfs, backfill), 4, jobs.clone());
    let (first, every) = (of(Backfill::First), of(Backfill::Every));
    assert_eq!([first["second"], first["third"], first["passes"]], [109.0, 211.0, 200.0]);
    assert_eq!([every["second"], every["third"], every["passes"]], [109.0, 118.0, 317.0]);
}

fn played(backfill: Backfill, jobs: Vec<JobSpec>, options: SimOptions) -> Outcome {
    let mut policy = BatchQueue::new(JobOrder::Fcfs, backfill);
    run(&mut policy, Cluster::homogeneous(1, 8), Workload::new(Vec::new(), jobs), options)
}

fn starts(outcome: &Outcome) -> Vec<SimTime> {
    outcome.jobs.iter().map(|job| job.start.unwrap()).collect()
}

/// With exact lengths, a job under conservative backfill starts when it would start without any job behind it.
#[test]
fn under_conservative_backfill_no_job_is_put_off_by_one_behind_it() {
    for seed in 0..20 {
        let jobs = random_jobs(seed, 60);
        let all = starts(&played(Backfill::Every, jobs.clone(), frictionless()));
        for count in [1, 15, 30, 45] {
            let fewer = starts(&played(Backfill::Every, jobs[..count].to_vec(), frictionless()));
            assert_eq!(fewer, all[..count], "seed {seed}, the first {count} jobs");
        }
    }
}

/// A limit is what the queue plans by, in place of any estimate.
#[test]
fn a_limit_decides_who_passes() {
    let mut jobs = vec![fixed("runs", 2, 100, 0), fixed("wide", 4, 50, 1), fixed("short", 2, 10, 2)];
    let waits = |jobs: &[JobSpec]| {
        let options = SimOptions { information: Information::Profiled, ..frictionless() };
        starts(&played(Backfill::First, jobs.iter().cloned().map(doubled).collect(), options))[2].as_secs_f64() - 2.0
    };
    jobs[0].request.limit = Some(SimTime::from_secs(200));
    jobs[1].request.limit = Some(SimTime::from_secs(200));
    jobs[2].request.limit = Some(SimTime::from_secs(60));
    assert_eq!(waits(&jobs), 0.0, "short ends before the limit of runs");
    jobs[2].request.limit = Some(SimTime::from_secs(600));
    assert_eq!(waits(&jobs), 148.0, "short asks for more time than is left before wide starts");
}

/// The job on twice the accelerators, as the cluster has eight.
fn doubled(mut job: JobSpec) -> JobSpec {
    job.request.gpus *= 2;
    job
}
