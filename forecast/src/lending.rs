//! Lending of idle accelerators: fleets, leases and scores.
//!
//! At an origin the lender keeps `R` of `C` accelerators for a lease that starts `lead` steps later
//! and lasts `lease` steps; the rest is lent. A step of the lease in which the load needs more than
//! `R` is violated. What `R` should be is a matter of the objective: [`decide`](crate::decide).

use serde::{Deserialize, Serialize};

use crate::decide::Objective;

/// Fleet of accelerators that serves a load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LendingFleet {
    /// Number of accelerators in the fleet.
    pub accelerators: u32,
    /// Load that one accelerator serves, in the unit of the series; above 0.
    pub load_per_accelerator: f64,
}

impl LendingFleet {
    /// Number of accelerators that `load` needs, at most the whole fleet.
    pub fn need(&self, load: f64) -> u32 {
        let need = (load / self.load_per_accelerator).ceil();
        // `as` saturates, so a negative need is 0. A load that is no number needs the whole fleet.
        if need.is_nan() { self.accelerators } else { (need as u32).min(self.accelerators) }
    }
}

/// Terms of a lease: it starts `lead` steps after the decision and lasts `steps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseTerms {
    /// Number of steps from the decision to the start of the lease.
    pub lead: usize,
    /// Length of the lease in steps, at least 1.
    pub steps: usize,
}

/// One decision of a lender with its outcome.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SettledLoan {
    /// Step of the decision.
    pub origin: usize,
    /// Number of accelerators that were kept.
    pub kept: u32,
    /// Measured steps of the lease.
    pub steps: usize,
    /// Measured steps that needed more accelerators than were kept.
    pub violated: usize,
    /// Accelerators missing, summed over the steps.
    pub missing: u64,
    /// Accelerators needed, summed over the steps.
    pub needed: u64,
}

impl SettledLoan {
    /// Outcome of keeping `kept` accelerators at step `origin`; `load` has gaps as NaN.
    pub fn settle(fleet: &LendingFleet, lease: &LeaseTerms, origin: usize, kept: u32, load: &[f64]) -> Self {
        let mut loan = Self { origin, kept, steps: 0, violated: 0, missing: 0, needed: 0 };
        let start = (origin + lease.lead).min(load.len());
        let end = (start + lease.steps).min(load.len());
        for load in load[start..end].iter().filter(|load| !load.is_nan()) {
            let need = fleet.need(*load);
            loan.steps += 1;
            loan.needed += u64::from(need);
            if need > kept {
                loan.violated += 1;
                loan.missing += u64::from(need - kept);
            }
        }
        loan
    }

    /// Share of its steps that were violated.
    pub fn violated_share(&self) -> f64 {
        if self.steps == 0 { 0.0 } else { self.violated as f64 / self.steps as f64 }
    }

    /// Share missed by what `objective` counts: steps, or the whole lease.
    pub fn missed(&self, objective: Objective) -> f64 {
        match objective {
            Objective::Leases(_) => f64::from(u8::from(self.violated > 0)),
            // A loan is settled by its steps: the bench knows no requests.
            Objective::Steps(_) | Objective::Late(_) | Objective::Cost { .. } => self.violated_share(),
        }
    }
}

/// Scores of a lender over all of its loans.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LendingScore {
    /// Mean share of the fleet that was lent.
    pub lent: f64,
    /// Share of measured steps that were violated.
    pub violated: f64,
    /// Accelerators missing relative to those needed.
    pub shortfall: f64,
    /// Mean change of what is lent from one decision to the next, relative to the fleet.
    pub churn: f64,
}

impl LendingScore {
    /// Scores decisions in their order; all zeros without any.
    pub fn of(fleet: &LendingFleet, loans: &[SettledLoan]) -> Self {
        let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
        let sum = |of: fn(&SettledLoan) -> u64| loans.iter().map(of).sum::<u64>() as f64;
        let all = f64::from(fleet.accelerators);
        let count = loans.len() as f64;
        let changes: u64 = loans.windows(2).map(|pair| u64::from(pair[0].kept.abs_diff(pair[1].kept))).sum();
        Self {
            lent: ratio(loans.iter().map(|loan| all - f64::from(loan.kept)).sum(), all * count),
            violated: ratio(sum(|loan| loan.violated as u64), sum(|loan| loan.steps as u64)),
            shortfall: ratio(sum(|loan| loan.missing), sum(|loan| loan.needed)),
            churn: ratio(changes as f64, all * (count - 1.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLEET: LendingFleet = LendingFleet { accelerators: 10, load_per_accelerator: 2.0 };

    #[test]
    fn hand_worked_loans() {
        let lease = LeaseTerms { lead: 1, steps: 3 };
        // Kept 3 of 10; the lease sees 6, a gap and 9, which need 3 and 5.
        let first = SettledLoan::settle(&FLEET, &lease, 0, 3, &[99.0, 6.0, f64::NAN, 9.0, 99.0]);
        assert_eq!((first.steps, first.violated, first.missing, first.needed), (2, 1, 2, 8));
        let second = SettledLoan::settle(&FLEET, &lease, 1, 5, &[0.0, 0.0, 1.0, 1.0]);
        assert_eq!((second.steps, second.violated), (2, 0));
        let score = LendingScore::of(&FLEET, &[first, second]);
        assert_eq!((score.lent, score.violated, score.shortfall, score.churn), (0.6, 0.25, 0.2, 0.2));
    }

    #[test]
    fn a_need_is_rounded_up_and_bounded() {
        assert_eq!([0.0, 0.1, 2.0, 2.1, 1e9, -5.0, f64::NAN].map(|load| FLEET.need(load)), [0, 1, 1, 2, 10, 0, 10]);
    }
}
