//! Allotment of replicas when there is no room for all: first the usual need of every service, then
//! the tails, the greatest risk first.
//!
//! Either is filled replica by replica: the next one goes to the service that lacks the largest
//! share of what it wants, which is the share of its rate that would find no replica. So all lack
//! the same share as nearly as whole replicas allow (progressive filling, the max-min fair
//! allotment: Bertsekas, Gallager, "Data Networks", 2nd ed. 1992, section 6.5.2). A service with a
//! high rate that may come never takes a replica that another one needs for the rate it has.

use goodput_env::cluster::TypeId;

/// Claim of one service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Accelerator type of the replicas; `None`: every type on which the service runs.
    pub kind: Option<TypeId>,
    /// Accelerators of a replica.
    pub gpus: u32,
    /// Replicas that the service has, which stay or go, but need no room that is free.
    pub has: u32,
    /// Replicas for its usual rate.
    pub usual: u32,
    /// Replicas with those for its high rate, or those it is not to lose yet; no fewer than for the
    /// usual one.
    pub most: u32,
}

/// Replicas by service that `held` accelerators, all that replicas hold or could, are enough for,
/// when `free` of them are free now: a service that is to have fewer gives them back at once, one
/// that is to have more gets what is free already.
pub fn allot(claims: &[Claim], held: u32, free: u32) -> Vec<u32> {
    let all: u64 = claims.iter().map(|claim| u64::from(claim.most) * u64::from(claim.gpus)).sum();
    let more = |claim: &Claim| u64::from(claim.most.saturating_sub(claim.has)) * u64::from(claim.gpus);
    let most: Vec<u32> = claims.iter().map(|claim| claim.most).collect();
    if all <= u64::from(held) && claims.iter().map(more).sum::<u64>() <= u64::from(free) {
        return most;
    }
    let usual: Vec<u32> = claims.iter().map(|claim| claim.usual.min(claim.most)).collect();
    let mut due = vec![0; claims.len()];
    let left = fill(&mut due, &usual, claims, held);
    let usual_due = due.clone();
    fill(&mut due, &most, claims, left);
    // What a service keeps needs no free room, so only additions compete for it.
    let mut now: Vec<u32> = due.iter().zip(claims).map(|(due, claim)| claim.has.min(*due)).collect();
    let left = fill(&mut now, &usual_due, claims, free);
    fill(&mut now, &due, claims, left);
    now
}

/// Raises `given` to `wanted` as far as `room` accelerators go; gives what is left of them.
fn fill(given: &mut [u32], wanted: &[u32], claims: &[Claim], mut room: u32) -> u32 {
    loop {
        let fits = (0..given.len()).filter(|&at| given[at] < wanted[at] && claims[at].gpus <= room);
        // Shares (wanted - given) / wanted, compared as whole numbers; the first of equals.
        let lacks = |at: usize| u64::from(wanted[at] - given[at]);
        let more = |a: usize, b: usize| (lacks(a) * u64::from(wanted[b])).cmp(&(lacks(b) * u64::from(wanted[a])));
        let Some(next) = fits.max_by(|&a, &b| more(a, b).then(b.cmp(&a))) else { return room };
        given[next] += 1;
        room -= claims[next].gpus;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(has: u32, usual: u32, most: u32) -> Claim {
        Claim { gpus: 1, has, usual, most, ..Claim::default() }
    }

    #[test]
    fn the_usual_need_of_all_comes_before_any_tail() {
        // Eight accelerators. Usual needs take 2 and 3; of the three left the first goes to A,
        // which lacks 4 of 6 (B 1 of 4), the next to A, 3 of 6, and the last again, 2 of 6.
        assert_eq!(allot(&[claim(0, 2, 6), claim(0, 3, 4)], 8, 8), [5, 3]);
        // A has taken six before B came: it gives one back at once, and B, for which two are free,
        // begins with those.
        assert_eq!(allot(&[claim(6, 2, 6), claim(0, 3, 4)], 8, 2), [5, 2]);
        // Not even the usual needs fit: four for 6 and 3 wanted. A lacks 6/6 and is the first of
        // equals, then B 3/3, A 5/6, and A again, 4/6 as B.
        assert_eq!(allot(&[claim(0, 6, 9), claim(0, 3, 9)], 4, 4), [3, 1]);
    }

    #[test]
    fn enough_for_all_is_what_all_want() {
        assert_eq!(allot(&[claim(9, 2, 6), claim(0, 3, 4)], 10, 4), [6, 4]);
        assert_eq!(allot(&[], 10, 4), Vec::<u32>::new());
    }

    #[test]
    fn wide_replicas_leave_what_is_too_small_for_them() {
        let wide = Claim { gpus: 4, ..claim(0, 2, 2) };
        assert_eq!(allot(&[wide, claim(0, 1, 3)], 7, 7), [1, 3]);
    }
}
