//! Resampling of a series to coarser steps.
//!
//! Bins are anchored at the first value, and a last bin that is not full is dropped: half a bin
//! looks like half the load. Inside a bin, gaps are left out; the sum of a bin with gaps is thus
//! the sum of what was seen, which is right for counts of things that happened and low for a rate.
//! Rates take the mean.

use ndarray::{Array1, ArrayView1};

use crate::{Series, SeriesError};

/// Aggregation of the values of a bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregate {
    /// Mean of the measured values: for rates and levels.
    Mean,
    /// Sum of the measured values: for counts.
    Sum,
}

impl Series {
    /// Series in steps of `target_step_millis`; a bin of gaps is a gap.
    ///
    /// # Errors
    /// A step that is not a positive multiple of the present one.
    pub fn resample(&self, target_step_millis: i64, aggregate: Aggregate) -> Result<Series, SeriesError> {
        let step_millis = self.step_millis();
        let not_multiple = SeriesError::StepNotMultiple { target_step_millis, step_millis };
        if target_step_millis <= 0 || target_step_millis % step_millis != 0 {
            return Err(not_multiple);
        }
        let steps_per_bin = usize::try_from(target_step_millis / step_millis).map_err(|_| not_multiple)?;
        let values: Array1<f64> =
            self.values().exact_chunks(steps_per_bin).into_iter().map(|bin| aggregate.apply(bin)).collect();
        Series::new(self.start_epoch_millis(), target_step_millis, values)
    }
}

impl Aggregate {
    fn apply(self, bin: ArrayView1<'_, f64>) -> f64 {
        let (mut sum, mut count) = (0.0, 0_u32);
        for value in bin.iter().filter(|value| !value.is_nan()) {
            sum += value;
            count += 1;
        }
        match (self, count) {
            (_, 0) => f64::NAN,
            (Aggregate::Sum, _) => sum,
            (Aggregate::Mean, _) => sum / f64::from(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series() -> Series {
        let values = [Some(1.0), Some(3.0), None, Some(4.0), None, None, Some(9.0)];
        Series::from_options(7, 10, values).unwrap()
    }

    #[test]
    fn mean_and_sum_leave_gaps_out_and_drop_the_last_half_bin() {
        let mean = series().resample(20, Aggregate::Mean).unwrap();
        assert_eq!(mean, Series::from_options(7, 20, [Some(2.0), Some(4.0), None]).unwrap());
        let sum = series().resample(20, Aggregate::Sum).unwrap();
        assert_eq!(sum, Series::from_options(7, 20, [Some(4.0), Some(4.0), None]).unwrap());
    }

    #[test]
    fn its_own_step_changes_nothing_and_a_longer_bin_than_the_series_leaves_nothing() {
        assert_eq!(series().resample(10, Aggregate::Sum).unwrap(), series());
        assert!(series().resample(80, Aggregate::Sum).unwrap().is_empty());
    }

    #[test]
    fn a_step_that_is_no_multiple_is_refused() {
        for target_step_millis in [0, -10, 5, 15] {
            let error = series().resample(target_step_millis, Aggregate::Mean).unwrap_err();
            assert_eq!(error, SeriesError::StepNotMultiple { target_step_millis, step_millis: 10 });
        }
    }
}
