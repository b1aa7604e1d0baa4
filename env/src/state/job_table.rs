//! Table of the active jobs.

use super::JobState;
use super::change_log::ChangeLog;
use super::id_set::{IdSet, Members};
use crate::job::JobId;
use crate::placement::Placement;

const NONE: u32 = u32::MAX;

/// Room made in advance, so that an episode with fewer active jobs allocates nothing after its
/// reset.
pub(crate) const EXPECTED_ACTIVE: usize = 256;

/// Entries of the log of changes before it is emptied: some for each job that may be active at first, so a reader that
/// looks at every decision misses none.
const LOGGED: usize = 16 * EXPECTED_ACTIVE;

/// Active jobs by id, iterated in ascending id, which is the order of (submission, trace). The table knows which of
/// them wait and which have changed.
#[derive(Clone, Debug)]
pub struct JobTable {
    slots: Vec<JobState>,
    free_slots: Vec<u32>,
    slot_of: Vec<u32>,
    active: IdSet,
    /// Active jobs that hold no accelerators.
    waiting: IdSet,
    changes: ChangeLog<JobId>,
}

impl Default for JobTable {
    fn default() -> Self {
        Self::new(0)
    }
}

impl JobTable {
    /// An empty table for a workload of `len` jobs.
    pub fn new(len: usize) -> Self {
        let room = len.min(EXPECTED_ACTIVE);
        Self {
            slots: Vec::with_capacity(room),
            free_slots: Vec::with_capacity(room),
            slot_of: vec![NONE; len],
            active: IdSet::below(len),
            waiting: IdSet::below(len),
            changes: ChangeLog::with_room(LOGGED),
        }
    }

    /// Number of active jobs.
    pub fn len(&self) -> usize {
        self.active.len()
    }

    /// Whether no job is active.
    pub fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// Active jobs, ascending.
    pub fn active(&self) -> Ids<'_> {
        Ids::Set(self.active.iter())
    }

    /// Active jobs that hold no accelerators, ascending.
    pub fn waiting(&self) -> Ids<'_> {
        Ids::Set(self.waiting.iter())
    }

    /// The first active job that is not before `from`.
    pub(crate) fn next_active(&self, from: JobId) -> Option<JobId> {
        self.active.next(from.index()).map(JobId::at)
    }

    /// Jobs that were added, removed, or looked at to be changed.
    pub(crate) fn changes(&self) -> &ChangeLog<JobId> {
        &self.changes
    }

    /// State of a job, if it is active.
    #[inline]
    pub fn get(&self, id: JobId) -> Option<&JobState> {
        let slot = *self.slot_of.get(id.index())?;
        (slot != NONE).then(|| &self.slots[slot as usize])
    }

    /// State of a job that is known to be active.
    pub(crate) fn state(&self, id: JobId) -> &JobState {
        &self.slots[self.slot_of[id.index()] as usize]
    }

    /// State of a job that is known to be active. Its placement is changed by [`Self::place`] only.
    pub(crate) fn state_mut(&mut self, id: JobId) -> &mut JobState {
        self.changes.note(id);
        &mut self.slots[self.slot_of[id.index()] as usize]
    }

    /// Gives a job that is known to be active the accelerators of `placement`; returns those that it held.
    pub(crate) fn place(&mut self, id: JobId, placement: Placement) -> Placement {
        self.waiting.set(id.index(), placement.is_empty());
        std::mem::replace(&mut self.state_mut(id).placement, placement)
    }

    /// Adds a job.
    pub(crate) fn insert(&mut self, state: JobState) {
        let id = state.id;
        self.active.insert(id.index());
        self.waiting.set(id.index(), state.placement.is_empty());
        self.changes.note(id);
        let slot = match self.free_slots.pop() {
            Some(slot) => {
                self.slots[slot as usize] = state;
                slot
            }
            None => {
                self.slots.push(state);
                (self.slots.len() - 1) as u32
            }
        };
        self.slot_of[id.index()] = slot;
    }

    /// Removes a job from the active ones.
    pub(crate) fn remove(&mut self, id: JobId) {
        let slot = std::mem::replace(&mut self.slot_of[id.index()], NONE);
        self.free_slots.push(slot);
        self.active.remove(id.index());
        self.waiting.remove(id.index());
        self.changes.note(id);
    }
}

/// Jobs by id, ascending.
#[derive(Clone, Debug)]
pub enum Ids<'a> {
    /// Members of a set.
    Set(Members<'a>),
    /// Listed ones.
    List(std::slice::Iter<'a, JobId>),
}

impl Iterator for Ids<'_> {
    type Item = JobId;

    #[inline]
    fn next(&mut self) -> Option<JobId> {
        match self {
            Self::Set(members) => members.next().map(JobId::at),
            Self::List(list) => list.next().copied(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Set(members) => members.size_hint(),
            Self::List(list) => list.size_hint(),
        }
    }
}

impl DoubleEndedIterator for Ids<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<JobId> {
        match self {
            Self::Set(members) => members.next_back().map(JobId::at),
            Self::List(list) => list.next_back().copied(),
        }
    }
}

impl ExactSizeIterator for Ids<'_> {}
