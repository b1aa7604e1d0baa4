//! The state of the cluster over time: one row per moment at which anything changed.

use std::collections::BTreeMap;

use goodput_env::cluster::NodeId;
use goodput_env::sim::Outcome;
use goodput_env::time::SimTime;

/// Counts from one moment to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// From when on.
    pub at: SimTime,
    /// Jobs submitted and not complete.
    pub jobs: i64,
    /// Number of these jobs that hold accelerators.
    pub allocated: i64,
    /// Accelerators held by jobs.
    pub gpus: i64,
    /// Accelerators held by replicas of services.
    pub serving: i64,
    /// Inference instances that start or answer.
    pub running: i64,
    /// Inference instances that are protected.
    pub protected: i64,
    /// Free accelerators on nodes that are too full for the widest waiting job.
    pub fragmented: i64,
}

/// The course of a run that logged its allocations, in order of time, one entry a moment.
pub fn moments(outcome: &Outcome) -> Vec<Moment> {
    let mut changes: Vec<(SimTime, [i64; 7])> = Vec::new();
    for job in outcome.jobs.iter().filter(|job| job.submit <= outcome.end) {
        changes.push((job.submit, [1, 0, 0, 0, 0, 0, 0]));
        changes.extend(job.left().map(|left| (left, [-1, 0, 0, 0, 0, 0, 0])));
    }
    let mut held = vec![0_i64; outcome.jobs.len()];
    for change in &outcome.allocations {
        let gpus = i64::from(change.gpus);
        let before = std::mem::replace(&mut held[change.job.index()], gpus);
        changes.push((change.at, [0, i64::from(gpus > 0) - i64::from(before > 0), gpus - before, 0, 0, 0, 0]));
    }
    let mut served: BTreeMap<NodeId, i64> = BTreeMap::new();
    for change in &outcome.serving {
        let gpus = i64::from(change.gpus);
        let before = served.insert(change.node, gpus).unwrap_or(0);
        changes.push((change.at, [0, 0, 0, gpus - before, 0, 0, 0]));
    }
    let mut before = [0; 2];
    for usage in &outcome.instance_usage {
        let now = [i64::from(usage.running), i64::from(usage.protected)];
        changes.push((usage.at, [0, 0, 0, 0, now[0] - before[0], now[1] - before[1], 0]));
        before = now;
    }
    let mut before = 0;
    for change in &outcome.fragments {
        let gpus = i64::from(change.gpus);
        changes.push((change.at, [0, 0, 0, 0, 0, 0, gpus - before]));
        before = gpus;
    }
    changes.sort_by_key(|&(at, _)| at);
    let (mut course, mut now): (Vec<Moment>, Moment) = (Vec::new(), Moment::default());
    for (at, [jobs, allocated, gpus, serving, running, protected, fragmented]) in changes {
        now = Moment {
            at,
            jobs: now.jobs + jobs,
            allocated: now.allocated + allocated,
            gpus: now.gpus + gpus,
            serving: now.serving + serving,
            running: now.running + running,
            protected: now.protected + protected,
            fragmented: now.fragmented + fragmented,
        };
        match course.last_mut().filter(|last| last.at == at) {
            Some(last) => *last = now,
            None => course.push(now),
        }
    }
    course
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_env::job::JobId;
    use goodput_env::sim::{AllocationChange, JobRecord};

    #[test]
    fn counts_change_once_a_moment_and_end_at_zero() {
        let secs = SimTime::from_secs;
        let job = |id: u32, submit, finish| JobRecord {
            job: JobId(id),
            submit: secs(submit),
            start: Some(secs(submit)),
            finish: Some(secs(finish)),
            restarts: 0,
            attained_gpu_millis: 0,
            executed: SimTime::ZERO,
            restarting: SimTime::ZERO,
            faults: Default::default(),
            refused: None,
        };
        let change = |at, id: u32, gpus| AllocationChange { at: secs(at), job: JobId(id), gpus, nodes: 1 };
        let outcome = Outcome {
            jobs: vec![job(0, 0, 20), job(1, 10, 30)],
            allocations: vec![change(0, 0, 4), change(10, 0, 2), change(10, 1, 2), change(20, 0, 0), change(30, 1, 0)],
            end: secs(30),
            ..Outcome::default()
        };
        let counts: Vec<_> =
            moments(&outcome).iter().map(|m| (m.at.as_millis() / 1000, m.jobs, m.allocated, m.gpus)).collect();
        assert_eq!(counts, [(0, 1, 1, 4), (10, 2, 2, 4), (20, 1, 1, 2), (30, 0, 0, 0)]);
    }
}
