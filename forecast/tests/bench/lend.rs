//! Lending on the fixed splits: 200 accelerators with the largest load of the series as peak load.

use goodput_forecast::lending::{LeaseTerms, LendingFleet, LendingScore};
use goodput_forecast::{Adaptive, Lender, Series};

use super::protocol::{SERIES, Split, rows, shared};

/// Score over the test origins; decisions begin with the calibration days.
pub fn lend(split: &Split, lender: Lender, hours: usize) -> LendingScore {
    let series = Series::new(0, split.step_minutes * 60_000, split.masked().into()).unwrap();
    let peak = split.y.iter().copied().fold(0.0, f64::max);
    let fleet = LendingFleet { accelerators: 200, load_per_accelerator: peak / 200.0 };
    let lease = LeaseTerms { lead: 1, steps: split.hours(hours) };
    let loans = lender.run(&Adaptive::daily(split.season), &series, &fleet, &lease, split.cal_start).unwrap();
    let tested: Vec<_> = loans
        .into_iter()
        .filter(|loan| loan.origin >= split.test_start && loan.origin + split.horizon <= split.y.len())
        .collect();
    LendingScore::of(&fleet, &tested)
}

#[test]
fn oracle_and_reactive_lend_as_published() {
    let text = shared("reference/forecast/decision.csv");
    for name in &SERIES[..4] {
        let split = Split::load(name);
        for (band, hours) in [("1h", 1), ("6h", 6)] {
            for (method, policy, lender) in [
                ("ORACLE", "max", Lender::Oracle),
                ("reactive", "g0.2", Lender::Reactive { headroom: 0.2 }),
                ("reactive", "g0.5", Lender::Reactive { headroom: 0.5 }),
            ] {
                let row = rows(&text).find(|row| row[..4] == [name, band, method, policy]).unwrap();
                let theirs = |column: usize| row[column].parse::<f64>().unwrap();
                let ours = lend(&split, lender, hours);
                let what = format!("{name} {band} {method} {policy}: {ours:?}, published {row:?}");
                assert!((ours.lent - theirs(4)).abs() < 2e-3, "{what}");
                assert!((ours.violated - theirs(5)).abs() < 4e-3, "{what}");
            }
        }
    }
}

/// Mean of a score over four series and two leases.
fn mean(lender: Lender) -> (f64, f64) {
    let scores: Vec<LendingScore> =
        SERIES[..4].iter().flat_map(|name| [1, 6].map(|hours| lend(&Split::load(name), lender, hours))).collect();
    let mean = |of: fn(&LendingScore) -> f64| scores.iter().map(of).sum::<f64>() / scores.len() as f64;
    (mean(|score| score.lent), mean(|score| score.violated))
}

#[test]
fn no_reactive_headroom_lends_as_much_at_as_few_violations() {
    let (lent, violated) = mean(Lender::DEFAULT);
    assert!(lent > 0.27 && violated < 0.01, "lent {lent}, violated {violated}");
    for headroom in [0.2, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0] {
        let reactive = mean(Lender::Reactive { headroom });
        assert!(
            reactive.1 > violated || reactive.0 < lent,
            "headroom {headroom}: {reactive:?} against {lent} {violated}"
        );
    }
}
