//! From sizes to nodes, for one type of accelerator.
//!
//! The paper's three rules: a part of a node is not split, whole nodes are whole, and where that is impossible some jobs move
//! (section 3.5). Jobs that keep their size stay where they are if they can, because a move is a restart. The artifact's simulator,
//! in which equal nodes are one, packs everybody anew in each round.

use goodput_env::cluster::NodeId;
use goodput_env::placement::Placement;

/// A job to be placed.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Accelerators.
    pub gpus: u32,
    /// Where it is, if it keeps that size there.
    pub held: Placement,
    /// Whether it must stay.
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
    /// `(id, accelerators that may be given out)` of each node, and the accelerators of a whole one.
    pub fn new(nodes: impl IntoIterator<Item = (NodeId, u32)>, size: u32) -> Self {
        let (ids, free): (Vec<NodeId>, Vec<u32>) = nodes.into_iter().unzip();
        Self { ids, size: size.max(1), free }
    }

    /// Places `jobs`, whose sizes must fit in total, with as few moves as these rules need.
    pub fn stay(mut self, jobs: &[Wanted]) -> Vec<Placement> {
        let mut places: Vec<Placement> = vec![Placement::none(); jobs.len()];
        let mut waiting: Vec<usize> = Vec::new();
        for (at, job) in jobs.iter().enumerate() {
            if job.held.gpus() == job.gpus && (job.pinned || self.is_tidy(&job.held)) {
                self.take(&job.held);
                places[at] = job.held.clone();
            } else {
                waiting.push(at);
            }
        }
        // The largest first, in order of jobs; those who have to make room are smaller and join behind.
        while let Some(next) = largest(&waiting, jobs) {
            let job = waiting.remove(next);
            if self.find(jobs[job].gpus).is_none() {
                self.make_room(jobs[job].gpus, jobs, &mut places, &mut waiting);
            }
            let place = self.find(jobs[job].gpus).unwrap_or_else(|| self.scraps(jobs[job].gpus));
            self.take(&place);
            places[job] = place;
        }
        places
    }

    /// Places all `jobs` anew, the largest first: whole nodes from where the last job ended, then whatever is free, in a ring.
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

    fn at(&self, id: NodeId) -> Option<usize> {
        self.ids.binary_search(&id).ok()
    }

    fn take(&mut self, place: &Placement) {
        for slice in place.slices() {
            if let Some(node) = self.at(slice.node) {
                self.free[node] = self.free[node].saturating_sub(slice.gpus);
            }
        }
    }

    fn release(&mut self, place: &Placement) {
        for slice in place.slices() {
            if let Some(node) = self.at(slice.node) {
                self.free[node] += slice.gpus;
            }
        }
    }

    /// Whether a placement obeys the first two rules.
    fn is_tidy(&self, place: &Placement) -> bool {
        place.nodes() == place.gpus().div_ceil(self.size)
    }

    /// Free accelerators that obey the first two rules: whole nodes in order of id, and for the rest the fullest node that has room.
    fn find(&self, gpus: u32) -> Option<Placement> {
        let mut place = Placement::none();
        let whole = (gpus / self.size) as usize;
        let mut empty = (0..self.free.len()).filter(|&node| self.free[node] == self.size);
        let mut used = Vec::with_capacity(whole);
        for _ in 0..whole {
            let node = empty.next()?;
            place.push(self.ids[node], self.size);
            used.push(node);
        }
        let rest = gpus % self.size;
        if rest > 0 {
            let fits = (0..self.free.len()).filter(|node| !used.contains(node) && self.free[*node] >= rest);
            let node = fits.reduce(|best, next| if self.free[next] < self.free[best] { next } else { best })?;
            place.push(self.ids[node], rest);
        }
        Some(place)
    }

    /// Moves the smaller jobs of the nodes where fewest accelerators have to be freed, until `gpus` fit or nobody is left to move.
    fn make_room(&mut self, gpus: u32, jobs: &[Wanted], places: &mut [Placement], waiting: &mut Vec<usize>) {
        while self.find(gpus).is_none() {
            let wanted = gpus.min(self.size);
            let movable = |node: usize| {
                let here = |at: &usize| {
                    !jobs[*at].pinned
                        && jobs[*at].gpus < wanted
                        && places[*at].slices().iter().any(|s| s.node == self.ids[node])
                };
                (0..jobs.len()).filter(here).collect::<Vec<_>>()
            };
            let candidates = (0..self.free.len()).filter(|&node| self.free[node] < wanted).filter_map(|node| {
                let movable = movable(node);
                let freed: u32 = movable.iter().map(|&at| jobs[at].gpus).sum();
                (self.free[node] + freed >= wanted).then_some((wanted - self.free[node], node, movable))
            });
            let Some((mut missing, _, mut movable)) = candidates.min_by_key(|(missing, node, _)| (*missing, *node))
            else {
                return;
            };
            movable.sort_by_key(|&at| jobs[at].gpus);
            for at in movable {
                if missing == 0 {
                    break;
                }
                missing = missing.saturating_sub(jobs[at].gpus);
                let place = std::mem::take(&mut places[at]);
                self.release(&place);
                waiting.push(at);
            }
        }
    }

    /// Any free accelerators, from the emptiest nodes: the last resort of sizes that are no power of two.
    fn scraps(&self, gpus: u32) -> Placement {
        let mut order: Vec<usize> = (0..self.free.len()).collect();
        order.sort_by_key(|&node| (std::cmp::Reverse(self.free[node]), node));
        let mut left = gpus;
        order
            .into_iter()
            .map(|node| {
                let here = left.min(self.free[node]);
                left -= here;
                (self.ids[node], here)
            })
            .collect()
    }
}

fn largest(waiting: &[usize], jobs: &[Wanted]) -> Option<usize> {
    (0..waiting.len()).min_by_key(|&next| (std::cmp::Reverse(jobs[waiting[next]].gpus), waiting[next]))
}
