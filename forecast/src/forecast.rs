//! Forecasts: tables of quantiles, one row for each step ahead.
//!
//! One row a step ahead, one column a quantile level. Quantiles that cross (a 90 % load below the
//! 50 % load) are not a distribution, and a lender that acts on them is wrong without knowing it;
//! so the table is rearranged when it is made, whichever model it comes from.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};
use serde::{Deserialize, Serialize};
use thiserror::Error;

const MEDIAN: f64 = 0.5;

/// Number of steps to forecast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Horizon(usize);

impl Horizon {
    /// A horizon of `steps` steps of the series.
    pub const fn steps(steps: usize) -> Self {
        Self(steps)
    }

    /// Number of steps ahead.
    pub const fn get(self) -> usize {
        self.0
    }
}

/// The distribution of the load at each of the next steps, as quantiles.
///
/// In each row the quantiles do not decrease from one level to the next, and the median lies
/// between its neighbours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    levels: Array1<f64>,
    quantiles: Array2<f64>,
    point: Array1<f64>,
}

/// Reasons for which quantile levels or a table of quantiles are refused.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ForecastError {
    /// A level is a probability strictly between 0 and 1.
    #[error("quantile level {level} at index {index} is not between 0 and 1")]
    LevelOutOfRange {
        /// Position in the levels given, from 0.
        index: usize,
        /// The offending level.
        level: f64,
    },
    /// Levels come in ascending order, each once.
    #[error("quantile level {level} at index {index} is not above the one before it")]
    LevelsNotAscending {
        /// Position in the levels given, from 0.
        index: usize,
        /// The offending level.
        level: f64,
    },
    /// A table of quantiles needs the level 0.5, because the point forecast is the median.
    #[error("the quantile levels lack 0.5, which is the point forecast")]
    NoMedian,
    /// The table is not as wide as there are levels.
    #[error("table of {columns} columns for {levels} quantile levels")]
    WrongWidth {
        /// Columns of the table.
        columns: usize,
        /// Number of levels.
        levels: usize,
    },
    /// A quantile is NaN or infinite.
    #[error("quantile {value} at step {step}, level index {index} is not finite")]
    NotFinite {
        /// Row, from 0: one less than the number of steps ahead.
        step: usize,
        /// Column, from 0.
        index: usize,
        /// The offending quantile.
        value: f64,
    },
}

/// Checks that quantile levels ascend strictly between 0 and 1; no level at all asks for the point
/// forecast alone.
///
/// Levels come from configurations: check them where they enter the program.
/// [`Predict::predict`](crate::Predict::predict) takes them as checked.
///
/// # Errors
/// The first level out of range or out of order.
pub fn check_levels(levels: &[f64]) -> Result<(), ForecastError> {
    let mut previous = 0.0;
    for (index, &level) in levels.iter().enumerate() {
        if !(level > 0.0 && level < 1.0) {
            return Err(ForecastError::LevelOutOfRange { index, level });
        }
        if level <= previous {
            return Err(ForecastError::LevelsNotAscending { index, level });
        }
        previous = level;
    }
    Ok(())
}

impl Forecast {
    /// Forecast from a model's quantile function `quantile(step, level)`, with `step` 0 for one
    /// step ahead.
    ///
    /// The function is asked for the median too, whether or not it is among the levels, and each
    /// row is then rearranged: sorted, so that the smallest value belongs to the smallest level. A
    /// function that does not cross is left as it is, and one that does comes nearer to the truth
    /// (Chernozhukov, Fernandez-Val, Galichon, "Quantile and probability curves without crossing",
    /// Econometrica 78(3), 2010).
    ///
    /// # Panics
    /// When the levels do not pass [`check_levels`].
    pub fn from_quantiles(horizon: Horizon, levels: &[f64], mut quantile: impl FnMut(usize, f64) -> f64) -> Self {
        if let Err(error) = check_levels(levels) {
            panic!("quantile levels have to be checked before predicting: {error}");
        }
        let (all_levels, median_column) = with_median(levels);
        let mut table = Array2::from_shape_fn((horizon.get(), all_levels.len()), |(step, column)| {
            quantile(step, all_levels[column])
        });
        rearrange(&mut table);

        let point = table.column(median_column).to_owned();
        // Where the median was not asked for, it serves as the point forecast only.
        if levels.len() < all_levels.len() {
            table.remove_index(Axis(1), median_column);
        }
        Self { levels: levels.to_vec().into(), quantiles: table, point }
    }

    /// A forecast from a table of quantiles, shape `[horizon, levels]`, with 0.5 among the levels;
    /// rows that cross are rearranged.
    ///
    /// # Errors
    /// Levels that [`check_levels`] refuses or that lack 0.5, a table of another width, a value
    /// that is not finite.
    pub fn new(levels: &[f64], mut quantiles: Array2<f64>) -> Result<Self, ForecastError> {
        check_levels(levels)?;
        let median_column = levels.iter().position(|&level| level == MEDIAN).ok_or(ForecastError::NoMedian)?;
        if quantiles.ncols() != levels.len() {
            return Err(ForecastError::WrongWidth { columns: quantiles.ncols(), levels: levels.len() });
        }
        if let Some(((step, index), &value)) = quantiles.indexed_iter().find(|(_, value)| !value.is_finite()) {
            return Err(ForecastError::NotFinite { step, index, value });
        }
        rearrange(&mut quantiles);
        let point = quantiles.column(median_column).to_owned();
        Ok(Self { levels: levels.to_vec().into(), quantiles, point })
    }

    /// Number of steps of this forecast.
    pub fn horizon(&self) -> Horizon {
        Horizon(self.point.len())
    }

    /// The levels asked for, ascending, shape `[levels]`.
    pub fn levels(&self) -> ArrayView1<'_, f64> {
        self.levels.view()
    }

    /// The quantiles, shape `[horizon, levels]`, in the unit of the series.
    pub fn quantiles(&self) -> ArrayView2<'_, f64> {
        self.quantiles.view()
    }

    /// The quantile at `level` for each step, shape `[horizon]`; `None` for a level that was not
    /// asked for.
    pub fn quantile(&self, level: f64) -> Option<ArrayView1<'_, f64>> {
        let column = self.levels.iter().position(|&known| known == level)?;
        Some(self.quantiles.column(column))
    }

    /// The quantiles at the level with this index, shape `[horizon]`.
    pub(crate) fn column(&self, index: usize) -> ArrayView1<'_, f64> {
        self.quantiles.column(index)
    }

    /// The point forecast, which is the median, shape `[horizon]`; there whether or not 0.5 was
    /// asked for.
    pub fn point(&self) -> ArrayView1<'_, f64> {
        self.point.view()
    }

    /// The first `steps` steps, or all of them if there are fewer.
    pub fn first(&self, steps: usize) -> Self {
        let steps = steps.min(self.point.len());
        Self {
            levels: self.levels.clone(),
            quantiles: self.quantiles.slice(s![..steps, ..]).to_owned(),
            point: self.point.slice(s![..steps]).to_owned(),
        }
    }
}

/// The levels with 0.5 among them, and where it is.
pub(crate) fn with_median(levels: &[f64]) -> (Vec<f64>, usize) {
    let mut all = levels.to_vec();
    let column = all.partition_point(|&level| level < MEDIAN);
    if all.get(column) != Some(&MEDIAN) {
        all.insert(column, MEDIAN);
    }
    (all, column)
}

fn rearrange(table: &mut Array2<f64>) {
    for mut row in table.rows_mut() {
        if row.iter().is_sorted() {
            continue;
        }
        let mut sorted = row.to_vec();
        sorted.sort_by(f64::total_cmp);
        row.assign(&Array1::from(sorted));
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn crossing_quantiles_are_rearranged() {
        let crossing = array![[3.0, 1.0, 2.0], [1.0, 1.0, 5.0]];
        let forecast = Forecast::new(&[0.1, 0.5, 0.9], crossing).unwrap();
        assert_eq!(forecast.quantiles(), array![[1.0, 2.0, 3.0], [1.0, 1.0, 5.0]]);
        assert_eq!(forecast.point(), array![2.0, 1.0]);
        assert_eq!(forecast.quantile(0.9).unwrap(), array![3.0, 5.0]);
        assert_eq!(forecast.quantile(0.8), None);
    }

    #[test]
    fn the_point_is_the_median_even_if_it_was_not_asked_for() {
        let quantile = |step: usize, level: f64| 100.0 * (step + 1) as f64 + level;
        let forecast = Forecast::from_quantiles(Horizon::steps(2), &[0.25, 0.75], quantile);
        assert_eq!(forecast.point(), array![100.5, 200.5]);
        assert_eq!(forecast.quantiles(), array![[100.25, 100.75], [200.25, 200.75]]);

        let point_only = Forecast::from_quantiles(Horizon::steps(2), &[], quantile);
        assert_eq!(point_only.quantiles().dim(), (2, 0));
        assert_eq!(point_only.point(), forecast.point());

        let asked = Forecast::from_quantiles(Horizon::steps(1), &[0.5], quantile);
        assert_eq!(asked.quantile(0.5).unwrap(), asked.point());
    }

    #[test]
    fn the_first_steps_are_a_forecast_of_their_own() {
        let forecast = Forecast::from_quantiles(Horizon::steps(3), &[0.5], |step, _| step as f64);
        assert_eq!(forecast.first(2).horizon(), Horizon::steps(2));
        assert_eq!(forecast.first(2).point(), array![0.0, 1.0]);
        assert_eq!(forecast.first(9), forecast);
    }

    #[test]
    fn bad_levels_and_tables_are_refused() {
        let table = |columns| Array2::zeros((1, columns));
        assert_eq!(check_levels(&[0.1, 1.0]), Err(ForecastError::LevelOutOfRange { index: 1, level: 1.0 }));
        assert!(matches!(check_levels(&[f64::NAN]), Err(ForecastError::LevelOutOfRange { index: 0, .. })));
        assert_eq!(check_levels(&[0.5, 0.5]), Err(ForecastError::LevelsNotAscending { index: 1, level: 0.5 }));
        assert_eq!(Forecast::new(&[0.1, 0.9], table(2)), Err(ForecastError::NoMedian));
        assert_eq!(Forecast::new(&[0.5], table(2)), Err(ForecastError::WrongWidth { columns: 2, levels: 1 }));
        let error = Forecast::new(&[0.5], array![[1.0], [f64::INFINITY]]).unwrap_err();
        assert_eq!(error.to_string(), "quantile inf at step 1, level index 0 is not finite");
    }
}
