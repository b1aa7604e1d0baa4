//! Headlines of checkpoints and faults: where the best interval is, what faults cost, and what
//! adapting gains.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::common::faults::{HOURLY, MTBF_SECS, WRITE_SECS, busy, sweep};
use goodput_env::model::Interval;
use goodput_env::model::checkpoint::{waste, young};

#[test]
fn the_best_interval_is_youngs() {
    let course = sweep();
    let best = course.iter().max_by(|one, other| one.1.total_cmp(&other.1)).unwrap();
    assert!((best.0 / young(WRITE_SECS, MTBF_SECS) - 1.0).abs() <= 0.25, "{course:?}");
    // To first order the time lost is what the formula says; it forgets that faults also fall into
    // writes and restarts.
    for &(interval, ettr) in course.iter().filter(|(interval, _)| *interval < 2.1 * young(WRITE_SECS, MTBF_SECS)) {
        let formula = waste(interval, WRITE_SECS, MTBF_SECS, 30.0);
        assert!((1.0 - ettr - formula).abs() < 0.1 * formula, "{interval}: {ettr}, formula {}", 1.0 - formula);
    }
}

#[test]
fn effective_training_time_falls_with_faults() {
    let course = [f64::INFINITY, 6000.0, 2000.0, 600.0, 200.0, 60.0].map(|hours| busy("ettr", hours, Interval::Young));
    assert!(course.windows(2).all(|pair| pair[1] < pair[0]), "{course:?}");
    assert!(course[1] > 0.95 && course[5] < 0.9, "{course:?}");
}

#[test]
fn an_adaptive_interval_beats_an_hourly_one() {
    for hours in [200.0, 60.0] {
        let [adaptive, hourly] = [Interval::Adaptive, HOURLY].map(|interval| busy("ettr", hours, interval));
        assert!(adaptive > hourly, "{hours} h: {adaptive} and {hourly}");
        let lost = [Interval::Adaptive, HOURLY].map(|interval| busy("lost_gpu_hours", hours, interval));
        assert!(lost[0] < lost[1], "{lost:?}");
    }
}
