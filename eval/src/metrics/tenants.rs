//! Metrics of tenants: the share of each, the evenness of shares, and the harm that one can do to
//! another.

use goodput_env::scenario::Scenario;
use goodput_env::sim::{JobRecord, Outcome};

use super::{bounded_slowdown, jain_index, jct_secs};

/// A job starves when it waits longer than this many times its service.
pub const STARVATION: f64 = 10.0;

/// Service that one tenant received in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TenantFacts {
    /// Number of the tenant.
    pub tenant: u32,
    /// Weight of the tenant; 1 where it is not declared.
    pub weight: f64,
    /// Jobs submitted before the run ended.
    pub jobs: usize,
    /// Of those, complete.
    pub completed: usize,
    /// GPU time held, GPU-seconds.
    pub gpu_secs: f64,
    /// Share of the cluster's GPU time over the run that the tenant held: the time-average of its
    /// dominant share, accelerators being the one resource.
    pub share: f64,
    /// Mean completion time, seconds; `None` where nothing is complete.
    pub jct_mean_secs: Option<f64>,
    /// Mean bounded slowdown; `None` where nothing is complete.
    pub slowdown_mean: Option<f64>,
    /// Longest time from submission to the first accelerator, to the end of the run where there was
    /// none, seconds.
    pub max_wait_secs: f64,
}

/// Service that each tenant with jobs in the run received, in ascending order of tenants.
pub fn tenant_facts(scenario: &Scenario, outcome: &Outcome) -> Vec<TenantFacts> {
    let tenant_of = |job: &JobRecord| scenario.workload.jobs[job.job.index()].request.tenant;
    let tenants: std::collections::BTreeSet<u32> = outcome.jobs.iter().map(tenant_of).collect();
    let capacity = f64::from(scenario.cluster.total_gpus()) * outcome.end.as_secs_f64();
    let of = |tenant: u32| {
        let arrived = |job: &&JobRecord| tenant_of(job) == tenant && job.submit <= outcome.end;
        let jobs: Vec<&JobRecord> = outcome.jobs.iter().filter(arrived).collect();
        let gpu_secs = jobs.iter().map(|job| job.attained_gpu_millis).sum::<i64>() as f64 / 1e3;
        let mean = |values: Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        TenantFacts {
            tenant,
            weight: f64::from(scenario.workload.tenants.weight_milli(tenant)) / 1e3,
            jobs: jobs.len(),
            completed: jobs.iter().filter(|job| job.finish.is_some()).count(),
            gpu_secs,
            share: if capacity > 0.0 { gpu_secs / capacity } else { 0.0 },
            jct_mean_secs: mean(jobs.iter().filter_map(|job| jct_secs(job)).collect()),
            slowdown_mean: mean(jobs.iter().filter_map(|job| bounded_slowdown(job)).collect()),
            max_wait_secs: jobs.iter().map(|job| wait_secs(job, outcome)).fold(0.0, f64::max),
        }
    };
    tenants.into_iter().map(of).filter(|facts| facts.jobs > 0).collect()
}

/// From submission to the first accelerator, or to the end of the run.
pub fn wait_secs(job: &JobRecord, outcome: &Outcome) -> f64 {
    (job.start.unwrap_or(outcome.end) - job.submit).as_secs_f64().max(0.0)
}

/// Whether a job waited more than [`STARVATION`] times its service in all; one that never ran by
/// the end counts if it waited at all.
pub fn starves(job: &JobRecord, outcome: &Outcome) -> bool {
    let present = (job.finish.unwrap_or(outcome.end) - job.submit).as_secs_f64();
    let service = job.executed.as_secs_f64();
    present - service > STARVATION * service
}

/// Jain's index of `value` over tenants; `None` for fewer than two tenants or where a value is
/// missing.
pub(super) fn jain_of(facts: &[TenantFacts], value: impl Fn(&TenantFacts) -> Option<f64>) -> Option<f64> {
    let values = facts.iter().map(value).collect::<Option<Vec<f64>>>()?;
    (values.len() > 1).then(|| jain_index(&values))
}

/// Isolation index: the largest factor by which an attacker lengthens the mean completion time of
/// another tenant. Over all tenants that are not `attacker`, it is the mean completion time with
/// the attacker over the mean without. A value of 1 means that no tenant is affected. `None` where
/// a tenant has no complete job in one of the runs.
pub fn isolation_index(with: &[TenantFacts], without: &[TenantFacts], attacker: u32) -> Option<f64> {
    let honest = without.iter().filter(|facts| facts.tenant != attacker);
    let factors = honest.map(|alone| {
        let beside = with.iter().find(|facts| facts.tenant == alone.tenant)?;
        Some(beside.jct_mean_secs? / alone.jct_mean_secs?)
    });
    factors.collect::<Option<Vec<f64>>>()?.into_iter().max_by(f64::total_cmp)
}

/// Pairs (i, k) of tenants in which tenant i prefers the holding of tenant k, scaled to i's own
/// weight: `utility(i, held[i]) < utility(i, held[k] w_i / w_k)`.
pub fn envy_pairs(held: &[f64], weights: &[f64], utility: impl Fn(usize, f64) -> f64) -> Vec<(usize, usize)> {
    let pairs = (0..held.len()).flat_map(|one| (0..held.len()).map(move |other| (one, other)));
    let envies = |&(one, other): &(usize, usize)| {
        let scaled = held[other] * weights[one] / weights[other];
        // The margin keeps rounding from passing for envy.
        one != other && utility(one, scaled) > utility(one, held[one]) * (1.0 + 1e-9)
    };
    pairs.filter(envies).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(tenant: u32, jct_mean_secs: f64) -> TenantFacts {
        TenantFacts { tenant, jct_mean_secs: Some(jct_mean_secs), ..TenantFacts::default() }
    }

    #[test]
    fn isolation_looks_at_the_worst_of_the_honest() {
        let without = [facts(0, 100.0), facts(1, 50.0)];
        let with = [facts(0, 102.0), facts(1, 50.0), facts(2, 9e9)];
        assert_eq!(isolation_index(&with, &without, 2), Some(1.02));
    }

    #[test]
    fn envy_counts_weights_and_what_one_can_use() {
        let capped = |most: [f64; 2]| move |tenant: usize, gpus: f64| gpus.min(most[tenant]);
        assert_eq!(envy_pairs(&[2.0, 6.0], &[1.0, 1.0], capped([8.0, 8.0])), [(0, 1)]);
        assert_eq!(envy_pairs(&[2.0, 6.0], &[1.0, 3.0], capped([8.0, 8.0])), []);
        assert_eq!(envy_pairs(&[2.0, 6.0], &[1.0, 1.0], capped([2.0, 8.0])), []);
    }
}
