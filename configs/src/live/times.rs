//! Bounds of times in the files of live clusters: at most a year.
//!
//! The executor turns these numbers into durations and adds them to the present, which fails for a
//! number that is negative, infinite or too large.

use crate::error::CheckError;

/// Longest time in a file, seconds: a year of 365 days.
const YEAR_SECS: u32 = 31_536_000;

/// Checks a number of seconds: `least` to a year.
pub(super) fn check_secs(key: &'static str, value: f64, least: f64) -> Result<(), CheckError> {
    match (least..=f64::from(YEAR_SECS)).contains(&value) {
        true => Ok(()),
        false => Err(CheckError::value(key, value, format!("{least} to {YEAR_SECS} seconds (a year)"))),
    }
}

/// Checks a number of seconds that must not be zero.
pub(super) fn check_positive_secs(key: &'static str, value: f64) -> Result<(), CheckError> {
    match value > 0.0 && value <= f64::from(YEAR_SECS) {
        true => Ok(()),
        false => {
            Err(CheckError::value(key, value, format!("a positive number of at most {YEAR_SECS} seconds (a year)")))
        }
    }
}

/// Checks a number of milliseconds: at most a year.
pub(super) fn check_millis(key: &'static str, value: u64) -> Result<(), CheckError> {
    let most = u64::from(YEAR_SECS) * 1000;
    match value <= most {
        true => Ok(()),
        false => Err(CheckError::value(key, value, format!("0 to {most} milliseconds (a year)"))),
    }
}
