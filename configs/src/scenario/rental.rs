//! Checks of the values of `[environment.rental]`. The table is that of the model of rented nodes.

use goodput_env::cluster::Cluster;
use goodput_env::model::{Rental, Spot};

use super::SetupError;

const A_DAY: f64 = 86_400.0;

fn expect(holds: bool, key: &'static str, value: impl ToString, expected: &str) -> Result<(), SetupError> {
    if holds { Ok(()) } else { Err(SetupError::Value { key, value: value.to_string(), expected: expected.into() }) }
}

fn price(key: &'static str, value: f64) -> Result<(), SetupError> {
    expect((0.0..=1e9).contains(&value), key, value, "0 to 1e9")
}

/// Checks the values of `[environment.rental]`.
///
/// # Errors
/// [`SetupError::Value`] naming the key.
pub(super) fn check(rental: &Rental) -> Result<(), SetupError> {
    let Rental { min_nodes, low, high, window, interval_secs, start_up_secs, price_per_hour, .. } = *rental;
    expect(min_nodes >= 1, "environment.rental.min_nodes", min_nodes, "at least 1")?;
    expect((0.0..1.0).contains(&low), "environment.rental.low", low, "at least 0 and below 1")?;
    expect(high > low && high <= 1.0, "environment.rental.high", high, "above low and at most 1")?;
    expect((1..=10_000).contains(&window), "environment.rental.window", window, "1 to 10000")?;
    let interval = (1.0..=A_DAY).contains(&interval_secs);
    expect(interval, "environment.rental.interval_secs", interval_secs, "1 to 86400 seconds")?;
    let start_up = (0.0..=A_DAY).contains(&start_up_secs);
    expect(start_up, "environment.rental.start_up_secs", start_up_secs, "0 to 86400 seconds")?;
    price("environment.rental.price_per_hour", price_per_hour)?;
    let Some(Spot { mean_hours, price_per_hour, notice_secs }) = rental.spot else { return Ok(()) };
    let mean = (0.01..=1e6).contains(&mean_hours);
    expect(mean, "environment.rental.spot.mean_hours", mean_hours, "0.01 to 1e6 hours")?;
    price("environment.rental.spot.price_per_hour", price_per_hour)?;
    let notice = (0.0..=A_DAY).contains(&notice_secs);
    expect(notice, "environment.rental.spot.notice_secs", notice_secs, "0 to 86400 seconds")
}

/// Checks that the machines there are can be rented: equal nodes without pools, at least as many as are always rented.
///
/// # Errors
/// [`SetupError::Value`] naming the key.
pub(super) fn check_cluster(rental: &Rental, cluster: &Cluster) -> Result<(), SetupError> {
    let nodes = cluster.nodes.len();
    let alike = cluster.nodes.windows(2).all(|pair| pair[0] == pair[1]) && !cluster.has_pools();
    expect(alike, "cluster.groups", "several kinds of nodes", "one group, for all work, with [environment.rental]")?;
    let expected = format!("at most {nodes}, the nodes of cluster.groups");
    expect(rental.min_nodes as usize <= nodes, "environment.rental.min_nodes", rental.min_nodes, &expected)
}

/// Error of a run with rented nodes and inference beside the jobs.
pub(super) fn with_inference(key: &'static str) -> SetupError {
    let expected = "none with [environment.rental], because the number of nodes follows training jobs alone";
    SetupError::Value { key, value: "given".into(), expected: expected.into() }
}

/// Error of a run with rented nodes and jobs that ask for parts of accelerators.
pub(super) fn with_parts(key: &'static str) -> SetupError {
    let expected = "whole accelerators with [environment.rental], because its rules count accelerators that jobs use";
    SetupError::Value { key, value: "jobs on parts of accelerators".into(), expected: expected.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(checked: Result<(), SetupError>) -> String {
        checked.map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn errors_name_the_key_and_what_it_should_be() {
        let good = Rental::default();
        let spot = |mean_hours, price_per_hour, notice_secs| Some(Spot { mean_hours, price_per_hour, notice_secs });
        assert_eq!(message(check(&good)), "");
        assert_eq!(message(check(&Rental { spot: spot(2.0, 0.3, 0.0), ..good })), "");
        for (bad, key) in [
            (Rental { min_nodes: 0, ..good }, "min_nodes is 0"),
            (Rental { low: 1.0, ..good }, "low is 1"),
            (Rental { high: 0.2, ..good }, "high is 0.2, expected above low"),
            (Rental { window: 0, ..good }, "window is 0"),
            (Rental { interval_secs: 0.0, ..good }, "interval_secs is 0"),
            (Rental { start_up_secs: -1.0, ..good }, "start_up_secs is -1"),
            (Rental { price_per_hour: f64::NAN, ..good }, "rental.price_per_hour is NaN"),
            (Rental { spot: spot(0.0, 1.0, 0.0), ..good }, "spot.mean_hours is 0"),
            (Rental { spot: spot(1.0, -1.0, 0.0), ..good }, "spot.price_per_hour is -1"),
            (Rental { spot: spot(1.0, 1.0, f64::INFINITY), ..good }, "spot.notice_secs is inf"),
        ] {
            assert!(message(check(&bad)).contains(key), "{key}: {}", message(check(&bad)));
        }
        let many = Rental { min_nodes: 5, ..good };
        assert!(message(check_cluster(&many, &Cluster::homogeneous(4, 8))).contains("at most 4, the nodes"));
        let mixed = Cluster::parse("t4:2x4,a100:2x4").unwrap_or_else(|_| Cluster::homogeneous(1, 1));
        assert!(message(check_cluster(&good, &mixed)).contains("cluster.groups is several kinds of nodes"));
    }
}
