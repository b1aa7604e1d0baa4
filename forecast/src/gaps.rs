//! Causal filling of gaps in a series.
//!
//! Models that need every value get the value of one season before, else the one just before.
//! Nothing from after the gap is used, although interpolating would look better: a backtest that
//! fills a gap from its far side has read the future. Scores never count a filled value.

use ndarray::Array1;

use crate::Series;

impl Series {
    /// This series with each gap replaced by the value `season_steps` before it, itself filled if
    /// need be, else by the value just before.
    ///
    /// Gaps before the first measurement stay gaps. A season of 0 steps means there is none.
    pub fn fill_gaps(&self, season_steps: usize) -> Series {
        let mut filled: Vec<Option<f64>> = Vec::with_capacity(self.len());
        for value in self.iter() {
            let index = filled.len();
            let season_before =
                index.checked_sub(season_steps).filter(|_| season_steps > 0).and_then(|before| filled[before]);
            let just_before = filled.last().copied().flatten();
            filled.push(value.or(season_before).or(just_before));
        }
        let values: Array1<f64> = filled.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect();
        self.with_values(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(values: &[Option<f64>], season_steps: usize) -> Vec<Option<f64>> {
        Series::from_options(0, 1, values.iter().copied()).unwrap().fill_gaps(season_steps).iter().collect()
    }

    #[test]
    fn a_gap_takes_the_value_of_a_season_ago_even_if_that_was_filled() {
        let values = [Some(1.0), Some(2.0), Some(3.0), None, Some(5.0), None];
        assert_eq!(filled(&values, 2), [Some(1.0), Some(2.0), Some(3.0), Some(2.0), Some(5.0), Some(2.0)]);
    }

    #[test]
    fn without_a_season_ago_it_takes_the_value_just_before() {
        assert_eq!(filled(&[None, Some(4.0), None, None], 2), [None, Some(4.0), Some(4.0), Some(4.0)]);
        assert_eq!(filled(&[Some(4.0), None], 0), [Some(4.0), Some(4.0)]);
    }

    #[test]
    fn a_series_of_gaps_stays_one() {
        assert_eq!(filled(&[None, None], 1), [None, None]);
    }
}
