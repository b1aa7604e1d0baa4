//! From sizes to nodes, for one type of accelerator.
//!
//! The paper's three rules: a part of a node is not split, whole nodes are whole, and where that is
//! impossible some jobs move (section 3.5). Jobs that keep their size stay where they are if they
//! can, because a move is a restart. The artifact's simulator, in which equal nodes are one, packs
//! all jobs anew in each round ([`Nodes::ring`]).

mod room;

use goodput_env::cluster::NodeId;
use goodput_env::placement::Placement;

use room::Room;

/// A job to be placed.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Number of accelerators.
    pub gpus: u32,
    /// Present placement of the job, if the job keeps that size there.
    pub held: Placement,
    /// Whether the job must stay on that placement.
    pub pinned: bool,
}

/// Nodes of one type and their accelerators, in order of id.
#[derive(Clone, Debug)]
pub struct Nodes {
    ids: Vec<NodeId>,
    size: u32,
    free: Vec<u32>,
}

impl Nodes {
    /// `(id, accelerators that may be given out)` of each node, and the accelerators of a whole
    /// one.
    pub fn new(nodes: impl IntoIterator<Item = (NodeId, u32)>, size: u32) -> Self {
        let (ids, free): (Vec<NodeId>, Vec<u32>) = nodes.into_iter().unzip();
        Self { ids, size: size.max(1), free }
    }

    /// Places `jobs` with as few moves as these rules need. Their sizes must fit in total.
    pub fn stay(self, jobs: &[Wanted]) -> Vec<Placement> {
        Room::new(self.ids, self.free, self.size, jobs).place()
    }

    /// Places all `jobs` anew, the largest first: whole nodes from where the last job ended, then
    /// whatever is free, in a ring.
    pub fn ring(mut self, jobs: &[Wanted]) -> Vec<Placement> {
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(jobs[at].gpus));
        let mut places = vec![Placement::none(); jobs.len()];
        let mut start = 0;
        for at in order {
            let mut left = jobs[at].gpus;
            let (mut whole, mut node) = (left / self.size, start);
            let mut looked = 0;
            while whole > 0 && looked < self.free.len() {
                if self.free[node] == self.size {
                    self.give(&mut places[at], node, self.size);
                    (left, whole) = (left - self.size, whole - 1);
                }
                (node, looked) = ((node + 1) % self.free.len(), looked + 1);
            }
            let mut empty = 0;
            // A whole turn of the ring without anything free means that there is nothing left.
            while left > 0 && empty < self.free.len() {
                let here = left.min(self.free[node]);
                empty = if here == 0 { empty + 1 } else { 0 };
                self.give(&mut places[at], node, here);
                left -= here;
                node = (node + 1) % self.free.len();
            }
            start = node;
        }
        places
    }

    fn give(&mut self, place: &mut Placement, node: usize, gpus: u32) {
        self.free[node] -= gpus;
        place.push(self.ids[node], gpus);
    }
}
