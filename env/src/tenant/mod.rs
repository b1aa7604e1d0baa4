//! Tenants that share the cluster: their weights and quotas.
//!
//! Quotas follow Kueue (github.com/kubernetes-sigs/kueue, KEP-79 and KEP-1714). A tenant is a
//! cluster queue, and cohorts group tenants and other cohorts. Quota that is unused in a cohort may
//! be borrowed within it. The accelerator types of the cluster are the resources, counted in whole
//! accelerators. [`QuotaTree`] holds one state of the quotas; [`Tenants`] holds the times at which
//! the quotas change during a run.
//!
//! Without quotas the tenants of a run are not limited: the weights then only give fair policies
//! their target.

mod limit;
mod parts;
mod share;
mod tree;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use limit::TenantLimit;
pub use share::DominantShare;
pub use tree::{GroupId, QuotaTree, Usage};

use crate::time::SimTime;

/// Weight of 1, in thousandths, which is the weight of a tenant that is not declared.
pub const UNIT_WEIGHT: u32 = 1000;

/// Quota of a group for one accelerator type, in accelerators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Number of accelerators that the group owns.
    pub nominal: u64,
    /// Largest number of accelerators that the group may borrow from its cohort beyond `nominal`;
    /// absent: no limit.
    #[serde(default)]
    pub borrowing_limit: Option<u64>,
    /// Largest number of idle accelerators that the group lends to its cohort; absent: all of them.
    #[serde(default)]
    pub lending_limit: Option<u64>,
}

/// Tenant that submits jobs, or cohort of tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Unique name of the group.
    pub name: String,
    /// Name of the cohort to which the group belongs.
    pub cohort: Option<String>,
    /// Share of common resources relative to the siblings, in thousandths; 0: the group may use
    /// idle accelerators and is the first to lose them.
    pub weight_milli: u32,
    /// Quotas by name of accelerator type; the group owns no accelerators of a type that is not
    /// named.
    pub quotas: BTreeMap<String, Quota>,
    /// Most compute and device memory that the jobs of a tenant hold at once; a cohort has no such limit.
    pub share_limit: ShareLimit,
}

/// Most compute and device memory that the jobs of a tenant hold at once, whole accelerators among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ShareLimit {
    /// Compute, in percent of one accelerator, so that 250 is two and a half; absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute_percent: Option<u64>,
    /// Device memory, MiB; absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
}

impl ShareLimit {
    /// Units of the amounts.
    pub const UNITS: [&str; 2] = ["% of an accelerator", "MiB"];

    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Most compute and most memory; [`u64::MAX`] where there is no limit.
    pub fn amounts(&self) -> [u64; 2] {
        [self.compute_percent, self.memory_mib].map(|most| most.unwrap_or(u64::MAX))
    }
}

impl Group {
    /// Creates a group of weight 1 without quotas and cohort.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            cohort: None,
            weight_milli: UNIT_WEIGHT,
            quotas: BTreeMap::new(),
            share_limit: ShareLimit::default(),
        }
    }
}

/// Change of a group's quota for one accelerator type, valid from `at` on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaChange {
    /// Simulated time of the change.
    pub at: SimTime,
    /// Name of the tenant or cohort.
    pub group: String,
    /// Name of the accelerator type.
    pub accelerator: String,
    /// Quota after the change.
    pub quota: Quota,
}

/// Error in tenants that contradict each other or the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TenantError {
    /// Two groups have one name.
    #[error("two tenants or cohorts are called `{name}`; rename one")]
    Twice {
        /// Name of both groups.
        name: String,
    },
    /// A group names a cohort that is not declared.
    #[error("`{group}` is in cohort `{cohort}`, which is not declared; there are: {known}")]
    UnknownCohort {
        /// Name of the group.
        group: String,
        /// Name of the undeclared cohort.
        cohort: String,
        /// Names of the declared cohorts.
        known: String,
    },
    /// A cohort contains itself.
    #[error("cohort `{name}` is within itself; give one cohort on the way round another parent or none")]
    Cycle {
        /// Name of the cohort.
        name: String,
    },
    /// A quota names an accelerator type that the cluster does not have.
    #[error("`{group}` has a quota of accelerator type `{accelerator}`; the cluster has: {known}")]
    UnknownType {
        /// Name of the group with the quota.
        group: String,
        /// Name of the accelerator type.
        accelerator: String,
        /// Names of the cluster's accelerator types.
        known: String,
    },
    /// A borrowing or lending limit is given for a group without a cohort.
    #[error("`{group}` has a borrowing or lending limit but no cohort; name a cohort or drop the limit")]
    LimitWithoutCohort {
        /// Name of the group with the limit.
        group: String,
    },
    /// A change of quota names an undeclared group.
    #[error("a change of quota names `{group}`, which is no tenant or cohort; there are: {known}")]
    UnknownGroup {
        /// Name of the group.
        group: String,
        /// Names of the declared groups.
        known: String,
    },
}

/// Tenants of a run, indexed by [`crate::job::JobRequest::tenant`]. A job may belong to a tenant
/// that is not declared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tenants {
    groups: Vec<Group>,
    count: usize,
    /// States of the quotas with the time from which each holds, ascending, the first from time
    /// zero; empty where there are no quotas.
    trees: Vec<(SimTime, QuotaTree)>,
    /// Index of the first group that was given a quota, at the beginning or by a change.
    quota_owner: Option<usize>,
}

impl Tenants {
    /// Checks tenants, cohorts and changes against each other and against `types`, the accelerator
    /// types of the cluster in the cluster's order.
    ///
    /// # Errors
    /// [`TenantError`] with the name of the group and the reason.
    pub fn new(
        tenants: Vec<Group>,
        cohorts: Vec<Group>,
        mut changes: Vec<QuotaChange>,
        types: &[&str],
    ) -> Result<Self, TenantError> {
        let count = tenants.len();
        let mut groups = tenants;
        groups.extend(cohorts);
        let mut trees = vec![(SimTime::ZERO, QuotaTree::new(&groups, count, types)?)];
        // The sort is stable, so of several changes at one time the last one given holds.
        changes.sort_by_key(|change| change.at);
        let mut dated = groups.clone();
        for change in changes {
            let Some(group) = dated.iter_mut().find(|group| group.name == change.group) else {
                let known = groups.iter().map(|group| &*group.name).collect::<Vec<_>>().join(", ");
                return Err(TenantError::UnknownGroup { group: change.group, known });
            };
            group.quotas.insert(change.accelerator, change.quota);
            let tree = QuotaTree::new(&dated, count, types)?;
            // Only the last of several changes at one time is visible.
            if trees.last().is_some_and(|(at, _)| *at == change.at) {
                trees.pop();
            }
            trees.push((change.at, tree));
        }
        let quota_owner = dated.iter().position(|group| !group.quotas.is_empty());
        if quota_owner.is_none() {
            trees.clear();
        }
        Ok(Self { groups, count, trees, quota_owner })
    }

    /// Number of declared tenants.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether no tenant is declared.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Declared tenants in the order of their indices.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Group> {
        self.groups[..self.count].iter()
    }

    /// Declared cohorts in the order of their declaration.
    pub fn cohorts(&self) -> &[Group] {
        &self.groups[self.count..]
    }

    /// Tenant at `index`, where it is declared.
    pub fn get(&self, index: u32) -> Option<&Group> {
        self.groups[..self.count].get(index as usize)
    }

    /// Weight of the tenant at `index` in thousandths; [`UNIT_WEIGHT`] where it is not declared.
    pub fn weight_milli(&self, index: u32) -> u32 {
        self.get(index).map_or(UNIT_WEIGHT, |tenant| tenant.weight_milli)
    }

    /// First tenant or cohort that was given a quota, at the beginning or by a change; `None` where weights alone
    /// divide the cluster.
    pub fn quota_owner(&self) -> Option<&Group> {
        self.quota_owner.map(|at| &self.groups[at])
    }

    /// Quotas that hold at `now`; `None` in a run without quotas.
    pub fn quotas(&self, now: SimTime) -> Option<&QuotaTree> {
        self.quotas_from(now).next()
    }

    /// Quotas that hold at `now`, and those of each later time; none in a run without quotas.
    pub fn quotas_from(&self, now: SimTime) -> impl Iterator<Item = &QuotaTree> {
        // The first quotas hold from time zero.
        let current = self.trees.partition_point(|(at, _)| *at <= now).saturating_sub(1);
        self.trees[current..].iter().map(|(_, tree)| tree)
    }

    /// First tenant that can hold no accelerator at any time, because neither quotas nor parts give it any.
    pub fn without_room(&self) -> Option<&Group> {
        let rooms = |tenant: usize| {
            let mut quotas = self.quotas_from(SimTime::ZERO).peekable();
            quotas.peek().is_none() || quotas.any(|tree| tree.resources().any(|kind| tree.potential(tenant, kind) > 0))
        };
        self.iter().enumerate().find(|(tenant, _)| !rooms(*tenant)).map(|(_, group)| group)
    }

    /// Time of the next change of quotas after `now`.
    pub fn next_change(&self, now: SimTime) -> Option<SimTime> {
        self.trees.get(self.trees.partition_point(|(at, _)| *at <= now)).map(|(at, _)| *at)
    }
}
