//! Jobs that wait for ever, because their tenants may not hold what the jobs need.

use super::Scenario;
use crate::job::{JobId, JobRequest};
use crate::tenant::{QuotaTree, ShareLimit, TenantLimit};
use crate::time::SimTime;

impl Scenario {
    /// Limit of its tenant under which `job` cannot start at `from` or at any later time; `None` where quotas, the
    /// allocation and limits of shares let the tenant hold what the job needs.
    pub fn tenant_limit(&self, job: JobId, from: SimTime) -> Option<TenantLimit> {
        let (tenants, request) = (&self.workload.tenants, &self.workload.jobs[job.index()].request);
        let Some(group) = tenants.get(request.tenant) else {
            return tenants.quotas(from).map(|_| TenantLimit::Undeclared);
        };
        let (tenant, needed) = (group.name.clone(), u64::from(request.min_gpus()));
        let rooms = tenants.quotas_from(from).map(|quotas| self.room(job, request.tenant as usize, quotas));
        if let Some(most) = rooms.max().filter(|&most| most < needed) {
            return Some(match self.options.allocation {
                Some(allocation) if !allocation.lends() => TenantLimit::Owned { tenant, most, needed },
                _ => TenantLimit::Quota { tenant, most, needed },
            });
        }
        let amounts = ShareLimit::UNITS.into_iter().zip(self.least_amounts(request)).zip(group.share_limit.amounts());
        let mut short = amounts.filter(|((_, needed), most)| most < needed);
        short.next().map(|((of, needed), most)| TenantLimit::Share { tenant, of, most, needed })
    }

    /// First job of the workload that its tenant's limits let never start, and the limit.
    pub fn first_limited(&self) -> Option<(&JobRequest, TenantLimit)> {
        let jobs = self.workload.jobs.iter().enumerate();
        jobs.map(|(at, job)| (JobId::at(at), &job.request))
            .find_map(|(job, request)| Some((request, self.tenant_limit(job, request.submit)?)))
    }

    /// Most accelerators that `quotas` let `tenant` hold at once for `job`, while all other tenants are idle.
    fn room(&self, job: JobId, tenant: usize, quotas: &QuotaTree) -> u64 {
        let work = self.workload.jobs[job.index()].work;
        let kinds = quotas.resources().filter(|&kind| self.speeds.runs_on(work, kind));
        let rooms = kinds.map(|kind| quotas.potential(tenant, kind));
        // A job holds accelerators of several types only in a run that mixes them.
        if self.options.mixing.is_some() { rooms.sum() } else { rooms.max().unwrap_or(0) }
    }

    /// Least compute, percent of an accelerator, and least device memory, MiB, that a job holds when it runs.
    fn least_amounts(&self, request: &JobRequest) -> [u64; 2] {
        match request.share {
            Some(share) => [share.compute_percent.into(), share.memory_mib.into()],
            None => {
                let gpus = u64::from(request.min_gpus());
                let memory = self.cluster.types.iter().map(|kind| kind.memory_mib.unwrap_or(0)).min();
                [100 * gpus, gpus * u64::from(memory.unwrap_or(0))]
            }
        }
    }
}
