//! Models of the path: given what is known, one value a step ahead.
//!
//! One file a model. They know nothing of quantiles: the conformal layer of [`Adaptive`](crate::Adaptive) makes those from any model's errors.

mod direct_ridge;
mod dlinear;
mod ewma;
mod fourier_ar;
mod holt_winters;
mod level_naive;
mod logged;
mod member;
mod mstl;
mod nlinear;
mod profile;
mod repeat;

pub(crate) use member::Member;
pub use member::Model;
pub use nlinear::LinearMap;

use crate::history::History;

/// Steps of the seasons and of the farthest forecast, each at least 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seasons {
    pub day: usize,
    pub week: usize,
    pub horizon: usize,
}

/// A model of the path.
pub(crate) trait Path {
    /// Estimates parameters anew on what is known, keeping what it has learnt online.
    fn refit(&mut self, past: &History);
    /// The newest value of `past` has just come.
    fn push(&mut self, past: &History);
    /// The next `out.len()` values.
    fn path(&self, past: &History, out: &mut [f64]);
}
