//! Services and pools in a round: replicas are added and removed one at a time, and servers of the
//! inference pool are lent and reclaimed one at a time.
//!
//! Fixed rules choose the node of a replica and the server of a loan, so that an action stays a
//! small number. A new replica starts on the serving node with the fewest sufficient free
//! accelerators. A replica is removed from the node with the fewest replicas of its service. The
//! emptiest server is lent, and the lent server with the least training is reclaimed. Lower node
//! ids win ties.

use smallvec::SmallVec;

use crate::cluster::{NodeId, Pool};
use crate::gym::action::{LoanVerb, ScaleVerb};
use crate::gym::layout::Layout;
use crate::plan::{Plan, Reclaim, Scale};
use crate::service::ServiceId;
use crate::state::Loan;
use crate::time::SimTime;
use crate::view::ClusterView;

/// Time for which training may stay on a server that is reclaimed.
const RECLAIM_GRACE: SimTime = SimTime::from_secs(60);

/// Service slot in a round.
#[derive(Clone, Debug)]
pub struct ServiceSlot {
    /// Service in the slot.
    pub service: ServiceId,
    /// Number of replicas that are starting or ready.
    pub held: u32,
    /// Number of replicas after this round.
    pub working: u32,
    moved: Option<ScaleVerb>,
    /// Replicas after this round by node, in ascending order of node.
    nodes: SmallVec<[(NodeId, u32); 8]>,
}

/// Working state of services and pools in one round.
#[derive(Clone, Debug, Default)]
pub struct SharedRound {
    services: Vec<ServiceSlot>,
    /// Free accelerators that replicas may take, by node; empty where there are neither services
    /// nor pools.
    free: Vec<u32>,
    /// Accelerators that replicas take in this round, by node.
    taken: Vec<u32>,
    lent: Vec<NodeId>,
    called: Vec<NodeId>,
    /// Servers that could be lent: of the inference pool, not lent, without a replica.
    lendable: Vec<NodeId>,
    /// Servers that are lent and not reclaimed, with the number of accelerators that training holds
    /// there.
    out: Vec<(u32, NodeId)>,
    allowed: Vec<u8>,
    /// Whether servers can be lent and reclaimed.
    pools: bool,
}

impl SharedRound {
    /// Starts a round on `view`.
    pub(super) fn begin(&mut self, view: &ClusterView<'_>, layout: &Layout) {
        let Layout { services, pools, .. } = *layout;
        self.lent.clear();
        self.called.clear();
        self.lendable.clear();
        self.out.clear();
        self.services.clear();
        self.free.clear();
        self.taken.clear();
        self.pools = pools;
        if services == 0 && !pools {
            return;
        }
        let nodes = view.cluster().node_ids();
        self.free.extend(nodes.clone().map(|node| view.free_for_service(node)));
        self.taken.resize(self.free.len(), 0);
        for service in view.services().take(services) {
            let mut nodes: SmallVec<[(NodeId, u32); 8]> = SmallVec::new();
            for replica in service.state.lasting() {
                match nodes.iter_mut().find(|(node, _)| *node == replica.node) {
                    Some((_, count)) => *count += 1,
                    None => nodes.push((replica.node, 1)),
                }
            }
            nodes.sort_unstable();
            let held = nodes.iter().map(|(_, count)| count).sum();
            self.services.push(ServiceSlot { service: service.id(), held, working: held, moved: None, nodes });
        }
        if pools {
            for node in nodes.filter(|&node| view.pool(node) == Pool::Inference) {
                match view.loan(node) {
                    Loan::Home if view.served_on(node) == 0 && self.free[node.index()] > 0 => self.lendable.push(node),
                    Loan::Lent { .. } => self.out.push((view.trained_on(node), node)),
                    Loan::Home | Loan::Elsewhere | Loan::Returning { .. } => {}
                }
            }
            self.out.sort_unstable();
        }
        self.refresh(view);
    }

    /// Service slots, in order of id.
    pub fn services(&self) -> &[ServiceSlot] {
        &self.services
    }

    /// Servers lent in this round.
    pub fn lent(&self) -> &[NodeId] {
        &self.lent
    }

    /// Servers reclaimed in this round.
    pub fn called(&self) -> &[NodeId] {
        &self.called
    }

    /// Servers that could still be lent.
    pub fn lendable(&self) -> &[NodeId] {
        &self.lendable
    }

    /// Whether `verb` may be applied to the service in `slot`.
    pub fn allows_scale(&self, slot: usize, verb: ScaleVerb) -> bool {
        slot < self.services.len() && self.allowed.get(2 * slot + verb as usize) == Some(&1)
    }

    /// Whether `verb` may be applied to the pools.
    pub fn allows_loan(&self, verb: LoanVerb) -> bool {
        // Loans of one round have one direction, so that lending and reclaiming cannot alternate
        // forever.
        match verb {
            LoanVerb::Lend => self.called.is_empty() && !self.lendable.is_empty(),
            LoanVerb::Reclaim => self.lent.is_empty() && !self.out.is_empty(),
        }
    }

    /// Whether any change is allowed.
    pub(super) fn has_choice(&self) -> bool {
        self.allowed.contains(&1)
    }

    /// Writes the mask of allowed changes, 1 or 0 each, in the order of action numbers.
    pub(super) fn mask(&self, mask: &mut [u8]) {
        let known = self.allowed.len().min(mask.len());
        mask[..known].copy_from_slice(&self.allowed[..known]);
        mask[known..].fill(0);
    }

    fn refresh(&mut self, view: &ClusterView<'_>) {
        self.allowed.clear();
        for slot in &self.services {
            let Some(service) = view.service(slot.service) else { continue };
            let (min, max) = service.replica_limits();
            let room = || self.tightest_fit(view, slot.service).is_some();
            // A service scales in one direction per round, so that a round has finitely many
            // actions.
            let out = slot.moved != Some(ScaleVerb::In) && slot.working < max && room();
            let goes = slot.moved != Some(ScaleVerb::Out) && slot.working > min;
            self.allowed.extend([out, goes].map(u8::from));
        }
        if self.pools {
            let loans = LoanVerb::ALL.map(|verb| u8::from(self.allows_loan(verb)));
            self.allowed.extend(loans);
        }
    }

    /// Node for one more replica: the one with the fewest sufficient free accelerators.
    fn tightest_fit(&self, view: &ClusterView<'_>, id: ServiceId) -> Option<NodeId> {
        let service = view.service(id)?;
        let gpus = service.gpus_per_replica();
        let fits = |&(node, &free): &(usize, &u32)| {
            free >= gpus && service.profile(view.cluster().nodes[node].accelerator).is_some()
        };
        let nodes = self.free.iter().enumerate().filter(fits);
        nodes.min_by_key(|&(node, &free)| (free, node)).map(|(node, _)| NodeId::at(node))
    }

    /// Adds or removes one replica. Returns whether the change was allowed.
    pub(super) fn scale(&mut self, view: &ClusterView<'_>, slot: usize, verb: ScaleVerb) -> bool {
        if !self.allows_scale(slot, verb) {
            return false;
        }
        let id = self.services[slot].service;
        let Some(gpus) = view.service(id).map(|service| service.gpus_per_replica()) else { return false };
        let to = self.tightest_fit(view, id);
        let service = &mut self.services[slot];
        match (verb, to) {
            (ScaleVerb::Out, Some(node)) => {
                match service.nodes.iter_mut().find(|(known, _)| *known == node) {
                    Some((_, count)) => *count += 1,
                    None => service.nodes.push((node, 1)),
                }
                service.working += 1;
                self.free[node.index()] -= gpus;
                self.taken[node.index()] += gpus;
                // A server with a replica can no longer be lent.
                self.lendable.retain(|&other| other != node);
            }
            (ScaleVerb::Out, None) => return false,
            (ScaleVerb::In, _) => {
                let held = service.nodes.iter_mut().filter(|(_, count)| *count > 0);
                let Some((_, count)) = held.min_by_key(|(node, count)| (*count, *node)) else { return false };
                *count -= 1;
                service.working -= 1;
            }
        }
        service.moved = Some(verb);
        self.refresh(view);
        true
    }

    /// Lends or reclaims one server and returns the server; `None` where the change is not allowed.
    pub(super) fn loan(&mut self, view: &ClusterView<'_>, verb: LoanVerb) -> Option<NodeId> {
        if !self.allows_loan(verb) {
            return None;
        }
        let node = match verb {
            LoanVerb::Lend => {
                let most = self
                    .lendable
                    .iter()
                    .enumerate()
                    .max_by_key(|&(at, &node)| (self.free[node.index()], std::cmp::Reverse(at)));
                let node = self.lendable.remove(most?.0);
                // No replica may start on a server that is lent.
                self.free[node.index()] = 0;
                self.lent.push(node);
                node
            }
            LoanVerb::Reclaim => {
                // `out` is sorted by training, so the first server has the least.
                let (_, node) = self.out.remove(0);
                self.called.push(node);
                node
            }
        };
        self.refresh(view);
        Some(node)
    }

    /// Free accelerators of `node` that training may take after this round.
    pub(super) fn open_on(&self, view: &ClusterView<'_>, node: NodeId) -> u32 {
        if !self.may_train(view, node) {
            return 0;
        }
        view.idle_on(node).saturating_sub(self.taken.get(node.index()).copied().unwrap_or(0))
    }

    /// Whether a job may be placed on `node` after this round.
    pub(super) fn may_train(&self, view: &ClusterView<'_>, node: NodeId) -> bool {
        (view.may_train(node) || self.lent.contains(&node)) && !self.called.contains(&node)
    }

    /// Adds the changes of services and pools in this round to `plan`.
    pub(super) fn plan(&self, view: &ClusterView<'_>, plan: &mut Plan) {
        let deadline = view.now.saturating_add(RECLAIM_GRACE);
        plan.lend.extend_from_slice(&self.lent);
        plan.reclaim.extend(self.called.iter().map(|&node| Reclaim { node, deadline }));
        for slot in self.services.iter().filter(|slot| slot.moved.is_some()) {
            let Some(service) = view.service(slot.service) else { continue };
            for &(node, replicas) in &slot.nodes {
                if service.state.replicas_on(node) != replicas {
                    plan.scale.push(Scale { service: slot.service, node, replicas });
                }
            }
        }
    }
}
