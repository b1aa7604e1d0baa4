//! Check that a policy knows the quotas, the limits and the accelerators of the file that names it.

use std::borrow::Cow;
#[cfg(feature = "scenarios")]
use std::sync::LazyLock;

#[cfg(feature = "scenarios")]
use goodput_agents::compose;
use goodput_agents::compose::NamedPolicy;
#[cfg(feature = "scenarios")]
use goodput_env::cluster::Cluster;
#[cfg(feature = "scenarios")]
use goodput_env::scenario::Allocation;
use goodput_env::tenant::Tenants;

use crate::error::CheckError;
use crate::tenants::TenantConfig;

const WITHOUT_QUOTAS: &str = "choose another policy, or remove every quota and limit tenants by share_limit";

/// Advice that names all policies that go by an allocation, also those of a program of one's own.
#[cfg(feature = "scenarios")]
static WITHOUT_ALLOCATION: LazyLock<String> = LazyLock::new(|| {
    let keeps = compose::policies().filter(|entry| entry.build(0).keeps_allocation());
    let names: Vec<&str> = keeps.map(|entry| entry.name).collect();
    format!("choose one of {}, or leave out the allocation", names.join(", "))
});

#[cfg(feature = "scenarios")]
const WITHOUT_LOANS: &str = "leave out what follows the plus sign, or choose static-preemptive or dynamic-preemptive";

const WITH_LIMITS: &str = "choose fgd, best-fit, dot-product, gpu-clustering, gpu-packing, hami-binpack, hami-spread or \
                           drf-parts, or remove share_limit";

/// Advice where a policy weighs accelerator types by a figure that none of them has.
pub const FIGURES: &str = "name a type of which `goodput list accelerators` has the figure, or choose another policy";

fn places_parts(name: &str) -> bool {
    name.parse::<NamedPolicy>().is_ok_and(|policy| policy.places_parts())
}

fn refused(key: Cow<'static, str>, name: &str, problem: &str, remedy: &'static str) -> CheckError {
    CheckError { remedy: Some(remedy), ..CheckError::at(key.clone(), format!("{key} is {name:?}, which {problem}")) }
}

/// Checks that no tenant or cohort has a quota under a policy that places jobs on parts of accelerators.
///
/// # Errors
/// [`CheckError`] at `key` that names the tenant or the cohort.
pub(crate) fn check_quotas(key: impl Into<Cow<'static, str>>, name: &str, tenants: &Tenants) -> Result<(), CheckError> {
    let Some(owner) = tenants.quota_owner().filter(|_| places_parts(name)) else { return Ok(()) };
    let what = if tenants.cohorts().contains(owner) { "cohort" } else { "tenant" };
    let problem =
        format!("places jobs on parts of accelerators and knows no quotas, and {what} {:?} has a quota", owner.name);
    Err(refused(key.into(), name, &problem, WITHOUT_QUOTAS))
}

/// Checks that no tenant has a `share_limit` under a policy that does not know such limits.
///
/// # Errors
/// [`CheckError`] at `key` that names the tenant.
pub(crate) fn check_limits(key: &'static str, name: &str, tenants: &[TenantConfig]) -> Result<(), CheckError> {
    match tenants.iter().find(|tenant| !tenant.share_limit.is_none()).filter(|_| !places_parts(name)) {
        None => Ok(()),
        Some(tenant) => {
            let problem = format!("knows no limits of shares, and tenant {:?} has a share_limit", tenant.name);
            Err(refused(key.into(), name, &problem, WITH_LIMITS))
        }
    }
}

/// Checks that a policy keeps to the allocation of a run, where it has one, and that nothing around the policy stops
/// jobs that the allocation protects.
///
/// # Errors
/// [`CheckError`] at `key` that names the allocation.
#[cfg(feature = "scenarios")]
pub fn check_allocation(
    key: impl Into<Cow<'static, str>>,
    name: &str,
    allocation: Option<Allocation>,
) -> Result<(), CheckError> {
    let Some(allocation) = allocation else { return Ok(()) };
    let keeps = |policy: &NamedPolicy| policy.training(0).keeps_allocation();
    let (problem, remedy) = match name.parse::<NamedPolicy>().ok().filter(keeps) {
        None => ("does not go by an allocation of the run, and it is", WITHOUT_ALLOCATION.as_str()),
        Some(policy) if policy.takes_back() && !allocation.preempts() => (
            "takes accelerators back from running jobs, which may not be stopped where the allocation is",
            WITHOUT_LOANS,
        ),
        Some(_) => return Ok(()),
    };
    Err(refused(key.into(), name, &format!("{problem} {:?}", allocation.name()), remedy))
}

/// Checks that a policy that weighs accelerator types by a figure has it of at least one type of the cluster.
///
/// # Errors
/// [`CheckError`] at `key` that names the figure and the types.
#[cfg(feature = "scenarios")]
pub(crate) fn check_types(key: impl Into<Cow<'static, str>>, name: &str, cluster: &Cluster) -> Result<(), CheckError> {
    let lacks = name.parse::<NamedPolicy>().ok().and_then(|policy| policy.lacks(cluster));
    lacks.map_or(Ok(()), |problem| Err(refused(key.into(), name, &problem, FIGURES)))
}
