//! Jobs in order of what they have left, brought up to date by the jobs that changed.
//!
//! What a waiting job has left stands still, and what a running job has left falls by a second each second. So the
//! order among waiting jobs and that among running jobs of one width do not change while the jobs do not. Running
//! jobs are kept by an upper bound of their end. Among those that come late by their bounds, what is left is computed
//! exactly, so that the order is that of the exact figures to the last bit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, btree_set};
use std::iter::{Peekable, Rev};

use goodput_env::job::JobId;
use goodput_env::scenario::{Batching, Information};
use goodput_env::state::Bookmark;
use goodput_env::view::{ClusterView, JobView};

use super::Shortest;
use crate::allocation::passing::{Holder, Verdict, Waiting, admit};

/// Place in the order: the bits of what is left, then the job.
type Place = (u64, JobId);

/// Seconds by which a bound is raised, far more than rounding can add to what is left.
const SLACK_SECS: f64 = 1e-3;

/// Jobs in order of what they have left.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptOrder {
    mark: Bookmark,
    /// Jobs that changed, ascending.
    changed: Vec<JobId>,
    /// What the view knew of jobs when they were entered.
    seen_by: Option<(Information, Batching)>,
    standing: HashMap<JobId, (u32, Standing)>,
    /// By accelerators that jobs ask for.
    widths: BTreeMap<u32, Width>,
    /// Jobs that hold accelerators and have no bound.
    unbound: BTreeSet<Place>,
    /// Jobs that hold something other than the number of whole accelerators that they ask for, by themselves.
    irregular: BTreeSet<Place>,
}

/// Jobs that ask for one number of accelerators.
#[derive(Clone, Debug, Default)]
struct Width {
    waiting: BTreeSet<Place>,
    /// Jobs that hold accelerators, by the bits of the bound of their end.
    bound: BTreeSet<Place>,
}

/// Set that a job is in, and its key there.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Standing {
    Waiting(u64),
    Bound(u64),
    Unbound,
    Irregular,
}

impl Standing {
    fn of(job: &JobView<'_>, shortest: Shortest) -> Self {
        let (gpus, state) = (job.request().gpus, job.state);
        if !state.is_allocated() {
            return Self::Waiting(shortest.key(job, gpus).to_bits());
        }
        if job.gpus() != gpus || state.partner.is_some() || state.placement.share().is_some() {
            return Self::Irregular;
        }
        job.due_secs(gpus).map_or(Self::Unbound, |due| Self::Bound(due.to_bits()))
    }

    fn key(self) -> u64 {
        match self {
            Self::Waiting(key) | Self::Bound(key) => key,
            Self::Unbound | Self::Irregular => 0,
        }
    }
}

impl KeptOrder {
    /// Changes of a walk over all jobs in order; `None` where some job holds other accelerators than it asks for, which
    /// the order does not cover.
    pub(super) fn admit(&mut self, view: &ClusterView<'_>, shortest: Shortest) -> Option<Vec<Verdict>> {
        self.follow(view, shortest);
        if !self.irregular.is_empty() {
            return None;
        }
        let waiting = self.widths.iter().filter(|(_, width)| !width.waiting.is_empty());
        let waiting: Vec<_> = waiting
            .map(|(&gpus, width)| Waiting::new(gpus, width.waiting.iter().map(|&(key, job)| ((key, job), job))))
            .collect();
        if waiting.is_empty() {
            return Some(Vec::new());
        }
        Some(admit(view.total_free(), Longest::new(self, view, shortest), waiting))
    }

    fn follow(&mut self, view: &ClusterView<'_>, shortest: Shortest) {
        let seen_by = Some((view.information, view.batching));
        match view.changed_jobs(&mut self.mark).filter(|_| self.seen_by == seen_by) {
            Some(changed) => {
                let mut ids = std::mem::take(&mut self.changed);
                ids.clear();
                ids.extend_from_slice(changed);
                ids.sort_unstable();
                ids.dedup();
                ids.iter().for_each(|&job| self.enter(view, job, shortest));
                self.changed = ids;
            }
            None => {
                let mark = std::mem::take(&mut self.mark);
                *self = Self { mark, seen_by, ..Self::default() };
                view.jobs().for_each(|job| self.enter(view, job.id(), shortest));
            }
        }
    }

    /// Moves a job to the set that it belongs to now.
    fn enter(&mut self, view: &ClusterView<'_>, id: JobId, shortest: Shortest) {
        let now = view.job(id).map(|job| (job.request().gpus, Standing::of(&job, shortest)));
        let before = match now {
            Some(now) => self.standing.insert(id, now),
            None => self.standing.remove(&id),
        };
        if before == now {
            return;
        }
        if let Some((gpus, standing)) = before {
            self.set(gpus, standing).remove(&(standing.key(), id));
        }
        if let Some((gpus, standing)) = now {
            self.set(gpus, standing).insert((standing.key(), id));
        }
    }

    fn set(&mut self, gpus: u32, standing: Standing) -> &mut BTreeSet<Place> {
        match standing {
            Standing::Waiting(_) => &mut self.widths.entry(gpus).or_default().waiting,
            Standing::Bound(_) => &mut self.widths.entry(gpus).or_default().bound,
            Standing::Unbound => &mut self.unbound,
            Standing::Irregular => &mut self.irregular,
        }
    }
}

/// Jobs that hold accelerators, the one with most left first.
struct Longest<'a, 'v> {
    view: &'a ClusterView<'v>,
    shortest: Shortest,
    /// By width: jobs in descending order of their bounds.
    bound: Vec<(u32, Peekable<Rev<btree_set::Iter<'a, Place>>>)>,
    /// Jobs with the exact figure of what they have left.
    exact: BinaryHeap<(Place, Reverse<u32>)>,
}

impl<'a, 'v> Longest<'a, 'v> {
    fn new(order: &'a KeptOrder, view: &'a ClusterView<'v>, shortest: Shortest) -> Self {
        let bound = order.widths.iter().map(|(&gpus, width)| (gpus, width.bound.iter().rev().peekable()));
        let mut longest = Self { view, shortest, bound: bound.collect(), exact: BinaryHeap::new() };
        order.unbound.iter().filter_map(|&(_, job)| view.job(job)).for_each(|job| longest.weigh(&job));
        longest
    }

    fn weigh(&mut self, job: &JobView<'_>) {
        let gpus = job.request().gpus;
        self.exact.push(((self.shortest.key(job, gpus).to_bits(), job.id()), Reverse(gpus)));
    }

    /// The width of which a job may have most left, and the bound of what that is.
    fn widest_bound(&mut self) -> Option<(usize, f64)> {
        let (now, shortest) = (self.view.now.as_secs_f64(), self.shortest);
        let bounds = self.bound.iter_mut().enumerate().filter_map(|(at, (gpus, jobs))| {
            let (due, _) = jobs.peek()?;
            Some((at, shortest.weighted((f64::from_bits(*due) - now).max(0.0) + SLACK_SECS, *gpus)))
        });
        bounds.max_by(|(_, a), (_, b)| a.total_cmp(b))
    }
}

impl Iterator for Longest<'_, '_> {
    type Item = Holder<Place>;

    fn next(&mut self) -> Option<Holder<Place>> {
        while let Some((at, bound)) = self.widest_bound() {
            if self.exact.peek().is_some_and(|((key, _), _)| f64::from_bits(*key) > bound) {
                break;
            }
            if let Some(job) = self.bound[at].1.next().and_then(|(_, job)| self.view.job(*job)) {
                self.weigh(&job);
            }
        }
        let (key, Reverse(gpus)) = self.exact.pop()?;
        Some(Holder { key, job: key.1, gpus })
    }
}
