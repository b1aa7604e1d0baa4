//! Priorities and quotas that a policy is shown in place of the declared ones.

use super::ClusterView;
use crate::job::JobId;
use crate::tenant::QuotaTree;

/// Priorities and quotas at one moment, as automatic adaptation sets them for the policy inside it. The guard goes by
/// the declared quotas, so adapted ones only move accelerators within what a cohort has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Adapted {
    /// Priorities in queues, ascending by job. A job that is absent keeps the priority of its request.
    pub priorities: Vec<(JobId, i32)>,
    /// Quotas; `None`: the declared ones.
    pub quotas: Option<QuotaTree>,
}

impl Adapted {
    /// Priority of `job`, where it has been adapted.
    pub fn priority(&self, job: JobId) -> Option<i32> {
        let at = self.priorities.binary_search_by_key(&job, |(job, _)| *job).ok()?;
        Some(self.priorities[at].1)
    }
}

impl<'a> ClusterView<'a> {
    /// View of this moment with other priorities and quotas.
    pub fn adapted<'b>(&self, adapted: &'b Adapted) -> ClusterView<'b>
    where
        'a: 'b,
    {
        ClusterView { adapted: Some(adapted), ..*self }
    }
}
