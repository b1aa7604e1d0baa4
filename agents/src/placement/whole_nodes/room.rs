//! Free accelerators of the nodes of one type, in order, and the room that moves of smaller jobs
//! can make.
//!
//! A look at every node for every job would cost a round their product. Here nodes are kept by how
//! many of their accelerators are free, with the jobs on each, and, from the first time that room
//! has to be made for a size, those nodes that smaller jobs could leave, by how few accelerators
//! they would have to free. A step then costs a search in these orders, and a round little more
//! than jobs plus nodes. What is found is what a look at all of them would find (a property test
//! compares).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use goodput_env::cluster::NodeId;
use goodput_env::placement::Placement;

use super::Wanted;

/// Nodes of one type and the jobs on them. Nodes are numbered in order of id, jobs as they were
/// given.
pub(super) struct Room<'a> {
    jobs: &'a [Wanted],
    places: Vec<Placement>,
    /// Jobs to be placed: the largest first, then in order.
    waiting: BTreeSet<(Reverse<u32>, usize)>,
    ids: Vec<NodeId>,
    /// Accelerators of a whole node.
    size: u32,
    free: Vec<u32>,
    by_free: BTreeMap<u32, BTreeSet<usize>>,
    /// Jobs by node.
    on: Vec<Vec<usize>>,
    /// By accelerators wanted on one node: nodes where jobs smaller than that would leave enough,
    /// by how many are missing.
    clearable: BTreeMap<u32, BTreeSet<(u32, usize)>>,
}

impl<'a> Room<'a> {
    /// Empty nodes with so many accelerators that may be given out to `jobs`.
    pub fn new(ids: Vec<NodeId>, free: Vec<u32>, size: u32, jobs: &'a [Wanted]) -> Self {
        let mut by_free: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
        for (node, &free) in free.iter().enumerate() {
            by_free.entry(free).or_default().insert(node);
        }
        Self {
            jobs,
            places: vec![Placement::none(); jobs.len()],
            waiting: BTreeSet::new(),
            on: vec![Vec::new(); ids.len()],
            ids,
            size,
            free,
            by_free,
            clearable: BTreeMap::new(),
        }
    }

    /// The place of each job.
    pub fn place(mut self) -> Vec<Placement> {
        for (at, job) in self.jobs.iter().enumerate() {
            if job.held.gpus() == job.gpus && (job.pinned || self.is_tidy(&job.held)) {
                self.settle(at, job.held.clone());
            } else {
                self.waiting.insert((Reverse(job.gpus), at));
            }
        }
        // Jobs that have to make room are smaller and join behind.
        while let Some((Reverse(gpus), at)) = self.waiting.pop_first() {
            if !self.fits(gpus) {
                self.make_room(gpus);
            }
            let place = self.find(gpus).or_else(|| self.held_again(at));
            self.settle(at, place.unwrap_or_else(|| self.place_on_fragments(gpus)));
        }
        self.places
    }

    /// Whether a placement obeys the first two rules.
    fn is_tidy(&self, place: &Placement) -> bool {
        place.nodes() == place.gpus().div_ceil(self.size)
    }

    fn settle(&mut self, at: usize, place: Placement) {
        for slice in place.slices() {
            if let Ok(node) = self.ids.binary_search(&slice.node) {
                if self.on[node].last() != Some(&at) {
                    self.on[node].push(at);
                }
                self.set_free(node, self.free[node].saturating_sub(slice.gpus));
            }
        }
        self.places[at] = place;
    }

    fn unsettle(&mut self, at: usize) {
        for slice in std::mem::take(&mut self.places[at]).slices() {
            if let Ok(node) = self.ids.binary_search(&slice.node) {
                self.on[node].retain(|&other| other != at);
                self.set_free(node, self.free[node] + slice.gpus);
            }
        }
        self.waiting.insert((Reverse(self.jobs[at].gpus), at));
    }

    fn set_free(&mut self, node: usize, free: u32) {
        let before = std::mem::replace(&mut self.free[node], free);
        if let Some(nodes) = self.by_free.get_mut(&before) {
            nodes.remove(&node);
        }
        self.by_free.entry(free).or_default().insert(node);
        let (jobs, on) = (self.jobs, &self.on[node]);
        for (&wanted, nodes) in &mut self.clearable {
            // The key of an entry follows from what was free, so the old one needs no search.
            nodes.remove(&(wanted.saturating_sub(before), node));
            nodes.extend(missing(jobs, on, free, wanted).map(|missing| (missing, node)));
        }
    }

    /// Whether [`Self::find`] would find something.
    fn fits(&self, gpus: u32) -> bool {
        self.empty() >= (gpus / self.size) as usize && (gpus.is_multiple_of(self.size) || self.rest(gpus).is_some())
    }

    fn empty(&self) -> usize {
        self.by_free.get(&self.size).map_or(0, BTreeSet::len)
    }

    /// The fullest node that has room for what whole nodes leave over of `gpus`; the first whole
    /// ones are for the others.
    fn rest(&self, gpus: u32) -> Option<usize> {
        let whole = (gpus / self.size) as usize;
        let first = |(free, nodes): (&u32, &BTreeSet<usize>)| {
            let taken = if *free == self.size { whole } else { 0 };
            nodes.iter().nth(taken).copied()
        };
        self.by_free.range(gpus % self.size..).find_map(first)
    }

    /// Free accelerators that obey the first two rules: whole nodes in order of id, and for the
    /// rest the fullest node that has room.
    fn find(&self, gpus: u32) -> Option<Placement> {
        if !self.fits(gpus) {
            return None;
        }
        let whole = self.by_free.get(&self.size).into_iter().flatten().take((gpus / self.size) as usize);
        let mut place: Placement = whole.map(|&node| (self.ids[node], self.size)).collect();
        if let Some(node) = self.rest(gpus) {
            place.push(self.ids[node], gpus % self.size);
        }
        Some(place)
    }

    /// Moves the smaller jobs of the nodes where fewest accelerators have to be freed, until `gpus`
    /// fit or no job is left to move.
    fn make_room(&mut self, gpus: u32) {
        // A job of several nodes needs whole ones, which are cleared one after the other.
        let wanted = gpus.min(self.size);
        let (jobs, free, on) = (self.jobs, &self.free, &self.on);
        self.clearable.entry(wanted).or_insert_with(|| {
            let missing = |node: usize| Some((missing(jobs, &on[node], free[node], wanted)?, node));
            (0..free.len()).filter_map(missing).collect()
        });
        while !self.fits(gpus) {
            let Some(&(mut missing, node)) = self.clearable.get(&wanted).and_then(BTreeSet::first) else { return };
            let mut movable: Vec<usize> = movable(self.jobs, &self.on[node], wanted).collect();
            movable.sort_unstable_by_key(|&at| (self.jobs[at].gpus, at));
            for at in movable {
                if missing == 0 {
                    break;
                }
                missing = missing.saturating_sub(self.jobs[at].gpus);
                self.unsettle(at);
            }
        }
    }

    /// The present placement of a job that cannot be tidy, where it is still free: another one would be no better, and
    /// cost a restart.
    fn held_again(&self, at: usize) -> Option<Placement> {
        let Wanted { held, gpus, .. } = &self.jobs[at];
        let is_free = |node: NodeId, gpus: u32| self.ids.binary_search(&node).is_ok_and(|node| gpus <= self.free[node]);
        let stays = held.gpus() == *gpus && held.slices().iter().all(|slice| is_free(slice.node, slice.gpus));
        stays.then(|| held.clone())
    }

    /// Any free accelerators, from the emptiest nodes: the last resort of sizes that are no power
    /// of two.
    fn place_on_fragments(&self, gpus: u32) -> Placement {
        let mut left = gpus;
        let emptiest = self.by_free.iter().rev().flat_map(|(_, nodes)| nodes);
        emptiest
            .map_while(|&node| {
                let here = left.min(self.free[node]);
                left -= here;
                (here > 0).then_some((self.ids[node], here))
            })
            .collect()
    }
}

/// Jobs of a node that may move for the sake of one that wants `wanted` there.
fn movable<'a>(jobs: &'a [Wanted], on: &'a [usize], wanted: u32) -> impl Iterator<Item = usize> + 'a {
    on.iter().copied().filter(move |&at| !jobs[at].pinned && jobs[at].gpus < wanted)
}

/// Number of accelerators that a node lacks, where some are missing and the jobs that may move
/// would free them.
fn missing(jobs: &[Wanted], on: &[usize], free: u32, wanted: u32) -> Option<u32> {
    let freed: u32 = if free < wanted { movable(jobs, on, wanted).map(|at| jobs[at].gpus).sum() } else { 0 };
    (free < wanted && free + freed >= wanted).then(|| wanted - free)
}
