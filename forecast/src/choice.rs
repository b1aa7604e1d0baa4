//! Lender that follows the best candidate rule so far.
//!
//! A candidate is a level and a scaling of the window's maximum, a margin on it, or a headroom on
//! the last load. At every decision each candidate says what it would keep, and is judged by the
//! load that came, whether the lender followed it or not. The lender follows the candidate that
//! lent most among the candidates with a share of violated steps, padded for how little is known,
//! within the budget: the leader under a constraint (Mannor, Tsitsiklis, Yu, "Online learning with
//! sample path constraints", JMLR 10, 2009). The best of many looks better than it is, so the
//! budget is a third of the target. The violations of the loans that were made move the budget, so
//! that a bad week is paid back.

use crate::lending::{LeaseTerms, LendingFleet, SettledLoan};
use crate::{Adaptive, Fit, FitError, FittedAdaptive, Predict, Series};

const LEVELS: [f64; 8] = [0.5, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995];
/// Margins that candidates put on the highest level and on the median.
const MARGINS: [f64; 4] = [1.1, 1.25, 1.5, 2.0];
const HEADROOMS: [f64; 4] = [0.2, 0.5, 1.0, 2.0];
/// Days before the first decision in which the candidates are already judged.
const WARM_DAYS: usize = 4;
/// Half-life of a judgement, in days.
const HALF_LIFE_DAYS: f64 = 7.0;
/// Budget of a candidate relative to the target share of violations.
const BUDGET: f64 = 0.3;
/// Number of steps over which violations are paid back.
const PAY_BACK: f64 = 300.0;
/// Prior of every candidate: violated steps, and steps.
const PAD: (f64, f64) = (0.5, 100.0);

/// Records of all candidates, and of the loans that were made.
struct CandidateRecords {
    target: f64,
    /// Violated steps of each candidate, and the sum of the shares that it would have lent.
    records: Vec<(f64, f64)>,
    /// Measured steps, discounted as the records are.
    steps: f64,
    /// Violated and measured steps of the loans that were made.
    spent: (f64, f64),
}

/// One decision: the accelerators that each candidate would keep, and the candidate that was
/// followed.
struct LendingDecision {
    origin: usize,
    kept: Vec<u32>,
    followed: usize,
}

impl CandidateRecords {
    fn choose(&self, kept: &[u32]) -> usize {
        // Violations that the loans may still make over the next steps, given those they have made.
        let owed = self.target * (self.spent.1 + PAY_BACK) - self.spent.0;
        let budget = BUDGET * (owed / PAY_BACK).clamp(0.0, 1.5 * self.target);
        let of = |index: usize| self.records.get(index).copied().unwrap_or_default();
        let within = |&index: &usize| (of(index).0 + PAD.0) / (self.steps + PAD.1) <= budget;
        let most_lent = (0..kept.len()).filter(within).max_by(|&a, &b| of(a).1.total_cmp(&of(b).1).then(b.cmp(&a)));
        let least_violated = || {
            let order =
                |&a: &usize, &b: &usize| of(a).0.total_cmp(&of(b).0).then(kept[b].cmp(&kept[a])).then(a.cmp(&b));
            (0..kept.len()).min_by(order)
        };
        most_lent.or_else(least_violated).unwrap_or(0)
    }

    /// Judges all candidates once the lease of `decision` is over. `keep` discounts older records;
    /// `made` says whether the decision became a loan.
    fn judge(
        &mut self,
        decision: &LendingDecision,
        made: bool,
        keep: f64,
        fleet: &LendingFleet,
        lease: &LeaseTerms,
        load: &[f64],
    ) {
        self.records.resize(decision.kept.len(), (0.0, 0.0));
        let mut steps = 0.0;
        for (index, (record, &kept)) in self.records.iter_mut().zip(&decision.kept).enumerate() {
            let loan = SettledLoan::settle(fleet, lease, decision.origin, kept, load);
            let lent = 1.0 - f64::from(kept) / f64::from(fleet.accelerators.max(1));
            *record = (keep * record.0 + loan.violated as f64, keep * record.1 + lent);
            steps = loan.steps as f64;
            if made && index == decision.followed {
                self.spent = (self.spent.0 + loan.violated as f64, self.spent.1 + steps);
            }
        }
        self.steps = keep * self.steps + steps;
    }
}

/// Loads for which the candidates keep room, in a fixed order of candidates.
fn candidates(forecaster: &FittedAdaptive, window: usize, last: f64) -> Vec<f64> {
    let mut loads = Vec::new();
    for quantiles in forecaster.peaks(window, &LEVELS).into_iter().flatten() {
        let (median, highest) = (quantiles[0], quantiles[LEVELS.len() - 1]);
        loads.extend(quantiles);
        loads.extend(MARGINS.iter().flat_map(|margin| [margin * highest, margin * median]));
    }
    loads.extend(HEADROOMS.map(|headroom| last * (1.0 + headroom)));
    loads
}

/// Loans of the lender from step `first` on.
pub(crate) fn run(
    target: f64,
    model: &Adaptive,
    series: &Series,
    fleet: &LendingFleet,
    lease: &LeaseTerms,
    first: usize,
) -> Result<Vec<SettledLoan>, FitError> {
    let load = series.values().to_vec();
    let filled = series.fill_gaps(model.day_steps);
    let stride = lease.steps.max(1);
    let after = lease.lead + stride;
    let first = first.min(series.len());
    let start = first - (WARM_DAYS * model.day_steps).min(first / 2) / stride * stride;
    let known = series.slice(0..start.max(1).min(series.len())).unwrap_or_else(|_| series.clone());
    let mut forecaster = model.clone().with_window(lease.lead, stride).fit(&known)?;
    let window = model.windows.len();
    let keep = 0.5_f64.powf(stride as f64 / (HALF_LIFE_DAYS * model.day_steps as f64));
    let mut choice = CandidateRecords { target, records: vec![], steps: 0.0, spent: (0.0, 0.0) };
    let mut decisions: Vec<LendingDecision> = Vec::new();
    let (mut seen, mut judged, mut refreshed) = (start.max(1), 0, start);
    for origin in (start..(load.len() + 1).saturating_sub(after)).step_by(stride) {
        while let Some(decision) = decisions.get(judged).filter(|decision| decision.origin + after <= origin) {
            choice.judge(decision, decision.origin >= first, keep, fleet, lease, &load);
            judged += 1;
        }
        if origin > seen {
            forecaster.update(&load[seen..origin]);
            seen = origin;
        }
        if origin >= refreshed + model.day_steps {
            forecaster.refresh();
            refreshed = origin;
        }
        let last = origin.checked_sub(1).and_then(|last| filled.get(last)).unwrap_or(f64::INFINITY);
        let kept: Vec<u32> = candidates(&forecaster, window, last).into_iter().map(|load| fleet.need(load)).collect();
        let followed = choice.choose(&kept);
        decisions.push(LendingDecision { origin, kept, followed });
    }
    let made = decisions.iter().filter(|decision| decision.origin >= first);
    Ok(made.map(|made| SettledLoan::settle(fleet, lease, made.origin, made.kept[made.followed], &load)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(records: Vec<(f64, f64)>, spent: (f64, f64)) -> CandidateRecords {
        CandidateRecords { target: 0.01, records, steps: 900.0, spent }
    }

    #[test]
    fn the_one_that_lent_most_within_the_budget_is_followed() {
        // A budget of 0.3 %, of 1000 padded steps: at most 2.5 violated.
        let records = vec![(9.0, 50.0), (2.0, 30.0), (0.0, 20.0)];
        assert_eq!(choice(records.clone(), (0.0, 0.0)).choose(&[1, 2, 3]), 1);
        // The budget is spent and no candidate is within it, so the one with the fewest violations
        // counts.
        assert_eq!(choice(records, (50.0, 300.0)).choose(&[1, 2, 3]), 2);
        assert_eq!(choice(vec![], (50.0, 300.0)).choose(&[1, 3, 2]), 1, "nothing is known: the most is kept");
    }
}
