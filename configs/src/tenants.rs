//! Tenants of a cluster: `[[tenants]]` and `[[cohorts]]` of experiments and of deployments.

use std::collections::{BTreeMap, BTreeSet};

use goodput_env::cluster::Cluster;
use goodput_env::scenario::Allocation;
use goodput_env::tenant::{Group, Quota, QuotaChange, ShareLimit, Tenants, UNIT_WEIGHT};
use goodput_env::time::SimTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::CheckError;

/// Most accelerators in a quota or limit.
const MOST: u64 = 1_000_000_000;

/// Tenant that submits jobs. The first tenant of the file owns the jobs with tenant index 0, the
/// second those with index 1, and so on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantConfig {
    /// Name of the tenant, unique among tenants and cohorts.
    pub name: String,
    /// Part of what is shared, relative to the others of the cohort; 0: only what is idle.
    #[serde(default = "one")]
    pub weight: f64,
    /// Cohort that the tenant lends to and borrows from.
    #[serde(default)]
    pub cohort: Option<String>,
    /// Priority of its jobs, unless they have their own; for experiments only.
    #[serde(default)]
    pub priority: i32,
    /// Quota of the tenant, by accelerator type. Where no tenant and no cohort has a quota there
    /// are no limits, and weights alone divide the cluster.
    #[serde(default)]
    pub quota: BTreeMap<String, Quota>,
    /// Most compute and device memory that the jobs of the tenant hold at once, whole accelerators included; absent:
    /// no limit. The policies that place jobs on parts of accelerators know it.
    #[serde(default, skip_serializing_if = "ShareLimit::is_none")]
    pub share_limit: ShareLimit,
    /// Quotas that change during the run; for experiments only.
    #[serde(default)]
    pub quota_changes: Vec<QuotaChangeConfig>,
}

/// A group of tenants, or of other cohorts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CohortConfig {
    /// Name of the cohort, unique among tenants and cohorts.
    pub name: String,
    /// Part of what is shared, relative to its siblings; 0: only what is idle.
    #[serde(default = "one")]
    pub weight: f64,
    /// Cohort that contains the cohort.
    #[serde(default)]
    pub cohort: Option<String>,
    /// Quota that all members of the cohort share, by accelerator type.
    #[serde(default)]
    pub quota: BTreeMap<String, Quota>,
}

/// Change of a tenant's quota during a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuotaChangeConfig {
    /// Time of the change, seconds from the start of the run.
    pub at_secs: f64,
    /// Accelerator type that the quota is for.
    pub accelerator: String,
    /// The new quota.
    pub quota: Quota,
}

fn one() -> f64 {
    1.0
}

fn weight(key: &'static str, weight: f64) -> Result<u32, CheckError> {
    let milli = weight * f64::from(UNIT_WEIGHT);
    let fine = (0.0..=1e9).contains(&milli) && (weight == 0.0 || milli >= 1.0);
    fine.then(|| milli.round() as u32).ok_or_else(|| CheckError::value(key, weight, "0, or 0.001 to 1000000"))
}

fn quota(key: &'static str, quota: &Quota) -> Result<Quota, CheckError> {
    let Quota { nominal, borrowing_limit, lending_limit } = *quota;
    match [Some(nominal), borrowing_limit, lending_limit].into_iter().flatten().find(|&amount| amount > MOST) {
        Some(amount) => Err(CheckError::value(key, amount, "at most 1000000000 accelerators")),
        None => Ok(*quota),
    }
}

fn quotas(key: &'static str, quotas: &BTreeMap<String, Quota>) -> Result<BTreeMap<String, Quota>, CheckError> {
    quotas.iter().map(|(name, given)| Ok((name.clone(), quota(key, given)?))).collect()
}

fn group(tenant: &TenantConfig) -> Result<Group, CheckError> {
    Ok(Group {
        cohort: tenant.cohort.clone(),
        weight_milli: weight("tenants.weight", tenant.weight)?,
        quotas: quotas("tenants.quota", &tenant.quota)?,
        share_limit: tenant.share_limit,
        ..Group::named(&tenant.name)
    })
}

fn group_of(cohort: &CohortConfig) -> Result<Group, CheckError> {
    Ok(Group {
        cohort: cohort.cohort.clone(),
        weight_milli: weight("cohorts.weight", cohort.weight)?,
        quotas: quotas("cohorts.quota", &cohort.quota)?,
        ..Group::named(&cohort.name)
    })
}

fn change(tenant: &TenantConfig, change: &QuotaChangeConfig) -> Result<QuotaChange, CheckError> {
    let secs = change.at_secs;
    if !(0.0..=1e12).contains(&secs) {
        return Err(CheckError::value("tenants.quota_changes.at_secs", secs, "0 to 1e12 seconds"));
    }
    Ok(QuotaChange {
        at: SimTime::from_secs_f64(secs),
        group: tenant.name.clone(),
        accelerator: change.accelerator.clone(),
        quota: quota("tenants.quota_changes", &change.quota)?,
    })
}

/// Names of the accelerator types that quotas name.
pub(crate) fn types<'a>(tenants: &'a [TenantConfig], cohorts: &'a [CohortConfig]) -> Vec<&'a str> {
    let quotas = tenants.iter().map(|tenant| &tenant.quota).chain(cohorts.iter().map(|cohort| &cohort.quota));
    let named: BTreeSet<&str> = quotas.flat_map(BTreeMap::keys).map(String::as_str).collect();
    named.into_iter().collect()
}

/// Tenants, checked against each other and against `types`, the accelerator types of the cluster.
///
/// # Errors
/// [`CheckError`] naming the key, tenant or cohort.
pub(crate) fn build(tenants: &[TenantConfig], cohorts: &[CohortConfig], types: &[&str]) -> Result<Tenants, CheckError> {
    let (mut groups, mut changes) = (Vec::new(), Vec::new());
    for tenant in tenants {
        let named = |error: CheckError| error.within("tenants", &tenant.name);
        groups.push(group(tenant).map_err(named)?);
        for dated in &tenant.quota_changes {
            changes.push(change(tenant, dated).map_err(named)?);
        }
    }
    let named = |cohort: &CohortConfig| group_of(cohort).map_err(|error| error.within("cohorts", &cohort.name));
    let parents = cohorts.iter().map(named).collect::<Result<Vec<_>, _>>()?;
    if tenants.is_empty() && !cohorts.is_empty() {
        return Err(CheckError::value("cohorts", "declared", "tenants in them, as [[tenants]]"));
    }
    Tenants::new(groups, parents, changes, types)
        .map_err(|error| CheckError::at("tenants", format!("tenants: {error}")))
}

/// Checks that the tenants can share `cluster` by `allocation`: there are tenants, each of them can hold accelerators
/// at some time, and where any group has a quota, dynamic tenants have a cohort to borrow from.
///
/// # Errors
/// [`CheckError`] naming the tenant.
pub(crate) fn check_allocation(allocation: Allocation, tenants: &Tenants, cluster: &Cluster) -> Result<(), CheckError> {
    let key = "environment.allocation";
    let refused = |problem: String, remedy| {
        let message = format!("{key} is {:?}, and {problem}", allocation.name());
        Err(CheckError { remedy: Some(remedy), ..CheckError::at(key, message) })
    };
    if tenants.is_empty() {
        return refused("the file has no tenants".into(), "declare [[tenants]], or remove environment.allocation");
    }
    let quotas = tenants.quota_owner().is_some();
    if let Some(tenant) = tenants.iter().find(|tenant| quotas && allocation.lends() && tenant.cohort.is_none()) {
        let problem = format!("tenant {:?} has no cohort to lend to and to borrow from", tenant.name);
        return refused(problem, "give every tenant a cohort, or choose a static allocation");
    }
    let allotted = allocation.of_tenants(cluster, tenants);
    let Some(tenant) = allotted.without_room() else { return Ok(()) };
    let problem = format!("tenant {:?} owns no accelerators", tenant.name);
    match (allocation.lends(), quotas) {
        (true, _) => refused(problem + " and can borrow none", "give its cohort a quota"),
        (false, true) => {
            refused(problem, "give every tenant a quota, give none to any group, or choose a dynamic allocation")
        }
        (false, false) => {
            let weight = f64::from(tenant.weight_milli) / f64::from(UNIT_WEIGHT);
            let problem = format!("{problem}: its weight is {weight}, and the cluster is divided by weights");
            refused(problem, "give the tenant a larger weight, remove it, or choose a dynamic allocation")
        }
    }
}
