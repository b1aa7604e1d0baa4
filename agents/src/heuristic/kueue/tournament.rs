//! Admission tournament of fair sharing (Kueue, KEP-1714), which picks the job that is admitted
//! first among the tenants' next jobs.
//!
//! Each tenant nominates its next job. In every cohort the nominees of its members compete, and the
//! winner goes one level up. A member that borrows nothing wins; among borrowers the member with
//! the smaller dominant share *including* the nominee; then the higher priority, then the earlier
//! submission.

use std::cmp::Reverse;

use goodput_env::job::JobId;
use goodput_env::tenant::{DominantShare, GroupId, QuotaTree, Usage};
use goodput_env::time::SimTime;

use super::claim::JobClaim;

/// Order of two members of a cohort; the smaller wins.
type TournamentKey = (bool, DominantShare, Reverse<i32>, SimTime, JobId);

/// Winner among `nominees`, at most one a tenant. Groups without a cohort share nothing, so between
/// them priority and age decide.
pub fn winner(tree: &QuotaTree, usage: &mut Usage, nominees: &[JobClaim]) -> Option<JobClaim> {
    let order = |claim: &JobClaim| (Reverse(claim.priority), claim.since, claim.job);
    let mut best: Option<JobClaim> = None;
    for nominee in nominees.iter().filter(|nominee| tree.parent(nominee.tenant).is_none()) {
        best = best.into_iter().chain([*nominee]).min_by_key(order);
    }
    let mut roots: Vec<GroupId> = nominees.iter().map(|nominee| tree.root(nominee.tenant)).collect();
    roots.sort_unstable();
    roots.dedup();
    for root in roots.into_iter().filter(|&root| !tree.is_tenant(root)) {
        best = best.into_iter().chain(play(tree, usage, nominees, root)).min_by_key(order);
    }
    best
}

/// Winner among the members of `cohort`.
fn play(tree: &QuotaTree, usage: &mut Usage, nominees: &[JobClaim], cohort: GroupId) -> Option<JobClaim> {
    let mut best: Option<(TournamentKey, JobClaim)> = None;
    for &child in tree.children(cohort) {
        let entrant = match tree.is_tenant(child) {
            true => nominees.iter().find(|nominee| nominee.tenant == child).copied(),
            false => play(tree, usage, nominees, child),
        };
        let Some(claim) = entrant else { continue };
        tree.add(usage, claim.tenant, claim.resource, claim.amount);
        let borrows = tree.borrows(usage, claim.tenant, claim.resource);
        let share = tree.share(usage, child, None);
        tree.remove(usage, claim.tenant, claim.resource, claim.amount);
        let key = (borrows, share, Reverse(claim.priority), claim.since, claim.job);
        if best.as_ref().is_none_or(|(smallest, _)| key < *smallest) {
            best = Some((key, claim));
        }
    }
    best.map(|(_, claim)| claim)
}
