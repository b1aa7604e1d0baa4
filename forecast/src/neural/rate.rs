//! Another number of steps to a day: values as means over the time that steps cover.
//!
//! A step of the result is the mean of the steps that it overlaps, weighed by the time of the overlap. So a coarser
//! step averages, a finer one repeats, and bringing a series to finer steps and back gives it again.

/// Values over the span of `values`, in steps of which `to` last as long as `from` steps of `values`; both at least 1.
pub(super) fn resampled(values: &[f64], from: usize, to: usize) -> Vec<f64> {
    if from == to {
        return values.to_vec();
    }
    // In units in which a step of the result lasts `from` and a step of `values` lasts `to`, all borders are whole.
    let steps = values.len() * to / from;
    let mean = |step: usize| {
        let (start, end) = (step * from, (step + 1) * from);
        let of = |source: usize| {
            let overlap = end.min((source + 1) * to) - start.max(source * to);
            overlap as f64 * values[source]
        };
        let last = (end - 1) / to;
        (start / to..=last.min(values.len() - 1)).map(of).sum::<f64>() / from as f64
    };
    (0..steps).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finer_steps_repeat_and_coarser_ones_average() {
        assert_eq!(resampled(&[1.0, 4.0], 1, 3), [1.0, 1.0, 1.0, 4.0, 4.0, 4.0]);
        assert_eq!(resampled(&[1.0, 3.0, 4.0, 8.0], 2, 1), [2.0, 6.0]);
        // Three steps in the time of two: the middle one has half of each.
        assert_eq!(resampled(&[1.0, 2.0], 2, 3), [1.0, 1.5, 2.0]);
    }

    #[test]
    fn there_and_back_is_the_series_and_the_mean_stays() {
        let values: Vec<f64> = (0..48).map(|i| (i * i % 17) as f64).collect();
        let back = resampled(&resampled(&values, 48, 144), 144, 48);
        assert!(back.iter().zip(&values).all(|(back, value)| (back - value).abs() < 1e-12));
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        for to in [5, 36, 96, 1440] {
            let other = resampled(&values, 48, to);
            assert_eq!(other.len(), to);
            assert!((mean(&other) - mean(&values)).abs() < 1e-12);
        }
    }
}
