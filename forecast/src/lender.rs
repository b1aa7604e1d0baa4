//! A lender at work on a series: decides, waits, settles, and knows at each decision only what came before.

use serde::{Deserialize, Serialize};

use crate::choice;
use crate::lending::{Control, Fleet, Lease, Loan};
use crate::{Adaptive, Fit, FitError, Predict, Series};

/// How a lender decides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Lender {
    /// Keeps what a quantile of the largest load of the lease needs.
    Quantile {
        /// The level, between 0 and 1.
        level: f64,
    },
    /// The same with a margin under [`Control`].
    Controlled {
        /// The level, between 0 and 1.
        level: f64,
        /// Share of steps that may be violated.
        target: f64,
        /// How fast the margin follows violations.
        rate: f64,
    },
    /// Follows the best so far of many levels, scalings, margins and headrooms ([`choice`](crate::choice)).
    Chosen {
        /// Share of steps that may be violated.
        target: f64,
    },
    /// Keeps what the last load needs (a day before, in a gap), and this share more: no forecast.
    Reactive {
        /// Share on top.
        headroom: f64,
    },
    /// Knows what comes: the bound of all.
    Oracle,
}

/// The share of violated steps that is steered at, relative to what may be: violations come in hours at a time, and one of them is more than a week pays back.
const AIM: f64 = 0.3;

impl Lender {
    /// The one fixed in advance, for one step in a hundred that may be violated.
    pub const DEFAULT: Lender = Lender::controlled(0.01);

    /// The same for any `target`: the level and the rate were chosen on other series than those it is reported on.
    pub const fn controlled(target: f64) -> Lender {
        Lender::Controlled { level: 0.98, target, rate: 0.2 }
    }

    /// Decides at step `first` and every `lease.steps` after it for which a whole lease is left, on `series`.
    ///
    /// # Errors
    /// A series that cannot be fitted before `first`, or none of it before.
    pub fn run(
        self,
        model: &Adaptive,
        series: &Series,
        fleet: &Fleet,
        lease: &Lease,
        first: usize,
    ) -> Result<Vec<Loan>, FitError> {
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
        let mut loans: Vec<Loan> = Vec::new();
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
            loans.push(Loan::settle(fleet, lease, origin, fleet.need(keep), &load));
        }
        Ok(loans)
    }
}
