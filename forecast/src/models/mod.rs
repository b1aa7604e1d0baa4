//! Models of the path: one value for each step ahead, given the history.
//!
//! One file for each model. Models know nothing of quantiles, which the conformal layer of
//! [`Adaptive`](crate::Adaptive) makes from the errors of any model.

mod boosted;
mod direct_ridge;
mod fourier_ar;
mod holt_winters;
mod level_naive;
mod logged;
mod member;
mod nlinear;
mod profile;
mod repeat;
mod window_gram;

pub(crate) use member::EnsembleMember;
pub use member::Model;
pub use nlinear::LinearMap;

use crate::history::LoadHistory;

/// Steps of the seasons and of the farthest forecast, each at least 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seasons {
    pub day: usize,
    pub week: usize,
    pub horizon: usize,
}

/// A model of the path.
pub(crate) trait Path {
    /// Estimates parameters anew on the history, and keeps the state that was learnt online.
    fn refit(&mut self, past: &LoadHistory);
    /// Takes in the newest value of `past`, which has just come.
    fn push(&mut self, past: &LoadHistory);
    /// Writes the next `out.len()` values.
    fn path(&self, past: &LoadHistory, out: &mut [f64]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEASONS: Seasons = Seasons { day: 8, week: 56, horizon: 8 };

    fn load(index: usize) -> f64 {
        let noise = (index * index * 7919 % 101) as f64 / 101.0;
        50.0 + 10.0 * (std::f64::consts::TAU * index as f64 / 8.0).sin() + 0.02 * index as f64 + 6.0 * noise
    }

    /// Model fitted on the first 200 values and then given the rest: estimated anew every day, or
    /// once at the end.
    fn fitted(model: Model, every_day: bool) -> (EnsembleMember, LoadHistory) {
        let mut past = LoadHistory::new(SEASONS.day, SEASONS.week, 10_000);
        let mut member = model.member(SEASONS);
        for index in 0..400 {
            past.push(load(index));
            if index >= 200 {
                member.push(&past);
            }
            if index == 199 || index == 399 || (every_day && index > 200 && index.is_multiple_of(SEASONS.day)) {
                member.refit(&past);
            }
        }
        (member, past)
    }

    #[test]
    fn ridge_models_updated_every_day_equal_those_of_everything_at_once() {
        for model in [Model::Nlinear, Model::DirectRidge, Model::LogDirectRidge] {
            let ((daily, past), (once, _)) = (fitted(model, true), fitted(model, false));
            let (mut a, mut b) = ([0.0; 8], [0.0; 8]);
            daily.path(&past, &mut a);
            once.path(&past, &mut b);
            for (a, b) in a.iter().zip(b) {
                assert!((a - b).abs() < 1e-8 * b.abs(), "{}: {a} {b}", model.name());
            }
        }
    }

    #[test]
    fn beyond_the_horizon_nlinear_repeats_its_last_step() {
        let (member, past) = fitted(Model::Nlinear, false);
        let (mut near, mut far) = ([0.0; 8], [f64::NAN; 20]);
        member.path(&past, &mut near);
        member.path(&past, &mut far);
        assert_eq!(far[..8], near);
        assert_eq!(far[8..], [near[7]; 12]);
    }

    #[test]
    fn a_direct_ridge_grown_by_pieces_equals_one_fitted_on_everything() {
        let mut past = LoadHistory::new(SEASONS.day, SEASONS.week, 10_000);
        let (mut grown, mut whole) = (Model::DirectRidge.member(SEASONS), Model::DirectRidge.member(SEASONS));
        for index in 0..400 {
            past.push(load(index));
            if index >= 150 && index % 17 == 0 {
                grown.refit(&past);
            }
        }
        grown.refit(&past);
        whole.refit(&past);
        let (mut a, mut b) = ([0.0; 8], [0.0; 8]);
        grown.path(&past, &mut a);
        whole.path(&past, &mut b);
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() < 1e-8 * b.abs(), "{a} {b}");
        }
    }
}
