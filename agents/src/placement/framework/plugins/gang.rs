//! Gang scheduling, as the coscheduling plugin does it (kubernetes-sigs/scheduler-plugins, KEP-42):
//! the pods of a job run all together or not at all.
//!
//! A pod waits at Permit until all its companions are reserved, with its place held; the last one
//! lets all of them go. Where one fits nowhere the others give back at once, and where none comes
//! at all, when the time is up: two gangs that hold half of what each needs do not wait for each
//! other forever. A job runs on one type of accelerator.

use std::collections::BTreeMap;

use goodput_env::cluster::{NodeId, TypeId};
use goodput_env::job::JobId;
use goodput_env::time::SimTime;

use crate::placement::framework::{Filtered, Permit, Plugin, Pod, Remedy, Snapshot};

/// Plugin of gang scheduling.
#[derive(Clone, Debug)]
pub struct Gang {
    timeout: SimTime,
    /// Whether the whole job gives up when one of its pods fits nowhere, rather than at the end of
    /// the time.
    eager: bool,
    /// By job: pods reserved and not bound, and their type of accelerator.
    reserved: BTreeMap<JobId, (u32, TypeId)>,
}

impl Gang {
    /// Gives up at once where a pod fits nowhere; waits at most `timeout` for pods that are not
    /// there.
    pub fn new(timeout: SimTime) -> Self {
        Self { timeout, eager: true, reserved: BTreeMap::new() }
    }

    /// Holds what is reserved for `timeout` whatever happens.
    pub fn patient(timeout: SimTime) -> Self {
        Self { eager: false, ..Self::new(timeout) }
    }

    fn reserved(&self, job: JobId) -> u32 {
        self.reserved.get(&job).map_or(0, |(pods, _)| *pods)
    }
}

impl Plugin for Gang {
    /// One type must have enough left for all that are missing.
    fn pre_filter(&mut self, snapshot: &Snapshot, pod: &Pod) -> bool {
        if pod.members <= 1 || !self.eager {
            return true;
        }
        let missing = (pod.members - self.reserved(pod.id.job)) * pod.gpus;
        match self.reserved.get(&pod.id.job) {
            Some((_, kind)) => snapshot.free_of(*kind) >= missing,
            None => snapshot.kinds().into_iter().any(|kind| snapshot.free_of(kind) >= missing),
        }
    }

    fn filter(&self, snapshot: &Snapshot, pod: &Pod, node: NodeId) -> Filtered {
        if pod.members <= 1 {
            return Filtered::Fits;
        }
        let kind = snapshot.node(node).kind;
        match self.reserved.get(&pod.id.job) {
            // No eviction would help on another type than the one chosen.
            Some((_, chosen)) if *chosen != kind => Filtered::Unresolvable,
            Some(_) => Filtered::Fits,
            None if self.eager && snapshot.free_of(kind) < pod.members * pod.gpus => Filtered::Unschedulable,
            None => Filtered::Fits,
        }
    }

    fn post_filter(&mut self, _snapshot: &Snapshot, pod: &Pod, _resolvable: &[NodeId]) -> Remedy {
        if self.eager && pod.members > 1 { Remedy::RejectJob } else { Remedy::None }
    }

    fn reserve(&mut self, snapshot: &Snapshot, pod: &Pod, node: NodeId) -> bool {
        self.reserved.entry(pod.id.job).or_insert((0, snapshot.node(node).kind)).0 += 1;
        true
    }

    fn unreserve(&mut self, _snapshot: &Snapshot, pod: &Pod, _node: NodeId) {
        if let Some((pods, _)) = self.reserved.get_mut(&pod.id.job) {
            *pods -= 1;
            if *pods == 0 {
                self.reserved.remove(&pod.id.job);
            }
        }
    }

    fn permit(&mut self, _snapshot: &Snapshot, pod: &Pod, _node: NodeId) -> Permit {
        if self.reserved(pod.id.job) >= pod.members { Permit::AllowJob } else { Permit::Wait(self.timeout) }
    }

    /// A job is bound as a whole, so nothing of it is left to count.
    fn post_bind(&mut self, pod: &Pod, _node: NodeId) {
        self.reserved.remove(&pod.id.job);
    }
}
