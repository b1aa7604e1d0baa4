//! Reserved capacity for key jobs.
//!
//! Some nodes are for key jobs alone. When one of them fails, another node takes its place in the
//! same decision and the jobs on it make way; so key jobs always find the capacity they were
//! promised, as long as that much is in service at all, and whatever other jobs do (crash in loops,
//! flood the queue) does not reach them. The price is capacity that idles when no key job wants it.

use goodput_env::cluster::Cluster;
use goodput_env::job::{JobId, JobRequest};
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::{Policy, Scope};
use goodput_env::scenario::{Batching, Information};
use goodput_env::state::FreeNodes;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, Restriction};

use super::{ReserveTerms, earlier};

/// Two policies that share a cluster: one for key jobs on reserved nodes, one for all others on the
/// rest.
pub struct Reserve {
    key: Box<dyn Policy>,
    rest: Box<dyn Policy>,
    terms: ReserveTerms,
    /// Accelerators kept free, by node.
    reserved: Vec<bool>,
    /// Times at which preempted jobs are shown to their policy again.
    again: Option<SimTime>,
}

impl std::fmt::Debug for Reserve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reserve").field("terms", &self.terms).finish_non_exhaustive()
    }
}

impl Reserve {
    /// Nodes that the policy `key` has for key jobs, beside the policy `rest` for all others.
    pub fn new(key: Box<dyn Policy>, rest: Box<dyn Policy>, terms: ReserveTerms) -> Self {
        Self { key, rest, terms, reserved: Vec::new(), again: None }
    }

    /// Whether a job runs on the reserve: one that cannot fit there waits with all others.
    fn is_key(&self, view: &ClusterView<'_>, job: &JobRequest) -> bool {
        let of_tenant = || {
            let tenant = view.tenants().get(job.tenant);
            tenant.is_some_and(|tenant| self.terms.tenants.contains(&tenant.name))
        };
        let named = self.terms.priority.is_some_and(|priority| job.priority >= priority) || of_tenant();
        named && job.min_gpus() <= self.terms.gpus
    }

    /// Drafts nodes until enough is reserved, the ones with most free first; lets go of those that
    /// are not needed and have no key job.
    fn draft(&mut self, view: &ClusterView<'_>) {
        let nodes = &view.cluster().nodes;
        self.reserved.resize(nodes.len(), false);
        for (reserved, node) in self.reserved.iter_mut().zip(nodes) {
            // A node that is down is no reserve, so another one is drafted below.
            *reserved &= node.gpus > 0;
        }
        let mut busy = vec![false; nodes.len()];
        for job in view.jobs().filter(|job| self.is_key(view, job.request())) {
            job.state.placement.slices().iter().for_each(|slice| busy[slice.node.index()] = true);
        }
        let mut have: u32 =
            nodes.iter().zip(&self.reserved).filter(|(_, held)| **held).map(|(node, _)| node.gpus).sum();
        while have < self.terms.gpus {
            let candidates = (0..nodes.len()).filter(|&at| !self.reserved[at] && nodes[at].gpus > 0);
            let Some(at) = candidates.max_by_key(|&at| (view.free()[at], std::cmp::Reverse(at))) else { break };
            self.reserved[at] = true;
            have += nodes[at].gpus;
        }
        // Nodes drafted as replacements go back once the failed ones are repaired.
        for at in (0..nodes.len()).rev() {
            if self.reserved[at] && !busy[at] && have - nodes[at].gpus >= self.terms.gpus {
                self.reserved[at] = false;
                have -= nodes[at].gpus;
            }
        }
    }
}

impl Policy for Reserve {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.draft(view);
        let mut plan = Plan::keep();
        let mut free = view.free().to_vec();
        let (mut key, mut rest) = (Vec::new(), Vec::new());
        self.again = None;
        for job in view.jobs() {
            if self.is_key(view, job.request()) {
                key.push(job.id());
            } else if job.state.placement.slices().iter().any(|slice| self.reserved[slice.node.index()]) {
                job.state.frees().iter().for_each(|slice| free[slice.node.index()] += slice.gpus);
                plan.set(job.id(), Placement::none());
                self.again = Some(view.now + SimTime::from_secs(1));
            } else {
                rest.push(job.id());
            }
        }
        let part = |jobs: Vec<JobId>, nodes: &[bool]| Restriction {
            cluster: only(view.cluster(), |at| nodes[at]),
            free: FreeNodes::new(view.cluster(), &open_to(&free, nodes)),
            jobs,
        };
        let others: Vec<bool> = self.reserved.iter().map(|reserved| !reserved).collect();
        let (key, rest) = (part(key, &self.reserved), part(rest, &others));
        if !key.jobs.is_empty() {
            let inner = self.key.decide(&view.within(&key));
            plan.changes.extend(inner.changes);
            plan.refuse.extend(inner.refuse);
        }
        if !rest.jobs.is_empty() {
            let inner = self.rest.decide(&view.within(&rest));
            plan.changes.extend(inner.changes);
            plan.refuse.extend(inner.refuse);
        }
        plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        earlier(self.again, earlier(self.key.wake_at(), self.rest.wake_at()))
    }

    fn scope(&self) -> Scope {
        self.rest.scope()
    }

    fn round(&self) -> Option<SimTime> {
        self.rest.round()
    }

    fn batching(&self) -> Batching {
        self.rest.batching()
    }

    fn information(&self) -> Information {
        self.rest.information()
    }

    fn needs(&self) -> Information {
        let (key, rest) = (self.key.needs(), self.rest.needs());
        if key.allows(rest) { key } else { rest }
    }
}

/// `cluster` with the accelerators of the nodes that `stays` names.
fn only(cluster: &Cluster, stays: impl Fn(usize) -> bool) -> Cluster {
    let mut part = cluster.clone();
    for (at, node) in part.nodes.iter_mut().enumerate() {
        node.gpus *= u32::from(stays(at));
    }
    part
}

/// Free accelerators of open nodes, and none of others.
fn open_to(free: &[u32], nodes: &[bool]) -> Vec<u32> {
    free.iter().zip(nodes).map(|(&free, &open)| if open { free } else { 0 }).collect()
}
