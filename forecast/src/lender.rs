//! Lenders: rules that decide, from rolling origins on a series, how many accelerators to lend.

use serde::{Deserialize, Serialize};

use crate::choice;
use crate::lending::{Control, LeaseTerms, LendingFleet, SettledLoan};
use crate::{Adaptive, Fit, FitError, Predict, Series};

/// Rule of a lender.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Lender {
    /// Keeps what a quantile of the largest load of the lease needs.
    Quantile {
        /// Quantile level, between 0 and 1.
        level: f64,
    },
    /// Keeps what a quantile of the largest load of the lease needs, with a margin under
    /// [`Control`].
    Controlled {
        /// Quantile level, between 0 and 1.
        level: f64,
        /// Share of steps that may be violated.
        target: f64,
        /// Rate at which the margin follows violations.
        rate: f64,
    },
    /// Follows the best so far of many levels, scalings, margins and headrooms
    /// ([`choice`](crate::choice)).
    Chosen {
        /// Share of steps that may be violated.
        target: f64,
    },
    /// Keeps what the last load needs (the load one day before, in a gap) plus a headroom; no
    /// forecast.
    Reactive {
        /// Headroom on the last load, as a fraction of it.
        headroom: f64,
    },
    /// Keeps what the largest load of the lease will need: the bound of every lender.
    Oracle,
}

/// Set point of the control, as a fraction of the target: violations come in hours at a time, and a
/// week does not pay one of them back.
const AIM: f64 = 0.3;

impl Lender {
    /// Default lender, for one violated step in a hundred.
    pub const DEFAULT: Lender = Lender::controlled(0.01);

    /// Default lender for any `target` share of violated steps. The level and the rate were chosen
    /// on other series than those of the published results.
    pub const fn controlled(target: f64) -> Lender {
        Lender::Controlled { level: 0.98, target, rate: 0.2 }
    }

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
        if let Lender::Chosen { target } = self {
            return choice::run(target, model, series, fleet, lease, first);
        }
        let load = series.values().to_vec();
        let filled = series.fill_gaps(model.day_steps);
        let after = lease.lead + lease.steps.max(1);
        let mut control = match self {
            Lender::Controlled { target, rate, .. } => Control::new(AIM * target, rate),
            _ => Control::new(0.0, 0.0),
        };
        let level = match self {
            Lender::Quantile { level } | Lender::Controlled { level, .. } => Some(level.clamp(1e-6, 1.0 - 1e-6)),
            Lender::Chosen { .. } | Lender::Reactive { .. } | Lender::Oracle => None,
        };
        let mut forecaster = match level {
            Some(_) => {
                let known = series.slice(0..first.min(series.len())).unwrap_or_else(|_| series.clone());
                Some(model.clone().with_window(lease.lead, lease.steps).fit(&known)?)
            }
            None => None,
        };
        let window = model.windows.len();
        let mut loans: Vec<SettledLoan> = Vec::new();
        let (mut known, mut settled, mut refreshed) = (first, 0, first);
        for origin in (first..(load.len() + 1).saturating_sub(after)).step_by(lease.steps.max(1)) {
            while settled < loans.len() && loans[settled].origin + after <= origin {
                control.observe(loans[settled].violated_share());
                settled += 1;
            }
            let keep = match (self, &mut forecaster) {
                (_, Some(forecaster)) => {
                    forecaster.update(&load[known..origin]);
                    if origin >= refreshed + model.day_steps {
                        forecaster.refresh();
                        refreshed = origin;
                    }
                    // Errors of the maximum that grow with the square root of the forecast.
                    let peaks = forecaster.peaks(window, &[level.unwrap_or(0.5)]);
                    let quantile = peaks.and_then(|[_, peak, _]| peak.first().copied());
                    control.guarded(quantile.unwrap_or(f64::INFINITY))
                }
                (Lender::Reactive { headroom }, _) => origin
                    .checked_sub(1)
                    .and_then(|last| filled.get(last))
                    .map_or(f64::INFINITY, |y| y * (1.0 + headroom)),
                (_, _) => load[origin + lease.lead..origin + after].iter().copied().fold(0.0, f64::max),
            };
            known = origin;
            loans.push(SettledLoan::settle(fleet, lease, origin, fleet.need(keep), &load));
        }
        Ok(loans)
    }
}
