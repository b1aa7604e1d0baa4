//! `goodput_gym._core`: environments for Python.
//!
//! - `Environments`: environments of one experiment that step together on threads of Rust, without the lock of the
//!   interpreter, and write into arrays of numpy.
//! - [`rows`]: the arrays, row by row.
//! - [`screen`]: an environment as text.
//!
//! The package `goodput_gym`, beside this crate, makes Gymnasium's classes of it.

mod environments;
mod options;
mod rows;
mod screen;

use goodput_configs::experiment::SHIPPED;
use pyo3::prelude::*;

/// Extension module of the package `goodput_gym`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<environments::Environments>()?;
    module.add("SHIPPED", SHIPPED.to_vec())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
