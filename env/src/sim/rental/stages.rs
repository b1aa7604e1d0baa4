//! NodeStage of every rented node, and what has been paid for.

use crate::cluster::NodeId;
use crate::model::Rental;
use crate::model::autoscale::Autoscaler;
use crate::state::ClusterState;
use crate::time::SimTime;

/// NodeStage of the rental of one node of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeStage {
    /// A node that is not rented.
    Vacant,
    /// Ordered at `since`; in service from `ready` on.
    Starting { since: SimTime, ready: SimTime },
    /// In service until it is given back, or until its notice, which never comes to a node on demand.
    InService { since: SimTime, notice: SimTime },
    /// A spot node that is taken back: out of service, and paid until it is `gone`.
    Noticed { since: SimTime, gone: SimTime },
}

/// Number of rented nodes from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeChange {
    /// Moment of the change.
    pub at: SimTime,
    /// Nodes that are paid: those that start, those in service, and spot nodes that are taken back.
    pub nodes: u32,
}

/// Time of rented nodes during a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RentalRecord {
    /// Time of nodes on demand, from their orders to their ends, node-milliseconds.
    pub on_demand_millis: i64,
    /// Time of spot nodes, node-milliseconds.
    pub spot_millis: i64,
    /// Nodes that were ordered after the start of the run.
    pub ordered: u32,
    /// Nodes that were given back.
    pub given_back: u32,
    /// Spot nodes that the provider took back.
    pub taken_back: u32,
    /// Changes of the number of rented nodes in order of time, the number at the start first.
    pub sizes: Vec<SizeChange>,
}

/// Rented nodes of a run.
#[derive(Clone, Debug)]
pub(in crate::sim) struct RunRental {
    pub(super) terms: Rental,
    stages: Vec<NodeStage>,
    /// By node: rentals so far.
    rentals: Vec<u32>,
    /// Number of nodes that are to be rented.
    pub(super) wanted: u32,
    /// Controller of that number; `None` where it is fixed.
    pub(super) scaler: Option<Autoscaler>,
    pub(super) next_sample: SimTime,
    /// Moment of the first stage that ends.
    next_stage: SimTime,
    record: RentalRecord,
}

impl RunRental {
    /// Rental at time zero: the fewest nodes are in service.
    pub fn new(terms: &Rental, state: &mut ClusterState) -> Self {
        let nodes = state.cluster.nodes.len() as u32;
        let first = terms.min_nodes.min(nodes);
        let cluster = std::sync::Arc::make_mut(&mut state.cluster);
        for node in NodeId::first(nodes as usize).skip(first as usize) {
            cluster.nodes[node.index()].gpus = 0;
            state.idle.set(node, 0);
            state.down[node.index()] = 1;
        }
        let scaler = terms.rule.measure().map(|_| Autoscaler::new(terms.bounds(nodes)));
        let mut stages = vec![NodeStage::Vacant; nodes as usize];
        stages[..first as usize].fill(NodeStage::InService { since: SimTime::ZERO, notice: SimTime::NEVER });
        let wanted = if scaler.is_some() { first } else { nodes };
        let record =
            RentalRecord { sizes: vec![SizeChange { at: SimTime::ZERO, nodes: first }], ..RentalRecord::default() };
        let mut rental = Self {
            terms: *terms,
            stages,
            rentals: vec![0; nodes as usize],
            wanted,
            next_sample: if scaler.is_some() { terms.interval() } else { SimTime::NEVER },
            scaler,
            next_stage: SimTime::NEVER,
            record,
        };
        rental.order(SimTime::ZERO);
        rental
    }

    pub(super) fn stage(&self, node: NodeId) -> NodeStage {
        self.stages[node.index()]
    }

    pub fn in_service(&self, node: NodeId) -> bool {
        matches!(self.stages[node.index()], NodeStage::InService { .. })
    }

    /// Number of nodes in service.
    pub(super) fn serving(&self) -> u32 {
        self.stages.iter().filter(|stage| matches!(stage, NodeStage::InService { .. })).count() as u32
    }

    pub fn awaits(&self) -> bool {
        self.stages.iter().any(|stage| matches!(stage, NodeStage::Starting { .. }))
    }

    /// Moment at which a stage ends or a sample is due.
    pub fn next(&self) -> SimTime {
        self.next_stage.min(self.next_sample)
    }

    /// A node that has started is in service.
    pub(super) fn enter_service(&mut self, node: NodeId, since: SimTime, now: SimTime, seed: u64) {
        let at = node.index();
        let life = self.terms.spot_of(node.0).map(|spot| spot.lifetime(seed, node.0, self.rentals[at]));
        let notice = life.map_or(SimTime::NEVER, |life| now.saturating_add(life));
        self.set(node, NodeStage::InService { since, notice }, now);
    }

    /// The provider takes a spot node back. Returns the time that is left until it is gone.
    pub(super) fn notify(&mut self, node: NodeId, since: SimTime, now: SimTime) -> SimTime {
        let secs = self.terms.spot_of(node.0).map_or(0.0, |spot| spot.notice_secs);
        let left = SimTime::from_secs_f64(secs);
        self.record.taken_back += 1;
        self.set(node, NodeStage::Noticed { since, gone: now.saturating_add(left) }, now);
        left
    }

    /// A node is no longer rented and paid.
    pub(super) fn leave(&mut self, node: NodeId, now: SimTime) {
        let stage = self.stages[node.index()];
        self.record.given_back += u32::from(!matches!(stage, NodeStage::Noticed { .. }));
        self.bill(node, now);
        self.set(node, NodeStage::Vacant, now);
    }

    /// Rents vacant nodes, those with the lowest numbers first, until as many start or serve as are wanted.
    pub(super) fn order(&mut self, now: SimTime) {
        let missing = self.wanted.saturating_sub(self.rented());
        let vacant = NodeId::first(self.stages.len()).filter(|node| self.stages[node.index()] == NodeStage::Vacant);
        let vacant: Vec<NodeId> = vacant.take(missing as usize).collect();
        for node in vacant {
            self.rentals[node.index()] += 1;
            self.record.ordered += 1;
            self.set(node, NodeStage::Starting { since: now, ready: now.saturating_add(self.terms.start_up()) }, now);
        }
    }

    /// Nodes to give back, so that no more are rented than are wanted: first those that start, then those with the
    /// fewest accelerators held, the highest number first among equals. The nodes that are always rented stay.
    pub(super) fn to_release(&self, held: impl Fn(NodeId) -> u32) -> Vec<NodeId> {
        let excess = self.rented().saturating_sub(self.wanted);
        let always = self.terms.min_nodes as usize;
        let mut rented: Vec<_> = NodeId::first(self.stages.len())
            .skip(always)
            .filter_map(|node| match self.stages[node.index()] {
                NodeStage::Starting { .. } => Some((false, 0, std::cmp::Reverse(node))),
                NodeStage::InService { .. } => Some((true, held(node), std::cmp::Reverse(node))),
                NodeStage::Vacant | NodeStage::Noticed { .. } => None,
            })
            .collect();
        rented.sort_unstable();
        rented.into_iter().take(excess as usize).map(|(.., node)| node.0).collect()
    }

    /// Record of the run until `now`, nodes that are still rented included.
    pub fn record_until(&mut self, now: SimTime) -> RentalRecord {
        for node in NodeId::first(self.stages.len()) {
            self.bill(node, now);
        }
        self.record.clone()
    }

    /// Nodes that start or are in service.
    fn rented(&self) -> u32 {
        let rented = |stage: &&NodeStage| matches!(stage, NodeStage::Starting { .. } | NodeStage::InService { .. });
        self.stages.iter().filter(rented).count() as u32
    }

    fn bill(&mut self, node: NodeId, now: SimTime) {
        let (NodeStage::Starting { since, .. } | NodeStage::InService { since, .. } | NodeStage::Noticed { since, .. }) =
            self.stages[node.index()]
        else {
            return;
        };
        let paid = (now - since).as_millis();
        match self.terms.spot_of(node.0) {
            Some(_) => self.record.spot_millis += paid,
            None => self.record.on_demand_millis += paid,
        }
    }

    fn set(&mut self, node: NodeId, stage: NodeStage, now: SimTime) {
        self.stages[node.index()] = stage;
        let ends = self.stages.iter().map(|stage| match *stage {
            NodeStage::Vacant => SimTime::NEVER,
            NodeStage::Starting { ready, .. } => ready,
            NodeStage::InService { notice, .. } => notice,
            NodeStage::Noticed { gone, .. } => gone,
        });
        self.next_stage = ends.min().unwrap_or(SimTime::NEVER);
        let nodes = self.stages.iter().filter(|stage| **stage != NodeStage::Vacant).count() as u32;
        match self.record.sizes.last_mut() {
            Some(last) if last.at == now => last.nodes = nodes,
            Some(last) if last.nodes == nodes => {}
            _ => self.record.sizes.push(SizeChange { at: now, nodes }),
        }
    }
}
