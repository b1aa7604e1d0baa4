//! Number of servers that each cluster should have.
//!
//! Work that waits is a fluid: `work` server-seconds of `jobs` jobs take `work / n` seconds on `n`
//! servers, as long as there are at most `most` servers' worth of them, so each server more saves
//! `jobs x work x (1/n - 1/(n+1))` job-seconds, always less than the one before. A server that
//! moves costs `move_cost` job-seconds. The sum over clusters is concave, so taking the largest
//! gains first is optimal ([`crate::allocation::knapsack::concave`]), above what services need with
//! probability `1 - epsilon`: a quantile of their forecast, for `P(need <= capacity) >= 1 -
//! epsilon`.

use crate::allocation::knapsack::{GainLadder, concave};

/// Report of one cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// Servers that the cluster has now, of those that can move.
    pub owned: u32,
    /// Of those, what its services need.
    pub needed: u32,
    /// Servers that training has besides and that never move.
    pub own: u32,
    /// Jobs that run or wait.
    pub jobs: u32,
    /// Remaining work of its jobs, server-seconds.
    pub work: f64,
    /// Most servers they could use at a time.
    pub most: u32,
}

impl Claim {
    /// Job-seconds saved by the `step`-th movable server beyond the need, from 0.
    fn gain(&self, step: u32) -> f64 {
        let before = f64::from(self.own + step);
        if self.own + step >= self.most {
            return 0.0;
        }
        // Without any server at all the work would never end; two are then worth twice as much as
        // one.
        let without = if before > 0.0 { 1.0 / before } else { 2.0 };
        f64::from(self.jobs) * self.work * (without - 1.0 / (before + 1.0))
    }
}

/// Servers for each cluster; as many as there are now in all. Where services need more than there
/// is, the needs are met in proportion.
pub fn allot(claims: &[Claim], move_cost: f64) -> Vec<u32> {
    let total: u32 = claims.iter().map(|claim| claim.owned).sum();
    let mut servers = floors(claims, total);
    let left = total - servers.iter().sum::<u32>();
    // Keeping a server is worth what moving it would cost, however little it does.
    let keep = move_cost.max(0.0) + f64::MIN_POSITIVE;
    let ladders: Vec<Vec<f64>> = claims
        .iter()
        .zip(&servers)
        .map(|(claim, &floor)| {
            let extra = floor.saturating_sub(claim.needed);
            let kept = |step: u32| if floor + step < claim.owned { keep } else { 0.0 };
            (0..left).map(|step| claim.gain(extra + step) + kept(step)).collect()
        })
        .collect();
    let groups: Vec<GainLadder<'_>> = ladders.iter().map(|gains| GainLadder { unit: 1, gains }).collect();
    let steps = concave(&groups, left).unwrap_or_else(|| vec![0; claims.len()]);
    servers.iter_mut().zip(steps).for_each(|(servers, steps)| *servers += steps);
    // A server that no cluster gains by stays where it is, or goes to the first cluster.
    let mut rest = total - servers.iter().sum::<u32>();
    for (servers, claim) in servers.iter_mut().zip(claims) {
        let kept = claim.owned.saturating_sub(*servers).min(rest);
        *servers += kept;
        rest -= kept;
    }
    if let Some(first) = servers.first_mut() {
        *first += rest;
    }
    servers
}

/// Servers that services need, scaled down where they need more than there are.
fn floors(claims: &[Claim], total: u32) -> Vec<u32> {
    let needed: u64 = claims.iter().map(|claim| u64::from(claim.needed)).sum();
    let of = |claim: &Claim| match needed > u64::from(total) {
        true => (u64::from(claim.needed) * u64::from(total) / needed) as u32,
        false => claim.needed,
    };
    claims.iter().map(of).collect()
}
