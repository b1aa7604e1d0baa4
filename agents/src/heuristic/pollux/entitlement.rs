//! Parts of the cluster that jobs are entitled to where tenants are to be equal rather than jobs.
//!
//! Pollux's fitness (OSDI 2021, equations 14 and 15) gives every job one `J`-th of the cluster as its fair share `a_f`
//! and one vote in the power mean of speedups over that share. A tenant with more jobs therefore gets more. This
//! project replaces the share of a job by an entitlement `e_j`, of which the sum is the cluster, in both places:
//!
//! ```text
//! fitness(A) = (1/E sum_j e_j speedup_j(a_j)^p)^(1/p),   speedup_j(a) = goodput_j(a) / goodput_j(e_j),   E = sum_j e_j
//! ```
//!
//! Where goodput grows in proportion to accelerators, a job's term is `e_j^(1-p) a_j^p`, and the sum of terms is least
//! where every `a_j` is `e_j`, for every `p` below 0. Where all jobs are entitled to one `J`-th, this is the published
//! fitness. The entitlements are max-min fair: by weight between tenants, as far as the jobs of a tenant can use them,
//! and equal between the jobs of a tenant.

use super::objective::PolluxJob;
use crate::heuristic::kai::fair_share::{ShareQueue, fair_shares};

/// Accelerators to which a job is entitled where its tenant has none left for it. The job still takes what idles.
const LEFT_OUT: f64 = 1e-3;

/// Accelerators of `total` to which each job is entitled. `fairness` leads from equal jobs (0) to equal tenants (1).
pub(super) fn entitlements(total: u32, jobs: &[PolluxJob], fairness: f64) -> Vec<f64> {
    let equal = f64::from(total) / jobs.len().max(1) as f64;
    let mut of_tenants = vec![LEFT_OUT; jobs.len()];
    let mut tenants: Vec<u32> = jobs.iter().map(|job| job.tenant).collect();
    tenants.sort_unstable();
    tenants.dedup();
    let members = |tenant: u32| {
        let mut members: Vec<usize> = (0..jobs.len()).filter(|&job| jobs[job].tenant == tenant).collect();
        // Jobs that run come first, so that a shortage does not take them off their accelerators for jobs that wait.
        members.sort_by_key(|&job| jobs[job].held.is_empty());
        members
    };
    let queues: Vec<ShareQueue> = tenants
        .iter()
        .map(|&tenant| {
            let own = || jobs.iter().filter(|job| job.tenant == tenant);
            let weight = own().map(|job| f64::from(job.weight_milli)).next().unwrap_or_default();
            let request = own().map(|job| f64::from(job.max)).sum();
            ShareQueue { deserved: 0.0, weight, request, usage: 0.0 }
        })
        .collect();
    for (&tenant, share) in tenants.iter().zip(fair_shares(total.into(), &queues, 0.0)) {
        divide(share, &members(tenant), jobs, &mut of_tenants);
    }
    of_tenants.iter().map(|of_tenant| (1.0 - fairness) * equal + fairness * of_tenant).collect()
}

/// Divides the share of a tenant among its jobs: the fewest accelerators that each runs on, in order, as far as the
/// share goes; what is left then equally, up to the most that each can use.
fn divide(share: f64, members: &[usize], jobs: &[PolluxJob], entitled: &mut [f64]) {
    let mut left = share;
    let mut included = Vec::new();
    for &job in members {
        let least = f64::from(jobs[job].min.max(1)).min(left);
        if least > 0.0 {
            entitled[job] = least.max(LEFT_OUT);
            left -= least;
            included.push(job);
        }
    }
    let queue = |&job: &usize| ShareQueue {
        deserved: entitled[job],
        weight: 1.0,
        request: f64::from(jobs[job].max).max(entitled[job]),
        usage: 0.0,
    };
    let queues: Vec<ShareQueue> = included.iter().map(queue).collect();
    for (&job, part) in included.iter().zip(fair_shares(share, &queues, 0.0)) {
        entitled[job] = part;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_env::cluster::NodeId;
    use goodput_env::job::JobId;
    use goodput_env::placement::Placement;

    fn job(tenant: u32, weight_milli: u32, held: u32, [min, max]: [u32; 2]) -> PolluxJob {
        let held = Placement::on(NodeId(0), held);
        PolluxJob { job: JobId(0), tenant, weight_milli, held, age_secs: 0.0, restarts: 0, min, max, model: None }
    }

    #[test]
    fn tenants_share_by_weight_whatever_their_numbers() {
        let flood = |many: usize, weight: u32| {
            let jobs: Vec<PolluxJob> = (0..many)
                .map(|_| job(0, 1000, 0, [1, 64]))
                .chain([job(1, weight, 0, [1, 64]), job(1, weight, 0, [1, 64])])
                .collect();
            entitlements(16, &jobs, 1.0)
        };
        for many in [1, 2, 4, 8] {
            let found = flood(many, 1000);
            assert!(found[..many].iter().all(|&of| (of - 8.0 / many as f64).abs() < 1e-9), "{found:?}");
            assert_eq!(found[many..], [4.0, 4.0]);
        }
        assert_eq!(flood(4, 3000), [1.0, 1.0, 1.0, 1.0, 6.0, 6.0]);
    }

    #[test]
    fn what_a_tenant_cannot_use_is_the_others() {
        let jobs = [job(0, 1000, 0, [1, 64]), job(1, 1000, 0, [2, 2])];
        assert_eq!(entitlements(16, &jobs, 1.0), [14.0, 2.0]);
        assert_eq!(entitlements(16, &jobs, 0.0), [8.0, 8.0]);
        assert_eq!(entitlements(16, &jobs, 0.5), [11.0, 5.0]);
    }

    #[test]
    fn in_a_shortage_the_jobs_that_run_are_entitled() {
        let mut jobs: Vec<PolluxJob> = (0..6).map(|at| job(0, 1000, u32::from(at >= 4), [1, 1])).collect();
        jobs.extend([job(1, 1000, 0, [1, 1]), job(1, 1000, 0, [1, 1])]);
        assert_eq!(entitlements(4, &jobs, 1.0), [LEFT_OUT, LEFT_OUT, LEFT_OUT, LEFT_OUT, 1.0, 1.0, 1.0, 1.0]);
    }
}
