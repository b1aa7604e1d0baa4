//! Ends of jobs that the job controller may not count.
//!
//! The job controller takes its finalizer off a pod before it deletes the pod, and does so by what its cache says
//! (`deleteJobPods` of Kubernetes 1.36). A pod that ends well between the look and the deletion is not counted, and
//! its Job would start anew. The watch of pods shows the end of every pod, also with the event that deletes it, so it
//! is kept here. The daemon ends such a Job instead of starting it again.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Pod;

use super::jobs::JobRead;
use super::pods::PodRead;

/// Attempts of jobs of which the pod of rank 0 has ended well, by the unique id of the Job.
#[derive(Clone, Debug, Default)]
pub(super) struct PodEnds(Arc<Mutex<BTreeSet<(String, u32)>>>);

impl PodEnds {
    /// Keeps the end of a pod, where it is the end of an attempt.
    pub fn see(&self, pod: &Pod) {
        // Most pods run, and most belong to others.
        if pod.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Succeeded") {
            return;
        }
        if let PodRead { owner: Some(owner), attempt: Some(attempt), index: Some(0), .. } = PodRead::of(pod, "") {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((owner, attempt));
        }
    }

    /// Marks the jobs of which the last attempt has ended well, and forgets jobs that are gone.
    pub fn mark<'a>(&self, jobs: impl Iterator<Item = &'a mut JobRead>) {
        let mut ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = BTreeSet::new();
        for job in jobs {
            let attempt = job.facts.starts.checked_sub(1);
            job.ended_well = job.rank_0_decides && attempt.is_some_and(|at| ends.contains(&(job.uid.clone(), at)));
            known.insert(job.uid.clone());
        }
        ends.retain(|(job, _)| known.contains(job));
    }
}
