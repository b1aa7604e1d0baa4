//! Simulated time: integer milliseconds, so that no ordering ever depends on float rounding.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// A point in simulated time, or a span of it, in whole milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SimTime(i64);

impl SimTime {
    /// The start of every simulation.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const NEVER: Self = Self(i64::MAX);

    /// From whole milliseconds.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// From whole seconds.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs * 1000)
    }

    /// From fractional seconds, rounded to the nearest millisecond; saturates at [`SimTime::NEVER`].
    pub fn from_secs_f64(secs: f64) -> Self {
        // `as` saturates, so an infinite duration becomes NEVER and NaN becomes zero.
        Self((secs * 1000.0).round() as i64)
    }

    /// Whole milliseconds.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// The sum, or [`SimTime::NEVER`] where it does not fit.
    pub const fn saturating_add(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The first multiple of `period` that is not before `self`.
    pub const fn next_multiple_of(self, period: Self) -> Self {
        let rest = self.0.rem_euclid(period.0);
        if rest == 0 { self } else { Self(self.0 - rest + period.0) }
    }
}

impl fmt::Display for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}s", self.0.div_euclid(1000), self.0.rem_euclid(1000))
    }
}

impl Add for SimTime {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for SimTime {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl AddAssign for SimTime {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl SubAssign for SimTime {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Sum for SimTime {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}
