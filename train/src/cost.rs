//! Cost of a run for a search. Costs are logarithms, so that the difference to a teacher's cost on
//! the same episode is a ratio.

use goodput_env::scenario::Scenario;
use goodput_env::sim::Outcome;
use goodput_eval::metrics::tenant_facts;

use crate::validate::{jct_mean_secs, jct_secs};

/// Logarithm of the mean completion time, and of the 99th percentile by its weight `tail`. Where
/// tenants are declared the mean of the tenants' logarithms by their weights stands for the first:
/// what one tenant gains is worth what another one loses in proportion, however many jobs either
/// has (proportional fairness; Kelly, "Charging and rate control for elastic traffic", European
/// Transactions on Telecommunications 8, 1997).
pub fn of_run(scenario: &Scenario, outcome: &Outcome, tail: f64) -> f64 {
    let mean = of_tenants(scenario, outcome).unwrap_or_else(|| log(jct_mean_secs(outcome)));
    mean + tail * log(tail_secs(outcome))
}

fn log(secs: f64) -> f64 {
    secs.max(1e-3).ln()
}

/// `None` where fewer than two are declared, or one has completed nothing.
fn of_tenants(scenario: &Scenario, outcome: &Outcome) -> Option<f64> {
    if scenario.workload.tenants.len() < 2 {
        return None;
    }
    let facts = tenant_facts(scenario, outcome);
    let weights: f64 = facts.iter().map(|facts| facts.weight).sum();
    let logs =
        facts.iter().map(|facts| Some(facts.weight * log(facts.jct_mean_secs?))).collect::<Option<Vec<f64>>>()?;
    (weights > 0.0).then(|| logs.iter().sum::<f64>() / weights)
}

/// The 99th percentile of completion times, seconds.
fn tail_secs(outcome: &Outcome) -> f64 {
    let mut times: Vec<f64> = jct_secs(outcome).collect();
    times.sort_by(f64::total_cmp);
    times.get((times.len() as f64 * 0.99) as usize).or(times.last()).copied().unwrap_or(0.0)
}
