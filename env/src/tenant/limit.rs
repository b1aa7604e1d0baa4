//! Limits of tenants under which a job can never start.

use thiserror::Error;

/// Limit of a tenant that is below what a job needs. The job waits as long as the limit holds, even on an idle cluster.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TenantLimit {
    /// The run has quotas, and the tenant of the job is not declared.
    #[error("the tenant of the job is not declared in a run with quotas")]
    Undeclared,
    /// The tenant owns too few accelerators, and an allocation lends it no others.
    #[error("tenant {tenant:?} owns {most} accelerators that the job can use, and the job needs {needed}")]
    Owned {
        /// Name of the tenant.
        tenant: String,
        /// Number of accelerators that the tenant owns.
        most: u64,
        /// Number of accelerators that the job needs.
        needed: u64,
    },
    /// The quotas of the tenant and of its cohorts are too small.
    #[error(
        "the quotas let tenant {tenant:?} hold {most} accelerators that the job can use, and the job needs {needed}"
    )]
    Quota {
        /// Name of the tenant.
        tenant: String,
        /// Number of accelerators that the tenant may hold.
        most: u64,
        /// Number of accelerators that the job needs.
        needed: u64,
    },
    /// The tenant may hold too little compute or device memory.
    #[error("share_limit lets tenant {tenant:?} hold {most} {of}, and the job needs {needed}")]
    Share {
        /// Name of the tenant.
        tenant: String,
        /// Unit of the amounts: percent of an accelerator, or MiB.
        of: &'static str,
        /// Amount that the tenant may hold.
        most: u64,
        /// Amount that the job needs.
        needed: u64,
    },
}

impl TenantLimit {
    /// Remedy: what the user can do about the limit.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Undeclared => "declare the tenant, or remove the quotas",
            Self::Owned { .. } => "give the tenant a larger weight or quota, or choose a dynamic allocation",
            Self::Quota { .. } => "raise the quota or the borrowing limit of the tenant, or the quota of its cohort",
            Self::Share { .. } => "raise the share_limit of the tenant",
        }
    }
}
