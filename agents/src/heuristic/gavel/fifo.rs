//! First in, first out over several accelerator types, a baseline of Gavel's evaluation.
//!
//! The oldest waiting job gets a type that has room for it, and no job passes one that finds no
//! room. Unaware of speeds, the type is drawn at random and kept until the job is done. Aware of
//! speeds, each allocation starts over, and each job in turn gets the fastest type left.

use std::collections::BTreeMap;

use goodput_env::job::JobId;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::instance::{GavelInstance, TimeShares};
use super::python_random::PythonRandom;

/// Choice of a type among those with room.
#[derive(Clone, Debug)]
pub enum TypeChoice {
    /// The fastest for the job, the first by name on ties; starts over at each allocation.
    Fastest,
    /// A type drawn at random.
    Random(Box<ChaCha8Rng>),
    /// Defect of the artifact: a type is drawn at random and never used. Every job is put on the
    /// last type that is still open, whatever room there is, and the drawn type is struck off when the
    /// last one has none left.
    LastOfAll(Box<PythonRandom>),
}

/// Assignment of jobs to types, kept between allocations.
#[derive(Clone, Debug)]
pub struct TypeFifo {
    pick: TypeChoice,
    assigned: BTreeMap<JobId, usize>,
}

impl TypeFifo {
    /// An empty assignment.
    pub fn new(pick: TypeChoice) -> Self {
        Self { pick, assigned: BTreeMap::new() }
    }

    /// Whole shares: each assigned job has all of its time on its type. `ids` are the jobs of the
    /// instance in order of arrival; `by_name` are the types in the order of their names.
    pub fn allocate(&mut self, instance: &GavelInstance, ids: &[JobId], by_name: &[usize]) -> TimeShares {
        if matches!(self.pick, TypeChoice::Fastest) {
            self.assigned.clear();
        }
        let mut room: Vec<i64> = instance.counts.iter().map(|&count| i64::from(count)).collect();
        let mut waiting: Vec<usize> = (0..ids.len()).filter(|&job| !self.assigned.contains_key(&ids[job])).collect();
        // Jobs are popped from the end, so the first of the queue stands last.
        waiting.reverse();
        let gpus = |job: usize| i64::from(instance.jobs[job].gpus);
        let runs = |job: usize, kind: usize| instance.rows[job].rates[kind].is_some();
        // The type of a completed job goes to the first in the queue.
        for (id, kind) in self.assigned.clone() {
            if let Ok(job) = ids.binary_search(&id) {
                room[kind] -= gpus(job);
                continue;
            }
            self.assigned.remove(&id);
            if let Some(&job) = waiting.last().filter(|&&job| gpus(job) <= room[kind] && runs(job, kind)) {
                waiting.pop();
                room[kind] -= gpus(job);
                self.assigned.insert(ids[job], kind);
            }
        }
        let mut open: Vec<usize> = by_name.iter().copied().filter(|&kind| room[kind] > 0).collect();
        while let Some(job) = waiting.pop() {
            let fits = |kind: usize| gpus(job) <= room[kind];
            let (kind, retired) = match &mut self.pick {
                TypeChoice::Fastest => {
                    let rate = |kind: usize| instance.rows[job].rates[kind].map_or(0.0, |[rate, _]| rate);
                    let kinds = open.iter().copied().filter(|&kind| fits(kind) && runs(job, kind));
                    let fastest = kinds.reduce(|best, kind| if rate(kind) > rate(best) { kind } else { best });
                    (fastest, fastest)
                }
                TypeChoice::Random(random) => {
                    let kinds: Vec<usize> =
                        open.iter().copied().filter(|&kind| fits(kind) && runs(job, kind)).collect();
                    let drawn = (!kinds.is_empty()).then(|| kinds[random.random_range(0..kinds.len())]);
                    (drawn, drawn)
                }
                TypeChoice::LastOfAll(random) => {
                    let kinds: Vec<usize> = open.iter().copied().filter(|&kind| fits(kind)).collect();
                    let drawn = (!kinds.is_empty()).then(|| kinds[random.below(kinds.len())]);
                    (drawn.and(open.last().copied()), drawn)
                }
            };
            let (Some(kind), Some(retired)) = (kind, retired) else { break };
            if runs(job, kind) {
                self.assigned.insert(ids[job], kind);
                room[kind] -= gpus(job);
                if room[kind] == 0 {
                    open.retain(|&other| other != retired);
                }
            }
        }
        let mut allocation = TimeShares::zero(instance);
        for (job, id) in ids.iter().enumerate() {
            if let Some(&kind) = self.assigned.get(id) {
                allocation.row_mut(job)[kind] = 1.0;
            }
        }
        allocation
    }
}
