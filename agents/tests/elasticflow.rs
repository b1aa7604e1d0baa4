//! ElasticFlow in the simulator: deadlines that are kept, jobs that are refused, and jobs that give way.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::support::{fixed, frictionless, run};
use goodput_agents::compose::by_name;
use goodput_env::cluster::Cluster;
use goodput_env::job::{Elasticity, JobSpec, Workload};
use goodput_env::scenario::SimOptions;
use goodput_env::sim::Outcome;
use goodput_env::time::SimTime;

/// Job of fixed length at `gpus` accelerators that scales linearly from 1 to `most`, with a deadline.
fn due(name: &str, (gpus, most): (u32, u32), secs: i64, submit: i64, deadline: i64) -> JobSpec {
    let mut job = fixed(name, gpus, secs, submit);
    job.request.deadline = Some(SimTime::from_secs(deadline));
    if most > gpus {
        job.request.elasticity = Elasticity::Elastic { min: 1, max: most };
    }
    job
}

fn outcome(policy: &str, nodes: u32, gpus: u32, jobs: Vec<JobSpec>) -> Outcome {
    let options = SimOptions { log_allocations: true, ..frictionless() };
    let mut policy = by_name(policy, 0).unwrap();
    run(&mut *policy, Cluster::homogeneous(nodes, gpus), Workload::new(Vec::new(), jobs), options)
}

fn finishes(outcome: &Outcome) -> Vec<Option<f64>> {
    outcome.jobs.iter().map(|job| job.finish.map(SimTime::as_secs_f64)).collect()
}

#[test]
fn the_earliest_deadline_has_the_largest_size() {
    // Four accelerators make the urgent job four times as fast; the other one waits.
    let jobs = || vec![due("later", (1, 4), 100, 0, 1000), due("urgent", (1, 4), 100, 0, 50)];
    assert_eq!(finishes(&outcome("edf", 1, 4, jobs())), [Some(50.0), Some(25.0)]);
}

#[test]
fn rigid_jobs_keep_their_size_in_order_of_deadlines() {
    let jobs = vec![due("a", (3, 3), 100, 0, 900), due("b", (2, 2), 100, 0, 300), due("c", (1, 1), 100, 0, 950)];
    // b comes first and leaves two accelerators, on which c fits and a does not.
    assert_eq!(finishes(&outcome("edf", 1, 4, jobs)), [Some(200.0), Some(100.0), Some(100.0)]);
}

#[test]
fn a_job_without_hope_is_refused_and_the_others_keep_their_deadlines() {
    // Both jobs need two of the four accelerators all the time; a third one finds no room.
    let jobs = || vec![due("a", (1, 4), 200, 0, 100), due("b", (1, 4), 200, 0, 100), due("c", (1, 4), 200, 1, 101)];
    let found = outcome("elasticflow", 1, 4, jobs());
    let finished = finishes(&found);
    assert!(finished[..2].iter().all(|at| at.is_some_and(|at| at <= 100.0)), "{finished:?}");
    assert_eq!((finished[2], found.jobs[2].refused), (None, Some(SimTime::from_secs(1))));
    // Without admission control the third job runs late, and no job is refused.
    let all = outcome("edf-elastic", 1, 4, jobs());
    assert!(all.jobs.iter().all(|job| job.refused.is_none() && job.finish.is_some()));
}

#[test]
fn earliest_deadline_first_with_admission_refuses_what_it_would_have_made_late() {
    let jobs = vec![due("a", (1, 4), 200, 0, 60), due("b", (1, 4), 200, 0, 90), due("c", (1, 4), 200, 0, 160)];
    // Each takes 50 s on all four: a until 50, b until 100 (too late), so c is next.
    let found = outcome("edf-admission", 1, 4, jobs);
    assert_eq!(finishes(&found), [Some(50.0), None, Some(100.0)]);
    assert_eq!(found.jobs[1].refused, Some(SimTime::ZERO));
}

#[test]
fn best_effort_jobs_use_what_is_left() {
    let mut spare = due("spare", (1, 4), 400, 0, 0);
    spare.request.deadline = None;
    let found = outcome("elasticflow", 1, 4, vec![spare, due("a", (1, 4), 100, 0, 100)]);
    // Both are done when all four accelerators have worked all the time.
    let last = finishes(&found).into_iter().flatten().fold(0.0, f64::max);
    assert_eq!((last, found.jobs[0].refused), (125.0, None));
    assert!(finishes(&found)[1].is_some_and(|at| at <= 100.0));
}

#[test]
fn jobs_migrate_where_a_larger_one_would_be_spread() {
    // Two jobs of two accelerators on each node; one of each pair ends at 10 s. Then a job of four has room on no node
    // until one of the others moves.
    let pair = |name: &str, secs| due(name, (2, 2), secs, 0, 1000);
    let jobs = vec![pair("a", 10), pair("b", 100), pair("c", 10), pair("d", 100), due("e", (4, 4), 50, 10, 100)];
    let found = outcome("elasticflow", 2, 4, jobs);
    assert_eq!(finishes(&found)[4], Some(60.0));
    assert_eq!(found.jobs.iter().map(|job| job.restarts).sum::<u32>(), 1);
    assert!(found.placements.iter().all(|change| change.slices.len() <= 1), "every job is on one node");
}
