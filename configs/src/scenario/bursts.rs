//! Jobs that the file lists one burst at a time: `[[workload.bursts]]`, and the priorities of the
//! jobs of declared tenants.

use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work, Workload};
use goodput_env::placement::ShareRequest;
use goodput_env::time::SimTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SetupError;
use crate::tenants::TenantConfig;

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
    /// Share of these accelerators that is enough for a job: compute, in percent of one accelerator. Absent together
    /// with `memory_mib`: whole accelerators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_percent: Option<u32>,
    /// Device memory of the share, MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// Seconds each runs.
    pub run_secs: f64,
    /// Priority of the jobs; absent: that of the tenant.
    #[serde(default)]
    pub priority: Option<i32>,
    /// Seconds from its submission within which each job is to be done; absent: no deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_secs: Option<f64>,
}

fn value(key: &'static str, value: impl ToString, expected: &str) -> SetupError {
    SetupError::Value { key, value: value.to_string(), expected: expected.into() }
}

fn time(key: &'static str, secs: f64) -> Result<SimTime, SetupError> {
    let fine = (0.0..=1e12).contains(&secs);
    fine.then(|| SimTime::from_secs_f64(secs)).ok_or_else(|| value(key, secs, "0 to 1e12 seconds"))
}

/// Share that a job of the burst asks for.
fn share(burst: &Burst) -> Result<Option<ShareRequest>, SetupError> {
    let (Some(compute_percent), memory_mib) = (burst.compute_percent, burst.memory_mib.unwrap_or(0)) else {
        return match burst.memory_mib {
            Some(memory) => {
                Err(value("workload.bursts.memory_mib", memory, "a compute_percent beside it; 0 takes idle compute"))
            }
            None => Ok(None),
        };
    };
    if compute_percent > burst.gpus.saturating_mul(100) {
        return Err(value("workload.bursts.compute_percent", compute_percent, "at most 100 for each of gpus"));
    }
    Ok(Some(ShareRequest { compute_percent, memory_mib }))
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
        if let Some(secs) = burst.deadline_secs.filter(|secs| !(0.001..=1e12).contains(secs)) {
            return Err(value("workload.bursts.deadline_secs", secs, "a positive number of seconds"));
        }
        let (first, every) =
            (time("workload.bursts.at_secs", burst.at_secs)?, time("workload.bursts.every_secs", burst.every_secs)?);
        let share = share(burst)?;
        for index in 0..burst.jobs {
            let submit = first + SimTime::from_millis(every.as_millis() * i64::from(index));
            let request = JobRequest {
                name: format!("{}-{number}-{index}", burst.tenant),
                tenant: tenant as u32,
                submit,
                gpus: burst.gpus,
                elasticity: Elasticity::Rigid,
                priority: burst.priority.unwrap_or(0),
                deadline: burst.deadline_secs.map(|secs| submit + SimTime::from_secs_f64(secs)),
                share,
                ..JobRequest::default()
            };
            let duration = SimTime::from_secs_f64(burst.run_secs);
            jobs.push(JobSpec { request, work: Work::Fixed { duration } });
        }
    }
    Ok(Workload::new(Vec::new(), jobs))
}
