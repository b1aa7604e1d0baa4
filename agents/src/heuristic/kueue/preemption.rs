//! Fair preemption (Kueue, KEP-1714, section "Preemption"; `pkg/scheduler/preemption`): the
//! admitted jobs that are evicted for another to fit.
//!
//! Victims are taken from the tenant that borrows the largest fraction, tree level by tree level. A
//! tenant with a smaller share may take from one with a larger share only if their order stays
//! right: by rule S2-a the preempting tenant's new share is at most the other's share afterwards;
//! failing all such victims, by S2-b, it is below the other's share before. A tenant that stays
//! within its nominal quota reclaims what was lent. In the end victims that turn out not to be
//! needed are put back, and if the job does not fit after all, none is evicted.

use std::cmp::Reverse;

use goodput_env::job::JobId;
use goodput_env::tenant::{DominantShare, GroupId, QuotaTree, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claim::JobClaim;
use super::victims::Victims;

/// Jobs that an incoming job may evict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Evict {
    /// No other job.
    Never,
    /// Jobs of lower priority.
    LowerPriority,
    /// Jobs of every priority.
    Any,
}

impl Evict {
    fn allows(self, incoming: &JobClaim, victim: &JobClaim) -> bool {
        match self {
            Self::Never => false,
            Self::LowerPriority => victim.priority < incoming.priority,
            Self::Any => true,
        }
    }
}

/// Rule by which a tenant may preempt another one in its cohort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum FairSharingStrategy {
    /// S2-a, `LessThanOrEqualToFinalShare`: the preempting tenant's new share is at most the
    /// other's after the eviction.
    FinalShare,
    /// S2-b, `LessThanInitialShare`: the preempting tenant's new share is below the other's before
    /// the eviction.
    InitialShare,
}

/// Reason of an eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvictionReason {
    /// Preempted by a more important job of the same tenant.
    InClusterQueue,
    /// Ran on quota that another tenant owns.
    InCohortReclamation,
    /// Borrowed more than the preempting tenant.
    InCohortFairSharing,
}

/// Rules of preemption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PreemptionRules {
    /// Jobs that a job of their tenant may evict.
    #[schemars(extend("x-source" = "KEP-79, preemption.withinClusterQueue"))]
    pub within_tenant: Evict,
    /// Jobs of borrowing tenants in the cohort that may be evicted.
    #[schemars(extend("x-source" = "KEP-79, preemption.reclaimWithinCohort"))]
    pub within_cohort: Evict,
    /// Rules of fair sharing in the order they are tried.
    #[schemars(extend("x-source" = "KEP-1714, fairSharing.preemptionStrategies"))]
    pub strategies: Vec<FairSharingStrategy>,
}

/// Rules of a run without preemption.
pub(super) static NEVER: PreemptionRules =
    PreemptionRules { within_tenant: Evict::Never, within_cohort: Evict::Never, strategies: Vec::new() };

impl Default for PreemptionRules {
    /// Settings as shipped, with fair sharing: lower priorities within a tenant, any borrower within a cohort.
    fn default() -> Self {
        Self {
            within_tenant: Evict::LowerPriority,
            within_cohort: Evict::Any,
            strategies: vec![FairSharingStrategy::FinalShare, FairSharingStrategy::InitialShare],
        }
    }
}

impl PreemptionRules {
    /// Rules by which jobs evict only those of their own tenant that `evict` says.
    pub fn within_tenants(evict: Evict) -> Self {
        Self { within_tenant: evict, within_cohort: Evict::Never, strategies: Vec::new() }
    }
}

/// Jobs to evict so that `incoming` fits, with the reasons; empty where it fits in no allowed way.
/// `admitted` are all jobs that `usage` counts. `usage` is unchanged afterwards.
pub fn fair_preemption(
    tree: &QuotaTree,
    usage: &mut Usage,
    admitted: &[JobClaim],
    incoming: &JobClaim,
    rules: &PreemptionRules,
) -> Vec<(JobId, EvictionReason)> {
    let (own, resource) = (incoming.tenant, incoming.resource);
    let root = tree.root(own);
    let candidate = |claim: &&JobClaim| match claim.tenant == own {
        true => claim.resource == resource && rules.within_tenant.allows(incoming, claim),
        false => {
            claim.resource == resource
                && tree.root(claim.tenant) == root
                && tree.borrows(usage, claim.tenant, resource)
                && rules.within_cohort.allows(incoming, claim)
        }
    };
    let mut candidates: Vec<JobClaim> = admitted.iter().filter(candidate).copied().collect();
    if candidates.is_empty() {
        return Vec::new();
    }
    // Kueue's order: other tenants' jobs before the tenant's own, low priority first, and of equal ones the latest
    // admitted, which lose the least work.
    candidates.sort_by_key(|claim| (claim.tenant == own, claim.priority, Reverse(claim.since), claim.job));

    let mut search = VictimSearch { tree, usage, incoming, victims: Vec::new() };
    // During the search the incoming job counts as used, so shares are those after its admission.
    search.add(incoming);
    let fits = search.run(candidates, rules);
    search.remove(incoming);
    if fits {
        // A victim taken early may be superfluous after later ones.
        search.spare();
    } else {
        search.restore();
        return Vec::new();
    }
    let victims = search.victims.iter().map(|(claim, reason)| (claim.job, *reason)).collect();
    search.restore();
    victims
}

struct VictimSearch<'a> {
    tree: &'a QuotaTree,
    usage: &'a mut Usage,
    incoming: &'a JobClaim,
    victims: Vec<(JobClaim, EvictionReason)>,
}

impl VictimSearch<'_> {
    fn add(&mut self, claim: &JobClaim) {
        self.tree.add(self.usage, claim.tenant, claim.resource, claim.amount);
    }

    fn remove(&mut self, claim: &JobClaim) {
        self.tree.remove(self.usage, claim.tenant, claim.resource, claim.amount);
    }

    fn share(&self, group: GroupId) -> DominantShare {
        self.tree.share(self.usage, group, None)
    }

    /// Whether the incoming job, which counts as used, is within the quota available to it.
    fn fits(&self) -> bool {
        self.tree.available(self.usage, self.incoming.tenant, self.incoming.resource) >= 0
    }

    fn evict(&mut self, victim: JobClaim, reason: EvictionReason) -> bool {
        self.victims.push((victim, reason));
        self.fits()
    }

    fn run(&mut self, candidates: Vec<JobClaim>, rules: &PreemptionRules) -> bool {
        let own = self.incoming.tenant;
        let reclaims = !self.tree.borrows(self.usage, own, self.incoming.resource);
        let mut retry = Vec::new();
        let first = rules.strategies.first().copied();
        let mut order = Victims::new(self.tree, own, candidates);
        while let Some(tenant) = order.next(self.usage) {
            // A tenant within its nominal quota takes back what is its own, so shares need no comparison.
            if tenant == own || reclaims {
                let reason =
                    if tenant == own { EvictionReason::InClusterQueue } else { EvictionReason::InCohortReclamation };
                let Some(victim) = order.pop(tenant) else { continue };
                self.remove(&victim);
                if self.evict(victim, reason) {
                    return true;
                }
                continue;
            }
            let (taker, giver) = below_common_ancestor(self.tree, own, tenant);
            // Shares are compared just below the common cohort: above it both sides change alike.
            let (new, before) = (self.share(taker), self.share(giver));
            while let Some(victim) = order.pop(tenant) {
                self.remove(&victim);
                let allowed = match first {
                    Some(FairSharingStrategy::FinalShare) => new <= self.share(giver),
                    Some(FairSharingStrategy::InitialShare) => new < before,
                    None => false,
                };
                if allowed {
                    if self.evict(victim, EvictionReason::InCohortFairSharing) {
                        return true;
                    }
                    // The eviction changed shares, so another tenant may be next.
                    break;
                }
                // The next strategy may allow this victim.
                self.add(&victim);
                retry.push(victim);
            }
        }
        rules.strategies.len() > 1 && self.retry(retry)
    }

    /// Rule S2-b for the candidates that failed the first rule: one victim a tenant.
    fn retry(&mut self, candidates: Vec<JobClaim>) -> bool {
        let own = self.incoming.tenant;
        let mut order = Victims::new(self.tree, own, candidates);
        while let Some(tenant) = order.next(self.usage) {
            let (taker, giver) = below_common_ancestor(self.tree, own, tenant);
            let allowed = self.share(taker) < self.share(giver);
            if let Some(victim) = order.pop(tenant).filter(|_| allowed) {
                self.remove(&victim);
                if self.evict(victim, EvictionReason::InCohortFairSharing) {
                    return true;
                }
            }
            // The rule compares shares before any eviction, so it allows one victim a tenant.
            order.drop_tenant(tenant);
        }
        false
    }

    /// Puts back the victims that are not needed, the last but one first: the last one made the job
    /// fit.
    fn spare(&mut self) {
        let incoming = *self.incoming;
        for at in (0..self.victims.len().saturating_sub(1)).rev() {
            let victim = self.victims[at].0;
            self.add(&victim);
            if self.tree.available(self.usage, incoming.tenant, incoming.resource) >= incoming.amount as i64 {
                // As in Kueue, the last victim takes the place of the one that is put back.
                self.victims.swap_remove(at);
            } else {
                self.remove(&victim);
            }
        }
    }

    fn restore(&mut self) {
        for at in 0..self.victims.len() {
            let victim = self.victims[at].0;
            self.add(&victim);
        }
    }
}

/// Ancestors of two tenants, or the tenants themselves, just below their innermost common cohort.
fn below_common_ancestor(tree: &QuotaTree, one: GroupId, other: GroupId) -> (GroupId, GroupId) {
    let common = tree.ancestors(other).find(|above| tree.ancestors(one).any(|of_one| of_one == *above));
    let below = |group: GroupId| {
        let path = std::iter::once(group).chain(tree.ancestors(group));
        path.take_while(|at| Some(*at) != common).last().unwrap_or(group)
    };
    (below(one), below(other))
}
