//! Tenants of the cluster: `[[tenants]]` and `[[cohorts]]`, and jobs that the file lists one burst
//! at a time: `[[workload.bursts]]`.

use std::collections::BTreeMap;

use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work, Workload};
use goodput_env::tenant::{Group, Quota, QuotaChange, TenantError, Tenants, UNIT_WEIGHT};
use goodput_env::time::SimTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SetupError;

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
    /// The cohort it lends to and borrows from.
    #[serde(default)]
    pub cohort: Option<String>,
    /// Priority of its jobs, unless they have their own.
    #[serde(default)]
    pub priority: i32,
    /// Quota of the tenant, by accelerator type. Where no tenant and no cohort has a quota there
    /// are no limits, and weights alone divide the cluster.
    #[serde(default)]
    pub quota: BTreeMap<String, QuotaConfig>,
    /// Quotas that change during the run.
    #[serde(default)]
    pub quota_changes: Vec<QuotaChangeConfig>,
}

/// A group of tenants, or of other cohorts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CohortConfig {
    /// Name of the cohort, unique among tenants and cohorts.
    pub name: String,
    /// Part of what is shared, relative to its siblings.
    #[serde(default = "one")]
    pub weight: f64,
    /// The cohort it is in.
    #[serde(default)]
    pub cohort: Option<String>,
    /// Quota that all members of the cohort share, by accelerator type.
    #[serde(default)]
    pub quota: BTreeMap<String, QuotaConfig>,
}

/// Quota of a tenant or cohort for one accelerator type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuotaConfig {
    /// Accelerators of its own.
    pub nominal: u64,
    /// Most it borrows; absent: as much as there is.
    #[serde(default)]
    pub borrowing_limit: Option<u64>,
    /// Most it lends; absent: everything.
    #[serde(default)]
    pub lending_limit: Option<u64>,
}

/// From a moment on, another quota.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuotaChangeConfig {
    /// Time of the change, seconds from the start of the run.
    pub at_secs: f64,
    /// Of which accelerator type.
    pub accelerator: String,
    /// The new quota.
    pub quota: QuotaConfig,
}

/// Equal jobs that a tenant submits one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Name of the tenant that submits the jobs: one of `tenants`, where tenants are declared.
    pub tenant: String,
    /// Submission time of the first job, seconds; absent: 0.
    #[serde(default)]
    pub at_secs: f64,
    /// Number of jobs in the burst.
    pub jobs: u32,
    /// Seconds between them; 0: all at once.
    #[serde(default)]
    pub every_secs: f64,
    /// Accelerators of each.
    pub gpus: u32,
    /// Seconds each runs.
    pub run_secs: f64,
    /// Priority of the jobs; absent: that of the tenant.
    #[serde(default)]
    pub priority: Option<i32>,
}

fn one() -> f64 {
    1.0
}

fn value(key: &'static str, value: impl ToString, expected: &str) -> SetupError {
    SetupError::Value { key, value: value.to_string(), expected: expected.into() }
}

fn time(key: &'static str, secs: f64) -> Result<SimTime, SetupError> {
    let fine = (0.0..=1e12).contains(&secs);
    fine.then(|| SimTime::from_secs_f64(secs)).ok_or_else(|| value(key, secs, "0 to 1e12 seconds"))
}

fn weight(key: &'static str, weight: f64) -> Result<u32, SetupError> {
    let milli = weight * f64::from(UNIT_WEIGHT);
    let fine = (0.0..=1e9).contains(&milli) && (weight == 0.0 || milli >= 1.0);
    fine.then(|| milli.round() as u32).ok_or_else(|| value(key, weight, "0, or 0.001 to 1000000"))
}

impl QuotaConfig {
    fn build(self) -> Result<Quota, SetupError> {
        let Self { nominal, borrowing_limit, lending_limit } = self;
        match [Some(nominal), borrowing_limit, lending_limit].into_iter().flatten().find(|&amount| amount > MOST) {
            Some(amount) => Err(value("quota", amount, "at most 1000000000 accelerators")),
            None => Ok(Quota { nominal, borrowing_limit, lending_limit }),
        }
    }
}

fn quotas(config: &BTreeMap<String, QuotaConfig>) -> Result<BTreeMap<String, Quota>, SetupError> {
    config.iter().map(|(name, quota)| Ok((name.clone(), quota.build()?))).collect()
}

/// Checks the tables against each other and the cluster's accelerator types.
///
/// # Errors
/// [`SetupError`] naming the key, tenant or cohort.
pub fn build(tenants: &[TenantConfig], cohorts: &[CohortConfig], types: &[&str]) -> Result<Tenants, SetupError> {
    let mut changes = Vec::new();
    let mut groups = Vec::with_capacity(tenants.len());
    for tenant in tenants {
        let TenantConfig { name, cohort, .. } = tenant.clone();
        let weight_milli = weight("tenants.weight", tenant.weight)?;
        groups.push(Group { name, cohort, weight_milli, quotas: quotas(&tenant.quota)? });
        for change in &tenant.quota_changes {
            changes.push(QuotaChange {
                at: time("tenants.quota_changes.at_secs", change.at_secs)?,
                group: tenant.name.clone(),
                accelerator: change.accelerator.clone(),
                quota: change.quota.build()?,
            });
        }
    }
    let cohort = |cohort: &CohortConfig| {
        let CohortConfig { name, cohort: parent, .. } = cohort.clone();
        let weight_milli = weight("cohorts.weight", cohort.weight)?;
        Ok(Group { name, cohort: parent, weight_milli, quotas: quotas(&cohort.quota)? })
    };
    let cohorts = cohorts.iter().map(cohort).collect::<Result<Vec<_>, SetupError>>()?;
    if tenants.is_empty() && !cohorts.is_empty() {
        return Err(value("cohorts", "declared", "tenants in them, as [[tenants]]"));
    }
    Ok(Tenants::new(groups, cohorts, changes, types)?)
}

/// Gives the jobs of declared tenants their priority, where they have none of their own.
///
/// # Errors
/// [`SetupError::Value`] for a job of a tenant that is not declared.
pub(super) fn assign(workload: &mut Workload, tenants: &[TenantConfig]) -> Result<(), SetupError> {
    for job in &mut workload.jobs {
        let Some(tenant) = tenants.get(job.request.tenant as usize) else {
            let found = format!("{} declared, but jobs are of {} or more", tenants.len(), job.request.tenant + 1);
            return Err(value("tenants", found, "one [[tenants]] for each tenant of the workload"));
        };
        if job.request.priority == 0 {
            job.request.priority = tenant.priority;
        }
    }
    Ok(())
}

/// The jobs of all bursts, called `tenant-burst-index`.
///
/// # Errors
/// [`SetupError::Value`] for numbers out of range and for tenants that are not declared, where any
/// is.
pub(super) fn scripted(bursts: &[Burst], tenants: &[TenantConfig]) -> Result<Workload, SetupError> {
    let mut names: Vec<&str> = tenants.iter().map(|tenant| &*tenant.name).collect();
    let mut jobs = Vec::new();
    for (number, burst) in bursts.iter().enumerate() {
        let known = names.iter().position(|name| *name == burst.tenant);
        let tenant = match known {
            Some(tenant) => tenant,
            None if tenants.is_empty() => {
                names.push(&burst.tenant);
                names.len() - 1
            }
            None => {
                let known = format!("one of the declared tenants: {}", names.join(", "));
                return Err(value("workload.bursts.tenant", &burst.tenant, &known));
            }
        };
        if burst.jobs == 0 || burst.jobs > 1_000_000 {
            return Err(value("workload.bursts.jobs", burst.jobs, "1 to 1000000"));
        }
        if burst.gpus == 0 {
            return Err(value("workload.bursts.gpus", burst.gpus, "at least 1"));
        }
        if !(0.001..=1e12).contains(&burst.run_secs) {
            return Err(value("workload.bursts.run_secs", burst.run_secs, "a positive number of seconds"));
        }
        let (first, every) =
            (time("workload.bursts.at_secs", burst.at_secs)?, time("workload.bursts.every_secs", burst.every_secs)?);
        for index in 0..burst.jobs {
            let request = JobRequest {
                name: format!("{}-{number}-{index}", burst.tenant),
                tenant: tenant as u32,
                submit: first + SimTime::from_millis(every.as_millis() * i64::from(index)),
                gpus: burst.gpus,
                elasticity: Elasticity::Rigid,
                priority: burst.priority.unwrap_or(0),
                ..JobRequest::default()
            };
            let duration = SimTime::from_secs_f64(burst.run_secs);
            jobs.push(JobSpec { request, work: Work::Fixed { duration } });
        }
    }
    Ok(Workload::new(Vec::new(), jobs))
}

impl From<TenantError> for SetupError {
    fn from(error: TenantError) -> Self {
        Self::Tenants(error)
    }
}
