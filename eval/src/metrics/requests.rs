//! Latency of inference requests of a run; empty where a run has none.

use goodput_env::sim::{Outcome, RequestRecord, Served};

/// Mean time from a request to its answer, seconds.
pub fn latency_mean_secs(outcome: &Outcome) -> Option<f64> {
    let latencies = outcome.requests.iter().filter_map(RequestRecord::latency);
    super::table::mean(&latencies.map(|latency| latency.as_secs_f64()).collect::<Vec<_>>())
}

/// Share of answered requests that found a protected instance.
pub fn protect_hits(outcome: &Outcome) -> Option<f64> {
    share(outcome, Served::Hit)
}

/// Share of answered requests for which an instance was started.
pub fn cold_starts(outcome: &Outcome) -> Option<f64> {
    share(outcome, Served::Cold)
}

fn share(outcome: &Outcome, how: Served) -> Option<f64> {
    let answered = outcome.requests.iter().filter_map(|request| request.served);
    let (found, all) =
        answered.fold((0_u32, 0_u32), |(found, all), served| (found + u32::from(served == how), all + 1));
    (all > 0).then(|| f64::from(found) / f64::from(all))
}
