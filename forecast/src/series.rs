//! Load series with an even step, and gaps as values of their own.
//!
//! A monitoring system that was down reports nothing, or worse, zero. Learning from that zero
//! teaches a model that load vanishes, so a gap is a value of its own here: NaN inside the array,
//! `None` at the border, and never a number. Infinity is always a mistake and is refused with its
//! position.

use std::ops::Range;

use ndarray::{Array1, ArrayView1, s};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::calendar;

/// Series of loads at `start_epoch_millis`, one `step_millis` later, and so on; each value finite
/// or a gap.
///
/// Serialised as `{start_epoch_millis, step_millis, values}` with `null` for a gap; reading one
/// back checks it as [`Series::new`] does.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "SeriesRecord", into = "SeriesRecord")]
pub struct Series {
    start_epoch_millis: i64,
    step_millis: i64,
    values: Array1<f64>,
}

/// Reasons for which a series is refused.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum SeriesError {
    /// The distance between two values has to be at least one millisecond.
    #[error("step of {step_millis} ms is not positive")]
    StepNotPositive {
        /// The step that was given.
        step_millis: i64,
    },
    /// A value is infinite, or NaN where gaps are written as `None`.
    #[error("value {value} at index {index} is neither finite nor a gap")]
    NotFinite {
        /// Position in the values given, from 0.
        index: usize,
        /// The offending value.
        value: f64,
    },
    /// The time after the last value does not fit into 64-bit milliseconds.
    #[error("{len} steps of {step_millis} ms from {start_epoch_millis} ms overflow the time line")]
    TimeOverflow {
        /// First time of the series.
        start_epoch_millis: i64,
        /// Distance between two values.
        step_millis: i64,
        /// Number of values.
        len: usize,
    },
    /// A slice reaches outside the series or runs backwards.
    #[error("slice {start}..{end} is outside a series of {len} values")]
    SliceOutOfRange {
        /// First index asked for.
        start: usize,
        /// Index after the last one asked for.
        end: usize,
        /// Number of values there are.
        len: usize,
    },
    /// A coarser step has to be a whole multiple of the step there is.
    #[error("step of {target_step_millis} ms is not a positive multiple of {step_millis} ms")]
    StepNotMultiple {
        /// The step asked for.
        target_step_millis: i64,
        /// The step of the series.
        step_millis: i64,
    },
}

impl Series {
    /// A series from values in which NaN marks a gap.
    ///
    /// # Errors
    /// A step below 1 ms, an infinite value, or an end beyond the 64-bit time line.
    pub fn new(start_epoch_millis: i64, step_millis: i64, values: Array1<f64>) -> Result<Self, SeriesError> {
        if let Some((index, &value)) = values.iter().enumerate().find(|(_, value)| value.is_infinite()) {
            return Err(SeriesError::NotFinite { index, value });
        }
        check_times(start_epoch_millis, step_millis, values.len())?;
        Ok(Self { start_epoch_millis, step_millis, values })
    }

    /// A series from values in which `None` marks a gap; NaN is then a mistake like infinity.
    ///
    /// # Errors
    /// As [`Series::new`].
    pub fn from_options(
        start_epoch_millis: i64,
        step_millis: i64,
        values: impl IntoIterator<Item = Option<f64>>,
    ) -> Result<Self, SeriesError> {
        let values = values
            .into_iter()
            .enumerate()
            .map(|(index, value)| match value {
                Some(value) if !value.is_finite() => Err(SeriesError::NotFinite { index, value }),
                Some(value) => Ok(value),
                None => Ok(f64::NAN),
            })
            .collect::<Result<Array1<f64>, SeriesError>>()?;
        Self::new(start_epoch_millis, step_millis, values)
    }

    /// Time of the first value, milliseconds since 1970-01-01 UTC.
    pub fn start_epoch_millis(&self) -> i64 {
        self.start_epoch_millis
    }

    /// Time after the last value: where the next one would be.
    pub fn end_epoch_millis(&self) -> i64 {
        self.time_epoch_millis(self.len())
    }

    /// Time of the value at `index`, which may lie past the end; saturates at the end of the time
    /// line.
    pub fn time_epoch_millis(&self, index: usize) -> i64 {
        let steps = i64::try_from(index).unwrap_or(i64::MAX);
        self.start_epoch_millis.saturating_add(steps.saturating_mul(self.step_millis))
    }

    /// Milliseconds between two values, at least 1.
    pub fn step_millis(&self) -> i64 {
        self.step_millis
    }

    /// Number of steps, gaps included.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no step at all.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Number of steps that are not gaps.
    pub fn observed_len(&self) -> usize {
        self.observed().count()
    }

    /// The values, shape `[len]`, gaps as NaN.
    pub fn values(&self) -> ArrayView1<'_, f64> {
        self.values.view()
    }

    /// Mask of the measured values, shape `[len]`: `false` is a gap.
    pub fn mask(&self) -> Array1<bool> {
        self.values.mapv(|value| !value.is_nan())
    }

    /// The value at `index`; `None` for a gap and past the end.
    pub fn get(&self, index: usize) -> Option<f64> {
        self.values.get(index).copied().filter(|value| !value.is_nan())
    }

    /// All values in order, `None` for a gap.
    pub fn iter(&self) -> impl Iterator<Item = Option<f64>> + '_ {
        self.values.iter().map(|&value| (!value.is_nan()).then_some(value))
    }

    /// The measured values in order, each with its index.
    pub fn observed(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.iter().enumerate().filter_map(|(index, value)| Some((index, value?)))
    }

    /// The steps in `range` as a series of their own that keeps their times.
    ///
    /// # Errors
    /// A range that runs backwards or reaches past the end.
    pub fn slice(&self, range: Range<usize>) -> Result<Self, SeriesError> {
        let Range { start, end } = range;
        if start > end || end > self.len() {
            return Err(SeriesError::SliceOutOfRange { start, end, len: self.len() });
        }
        Ok(Self {
            start_epoch_millis: self.time_epoch_millis(start),
            step_millis: self.step_millis,
            values: self.values.slice(s![start..end]).to_owned(),
        })
    }

    /// Steps in a day, or `None` when the step does not divide it.
    pub fn steps_per_day(&self) -> Option<usize> {
        calendar::steps_per_day(self.step_millis)
    }

    /// Steps in a week, or `None` when the step does not divide it.
    pub fn steps_per_week(&self) -> Option<usize> {
        calendar::steps_per_week(self.step_millis)
    }

    /// Other values at the same times; the caller's values are as many and as finite as these.
    pub(crate) fn with_values(&self, values: Array1<f64>) -> Self {
        debug_assert_eq!(values.len(), self.len(), "one value a step");
        Self { values, ..*self }
    }
}

/// Two series are equal when their times are and their values are, a gap being equal to a gap.
impl PartialEq for Series {
    fn eq(&self, other: &Self) -> bool {
        self.start_epoch_millis == other.start_epoch_millis
            && self.step_millis == other.step_millis
            && self.iter().eq(other.iter())
    }
}

fn check_times(start_epoch_millis: i64, step_millis: i64, len: usize) -> Result<(), SeriesError> {
    if step_millis <= 0 {
        return Err(SeriesError::StepNotPositive { step_millis });
    }
    i64::try_from(len)
        .ok()
        .and_then(|len| len.checked_mul(step_millis))
        .and_then(|span_millis| start_epoch_millis.checked_add(span_millis))
        .map(|_| ())
        .ok_or(SeriesError::TimeOverflow { start_epoch_millis, step_millis, len })
}

/// Serde form of a series: `None` for a gap, because JSON has no NaN.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeriesRecord {
    start_epoch_millis: i64,
    step_millis: i64,
    values: Vec<Option<f64>>,
}

impl From<Series> for SeriesRecord {
    fn from(series: Series) -> Self {
        Self {
            start_epoch_millis: series.start_epoch_millis,
            step_millis: series.step_millis,
            values: series.iter().collect(),
        }
    }
}

impl TryFrom<SeriesRecord> for Series {
    type Error = SeriesError;

    fn try_from(record: SeriesRecord) -> Result<Self, SeriesError> {
        Self::from_options(record.start_epoch_millis, record.step_millis, record.values)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn a_nan_is_a_gap_and_an_infinity_is_refused_with_its_index() {
        let series = Series::new(0, 1000, array![1.0, f64::NAN, 3.0]).unwrap();
        assert_eq!(series.iter().collect::<Vec<_>>(), [Some(1.0), None, Some(3.0)]);
        assert_eq!(series.observed_len(), 2);
        assert_eq!(series.mask(), array![true, false, true]);

        let error = Series::new(0, 1000, array![1.0, f64::NEG_INFINITY]).unwrap_err();
        assert_eq!(error.to_string(), "value -inf at index 1 is neither finite nor a gap");
    }

    #[test]
    fn where_gaps_are_none_a_nan_is_a_mistake() {
        let series = Series::from_options(0, 1000, [Some(1.0), None]).unwrap();
        assert_eq!(series, Series::new(0, 1000, array![1.0, f64::NAN]).unwrap());

        let error = Series::from_options(0, 1000, [None, None, Some(f64::NAN)]).unwrap_err();
        assert!(matches!(error, SeriesError::NotFinite { index: 2, .. }));
    }

    #[test]
    fn a_step_that_is_not_positive_and_an_end_of_time_are_refused() {
        assert_eq!(Series::new(0, 0, array![]).unwrap_err(), SeriesError::StepNotPositive { step_millis: 0 });
        assert_eq!(Series::new(0, -5, array![1.0]).unwrap_err(), SeriesError::StepNotPositive { step_millis: -5 });
        assert!(matches!(
            Series::new(i64::MAX - 1, 1, array![1.0, 2.0]),
            Err(SeriesError::TimeOverflow { len: 2, .. })
        ));
        assert!(Series::new(i64::MAX - 2, 1, array![1.0, 2.0]).is_ok());
    }

    #[test]
    fn a_slice_keeps_its_times() {
        let series = Series::new(10_000, 500, array![0.0, 1.0, 2.0, 3.0]).unwrap();
        let middle = series.slice(1..3).unwrap();
        assert_eq!(middle, Series::new(10_500, 500, array![1.0, 2.0]).unwrap());
        assert_eq!(middle.end_epoch_millis(), 11_500);
        assert!(series.slice(4..4).unwrap().is_empty());
        assert_eq!(series.slice(3..5).unwrap_err(), SeriesError::SliceOutOfRange { start: 3, end: 5, len: 4 });
        #[expect(clippy::reversed_empty_ranges, reason = "a backward range is what is tested")]
        let backwards = series.slice(3..2);
        assert!(backwards.is_err());
    }

    #[test]
    fn json_writes_gaps_as_null_and_checks_what_it_reads() {
        let series = Series::new(5, 60_000, array![1.5, f64::NAN]).unwrap();
        let json = serde_json::to_string(&series).unwrap();
        assert_eq!(json, r#"{"start_epoch_millis":5,"step_millis":60000,"values":[1.5,null]}"#);
        assert_eq!(serde_json::from_str::<Series>(&json).unwrap(), series);

        let refused = serde_json::from_str::<Series>(&json.replace("60000", "0")).unwrap_err();
        assert!(refused.to_string().contains("not positive"), "{refused}");
    }
}
