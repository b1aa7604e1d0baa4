//! Worked examples of ElasticFlow's algorithms, computed by hand.
#![allow(clippy::unwrap_used, reason = "tests")]

use goodput_env::job::JobId;
use goodput_env::time::SimTime;

use super::admission::DeadlineAdmission;
use super::course::{Course, DeadlineDemand, SizeLevel, Stretch};
use super::leftover::{saved_per_accelerator, share_out};
use super::{CourseFilling, MINIMUM_SHARE, most_accelerator_time};
use crate::allocation::free_profile::FreeProfile;

fn secs(secs: f64) -> SimTime {
    SimTime::from_secs_f64(secs)
}

fn demand(job: u32, levels: &[(u32, f64)], work: f64, deadline: f64) -> DeadlineDemand {
    let levels = levels.iter().map(|&(gpus, rate)| SizeLevel { gpus, rate }).collect();
    DeadlineDemand { job: JobId(job), levels, work, deadline: secs(deadline), held: 0, restart_secs: 0.0 }
}

fn stretches(course: &Course) -> Vec<(f64, f64, u32)> {
    let each = course.stretches.iter();
    each.map(|&Stretch { from, until, gpus }| (from.as_secs_f64(), until.as_secs_f64(), gpus)).collect()
}

const CONCAVE: &[(u32, f64)] = &[(1, 1.0), (2, 1.5), (4, 2.0)];

#[test]
fn the_minimum_share_is_the_smallest_size_that_keeps_the_deadline() {
    let free = FreeProfile::new(SimTime::ZERO, 4, Vec::new());
    let share = |work: f64| {
        let course = demand(0, CONCAVE, work, 10.0).minimum_share(&free, SimTime::ZERO)?;
        Some(stretches(&course))
    };
    assert_eq!(share(10.0), Some(vec![(0.0, 10.0, 1)]));
    assert_eq!(share(12.0), Some(vec![(0.0, 8.0, 2)]));
    assert_eq!(share(20.0), Some(vec![(0.0, 10.0, 4)]));
    assert_eq!(share(20.1), None);
}

#[test]
fn only_the_end_of_a_course_is_raised_where_that_is_enough() {
    // Another job has two of four accelerators for 6 s. One accelerator does 10 of the 12 before the deadline, so the
    // second one is held from 6 s on: 14 GPU-seconds, and 16 with two from the beginning.
    let free = FreeProfile::new(SimTime::ZERO, 2, vec![(secs(6.0), 2)]);
    let course = demand(0, CONCAVE, 12.0, 10.0).minimum_share(&free, SimTime::ZERO).unwrap();
    assert_eq!(stretches(&course), [(0.0, 6.0, 1), (6.0, 10.0, 2)]);
    assert_eq!(course.gpu_secs(), 14.0);
}

#[test]
fn what_is_not_free_is_not_planned_for() {
    // Nothing is free until 4 s, one until 8 s, four then.
    let free = FreeProfile::new(SimTime::ZERO, 0, vec![(secs(4.0), 1), (secs(8.0), 3)]);
    let course = demand(0, CONCAVE, 7.0, 10.0).minimum_share(&free, SimTime::ZERO).unwrap();
    assert_eq!(stretches(&course), [(4.0, 8.0, 1), (8.0, 10.0, 2)]);
    assert!(demand(0, CONCAVE, 8.1, 10.0).minimum_share(&free, SimTime::ZERO).is_none());
}

/// Two jobs of work 3 on two accelerators that speed a job up by a half (the example of section 2.2 in these numbers).
fn pair() -> [DeadlineDemand; 2] {
    let levels = &[(1, 1.0), (2, 1.5)];
    [demand(0, levels, 3.0, 3.0), demand(1, levels, 3.0, 3.5)]
}

#[test]
fn earliest_deadline_first_misses_what_the_minimum_share_keeps() {
    let ends = |filling: CourseFilling| {
        let (courses, _) = filling.courses(pair().iter(), SimTime::ZERO, 2);
        courses.iter().map(|course| course.end().as_secs_f64()).collect::<Vec<_>>()
    };
    assert_eq!(ends(CourseFilling::Largest), [2.0, 4.0]);
    let shared = ends(MINIMUM_SHARE);
    assert!(shared[0] <= 3.0 && shared[1] <= 3.5, "{shared:?}");
}

#[test]
fn what_is_left_goes_to_the_job_that_scales() {
    // One accelerator each is enough. The third one makes the first job twice as fast and costs nothing; it makes the
    // second job a tenth faster and costs 2 * 10 / 1.1 - 10 GPU-seconds.
    let demands = [demand(0, &[(1, 1.0), (2, 2.0)], 10.0, 20.0), demand(1, &[(1, 1.0), (2, 1.1)], 10.0, 20.0)];
    let sizes = |returns| {
        let (mut courses, mut free) = MINIMUM_SHARE.courses(demands.iter(), SimTime::ZERO, 3);
        share_out(&demands, &mut courses, &mut free, SimTime::ZERO, returns);
        assert_eq!(free.steps()[0].1, 0);
        courses.iter().map(|course| course.gpus_at(SimTime::ZERO)).collect::<Vec<_>>()
    };
    assert_eq!(sizes(saved_per_accelerator), [2, 1]);
    assert_eq!(sizes(most_accelerator_time), [1, 2]);
}

#[test]
fn a_job_is_refused_where_a_deadline_could_not_be_kept() {
    let plan = |of: &mut dyn Iterator<Item = &DeadlineDemand>| MINIMUM_SHARE.courses(of, SimTime::ZERO, 2).0;
    let mut admission = DeadlineAdmission::published();
    let [first, second] = pair();
    // A third job of that length leaves no room for the others.
    let third = demand(2, &[(1, 1.0), (2, 1.5)], 3.0, 3.2);
    let all = [first.clone(), third.clone(), second.clone()];
    assert_eq!(admission.refuse(&all, plan), [JobId(2)]);
    assert!(admission.has_refused(JobId(2)) && !admission.has_refused(JobId(1)));
    // A job that was late before does not have others refused.
    let late = demand(0, &[(1, 1.0), (2, 1.5)], 9.0, 3.0);
    let small = demand(3, &[(1, 1.0)], 1.0, 20.0);
    assert!(admission.refuse(&[late.clone(), second.clone(), small.clone()], plan).is_empty());
    // The artifact refuses all that arrive together, because one deadline is not kept.
    let mut artifact = DeadlineAdmission::artifact();
    assert_eq!(artifact.refuse(&all, plan).len(), 3);
}

#[test]
fn a_job_without_a_deadline_is_never_refused_and_comes_last() {
    let best_effort = DeadlineDemand { deadline: SimTime::NEVER, ..demand(0, CONCAVE, 100.0, 0.0) };
    let [first, second] = pair();
    let demands = [first, second, best_effort];
    let plan = |of: &mut dyn Iterator<Item = &DeadlineDemand>| MINIMUM_SHARE.courses(of, SimTime::ZERO, 2).0;
    assert!(DeadlineAdmission::published().refuse(&demands, plan).is_empty());
    let ends: Vec<f64> = plan(&mut demands.iter()).iter().map(|course| course.end().as_secs_f64()).collect();
    assert!(ends[0] <= 3.0 && ends[1] <= 3.5 && ends[2] > 90.0, "{ends:?}");
}
