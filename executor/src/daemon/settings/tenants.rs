//! Tenants and cohorts of a deployment's cluster.

use std::collections::{BTreeMap, BTreeSet};

use goodput_env::tenant::{Group, Quota, TenantError, Tenants, UNIT_WEIGHT};
use serde::{Deserialize, Serialize};

use super::Settings;

/// A tenant or a cohort.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSettings {
    /// Name, unique among tenants and cohorts.
    pub name: String,
    /// Part of what is shared, relative to its siblings; 0: only what is idle.
    #[serde(default = "one")]
    pub weight: f64,
    /// Cohort that contains the group.
    #[serde(default)]
    pub cohort: Option<String>,
    /// Quota of the group by accelerator type. Where no group has a quota, there are no limits.
    #[serde(default)]
    pub quota: BTreeMap<String, Quota>,
}

const fn one() -> f64 {
    1.0
}

impl Settings {
    /// Tenants of the cluster, with the rules between them checked.
    ///
    /// # Errors
    /// [`TenantError`] that names the group and its fault.
    pub fn tenants(&self) -> Result<Tenants, TenantError> {
        let group = |group: &GroupSettings| Group {
            name: group.name.clone(),
            cohort: group.cohort.clone(),
            weight_milli: (group.weight * f64::from(UNIT_WEIGHT)).round() as u32,
            quotas: group.quota.clone(),
        };
        let of = |groups: &[GroupSettings]| groups.iter().map(group).collect::<Vec<_>>();
        let named: BTreeSet<&str> =
            self.tenants.iter().chain(&self.cohorts).flat_map(|group| group.quota.keys()).map(String::as_str).collect();
        Tenants::new(of(&self.tenants), of(&self.cohorts), Vec::new(), &named.into_iter().collect::<Vec<_>>())
    }
}
