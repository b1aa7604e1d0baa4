//! Quotas of tenants and cohorts as a tree, and the usage that propagates up in it (Kueue,
//! `pkg/cache/scheduler/resource_node.go`).
//!
//! A group keeps `local = max(0, subtree - lending limit)` for itself and offers the rest to its
//! cohort. So the quota of a subtree is its nominal quota plus the offers of its members. Usage
//! fills the local part first; usage beyond the local part counts at the cohort as well.

use super::{DominantShare, Group, Quota, TenantError};
use crate::cluster::TypeId;

/// Index of a group in a [`QuotaTree`]: first the tenants, with the indices of the workload, then
/// the cohorts.
pub type GroupId = usize;

/// State of the quotas at a time. Resources are the cluster's accelerator types in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaTree {
    tenants: usize,
    resources: usize,
    parent: Vec<Option<GroupId>>,
    children: Vec<Vec<GroupId>>,
    weight_milli: Vec<u32>,
    /// Quotas by group, then resource.
    quota: Vec<Quota>,
    subtree: Vec<u64>,
    potential: Vec<u64>,
}

/// Usage of each group, including what propagates up from its members. The usage belongs to the
/// tree for which it was reset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage(Vec<u64>);

impl Usage {
    /// Resets the usage to zero for `tree`.
    pub fn reset(&mut self, tree: &QuotaTree) {
        self.0.clear();
        self.0.resize(tree.subtree.len(), 0);
    }
}

impl QuotaTree {
    /// Creates a tree of `groups`, of which the first `tenants` are tenants and the others cohorts.
    ///
    /// # Errors
    /// [`TenantError`] where names, parents or types do not fit together.
    pub fn new(groups: &[Group], tenants: usize, types: &[&str]) -> Result<Self, TenantError> {
        let resources = types.len();
        let parent = groups.iter().map(|group| parent_of(group, groups, tenants)).collect::<Result<Vec<_>, _>>()?;
        let mut quota = vec![Quota::default(); groups.len() * resources];
        for (at, group) in groups.iter().enumerate() {
            if groups[..at].iter().any(|other| other.name == group.name) {
                return Err(TenantError::Twice { name: group.name.clone() });
            }
            let mut above = parent[at];
            // A group with more ancestors than there are groups is part of a cycle or below one.
            for _ in 0..groups.len() {
                above = above.and_then(|above| parent[above]);
            }
            if above.is_some() {
                return Err(TenantError::Cycle { name: group.name.clone() });
            }
            for (name, of_type) in &group.quotas {
                let Some(resource) = types.iter().position(|known| known == name) else {
                    let (group, accelerator) = (group.name.clone(), name.clone());
                    return Err(TenantError::UnknownType { group, accelerator, known: types.join(", ") });
                };
                if parent[at].is_none() && (of_type.borrowing_limit.is_some() || of_type.lending_limit.is_some()) {
                    return Err(TenantError::LimitWithoutCohort { group: group.name.clone() });
                }
                quota[at * resources + resource] = *of_type;
            }
        }
        let mut children = vec![Vec::new(); groups.len()];
        for (at, parent) in parent.iter().enumerate() {
            if let Some(parent) = parent {
                children[*parent].push(at);
            }
        }
        let weight_milli = groups.iter().map(|group| group.weight_milli).collect();
        let room = quota.len();
        let mut tree = Self {
            tenants,
            resources,
            parent,
            children,
            weight_milli,
            quota,
            subtree: vec![0; room],
            potential: vec![0; room],
        };
        tree.sum();
        Ok(tree)
    }

    /// Tree of these groups with other quotas of their own.
    #[must_use]
    pub fn with_quotas(&self, quota: impl Fn(GroupId, TypeId, Quota) -> Quota) -> Self {
        let mut tree = self.clone();
        for group in 0..self.parent.len() {
            for resource in self.resources() {
                let at = self.at(group, resource);
                tree.quota[at] = quota(group, resource, self.quota[at]);
            }
        }
        tree.sum();
        tree
    }

    /// Creates a tree for fair sharing without quotas: tenants of these weights, in thousandths,
    /// own no accelerators and borrow from one cohort that owns `capacity`, by resource.
    pub fn shared(weights_milli: impl IntoIterator<Item = u32>, capacity: &[u64]) -> Self {
        let (weights, resources) = (weights_milli.into_iter().collect::<Vec<_>>(), capacity.len());
        let (tenants, cohort) = (weights.len(), weights.len());
        let mut quota = vec![Quota::default(); (tenants + 1) * resources];
        for (quota, &nominal) in quota[tenants * resources..].iter_mut().zip(capacity) {
            quota.nominal = nominal;
        }
        let mut children = vec![Vec::new(); tenants];
        children.push((0..tenants).collect());
        let mut parent = vec![Some(cohort); tenants];
        parent.push(None);
        let mut weight_milli = weights;
        weight_milli.push(super::UNIT_WEIGHT);
        let subtree = quota.iter().map(|quota| quota.nominal).collect();
        let potential = capacity.repeat(tenants + 1);
        Self { tenants, resources, parent, children, weight_milli, quota, subtree, potential }
    }

    /// Number of tenants, which have the first indices.
    pub fn tenants(&self) -> usize {
        self.tenants
    }

    /// Accelerator types that the quotas count, ascending.
    pub fn resources(&self) -> impl Iterator<Item = TypeId> + use<> {
        TypeId::first(self.resources)
    }

    /// Whether the group is a tenant rather than a cohort.
    pub fn is_tenant(&self, group: GroupId) -> bool {
        group < self.tenants
    }

    /// Cohort to which the group belongs.
    pub fn parent(&self, group: GroupId) -> Option<GroupId> {
        self.parent[group]
    }

    /// Members of the group, ascending.
    pub fn children(&self, group: GroupId) -> &[GroupId] {
        &self.children[group]
    }

    /// Cohorts that contain the group, from the innermost to the root.
    pub fn ancestors(&self, group: GroupId) -> impl Iterator<Item = GroupId> {
        std::iter::successors(self.parent[group], |&above| self.parent[above])
    }

    /// Outermost cohort that contains the group, or the group itself.
    pub fn root(&self, group: GroupId) -> GroupId {
        self.ancestors(group).last().unwrap_or(group)
    }

    /// Quota that the group itself was given.
    pub fn quota(&self, group: GroupId, resource: TypeId) -> Quota {
        self.quota[self.at(group, resource)]
    }

    /// Weight of the group, in thousandths.
    pub fn weight_milli(&self, group: GroupId) -> u32 {
        self.weight_milli[group]
    }

    /// Quota of the group with all its members, which it can use without borrowing.
    pub fn subtree(&self, group: GroupId, resource: TypeId) -> u64 {
        self.subtree[self.at(group, resource)]
    }

    /// Largest usage that the group could have if all other groups were idle.
    pub fn potential(&self, group: GroupId, resource: TypeId) -> u64 {
        self.potential[self.at(group, resource)]
    }

    /// Current usage of the group, in accelerators.
    pub fn used(&self, usage: &Usage, group: GroupId, resource: TypeId) -> u64 {
        usage.0[self.at(group, resource)]
    }

    /// Whether the group uses more than the quota of its subtree.
    pub fn borrows(&self, usage: &Usage, group: GroupId, resource: TypeId) -> bool {
        self.used(usage, group, resource) > self.subtree(group, resource)
    }

    /// Number of further accelerators that the group may use now; negative where quotas shrank
    /// below the usage.
    pub fn available(&self, usage: &Usage, group: GroupId, resource: TypeId) -> i64 {
        let at = self.at(group, resource);
        let Some(parent) = self.parent[group] else {
            return self.subtree[at] as i64 - usage.0[at] as i64;
        };
        let local = self.local(at);
        let mut above = self.available(usage, parent, resource);
        if let Some(limit) = self.quota[at].borrowing_limit {
            let used_above = usage.0[at].saturating_sub(local) as i64;
            // As in Kueue: what the group has stored with its cohort, less what it uses of that,
            // plus the limit.
            above = above.min(((self.subtree[at] - local) as i64 - used_above).saturating_add_unsigned(limit));
        }
        local.saturating_sub(usage.0[at]) as i64 + above
    }

    /// Adds `amount` to the usage of the group.
    pub fn add(&self, usage: &mut Usage, group: GroupId, resource: TypeId, amount: u64) {
        let at = self.at(group, resource);
        // Only usage beyond the local part propagates to the cohort.
        let local = self.local(at).saturating_sub(usage.0[at]);
        usage.0[at] += amount;
        if let Some(parent) = self.parent[group]
            && amount > local
        {
            self.add(usage, parent, resource, amount - local);
        }
    }

    /// Subtracts `amount` from the usage of the group, which must be at least that much.
    pub fn remove(&self, usage: &mut Usage, group: GroupId, resource: TypeId, amount: u64) {
        let at = self.at(group, resource);
        // Borrowed usage is released first, because usage fills the local part first.
        let above = usage.0[at].saturating_sub(self.local(at));
        usage.0[at] -= amount;
        if let Some(parent) = self.parent[group]
            && above > 0
        {
            self.remove(usage, parent, resource, amount.min(above));
        }
    }

    /// Dominant share of the group, with `extra` usage added where given as a resource and an
    /// amount. Zero for a group without a cohort.
    pub fn share(&self, usage: &Usage, group: GroupId, extra: Option<(TypeId, u64)>) -> DominantShare {
        let mut share = DominantShare::none(self.weight_milli[group]);
        let Some(parent) = self.parent[group] else { return share };
        for resource in self.resources() {
            let more = extra.filter(|(of, _)| *of == resource).map_or(0, |(_, amount)| amount);
            let borrowed = (self.used(usage, group, resource) + more).saturating_sub(self.subtree(group, resource));
            share.include(resource, borrowed, self.potential(parent, resource));
        }
        share
    }

    fn at(&self, group: GroupId, resource: TypeId) -> usize {
        group * self.resources + resource.index()
    }

    /// Part of the subtree's quota that the group does not lend.
    fn local(&self, at: usize) -> u64 {
        self.quota[at].lending_limit.map_or(0, |limit| self.subtree[at].saturating_sub(limit))
    }

    /// Adds quotas up from the leaves, and brings what could be borrowed down from the root.
    fn sum(&mut self) {
        let roots: Vec<GroupId> = (0..self.parent.len()).filter(|&group| self.parent[group].is_none()).collect();
        for root in roots {
            self.add_up(root);
            self.offer_down(root);
        }
    }

    fn add_up(&mut self, group: GroupId) {
        for child in self.children[group].clone() {
            self.add_up(child);
        }
        for resource in self.resources() {
            let at = self.at(group, resource);
            let members = self.children[group].iter().map(|&child| self.at(child, resource));
            let offered: u64 = members.map(|child| self.subtree[child] - self.local(child)).sum();
            self.subtree[at] = self.quota[at].nominal + offered;
        }
    }

    fn offer_down(&mut self, group: GroupId) {
        for resource in self.resources() {
            let at = self.at(group, resource);
            self.potential[at] = match self.parent[group] {
                None => self.subtree[at],
                Some(parent) => {
                    let most = self.local(at) + self.potential[self.at(parent, resource)];
                    let limit =
                        self.quota[at].borrowing_limit.map_or(u64::MAX, |limit| self.subtree[at].saturating_add(limit));
                    most.min(limit)
                }
            };
        }
        for child in self.children[group].clone() {
            self.offer_down(child);
        }
    }
}

fn parent_of(group: &Group, groups: &[Group], tenants: usize) -> Result<Option<GroupId>, TenantError> {
    let Some(cohort) = &group.cohort else { return Ok(None) };
    let cohorts = &groups[tenants..];
    let found = cohorts.iter().position(|other| other.name == *cohort).map(|at| Some(tenants + at));
    found.ok_or_else(|| TenantError::UnknownCohort {
        group: group.name.clone(),
        cohort: cohort.clone(),
        known: cohorts.iter().map(|cohort| &*cohort.name).collect::<Vec<_>>().join(", "),
    })
}
