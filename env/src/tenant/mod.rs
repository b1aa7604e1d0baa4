//! Who shares the cluster: tenants with weights, and what each may hold.
//!
//! Quotas follow Kueue (github.com/kubernetes-sigs/kueue, KEP-79 and KEP-1714): a tenant is a cluster queue, cohorts group tenants and other
//! cohorts, and what nobody in a cohort uses may be borrowed within it. The accelerator types of the cluster are the resources, counted in
//! whole accelerators. [`QuotaTree`] holds one state of the quotas; [`Tenants`] knows when it changes during a run.
//!
//! A run without quotas is not limited in any way: weights then only tell fair policies what to aim for.

mod share;
mod tree;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use share::DominantShare;
pub use tree::{GroupId, QuotaTree, Usage};

use crate::time::SimTime;

/// Weight of 1, in thousandths: what a tenant that is not declared has.
pub const UNIT_WEIGHT: u32 = 1000;

/// What one group may hold of one accelerator type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Accelerators of its own.
    pub nominal: u64,
    /// Most it may borrow from its cohort on top; `None`: as much as there is.
    #[serde(default)]
    pub borrowing_limit: Option<u64>,
    /// Most that it lends to its cohort while idle; `None`: everything.
    #[serde(default)]
    pub lending_limit: Option<u64>,
}

/// Somebody who submits jobs, or a cohort of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Unique name.
    pub name: String,
    /// The cohort it is in.
    pub cohort: Option<String>,
    /// Part of what is shared, relative to its siblings, in thousandths; 0: may use what is idle, and is the first to lose it.
    pub weight_milli: u32,
    /// Quotas by name of accelerator type; of a type that is not named it has none of its own.
    pub quotas: BTreeMap<String, Quota>,
}

impl Group {
    /// A group of weight 1 without quotas and cohort.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), cohort: None, weight_milli: UNIT_WEIGHT, quotas: BTreeMap::new() }
    }
}

/// From `at` on, a group's quota of one accelerator type is another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaChange {
    /// When.
    pub at: SimTime,
    /// The tenant or cohort.
    pub group: String,
    /// The accelerator type.
    pub accelerator: String,
    /// The new quota.
    pub quota: Quota,
}

/// Tenants that contradict each other or the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TenantError {
    /// Two groups of one name.
    #[error("two tenants or cohorts are called `{name}`; rename one")]
    Twice {
        /// The name.
        name: String,
    },
    /// A cohort that is not declared.
    #[error("`{group}` is in cohort `{cohort}`, which is not declared; there are: {known}")]
    UnknownCohort {
        /// Who is in it.
        group: String,
        /// Its name.
        cohort: String,
        /// The declared ones.
        known: String,
    },
    /// A cohort within itself.
    #[error("cohort `{name}` is within itself; give one cohort on the way round another parent or none")]
    Cycle {
        /// Its name.
        name: String,
    },
    /// A quota of what the cluster does not have.
    #[error("`{group}` has a quota of accelerator type `{accelerator}`; the cluster has: {known}")]
    UnknownType {
        /// Whose quota.
        group: String,
        /// Of what.
        accelerator: String,
        /// The cluster's types.
        known: String,
    },
    /// A limit of sharing for a group that shares with nobody.
    #[error("`{group}` has a borrowing or lending limit but no cohort; name a cohort or drop the limit")]
    LimitWithoutCohort {
        /// Whose limit.
        group: String,
    },
    /// A change of nobody's quota.
    #[error("a change of quota names `{group}`, which is no tenant or cohort; there are: {known}")]
    UnknownGroup {
        /// The name.
        group: String,
        /// The declared ones.
        known: String,
    },
}

/// The tenants of a run: [`crate::job::JobRequest::tenant`] indexes them. Nobody need be declared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tenants {
    groups: Vec<Group>,
    count: usize,
    /// From when on each state of the quotas holds, ascending, the first from time zero; empty where nobody has a quota.
    trees: Vec<(SimTime, QuotaTree)>,
}

impl Tenants {
    /// Checks tenants, cohorts and changes against each other and the cluster's accelerator types, in the cluster's order.
    ///
    /// # Errors
    /// [`TenantError`] naming the group and what is wrong with it.
    pub fn new(
        tenants: Vec<Group>,
        cohorts: Vec<Group>,
        mut changes: Vec<QuotaChange>,
        types: &[&str],
    ) -> Result<Self, TenantError> {
        let count = tenants.len();
        let mut groups = tenants;
        groups.extend(cohorts);
        let mut trees = Vec::new();
        let tree = QuotaTree::new(&groups, count, types)?;
        changes.sort_by_key(|change| change.at);
        if groups.iter().any(|group| !group.quotas.is_empty()) || !changes.is_empty() {
            trees.push((SimTime::ZERO, tree));
        }
        let mut dated = groups.clone();
        for change in changes {
            let Some(group) = dated.iter_mut().find(|group| group.name == change.group) else {
                let known = groups.iter().map(|group| &*group.name).collect::<Vec<_>>().join(", ");
                return Err(TenantError::UnknownGroup { group: change.group, known });
            };
            group.quotas.insert(change.accelerator, change.quota);
            let tree = QuotaTree::new(&dated, count, types)?;
            if trees.last().is_some_and(|(at, _)| *at == change.at) {
                trees.pop();
            }
            trees.push((change.at, tree));
        }
        Ok(Self { groups, count, trees })
    }

    /// Number of declared tenants.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether nobody is declared.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Declared tenants in the order of their indices.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Group> {
        self.groups[..self.count].iter()
    }

    /// Declared cohorts.
    pub fn cohorts(&self) -> &[Group] {
        &self.groups[self.count..]
    }

    /// The tenant at `index`, where it is declared.
    pub fn get(&self, index: u32) -> Option<&Group> {
        self.groups[..self.count].get(index as usize)
    }

    /// Weight of the tenant at `index` in thousandths; [`UNIT_WEIGHT`] where it is not declared.
    pub fn weight_milli(&self, index: u32) -> u32 {
        self.get(index).map_or(UNIT_WEIGHT, |tenant| tenant.weight_milli)
    }

    /// The quotas that hold at `now`; `None` where nobody has any.
    pub fn quotas(&self, now: SimTime) -> Option<&QuotaTree> {
        let after = self.trees.partition_point(|(at, _)| *at <= now);
        self.trees.get(after.checked_sub(1)?).map(|(_, tree)| tree)
    }

    /// When quotas change next after `now`.
    pub fn next_change(&self, now: SimTime) -> Option<SimTime> {
        self.trees.get(self.trees.partition_point(|(at, _)| *at <= now)).map(|(at, _)| *at)
    }
}
