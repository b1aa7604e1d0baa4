//! Seasons that are found in values.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_forecast::{Series, season_steps};

fn season(len: usize, value: impl Fn(usize) -> f64) -> Option<usize> {
    season_steps(&Series::new(0, 1000, (0..len).map(value).collect()).unwrap())
}

fn noise(at: usize) -> f64 {
    let mut bits = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits >> 40) as f64 / (1 << 24) as f64 - 0.5
}

#[test]
fn a_wave_with_noise_has_its_period_and_noise_has_none() {
    let wave = |at: usize| (at as f64 * std::f64::consts::TAU / 24.0).sin();
    assert_eq!(season(480, |at| wave(at) + noise(at)), Some(24));
    assert_eq!(season(480, |at| 5.0 + 0.01 * wave(at)), Some(24));
    assert_eq!(season(480, noise), None);
    assert_eq!(season(480, |_| 3.0), None);
}

#[test]
fn gaps_are_filled_before() {
    let wave = |at: usize| (at as f64 * std::f64::consts::TAU / 12.0).sin();
    assert_eq!(season(240, |at| if at % 17 == 3 { f64::NAN } else { wave(at) }), Some(12));
}
