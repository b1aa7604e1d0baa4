//! The cycle of one pod through the extension points.

use std::fmt;

use goodput_env::cluster::NodeId;
use goodput_env::job::JobId;
use goodput_env::time::SimTime;

use super::{Filtered, Permit, Plugin, Pod, PodId, Queue, QueueSort, Remedy, Snapshot};

/// Outcome of scheduling a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduled {
    /// The pod runs on this node.
    Bound(NodeId),
    /// The place of the pod is reserved; Permit holds it back.
    Waiting(NodeId),
    /// The pod fits nowhere, or a plugin refused it.
    Unschedulable,
}

struct Enabled {
    plugin: Box<dyn Plugin>,
    weight: i64,
}

struct Waiting {
    pod: Pod,
    node: NodeId,
    until: SimTime,
}

/// A profile: the plugins in their order, and the pods that Permit holds back.
pub struct Framework {
    sort: Box<dyn QueueSort>,
    plugins: Vec<Enabled>,
    waiting: Vec<Waiting>,
    bound: Vec<(PodId, NodeId)>,
    evicted: Vec<JobId>,
}

impl fmt::Debug for Framework {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (plugins, waiting) = (self.plugins.len(), self.waiting.len());
        write!(f, "Framework {{ {plugins} plugins, {waiting} pods wait .. }}")
    }
}

impl Framework {
    /// A profile without plugins.
    pub fn new(sort: impl QueueSort + 'static) -> Self {
        let (plugins, waiting) = (Vec::new(), Vec::new());
        Self { sort: Box::new(sort), plugins, waiting, bound: Vec::new(), evicted: Vec::new() }
    }

    /// With a further plugin; its scores count `weight` times.
    #[must_use]
    pub fn with(mut self, plugin: impl Plugin + 'static, weight: i64) -> Self {
        self.plugins.push(Enabled { plugin: Box::new(plugin), weight });
        self
    }

    /// Adds a pod to `queue` where it belongs.
    pub fn enqueue(&self, queue: &mut Queue, pod: Pod) {
        queue.push(&*self.sort, pod);
    }

    /// The next pod of `queue`.
    pub fn dequeue(&self, queue: &mut Queue) -> Option<Pod> {
        queue.pop(&*self.sort)
    }

    /// Pods bound since this was asked last, in order.
    pub fn take_bound(&mut self) -> Vec<(PodId, NodeId)> {
        std::mem::take(&mut self.bound)
    }

    /// Jobs evicted since this was asked last, in order.
    pub fn take_evicted(&mut self) -> Vec<JobId> {
        std::mem::take(&mut self.evicted)
    }

    /// Pods that hold a reservation and wait.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = (&Pod, NodeId)> {
        self.waiting.iter().map(|waiting| (&waiting.pod, waiting.node))
    }

    /// Takes one pod as far as it gets.
    pub fn schedule(&mut self, snapshot: &mut Snapshot, pod: &Pod) -> Scheduled {
        let mut found = self.find(snapshot, pod);
        if let Err(resolvable) = &found {
            let remedies = self.plugins.iter_mut();
            let mut remedies = remedies.map(|enabled| enabled.plugin.post_filter(snapshot, pod, resolvable));
            let remedy = remedies.find(|remedy| *remedy != Remedy::None);
            match remedy {
                Some(Remedy::Evict(jobs)) => {
                    jobs.iter().for_each(|&job| self.evict(snapshot, job));
                    found = self.find(snapshot, pod);
                }
                Some(Remedy::RejectJob) => self.reject(snapshot, pod.id.job),
                Some(Remedy::None) | None => {}
            }
        }
        match found {
            Ok(node) => self.reserve(snapshot, pod, node),
            Err(_) => Scheduled::Unschedulable,
        }
    }

    /// Releases the places of pods that have waited too long, and of the other waiting pods of
    /// their jobs.
    pub fn expire(&mut self, snapshot: &mut Snapshot) {
        let now = snapshot.now;
        let jobs: Vec<JobId> =
            self.waiting.iter().filter(|waiting| waiting.until <= now).map(|waiting| waiting.pod.id.job).collect();
        jobs.into_iter().for_each(|job| self.reject(snapshot, job));
    }

    /// Releases what is reserved for the waiting pods of `job`.
    pub fn reject(&mut self, snapshot: &mut Snapshot, job: JobId) {
        while let Some(at) = self.waiting.iter().rposition(|waiting| waiting.pod.id.job == job) {
            let Waiting { pod, node, .. } = self.waiting.remove(at);
            self.unreserve(snapshot, &pod, node);
        }
    }

    /// The best node, or those on which eviction might help.
    fn find(&mut self, snapshot: &Snapshot, pod: &Pod) -> Result<NodeId, Vec<NodeId>> {
        let passed = self.plugins.iter_mut().all(|enabled| enabled.plugin.pre_filter(snapshot, pod));
        let (mut feasible, mut resolvable) = (Vec::new(), Vec::new());
        for node in NodeId::first(snapshot.nodes.len()) {
            let worst = self.plugins.iter().map(|enabled| enabled.plugin.filter(snapshot, pod, node)).max();
            match worst.unwrap_or(Filtered::Fits) {
                Filtered::Fits => feasible.push(node),
                Filtered::Unschedulable => resolvable.push(node),
                Filtered::Unresolvable => {}
            }
        }
        if !passed || feasible.is_empty() {
            // PreFilter refuses without a node, so eviction on any that is not ruled out might
            // help.
            feasible.append(&mut resolvable);
            feasible.sort_unstable();
            return Err(feasible);
        }
        let mut totals = vec![0_i64; feasible.len()];
        for Enabled { plugin, weight } in &self.plugins {
            let scores: Option<Vec<i64>> = feasible.iter().map(|&node| plugin.score(snapshot, pod, node)).collect();
            let Some(mut scores) = scores else { continue };
            plugin.normalise(&mut scores);
            totals.iter_mut().zip(scores).for_each(|(total, score)| *total += weight * score);
        }
        let best = totals.iter().zip(&feasible).max_by_key(|(total, node)| (**total, std::cmp::Reverse(**node)));
        best.map(|(_, &node)| node).ok_or_else(Vec::new)
    }

    fn reserve(&mut self, snapshot: &mut Snapshot, pod: &Pod, node: NodeId) -> Scheduled {
        // The place is taken before plugins are asked, so a refusal always has one to give back.
        snapshot.nodes[node.index()].free -= pod.gpus;
        let refused = self.plugins.iter_mut().position(|enabled| !enabled.plugin.reserve(snapshot, pod, node));
        if let Some(refused) = refused {
            self.unreserve_first(snapshot, pod, node, refused);
            return Scheduled::Unschedulable;
        }
        let mut wait = None;
        for Enabled { plugin, .. } in &mut self.plugins {
            match plugin.permit(snapshot, pod, node) {
                Permit::Allow => {}
                Permit::AllowJob => {
                    let job = pod.id.job;
                    let (allowed, others) =
                        std::mem::take(&mut self.waiting).into_iter().partition(|waiting| waiting.pod.id.job == job);
                    self.waiting = others;
                    let allowed: Vec<Waiting> = allowed;
                    for Waiting { pod, node, .. } in allowed {
                        self.bind(snapshot, &pod, node);
                    }
                    return self.bind(snapshot, pod, node);
                }
                Permit::Wait(most) => wait = Some(wait.map_or(most, |least: SimTime| least.min(most))),
                Permit::Reject => {
                    self.unreserve(snapshot, pod, node);
                    return Scheduled::Unschedulable;
                }
            }
        }
        match wait {
            Some(most) => {
                self.waiting.push(Waiting { pod: pod.clone(), node, until: snapshot.now + most });
                Scheduled::Waiting(node)
            }
            None => self.bind(snapshot, pod, node),
        }
    }

    fn bind(&mut self, snapshot: &mut Snapshot, pod: &Pod, node: NodeId) -> Scheduled {
        if !self.plugins.iter_mut().all(|enabled| enabled.plugin.pre_bind(pod, node)) {
            self.unreserve(snapshot, pod, node);
            return Scheduled::Unschedulable;
        }
        let _ = self.plugins.iter_mut().any(|enabled| enabled.plugin.bind(pod, node));
        self.bound.push((pod.id, node));
        self.plugins.iter_mut().for_each(|enabled| enabled.plugin.post_bind(pod, node));
        Scheduled::Bound(node)
    }

    fn unreserve(&mut self, snapshot: &mut Snapshot, pod: &Pod, node: NodeId) {
        self.unreserve_first(snapshot, pod, node, self.plugins.len());
    }

    /// Releases the place of `pod`, where only the first `plugins` had reserved it.
    fn unreserve_first(&mut self, snapshot: &mut Snapshot, pod: &Pod, node: NodeId, plugins: usize) {
        snapshot.nodes[node.index()].free += pod.gpus;
        for enabled in self.plugins[..plugins].iter_mut().rev() {
            enabled.plugin.unreserve(snapshot, pod, node);
        }
    }

    /// Takes every part of a running job off its nodes.
    fn evict(&mut self, snapshot: &mut Snapshot, job: JobId) {
        for node in 0..snapshot.nodes.len() {
            while let Some(at) = snapshot.nodes[node].residents.iter().position(|resident| resident.job == job) {
                let resident = snapshot.nodes[node].residents.remove(at);
                snapshot.nodes[node].free += resident.gpus;
                for enabled in &mut self.plugins {
                    enabled.plugin.evicted(snapshot, &resident, NodeId::at(node));
                }
            }
        }
        self.evicted.push(job);
    }
}
