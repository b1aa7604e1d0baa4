//! Simulated time in integer milliseconds, so that no ordering depends on floating-point rounding.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// Point in simulated time, or a span of it, in whole milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SimTime(i64);

impl SimTime {
    /// Start of each simulation.
    pub const ZERO: Self = Self(0);
    /// Time after all events of any simulation.
    pub const NEVER: Self = Self(i64::MAX);

    /// Time of the given whole milliseconds.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Time of the given whole seconds.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs * 1000)
    }

    /// Time of fractional seconds, rounded to the nearest millisecond; saturates at
    /// [`SimTime::NEVER`].
    pub fn from_secs_f64(secs: f64) -> Self {
        // The cast saturates: an infinite duration becomes NEVER and NaN becomes zero.
        Self((secs * 1000.0).round() as i64)
    }

    /// Number of whole milliseconds.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Number of seconds, with a fraction.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// Sum of a time and a span, or [`SimTime::NEVER`] on overflow.
    pub const fn saturating_add(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// First multiple of `period` that is not before `self`.
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
