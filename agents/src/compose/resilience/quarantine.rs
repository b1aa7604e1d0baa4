//! Nodes that fail again and again are left alone for a while.
//!
//! A few nodes cause far more than their share of failures: taking 1 to 2 % of nodes out cut failed
//! large jobs from 14 to 4 % on Meta's research clusters (Kokolis et al., HPCA'25, "lemon nodes").
//! A repair does not tell a lemon from an unlucky node; its record does.

use goodput_env::cluster::NodeId;
use goodput_env::plan::Plan;
use goodput_env::policy::{ExpectedLoad, Look, Policy, Scope};
use goodput_env::scenario::{Batching, Information};
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, Restriction};

use super::{QuarantineTerms, earlier};

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
    /// By node: whether it worked when last seen, times of recent failures, and until when it is left alone.
    nodes: Vec<Node>,
    wake: Option<SimTime>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    works: bool,
    failed: Vec<SimTime>,
    until: SimTime,
}

impl std::fmt::Debug for Quarantine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Quarantine").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

impl Quarantine {
    /// Quarantine around the policy `inner`.
    pub fn new(inner: Box<dyn Policy>, terms: QuarantineTerms) -> Self {
        let hours = |hours: f64| SimTime::from_secs_f64(3600.0 * hours);
        let (window, hold, most) = (hours(terms.window_hours), hours(terms.hold_hours), terms.most_percent / 100.0);
        Self { inner, failures: terms.failures, window, hold, most, nodes: Vec::new(), wake: None }
    }

    /// Nodes left alone at `now`.
    pub fn excluded(&self, now: SimTime) -> impl Iterator<Item = usize> + '_ {
        self.nodes.iter().enumerate().filter(move |(_, node)| node.until > now).map(|(at, _)| at)
    }

    /// Takes note of failures since the last look.
    fn look(&mut self, view: &ClusterView<'_>) {
        let (now, count) = (view.now, view.cluster().nodes.len());
        self.nodes.resize(count, Node::default());
        let room = (self.most * count as f64) as usize;
        let mut excluded = self.excluded(now).count();
        for (at, node) in self.nodes.iter_mut().enumerate() {
            // A node that is drained has no free accelerators either, and has not failed.
            let works = view.healthy(NodeId::at(at));
            let failed = node.works && !works;
            node.works = works;
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
            let node = NodeId::at(at);
            part.cluster.nodes[at].gpus -= part.free.on(node).min(part.cluster.nodes[at].gpus);
            part.free.set(node, 0);
        }
        self.inner.decide(&view.within(&part))
    }

    fn wake_at(&self) -> Option<SimTime> {
        earlier(self.wake, self.inner.wake_at())
    }

    fn expected_loads(&self) -> &[ExpectedLoad] {
        self.inner.expected_loads()
    }

    fn last_look(&self) -> Option<&Look> {
        self.inner.last_look()
    }

    fn scope(&self) -> Scope {
        self.inner.scope()
    }

    fn round(&self) -> Option<SimTime> {
        self.inner.round()
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
