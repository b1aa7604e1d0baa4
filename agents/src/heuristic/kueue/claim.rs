//! Claim of a job on the quota of its tenant.

use goodput_env::cluster::TypeId;
use goodput_env::job::JobId;
use goodput_env::tenant::GroupId;
use goodput_env::time::SimTime;

/// Quota that an admitted or incoming job claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobClaim {
    /// Identifier of the job.
    pub job: JobId,
    /// Tenant of the job.
    pub tenant: GroupId,
    /// Index of the resource that the job uses: its accelerator type.
    pub resource: TypeId,
    /// Accelerators of the resource.
    pub amount: u64,
    /// Priority; higher is more important.
    pub priority: i32,
    /// Time of submission of a waiting job, time of admission of a running one.
    pub since: SimTime,
}
