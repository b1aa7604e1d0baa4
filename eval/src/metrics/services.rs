//! Metrics of services, and of the loans of their servers.

use std::collections::BTreeMap;

use goodput_env::model::serving::{BINS, LateTokens, edge};
use goodput_env::scenario::Scenario;
use goodput_env::sim::{LoanRecord, Outcome};
use goodput_env::state::{LatencyCounts, ServiceRecord};

use super::RunFacts;

/// The services of one class of objectives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SloClass {
    /// Name of the class.
    pub class: String,
    /// Services in it.
    pub services: u32,
    /// Number of requests, in micro-requests.
    pub requests: u64,
    /// Requests that missed their objective, micro-requests.
    pub violated: u64,
    /// Requests by latency over objective.
    pub latencies: LatencyCounts,
}

impl SloClass {
    /// Share of requests that kept their objective; `None` where there was no request.
    pub fn attainment(&self) -> Option<f64> {
        share_kept(self.requests, self.violated)
    }
}

/// Services by class of objectives, in order of name.
pub fn slo_classes(scenario: &Scenario, outcome: &Outcome) -> Vec<SloClass> {
    let mut classes: BTreeMap<&str, SloClass> = BTreeMap::new();
    for (service, record) in scenario.workload.services.iter().zip(&outcome.services) {
        let name = service.slo.class.as_str();
        let blank = || SloClass { class: name.into(), services: 0, requests: 0, violated: 0, latencies: [0; BINS] };
        let class = classes.entry(name).or_insert_with(blank);
        class.services += 1;
        class.requests += record.requests;
        class.violated += record.violated;
        add(&mut class.latencies, &record.latencies);
    }
    classes.into_values().collect()
}

/// The latency, in multiples of the objective, that a share of `1 - share` of the requests exceeds:
/// interpolated in its class on a logarithmic scale; the last class has no upper edge and gives its
/// lower one.
pub fn latency_over_slo(latencies: &LatencyCounts, share: f64) -> Option<f64> {
    let all: u64 = latencies.iter().sum();
    let rank = share * all as f64;
    let mut below = 0.0;
    for (bin, &count) in latencies.iter().enumerate().filter(|(_, count)| **count > 0) {
        let upto = below + count as f64;
        if upto >= rank {
            let inside = if bin + 1 == BINS { 0.0 } else { (rank - below) / count as f64 };
            return Some(edge(bin) * ((inside - 1.0) / 4.0).exp2());
        }
        below = upto;
    }
    None
}

pub(super) fn attainment(services: &[ServiceRecord]) -> Option<f64> {
    let sum = |of: fn(&ServiceRecord) -> u64| services.iter().map(of).sum();
    share_kept(sum(|service| service.requests), sum(|service| service.violated))
}

pub(super) fn worst_attainment(services: &[ServiceRecord]) -> Option<f64> {
    let each = services.iter().filter_map(|service| share_kept(service.requests, service.violated));
    each.min_by(f64::total_cmp)
}

/// Share of the requests to language models with a time to the first token within its objective.
pub(super) fn ttft_attainment(services: &[ServiceRecord]) -> Option<f64> {
    token_attainment(services, |late| late.ttft)
}

/// Share of the requests to language models with a time of a further token within its objective.
pub(super) fn tpot_attainment(services: &[ServiceRecord]) -> Option<f64> {
    token_attainment(services, |late| late.tpot)
}

fn token_attainment(services: &[ServiceRecord], of: fn(&LateTokens) -> u64) -> Option<f64> {
    let each = || services.iter().filter_map(|service| Some((service.requests, of(service.late.as_ref()?))));
    share_kept(each().map(|(requests, _)| requests).sum(), each().map(|(_, late)| late).sum())
}

pub(super) fn violated(services: &[ServiceRecord]) -> Option<f64> {
    let sum = services.iter().map(|service| service.violated).sum::<u64>();
    (!services.is_empty()).then(|| sum as f64 / 1e6)
}

pub(super) fn p99_over_slo(services: &[ServiceRecord]) -> Option<f64> {
    let mut all = [0; BINS];
    services.iter().for_each(|service| add(&mut all, &service.latencies));
    latency_over_slo(&all, 0.99)
}

pub(super) fn replica_gpu_secs(services: &[ServiceRecord]) -> Option<f64> {
    let sum = services.iter().map(|service| service.gpu_millis).sum::<i64>();
    (!services.is_empty()).then(|| sum as f64 / 1e3)
}

pub(super) fn pool_utilization(run: &RunFacts<'_>) -> Option<f64> {
    let (loans, end) = (&run.outcome.loans, run.outcome.end.as_millis());
    let capacity = f64::from(loans.pool_gpus) * end as f64;
    (capacity > 0.0).then(|| (loans.served_gpu_millis + loans.trained_gpu_millis) as f64 / capacity)
}

pub(super) fn of_pool(run: &RunFacts<'_>, of: fn(&LoanRecord) -> f64) -> Option<f64> {
    (run.outcome.loans.pool_gpus > 0).then(|| of(&run.outcome.loans))
}

fn share_kept(requests: u64, violated: u64) -> Option<f64> {
    (requests > 0).then(|| 1.0 - violated as f64 / requests as f64)
}

fn add(sum: &mut LatencyCounts, counts: &LatencyCounts) {
    for (sum, count) in sum.iter_mut().zip(counts) {
        *sum += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_in_their_class() {
        let mut latencies = [0; BINS];
        latencies[24] = 99;
        latencies[28] = 1;
        assert_eq!(latency_over_slo(&latencies, 0.99), Some(1.0));
        assert!((latency_over_slo(&latencies, 0.995).unwrap() - 2.0 * 0.5_f64.powf(0.125)).abs() < 1e-9);
        assert_eq!(latency_over_slo(&[0; BINS], 0.99), None);
    }
}
