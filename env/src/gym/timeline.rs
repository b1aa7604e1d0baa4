//! Nodes over time: which job held which node, from when to when.

use std::collections::BTreeMap;

use crate::cluster::NodeId;
use crate::job::JobId;
use crate::sim::Simulator;
use crate::time::SimTime;

/// Stay of a job on a node with a number of accelerators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// Job that holds the accelerators.
    pub job: JobId,
    /// Node of the accelerators.
    pub node: NodeId,
    /// Number of accelerators.
    pub gpus: u32,
    /// Moment from which the job holds them.
    pub from: SimTime,
    /// Moment at which the job leaves; `None` while it stays.
    pub to: Option<SimTime>,
}

/// Stays of the jobs of one episode, and the number of jobs that wait, at the decision points of the simulator.
///
/// Where a fault ends a stay between two decision points, the stay lasts to the later one.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    stays: Vec<Stay>,
    /// Index of the stay that has not ended, by job and node.
    open: BTreeMap<(JobId, NodeId), usize>,
    waiting: Vec<(SimTime, usize)>,
}

impl Timeline {
    /// Stays in the order in which they began.
    pub fn stays(&self) -> &[Stay] {
        &self.stays
    }

    /// Number of jobs that hold nothing from a moment on, in order of time.
    pub fn waiting(&self) -> &[(SimTime, usize)] {
        &self.waiting
    }

    /// Notes what every job holds now.
    pub(super) fn note(&mut self, simulator: &Simulator) {
        let (now, view) = (simulator.now(), simulator.view());
        let mut held = BTreeMap::new();
        let mut waiting = 0;
        for job in view.jobs() {
            let slices = job.state.placement.slices();
            waiting += usize::from(slices.is_empty());
            held.extend(slices.iter().map(|slice| ((job.id(), slice.node), slice.gpus)));
        }
        let Self { stays, open, .. } = self;
        open.retain(|place, &mut at| {
            let Some(stay) = stays.get_mut(at) else { return false };
            let stays_on = held.get(place) == Some(&stay.gpus);
            if !stays_on {
                // A job that has left did so between two decision points.
                let left = simulator.records().get(place.0.index()).and_then(|record| record.left());
                stay.to = Some(left.unwrap_or(now).min(now));
            }
            stays_on
        });
        for ((job, node), gpus) in held {
            open.entry((job, node)).or_insert_with(|| {
                stays.push(Stay { job, node, gpus, from: now, to: None });
                stays.len() - 1
            });
        }
        match self.waiting.last_mut() {
            Some(last) if last.0 == now => last.1 = waiting,
            Some(last) if last.1 == waiting => {}
            _ => self.waiting.push((now, waiting)),
        }
    }
}
