//! Cards of all nodes as a decision finds and leaves them, in the form that scores are made for.

use goodput_env::cluster::NodeId;
use goodput_env::model::sharing::{Card, ShareRequest};
use goodput_env::placement::Placement;
use goodput_env::view::ClusterView;

use crate::placement::fractional::{Kinds, MILLI, Node, Request};

/// Cards of one node.
#[derive(Clone, Debug)]
pub struct NodeOfCards {
    /// Idle thousandths of each card.
    pub node: Node,
    /// Amounts taken of each card; of a card that is taken whole, all.
    pub cards: Vec<Card>,
    /// Something about the node that every score of it needs; `None` until a strategy is asked.
    pub potential: Option<i32>,
    /// Number of this look of the node; a look that has changed has a number of its own.
    pub version: u64,
}

/// Cards of all nodes.
#[derive(Clone, Debug, Default)]
pub struct NodesOfCards {
    pub nodes: Vec<NodeOfCards>,
    /// Nodes as the decision before left them.
    before: Vec<NodeOfCards>,
    /// Last version given.
    version: u64,
}

impl NodesOfCards {
    /// Reads the cards of a view.
    pub fn read(&mut self, view: &ClusterView<'_>) {
        std::mem::swap(&mut self.nodes, &mut self.before);
        self.nodes.clear();
        for (id, machine) in view.cluster().node_ids().zip(&view.cluster().nodes) {
            let shared = view.cards_on(id);
            // A number may be beyond what faults have left in service.
            let count = shared.last().map_or(0, |card| u32::from(card.number) + 1).max(machine.gpus);
            let mut cards = vec![view.blank_card(id); count as usize];
            shared.iter().for_each(|card| cards[usize::from(card.number)] = card.card);
            let node = Node::idle(machine.accelerator, 0, 0, count);
            self.nodes.push(NodeOfCards { node, cards, potential: None, version: 0 });
        }
        let held = || view.jobs().filter(|job| job.state.is_allocated()).map(|job| job.state);
        // Cards that are shared have a number. Cards that are held whole have none, and are any of the others.
        for (node, share) in held().filter_map(|job| job.placement.share()) {
            self.nodes[node.index()].count_parts(share.parts());
        }
        held()
            .filter(|job| job.counts() && job.placement.share().is_none())
            .for_each(|job| self.mark_whole(&job.placement));
        for ((id, machine), node) in view.cluster().node_ids().zip(&view.cluster().nodes).zip(&mut self.nodes) {
            // A node that is closed to new work has no accelerators on show, and its shared cards take no more parts.
            if machine.gpus == 0 { node.close() } else { node.withhold(view.free_on(id)) }
        }
        for (at, node) in self.nodes.iter_mut().enumerate() {
            let same = self.before.get(at).filter(|before| (&before.node, &before.cards) == (&node.node, &node.cards));
            (node.potential, node.version) = match same {
                Some(before) => (before.potential, before.version),
                None => (None, next(&mut self.version)),
            };
        }
    }

    /// Whole cards by node.
    pub fn wholly_free(&self) -> Vec<u32> {
        self.nodes.iter().map(|node| node.node.wholly_idle()).collect()
    }

    /// Takes whole cards.
    pub fn take_whole(&mut self, placement: &Placement) {
        self.mark_whole(placement);
        placement.slices().iter().for_each(|slice| self.change(slice.node));
    }

    fn mark_whole(&mut self, placement: &Placement) {
        for slice in placement.slices() {
            let request =
                Request { cpu_milli: 0, memory_mib: 0, accelerators: slice.gpus, milli: MILLI, kinds: Kinds::ANY };
            let node = &mut self.nodes[slice.node.index()];
            let taken = node.node.whole(&request);
            node.node.take(&request, &taken);
            taken.iter().for_each(|&card| node.fill(card));
        }
    }

    /// Takes a share of cards.
    pub fn take_share(&mut self, node: NodeId, parts: &[(u16, ShareRequest)]) {
        let cards = &mut self.nodes[node.index()];
        cards.count_parts(parts.iter().copied());
        parts.iter().for_each(|(card, part)| cards.cards[usize::from(*card)].take(part));
        self.change(node);
    }

    fn change(&mut self, node: NodeId) {
        let node = &mut self.nodes[node.index()];
        (node.potential, node.version) = (None, next(&mut self.version));
    }
}

fn next(version: &mut u64) -> u64 {
    *version += 1;
    *version
}

impl NodeOfCards {
    /// Takes each part from the idle thousandths of its card.
    fn count_parts(&mut self, parts: impl Iterator<Item = (u16, ShareRequest)>) {
        for (card, part) in parts {
            let milli = MILLI / 100 * part.compute_percent.min(100);
            self.node
                .take(&Request { cpu_milli: 0, memory_mib: 0, accelerators: 1, milli, kinds: Kinds::ANY }, &[card]);
        }
    }

    fn fill(&mut self, card: u16) {
        let card = &mut self.cards[usize::from(card)];
        (card.jobs, card.compute_percent, card.memory_mib) = (card.slots, 100, card.total_mib);
    }

    /// Hides all cards.
    fn close(&mut self) {
        for at in 0..self.cards.len() {
            self.node.idle[at] = 0;
            self.fill(at as u16);
        }
    }

    /// Hides whole cards beyond `free`, the last ones first: services hold these cards, or the cards are broken or not
    /// open to jobs.
    fn withhold(&mut self, free: u32) {
        let mut excess = self.node.wholly_idle().saturating_sub(free);
        for at in (0..self.node.idle.len()).rev() {
            if excess > 0 && u32::from(self.node.idle[at]) == MILLI {
                self.node.idle[at] = 0;
                self.fill(at as u16);
                excess -= 1;
            }
        }
    }

    /// This node with the cards hidden that have the compute for a part and lack the memory or a place; `None` where no
    /// card does.
    pub fn without_unfit(&self, part: &ShareRequest) -> Option<Node> {
        let compute = (MILLI / 100 * part.compute_percent.clamp(1, 100)) as u16;
        let unfit = |at: usize| self.node.idle[at] >= compute && self.cards[at].fit(part).is_err();
        if !(0..self.cards.len()).any(unfit) {
            return None;
        }
        let mut node = self.node.clone();
        (0..self.cards.len()).filter(|&at| unfit(at)).for_each(|at| node.idle[at] = 0);
        Some(node)
    }
}
