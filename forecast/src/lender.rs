//! Lenders: rules that decide, from rolling origins on a series, how many accelerators to lend.

use serde::{Deserialize, Serialize};

use crate::decide::{Decider, Objective, USUAL_AIM};
use crate::lending::{LeaseTerms, LendingFleet, SettledLoan};
use crate::{Adaptive, FitError, Series};

/// Rule of a lender.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Lender {
    /// Keeps what the forecast and an objective ask for ([`decide`](crate::decide)).
    Decided(Objective),
    /// Keeps what the last load needs (the load one day before, in a gap) plus a headroom; no
    /// forecast.
    Reactive {
        /// Headroom on the last load, as a fraction of it.
        headroom: f64,
    },
    /// Keeps what the largest load of the lease will need: the bound of every lender without a missed step.
    Oracle,
}

impl Lender {
    /// Default lender: it aims below one violated step in a hundred, and does not reach that on every load.
    pub const DEFAULT: Lender = Lender::Decided(Objective::Steps(0.01));

    /// Runs this lender on `series`: it decides at step `first` and every `lease.steps` after it
    /// for which a whole lease is left, and knows at each decision only what came before.
    ///
    /// # Errors
    /// A series that cannot be fitted before `first`, or none of it before.
    pub fn run(
        self,
        model: &Adaptive,
        series: &Series,
        fleet: &LendingFleet,
        lease: &LeaseTerms,
        first: usize,
    ) -> Result<Vec<SettledLoan>, FitError> {
        let load = series.values().to_vec();
        let after = lease.lead + lease.steps.max(1);
        let origins = (first..(load.len() + 1).saturating_sub(after)).step_by(lease.steps.max(1));
        let settle = |origin, keep| SettledLoan::settle(fleet, lease, origin, fleet.need(keep), &load);
        match self {
            Self::Decided(objective) => {
                let known = series.slice(0..first.min(series.len())).unwrap_or_else(|_| series.clone());
                let decider = Decider::new(model, &known, lease.lead..after, objective, USUAL_AIM)?;
                Ok(decided(decider, objective, &load, first, origins, after, settle))
            }
            Self::Reactive { headroom } => {
                let filled = series.fill_gaps(model.day_steps);
                let last = |origin: usize| origin.checked_sub(1).and_then(|last| filled.get(last));
                let keep = |origin| last(origin).map_or(f64::INFINITY, |load| load * (1.0 + headroom));
                Ok(origins.map(|origin| settle(origin, keep(origin))).collect())
            }
            Self::Oracle => {
                let keep = |origin| load[origin + lease.lead..origin + after].iter().copied().fold(0.0, f64::max);
                Ok(origins.map(|origin| settle(origin, keep(origin))).collect())
            }
        }
    }
}

/// Loans of a decider at `origins`; a loan is settled once its lease, `after` steps from its origin, is over.
fn decided(
    mut decider: Decider,
    objective: Objective,
    load: &[f64],
    first: usize,
    origins: impl Iterator<Item = usize>,
    after: usize,
    settle: impl Fn(usize, f64) -> SettledLoan,
) -> Vec<SettledLoan> {
    let mut loans: Vec<SettledLoan> = Vec::new();
    let (mut known, mut settled) = (first, 0);
    for origin in origins {
        load[known..origin].iter().for_each(|&load| decider.update(load));
        known = origin;
        while settled < loans.len() && loans[settled].origin + after <= origin {
            decider.settle(loans[settled].missed(objective));
            settled += 1;
        }
        loans.push(settle(origin, decider.capacity()));
    }
    loans
}
