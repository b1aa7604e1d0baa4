//! The objectives of services as a constraint of a search: a policy may be late with as many
//! requests as the objective allows, or as its teacher is on the same episodes, whichever is more.
//!
//! Candidates that keep it go before all that do not, however good those are otherwise, and of
//! those that do not the one that is less beyond it goes first (Deb, "An efficient constraint
//! handling method for genetic algorithms", Computer Methods in Applied Mechanics and Engineering
//! 186, 2000). So no weight has to be chosen.

use goodput_env::scenario::Scenario;
use goodput_env::sim::Outcome;
use serde::{Deserialize, Serialize};

/// A service that is late no more often than this times its teacher is as good: rounding of
/// simulated time moves that much.
const ALIKE: f64 = 1.01;

/// Requests of one service, added up over several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceRequests {
    /// Number of requests, in micro-requests.
    all: u64,
    /// Number of requests that missed their latency objective, in micro-requests.
    late: u64,
    /// Share of them that may.
    may: f64,
}

/// Requests of each service, added up over several runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServedRequests(Vec<ServiceRequests>);

impl ServedRequests {
    /// In one run.
    pub fn of(scenario: &Scenario, outcome: &Outcome) -> Self {
        let mays = scenario.workload.services.iter().map(|service| 1.0 - service.slo.target);
        let requests = mays.zip(&outcome.services);
        Self(
            requests
                .map(|(may, record)| ServiceRequests { all: record.requests, late: record.violated, may })
                .collect(),
        )
    }

    /// In all of these runs, which have the same services.
    pub fn sum<'a>(runs: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        for run in runs {
            sum.0.resize(sum.0.len().max(run.0.len()), ServiceRequests::default());
            for (sum, run) in sum.0.iter_mut().zip(&run.0) {
                *sum = ServiceRequests { all: sum.all + run.all, late: sum.late + run.late, may: run.may };
            }
        }
        sum
    }

    /// Late requests beyond those that may be late, relative to these, for the worst service; 0
    /// where every one keeps its objective or is as good as under the teacher.
    pub fn excess(&self, teacher: &Self) -> f64 {
        let share = |requests: &ServiceRequests| requests.late as f64 / requests.all.max(1) as f64;
        let of = |(own, taught): (&ServiceRequests, &ServiceRequests)| {
            // The least bound keeps a service that may never be late from a division by 0.
            let may = own.may.max(ALIKE * share(taught)).max(1e-9);
            (share(own) / may - 1.0).max(0.0)
        };
        self.0.iter().zip(&teacher.0).map(of).fold(0.0, f64::max)
    }
}

/// Costs as a search sees them, with feasible candidates first. A candidate without an excess keeps
/// its cost; a candidate with an excess costs more than every feasible one.
pub fn feasible_first(candidates: &[(f64, f64)]) -> Vec<f64> {
    let keep = candidates.iter().filter(|(_, excess)| *excess <= 0.0);
    let worst = keep.map(|(cost, _)| *cost).fold(f64::NEG_INFINITY, f64::max);
    // Where no candidate is feasible, the excess alone ranks them.
    let worst = if worst.is_finite() { worst } else { 0.0 };
    candidates.iter().map(|&(cost, excess)| if excess > 0.0 { worst + excess } else { cost }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(late: &[u64]) -> ServedRequests {
        ServedRequests(late.iter().map(|&late| ServiceRequests { all: 1_000_000, late, may: 0.001 }).collect())
    }

    #[test]
    fn the_objective_or_the_teacher_whichever_allows_more() {
        // A thousandth may be late: 1,000 of a million.
        assert_eq!(served(&[1000, 0]).excess(&served(&[0, 0])), 0.0);
        assert!((served(&[0, 1500]).excess(&served(&[0, 0])) - 0.5).abs() < 1e-12, "the worst service counts");
        assert_eq!(served(&[1500]).excess(&served(&[1500])), 0.0);
        assert_eq!(served(&[]).excess(&served(&[])), 0.0);
        // Over two runs together it is kept, though not in each.
        let both = ServedRequests::sum(&[served(&[1600]), served(&[300])]);
        assert_eq!(both.excess(&ServedRequests::sum(&[served(&[0]), served(&[0])])), 0.0);
    }

    #[test]
    fn no_cost_makes_up_for_late_requests() {
        let told = feasible_first(&[(-9.0, 1e-6), (3.0, 0.0), (-5.0, 0.2), (-1.0, 0.0)]);
        assert!(told[3] < told[1] && told[1] < told[0] && told[0] < told[2], "{told:?}");
        // Where none keeps it, the least excess goes first.
        let told = feasible_first(&[(-9.0, 0.3), (3.0, 0.1)]);
        assert!(told[1] < told[0], "{told:?}");
    }
}
