//! Order of victims' tenants: at each level of the quota tree the member with the largest dominant
//! share (Kueue, `pkg/scheduler/preemption/fairsharing/ordering.go`).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use goodput_env::tenant::{DominantShare, GroupId, QuotaTree, Usage};

use super::claim::JobClaim;

/// Tenants with candidates, returned one at a time while shares change in between.
pub(super) struct Victims<'a> {
    tree: &'a QuotaTree,
    /// Tenant that preempts.
    own: GroupId,
    waiting: BTreeMap<GroupId, VecDeque<JobClaim>>,
    /// Groups without further victims: without candidates, or not borrowing.
    pruned: BTreeSet<GroupId>,
}

impl<'a> Victims<'a> {
    /// All tenants of `candidates`, which are in the order they go within each tenant.
    pub(super) fn new(tree: &'a QuotaTree, own: GroupId, candidates: Vec<JobClaim>) -> Self {
        let mut waiting: BTreeMap<GroupId, VecDeque<JobClaim>> = BTreeMap::new();
        for claim in candidates {
            waiting.entry(claim.tenant).or_default().push_back(claim);
        }
        Self { tree, own, waiting, pruned: BTreeSet::new() }
    }

    /// Tenant that loses the next job; `None` when no tenant has a victim left.
    pub(super) fn next(&mut self, usage: &Usage) -> Option<GroupId> {
        if self.tree.parent(self.own).is_none() {
            return self.has(self.own).then_some(self.own);
        }
        let root = self.tree.root(self.own);
        while !self.pruned.contains(&root) {
            if let Some(tenant) = self.below(root, usage) {
                return Some(tenant);
            }
        }
        None
    }

    /// Removes and returns the tenant's next candidate.
    pub(super) fn pop(&mut self, tenant: GroupId) -> Option<JobClaim> {
        self.waiting.get_mut(&tenant)?.pop_front()
    }

    /// Excludes the tenant from now on.
    pub(super) fn drop_tenant(&mut self, tenant: GroupId) {
        self.pruned.insert(tenant);
    }

    fn has(&self, tenant: GroupId) -> bool {
        self.waiting.get(&tenant).is_some_and(|claims| !claims.is_empty())
    }

    /// One walk down from `cohort`; `None` where it ended at a cohort that had to be pruned.
    fn below(&mut self, cohort: GroupId, usage: &Usage) -> Option<GroupId> {
        let tree = self.tree;
        let mut tenant: Option<(DominantShare, GroupId)> = None;
        let mut inner: Option<(DominantShare, GroupId)> = None;
        for &child in tree.children(cohort) {
            if self.pruned.contains(&child) {
                continue;
            }
            let share = tree.share(usage, child, None);
            // Groups above the preempting tenant are entered although they do not borrow: its own
            // jobs are below.
            let on_path = child == self.own || tree.ancestors(self.own).any(|above| above == child);
            if !share.is_borrowing() && !on_path || tree.is_tenant(child) && !self.has(child) {
                self.pruned.insert(child);
            } else if tree.is_tenant(child) {
                let better = match &tenant {
                    None => true,
                    Some((largest, of)) => share > *largest || share == *largest && self.goes_before(child, *of),
                };
                if better {
                    tenant = Some((share, child));
                }
            } else if inner.is_none_or(|(largest, _)| share >= largest) {
                inner = Some((share, child));
            }
        }
        match (tenant, inner) {
            // At equal shares a cohort goes before a tenant.
            (tenant, Some((largest, inner))) if tenant.is_none_or(|(share, _)| largest >= share) => {
                self.below(inner, usage)
            }
            (Some((_, tenant)), _) => Some(tenant),
            (None, _) => {
                self.pruned.insert(cohort);
                None
            }
        }
    }

    /// Whether `one` goes before `other` at equal shares: by the order of their first candidates.
    fn goes_before(&self, one: GroupId, other: GroupId) -> bool {
        let key = |tenant: GroupId| {
            let first = self.waiting.get(&tenant).and_then(|claims| claims.front());
            first.map(|claim| (claim.tenant == self.own, claim.priority, Reverse(claim.since), claim.job))
        };
        key(one) < key(other)
    }
}
