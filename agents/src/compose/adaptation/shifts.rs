//! Quotas that move within a cohort from tenants that do not use them to tenants that wait.
//!
//! A tenant keeps the most that its jobs have held and asked for within a window, at least a floor of its quota and at
//! most all of it. What is left goes to tenants of the cohort that ask for more than their quota: one accelerator after
//! the other to the tenant that has been given the least for its weight. The quota returns at the decision at which its
//! owner asks for it. Policies with preemption within cohorts then take the accelerators back at once, and others as
//! jobs end.
//!
//! The rule is a controller over the model of quotas of this project. Floor, quota and borrowing limit are `guarantee`,
//! `deserved` and `capability` of Volcano's capacity plugin, and `min`, `min` and `max` of the elastic quotas of
//! Kubernetes (scheduler-plugins, capacity scheduling). Those lend idle quota at once; Koordinator recomputes quotas
//! from the requests of its queues at runtime as here, without a window. The window keeps a short pause of the owner
//! from costing the others a preemption.

use std::collections::BTreeMap;

use goodput_env::cluster::TypeId;
use goodput_env::tenant::{GroupId, Quota, QuotaTree};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

use super::QuotaTerms;
use super::peaks::RecentPeak;

/// Quotas by the observed use of their tenants.
#[derive(Clone, Debug)]
pub struct Shifts {
    window: SimTime,
    floor: f64,
    /// Accelerators held and asked for, by tenant and type.
    peaks: BTreeMap<(GroupId, TypeId), RecentPeak>,
}

impl Shifts {
    /// Quotas that have been used in full until the start.
    pub fn new(terms: &QuotaTerms) -> Self {
        Self { window: SimTime::from_secs_f64(terms.window_secs), floor: terms.floor, peaks: BTreeMap::new() }
    }

    /// Quotas to go by now; `None` in a run without quotas.
    pub fn quotas(&mut self, view: &ClusterView<'_>) -> Option<QuotaTree> {
        let declared = view.quotas()?;
        let wanted = wanted(view, declared);
        let mut owned = BTreeMap::new();
        for resource in declared.resources() {
            for cohort in cohorts(declared) {
                self.divide(declared, &cohort, resource, &wanted, view.now, &mut owned);
            }
        }
        Some(declared.with_quotas(|group, resource, quota| match owned.get(&(group, resource)) {
            // What may be borrowed has become the borrower's.
            Some(&nominal) => Quota { nominal, borrowing_limit: Some(0), lending_limit: None },
            None => quota,
        }))
    }

    /// Time of the next change of quotas if no job comes or goes.
    pub fn next_change(&self, now: SimTime) -> Option<SimTime> {
        self.peaks.values().filter_map(|peak| peak.falls_at(self.window)).filter(|at| *at > now).min()
    }

    /// Divides the quotas of a cohort's tenants for one type.
    fn divide(
        &mut self,
        declared: &QuotaTree,
        cohort: &[GroupId],
        resource: TypeId,
        wanted: &BTreeMap<(GroupId, TypeId), u64>,
        now: SimTime,
        owned: &mut BTreeMap<(GroupId, TypeId), u64>,
    ) {
        let mut spare = 0;
        let mut borrowers = Vec::new();
        for &tenant in cohort {
            let Quota { nominal, borrowing_limit, lending_limit } = declared.quota(tenant, resource);
            let asks = wanted.get(&(tenant, resource)).copied().unwrap_or(0);
            let peak = self.peaks.entry((tenant, resource)).or_insert_with(|| RecentPeak::from(nominal, now));
            let used = peak.observe(asks, now, self.window);
            let floor = ((nominal as f64 * self.floor).ceil() as u64)
                .max(nominal - lending_limit.unwrap_or(nominal).min(nominal));
            let keeps = used.clamp(floor.min(nominal), nominal);
            owned.insert((tenant, resource), keeps);
            spare += nominal - keeps;
            let more = asks.saturating_sub(nominal).min(borrowing_limit.unwrap_or(u64::MAX));
            borrowers.push(Borrower { tenant, weight: declared.weight_milli(tenant).into(), more, given: 0 });
        }
        while spare > 0 {
            let hungry = borrowers.iter_mut().filter(|of| of.given < of.more);
            let Some(next) = hungry.min_by(|one, other| one.ahead().total_cmp(&other.ahead())) else { break };
            next.given += 1;
            spare -= 1;
        }
        for of in borrowers {
            let kept = owned.entry((of.tenant, resource)).or_default();
            // No tenant asks for the rest, so the rest stays with its owners.
            let back = spare.min(declared.quota(of.tenant, resource).nominal.saturating_sub(*kept));
            spare -= back;
            *kept += of.given + back;
        }
    }
}

/// Tenant that may be given quota of others.
struct Borrower {
    tenant: GroupId,
    weight: f64,
    /// Accelerators asked for beyond its own quota.
    more: u64,
    given: u64,
}

impl Borrower {
    /// Accelerators given for its weight, the next one included.
    fn ahead(&self) -> f64 {
        (self.given + 1) as f64 / self.weight
    }
}

/// Tenants of each cohort, without those that are in none.
fn cohorts(tree: &QuotaTree) -> Vec<Vec<GroupId>> {
    let mut cohorts: BTreeMap<GroupId, Vec<GroupId>> = BTreeMap::new();
    for tenant in 0..tree.tenants() {
        if let Some(cohort) = tree.parent(tenant) {
            cohorts.entry(cohort).or_default().push(tenant);
        }
    }
    cohorts.into_values().collect()
}

/// Accelerators that the jobs of each tenant hold or wait for. A job that waits counts for the first type that it runs
/// on and of which its tenant's cohort has quota.
fn wanted(view: &ClusterView<'_>, tree: &QuotaTree) -> BTreeMap<(GroupId, TypeId), u64> {
    let mut wanted = BTreeMap::new();
    for job in view.jobs().filter(|job| (job.request().tenant as usize) < tree.tenants()) {
        let tenant = job.request().tenant as usize;
        let (kind, gpus) = match job.state.placement.slices().first() {
            Some(slice) => (Some(view.cluster().type_of(slice.node)), if job.state.counts() { job.gpus() } else { 0 }),
            None => {
                let kinds = &view.shapes().get(view.shapes().of(job.id())).kinds;
                let root = tree.root(tenant);
                let first = kinds.iter().find(|&&kind| tree.subtree(root, kind) > 0).or(kinds.first());
                (first.copied(), job.request().gpus)
            }
        };
        if let Some(kind) = kind {
            *wanted.entry((tenant, kind)).or_default() += u64::from(gpus);
        }
    }
    wanted
}
