//! Models of the path: given what is known, one value a step ahead.

pub mod direct_ridge;
pub mod fourier_ar;
pub mod holt_winters;
pub mod level_naive;
pub mod logged;
pub mod nlinear;
pub mod profile;

use crate::history::History;

/// A model of the path.
pub trait Path {
    /// Estimates parameters anew on what is known, keeping what it has learnt online.
    fn refit(&mut self, past: &History);
    /// The newest value of `past` has just come.
    fn push(&mut self, past: &History);
    /// The next `out.len()` values.
    fn path(&self, past: &History, out: &mut [f64]);
}
