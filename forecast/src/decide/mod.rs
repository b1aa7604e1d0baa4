//! Room of decisions: from a forecast to the capacity that an objective asks for.
//!
//! - **Joint paths.** Past forecasts leave residual *paths*: what the load did, step by step, around what was expected.
//!   Put around the present forecast, they are scenarios of the whole window ahead ([`ResidualPaths`]). A scenario
//!   keeps the dependence between steps, which a table of quantiles for each step has lost.
//! - **Past windows.** What the load did at this time of the days before is pooled with the scenarios
//!   ([`PooledForecast`]), in a share that is learned, because a load that breaks off may come back.
//! - **Objective.** [`Objective`] names what is counted: missed steps, missed leases, late requests, or the cost of
//!   shortage and of idle capacity. Each one is a quantile of another statistic of the scenarios
//!   ([`Scenarios::distribution`]).
//! - **Level.** The share that is asked of the quantile follows the share that was missed ([`OnlineLevel`]).
//! - [`Decider`] holds them together for one window ahead.
//! - [`OnlineDecider`] begins with no load, and is steered by the steps that it missed, or by the requests that were
//!   late: the decision of services on a cluster and of the forecast server.

mod decider;
mod distribution;
mod level;
mod online;
mod past;
mod pooled;
mod residuals;
mod scenarios;
mod share;
mod steps;

use serde::{Deserialize, Serialize};

pub(crate) use decider::RATE;
pub use decider::{Decider, USUAL_AIM};
pub use distribution::Distribution;
pub use level::OnlineLevel;
pub use online::{LateRequests, OnlineDecider, OnlineTerms};
pub(crate) use past::PastWindows;
pub(crate) use pooled::PooledForecast;
pub use residuals::ResidualPaths;
pub use scenarios::Scenarios;

/// Quantity that a decision keeps small.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Objective {
    /// At most this share of all steps may need more than the capacity.
    Steps(f64),
    /// At most this share of all windows may have a step that needs more than the capacity.
    Leases(f64),
    /// At most this share of all requests may be late. Lateness is measured and not computed from the load: a request
    /// is late by its place in a queue, also where the capacity was enough.
    Late(f64),
    /// The mean cost is least.
    Cost {
        /// Cost of a missing accelerator for one step.
        shortage: f64,
        /// Cost of an idle accelerator for one step, in the same unit.
        idle: f64,
    },
}

/// Statistic of a scenario that is compared with the capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Statistic {
    /// Every step of the window counts for itself.
    EachStep,
    /// The largest load of the window counts.
    Largest,
}

impl Objective {
    /// Statistic of which a quantile answers the objective.
    pub fn statistic(&self) -> Statistic {
        match self {
            Self::Steps(_) | Self::Cost { .. } => Statistic::EachStep,
            // Until an order of now serves, capacity cannot grow, so requests are late by the largest load before.
            Self::Leases(_) | Self::Late(_) => Statistic::Largest,
        }
    }

    /// Probability, in `[0, 1]`, with which the statistic may exceed the capacity.
    ///
    /// For a cost it is the critical ratio of the newsvendor, `idle / (shortage + idle)` (Arrow, Harris, Marschak,
    /// "Optimal inventory policy", Econometrica 19(3), 1951).
    pub fn tail(&self) -> f64 {
        match *self {
            Self::Steps(share) | Self::Leases(share) | Self::Late(share) => share.clamp(0.0, 1.0),
            Self::Cost { shortage, idle } if shortage + idle > 0.0 => (idle / (shortage + idle)).clamp(0.0, 1.0),
            Self::Cost { .. } => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dear_shortages_keep_more() {
        assert_eq!(Objective::Cost { shortage: 99.0, idle: 1.0 }.tail(), 0.01);
        assert_eq!(Objective::Cost { shortage: 0.0, idle: 0.0 }.tail(), 0.0);
    }
}
