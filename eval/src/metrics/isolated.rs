//! Isolated completion time: the time that a job would take alone, on its fair share of the
//! cluster. Finish-time fairness divides by it.
//!
//! The fair share is `1/n` of all accelerators, `n` being the mean number of jobs in the system
//! from the job's submission to its completion, itself included. On that share the job runs from
//! submission to end with no wait, no restart, packed on as few nodes as possible, at the
//! goodput-optimal batch size of the catalogued model whatever the run's own batching was, so that
//! every policy is measured with the same yardstick. Where accelerator types differ, the share is
//! of each type alike, so its speed is the mean over the cluster's accelerators.
//!
//! Shares are fractions: between whole numbers of accelerators speed is interpolated linearly (time
//! slicing between the two), below the fewest the job runs on it falls in proportion, above the
//! size where it is fastest it stays.

use goodput_env::cluster::TypeId;
use goodput_env::job::{JobId, WHOLE, Work};
use goodput_env::scenario::Scenario;
use goodput_env::sim::Outcome;

/// Undisturbed run times of a workload's applications at every size.
#[derive(Clone, Debug)]
pub struct IsolatedReference {
    /// By application: progress at the end of each epoch.
    ends: Vec<Vec<f64>>,
    /// By application, by size - 1: seconds until the end of each epoch; `None` where it cannot run
    /// so.
    secs: Vec<Vec<Option<Vec<f64>>>>,
}

impl IsolatedReference {
    /// Adds up the epochs of every application at every size.
    pub fn new(scenario: &Scenario) -> Self {
        let most = scenario.cluster.total_gpus();
        let apps = || scenario.workload.applications.iter().enumerate();
        let secs = apps().map(|(index, app)| {
            let sizes = 1..=app.max_replicas.min(most);
            sizes.map(|gpus| secs_by_epoch(scenario, index as u16, gpus)).collect()
        });
        Self { ends: apps().map(|(_, app)| app.epochs.clone()).collect(), secs: secs.collect() }
    }

    /// Seconds that the whole of application `index` takes on `gpus` packed accelerators.
    pub fn run_secs(&self, index: u16, gpus: u32) -> Option<f64> {
        self.by_epoch(index, gpus)?.last().copied()
    }

    /// Seconds that a job with `work_milli` thousandths of the application's work takes alone on
    /// `gpus` accelerators.
    pub fn job_secs(&self, index: u16, gpus: u32, work_milli: u32) -> Option<f64> {
        let (whole, secs) = (self.run_secs(index, gpus)?, self.by_epoch(index, gpus)?);
        if work_milli == WHOLE {
            return Some(whole);
        }
        let ends = &self.ends[index as usize];
        let work = ends.last()? * f64::from(work_milli) / f64::from(WHOLE);
        // Within the epoch in which it stops it goes at one speed; past the last one as in that.
        let stops = ends.partition_point(|&end| end < work).min(ends.len() - 1);
        let before = |of: &[f64]| stops.checked_sub(1).map_or(0.0, |epoch| of[epoch]);
        let speed = (secs[stops] - before(secs)) / (ends[stops] - before(ends));
        Some(before(secs) + (work - before(ends)) * speed)
    }

    fn by_epoch(&self, index: u16, gpus: u32) -> Option<&[f64]> {
        self.secs.get(index as usize)?.get(gpus.checked_sub(1)? as usize)?.as_deref()
    }
}

fn secs_by_epoch(scenario: &Scenario, index: u16, gpus: u32) -> Option<Vec<f64>> {
    let (mut done, mut secs) = (0.0, 0.0);
    let ends = scenario.workload.applications[index as usize].epochs.iter().enumerate();
    ends.map(|(epoch, &end)| {
        let work = end - done;
        done = end;
        let rate = mean_over_types(scenario, |kind| Some(scenario.speeds.best(index, kind, epoch as u32, gpus)?.rate));
        secs += if rate > 0.0 { work / rate } else { return None };
        Some(secs)
    })
    .collect()
}

/// Mean number of jobs in the system over the life of each job, itself included; `None` for jobs
/// that are not complete.
pub fn jobs_in_system(outcome: &Outcome) -> Vec<Option<f64>> {
    let end = outcome.end.as_millis();
    let mut changes: Vec<(i64, i64)> = Vec::with_capacity(2 * outcome.jobs.len());
    for job in &outcome.jobs {
        changes.push((job.submit.as_millis(), 1));
        changes.push((job.left().map_or(end.max(job.submit.as_millis()), |left| left.as_millis()), -1));
    }
    changes.sort_unstable();
    // Integral of the number of jobs up to each change, job-milliseconds.
    let (mut times, mut integral) = (Vec::with_capacity(changes.len()), Vec::with_capacity(changes.len()));
    let (mut now, mut area, mut present) = (0, 0_i64, 0);
    for (at, step) in changes {
        area += present * (at - now);
        (now, present) = (at, present + step);
        times.push(at);
        integral.push(area);
    }
    // Both ends of a job's life are among the changes, so there always is such an entry.
    let area_at = |millis: i64| integral[times.partition_point(|&at| at < millis)];
    let mean = |submit: i64, finish: i64| (area_at(finish) - area_at(submit)) as f64 / (finish - submit) as f64;
    let of = |job: &goodput_env::sim::JobRecord| {
        let (submit, finish) = (job.submit.as_millis(), job.finish?.as_millis());
        Some(if finish > submit { mean(submit, finish) } else { 1.0 })
    };
    outcome.jobs.iter().map(of).collect()
}

/// Mean steps per second of a job of a class with so many steps, on a share of each accelerator type alike; `None`
/// where it runs on none.
pub fn steps_per_sec(scenario: &Scenario, class: u16, steps: f64) -> Option<f64> {
    let rate = mean_over_types(scenario, |kind| scenario.mean_work_per_sec(class, steps, kind));
    (rate > 0.0).then_some(rate)
}

/// The mean over the cluster's accelerators of a speed by type; nothing runs on a type where it is
/// unknown.
fn mean_over_types(scenario: &Scenario, speed: impl Fn(TypeId) -> Option<f64>) -> f64 {
    let cluster = &scenario.cluster;
    if cluster.types.len() <= 1 {
        return speed(TypeId(0)).unwrap_or(0.0);
    }
    let gpus = |kind| cluster.nodes.iter().filter(|node| node.accelerator == kind).map(|node| node.gpus).sum::<u32>();
    let total: f64 = cluster.type_ids().map(|kind| f64::from(gpus(kind)) * speed(kind).unwrap_or(0.0)).sum();
    total / f64::from(cluster.total_gpus().max(1))
}

/// Seconds each job would take alone on its fair share of the cluster (see the module's page).
/// `None` for jobs that are not complete and for applications without a speed on this cluster.
pub fn isolated_secs(scenario: &Scenario, reference: &IsolatedReference, outcome: &Outcome) -> Vec<Option<f64>> {
    let total = f64::from(scenario.cluster.total_gpus());
    let contention = jobs_in_system(outcome);
    let jobs = outcome.jobs.iter().zip(contention);
    jobs.map(|(job, n)| alone_secs(scenario, reference, job.job, total / n?)).collect()
}

fn alone_secs(scenario: &Scenario, reference: &IsolatedReference, job: JobId, share: f64) -> Option<f64> {
    let spec = &scenario.workload.jobs[job.index()];
    match spec.work {
        Work::Fixed { duration } => {
            let slices = (f64::from(spec.request.gpus) / share).max(1.0);
            Some(duration.as_secs_f64() * slices)
        }
        Work::Steps { class, steps } => {
            let slices = (f64::from(spec.request.gpus) / share).max(1.0);
            Some(steps / steps_per_sec(scenario, class, steps)? * slices)
        }
        Work::Application { index, work_milli } => {
            let sizes = spec.request.min_gpus()..=spec.request.max_gpus();
            let run_secs = |gpus| (gpus, reference.job_secs(index, gpus, work_milli));
            Some(1.0 / speed_at(sizes.map(run_secs), share)?)
        }
    }
}

/// Jobs per second on `share` accelerators, given run times at whole sizes in ascending order.
fn speed_at(sizes: impl Iterator<Item = (u32, Option<f64>)>, share: f64) -> Option<f64> {
    // The origin stands for not running, so that too small a share is sliced in time.
    let (mut below, mut above) = ((0.0, 0.0), None);
    for (gpus, speed) in sizes.filter_map(|(gpus, secs)| Some((f64::from(gpus), secs?.recip()))) {
        // Where more accelerators are slower, the job leaves some of them idle.
        let fastest = speed.max(below.1);
        if gpus > share {
            above = Some((gpus, fastest));
            break;
        }
        below = (gpus, fastest);
    }
    let speed = match above {
        Some((gpus, speed)) => below.1 + (speed - below.1) * (share - below.0) / (gpus - below.0),
        None => below.1,
    };
    (speed > 0.0).then_some(speed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_env::sim::JobRecord;
    use goodput_env::time::SimTime;

    fn job(id: u32, submit: i64, finish: Option<i64>) -> JobRecord {
        JobRecord {
            job: JobId(id),
            submit: SimTime::from_secs(submit),
            start: Some(SimTime::from_secs(submit)),
            finish: finish.map(SimTime::from_secs),
            restarts: 0,
            attained_gpu_millis: 0,
            executed: SimTime::ZERO,
            restarting: SimTime::ZERO,
            faults: Default::default(),
            refused: None,
        }
    }

    #[test]
    fn contention_is_averaged_over_a_jobs_own_life() {
        // A is there from 0 to 10, B from 5 to 15, C from 8 on and never done.
        let jobs = vec![job(0, 0, Some(10)), job(1, 5, Some(15)), job(2, 8, None)];
        let outcome = Outcome { jobs, end: SimTime::from_secs(20), truncated: true, ..Outcome::default() };
        // A: 5 s alone, 3 s with B, 2 s with both. B: 3 s with A, 2 s with both, 5 s with C.
        assert_eq!(
            jobs_in_system(&outcome),
            vec![Some((5.0 + 6.0 + 6.0) / 10.0), Some((6.0 + 6.0 + 10.0) / 10.0), None]
        );
    }

    #[test]
    fn speed_between_and_outside_sizes() {
        // 2 GPUs take 100 s, 4 take 50 s, 6 are slower than 4.
        let sizes = || [(1, None), (2, Some(100.0)), (4, Some(50.0)), (6, Some(80.0))].into_iter();
        assert_eq!(speed_at(sizes(), 1.0), Some(0.005));
        assert_eq!(speed_at(sizes(), 2.0), Some(0.01));
        assert_eq!(speed_at(sizes(), 3.0), Some(0.015));
        assert_eq!(speed_at(sizes(), 5.0), Some(0.02));
        assert_eq!(speed_at(sizes(), 64.0), Some(0.02));
        assert_eq!(speed_at(std::iter::empty(), 2.0), None);
    }
}
