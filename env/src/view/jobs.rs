//! The jobs that a view shows: all, those that wait, those that changed.

use super::{ClusterView, JobView};
use crate::job::JobId;
use crate::state::{Bookmark, Ids};

impl<'a> ClusterView<'a> {
    /// Number of active jobs: submitted and not complete.
    pub fn active(&self) -> usize {
        self.shown.map_or(self.table.len(), <[JobId]>::len)
    }

    /// Ids of active jobs, ascending.
    pub(crate) fn ids(&self) -> Ids<'a> {
        self.shown.map_or(self.table.active(), |shown| Ids::List(shown.iter()))
    }

    /// Active jobs in ascending order of (submission, id).
    pub fn jobs(&self) -> impl ExactSizeIterator<Item = JobView<'a>> + DoubleEndedIterator + use<'a> {
        let (table, known) = (self.table, self.known());
        self.ids().map(move |id| JobView { state: table.state(id), known })
    }

    /// Active jobs that hold no accelerators, in ascending order of (submission, id). The others cost no time, unless
    /// some jobs are not on show.
    pub fn waiting(&self) -> impl DoubleEndedIterator<Item = JobView<'a>> + use<'a> {
        let (table, known) = (self.table, self.known());
        let ids = self.shown.map_or(table.waiting(), |shown| Ids::List(shown.iter()));
        ids.map(move |id| JobView { state: table.state(id), known }).filter(|job| !job.state.is_allocated())
    }

    /// One active job.
    #[inline]
    pub fn job(&self, id: JobId) -> Option<JobView<'a>> {
        let state = self.table.get(id)?;
        if let Some(shown) = self.shown {
            shown.binary_search(&id).ok()?;
        }
        Some(JobView { state, known: self.known() })
    }

    /// Jobs that came, went or changed since a reader looked last, some more than once; `mark` is kept by the reader.
    /// A job that is not among them is as it was, but for what grows with time at a constant rate. `None` where any job
    /// may have changed: at first, and where some jobs are not on show.
    pub fn changed_jobs(&self, mark: &mut Bookmark) -> Option<&'a [JobId]> {
        if self.shown.is_some() {
            *mark = Bookmark::default();
            return None;
        }
        self.table.changes().since(mark)
    }
}
