//! Allocation of the accelerators that minimum satisfactory shares leave (Algorithm 2): one level at a time, to the job
//! with the highest marginal return.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use goodput_env::time::SimTime;

use super::course::{Course, DeadlineDemand};
use crate::allocation::free_profile::FreeProfile;

/// Return of a job's next level, by the accelerator time (GPU-seconds) that the level saves over the whole course of
/// the job and the number of accelerators that the level adds.
pub type MarginalReturn = fn(saved_gpu_secs: f64, gpus: u32) -> f64;

/// Accelerator time saved by each further accelerator. Larger sizes scale worse, so the savings are mostly negative.
pub fn saved_per_accelerator(saved_gpu_secs: f64, gpus: u32) -> f64 {
    saved_gpu_secs / f64::from(gpus)
}

/// Next level of a job.
struct Raise {
    returns: f64,
    at: usize,
}

impl PartialEq for Raise {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Raise {}

impl PartialOrd for Raise {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Raise {
    fn cmp(&self, other: &Self) -> Ordering {
        self.returns.total_cmp(&other.returns).then(other.at.cmp(&self.at))
    }
}

/// Raises the courses of jobs that begin at `now` until nothing is left in the first step of `free` or no job gets
/// faster. A job that would hold nothing now comes first; ties go to the first job. A return is that of the moment at
/// which the job was last raised.
pub fn share_out(
    demands: &[DeadlineDemand],
    courses: &mut [Course],
    free: &mut FreeProfile,
    now: SimTime,
    returns: MarginalReturn,
) {
    let next = |courses: &[Course], free: &FreeProfile, at: usize| {
        let (course, gpus) = raised(&demands[at], &courses[at], free, now)?;
        let held = courses[at].gpus_at(now);
        let saved = courses[at].gpu_secs() - course.gpu_secs();
        Some(Raise { returns: if held == 0 { f64::INFINITY } else { returns(saved, gpus - held) }, at })
    };
    let mut queue: BinaryHeap<Raise> = (0..demands.len()).filter_map(|at| next(courses, free, at)).collect();
    while let Some(Raise { at, .. }) = queue.pop() {
        // What was free when the return was computed may have gone to other jobs.
        let Some((course, _)) = raised(&demands[at], &courses[at], free, now) else { continue };
        release(free, &courses[at]);
        reserve(free, &course);
        courses[at] = course;
        queue.extend(next(courses, free, at));
    }
}

/// Course of a job one level up, and the accelerators of that level; `None` where there is no higher level, too few
/// accelerators are free now, or the job would be done no sooner.
fn raised(demand: &DeadlineDemand, course: &Course, free: &FreeProfile, now: SimTime) -> Option<(Course, u32)> {
    let held = course.gpus_at(now);
    let level = demand.levels.partition_point(|level| level.gpus <= held) + 1;
    let gpus = demand.levels.get(level - 1)?.gpus;
    let left = free.steps().first().map_or(0, |step| step.1);
    // A restart may cost more time than the accelerators save.
    if gpus - held > left || demand.secs_at(level) >= demand.secs_at(level - 1) {
        return None;
    }
    let mut without = free.clone();
    release(&mut without, course);
    without.merge();
    Some((demand.raised(&without, now, level), gpus))
}

/// Takes what a course holds out of `free`.
pub fn reserve(free: &mut FreeProfile, course: &Course) {
    course.stretches.iter().for_each(|of| free.reserve_until(of.from, of.until, of.gpus));
}

fn release(free: &mut FreeProfile, course: &Course) {
    course.stretches.iter().for_each(|of| free.release_until(of.from, of.until, of.gpus));
}
