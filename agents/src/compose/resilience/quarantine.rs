//! Nodes that fail again and again are left alone for a while.
//!
//! A few nodes cause far more than their share of failures: taking 1 to 2 % of nodes out cut failed
//! large jobs from 14 to 4 % on Meta's research clusters (Kokolis et al., HPCA'25, "lemon nodes").
//! A repair does not tell a lemon from an unlucky node; its record does.

use goodput_env::plan::Plan;
use goodput_env::policy::{Policy, Scope};
use goodput_env::scenario::{Batching, Information};
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, Restriction};

use super::earlier;

/// A policy that does not see nodes with too many failures.
pub struct Quarantine {
    inner: Box<dyn Policy>,
    /// Failures within `window` that are too many.
    failures: usize,
    window: SimTime,
    /// Time for which a node is left alone.
    hold: SimTime,
    /// Most nodes left alone at once, as a share of all.
    most: f64,
    /// By node: accelerators in service when last seen, times of recent failures, and until when it
    /// is left alone.
    nodes: Vec<Node>,
    wake: Option<SimTime>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    in_service: u32,
    failed: Vec<SimTime>,
    until: SimTime,
}

impl std::fmt::Debug for Quarantine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Quarantine").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

impl Quarantine {
    /// Leaves a node alone for `hold` once it has failed `failures` times within `window`, but
    /// never more than a tenth of all nodes.
    pub fn new(inner: Box<dyn Policy>, failures: usize, window: SimTime, hold: SimTime) -> Self {
        Self { inner, failures, window, hold, most: 0.1, nodes: Vec::new(), wake: None }
    }

    /// Nodes left alone at `now`.
    pub fn excluded(&self, now: SimTime) -> impl Iterator<Item = usize> + '_ {
        self.nodes.iter().enumerate().filter(move |(_, node)| node.until > now).map(|(at, _)| at)
    }

    /// Takes note of failures since the last look.
    fn look(&mut self, view: &ClusterView<'_>) {
        let (now, machines) = (view.now, &view.cluster().nodes);
        // At the first look there is no earlier number of accelerators to compare with.
        let known = !self.nodes.is_empty();
        self.nodes.resize(machines.len(), Node::default());
        let room = (self.most * machines.len() as f64) as usize;
        let mut excluded = self.excluded(now).count();
        for (node, machine) in self.nodes.iter_mut().zip(machines) {
            let failed = known && machine.gpus < node.in_service;
            node.in_service = machine.gpus;
            if !failed {
                continue;
            }
            node.failed.retain(|&at| at + self.window > now);
            node.failed.push(now);
            // At least one node may be excluded, however small the cluster.
            if node.failed.len() >= self.failures && node.until <= now && excluded < room.max(1) {
                node.until = now + self.hold;
                excluded += 1;
            }
        }
    }
}

impl Policy for Quarantine {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.look(view);
        let now = view.now;
        self.wake = self.nodes.iter().map(|node| node.until).filter(|&until| until > now).min();
        if self.wake.is_none() {
            return self.inner.decide(view);
        }
        // What jobs still hold there stays theirs; nothing new is put there.
        let mut part = Restriction::of(view);
        for at in self.excluded(now) {
            part.cluster.nodes[at].gpus -= part.free[at].min(part.cluster.nodes[at].gpus);
            part.free[at] = 0;
        }
        self.inner.decide(&view.within(&part))
    }

    fn wake_at(&self) -> Option<SimTime> {
        earlier(self.wake, self.inner.wake_at())
    }

    fn scope(&self) -> Scope {
        self.inner.scope()
    }

    fn batching(&self) -> Batching {
        self.inner.batching()
    }

    fn information(&self) -> Information {
        self.inner.information()
    }

    fn needs(&self) -> Information {
        self.inner.needs()
    }
}
