//! `goodput_gym._core`: environments for Python.
//!
//! - `Environments`: environments of one experiment that step together on threads of Rust, without the lock of the
//!   interpreter, and write into arrays of numpy.
//! - [`seat`]: one environment of them.
//! - [`rows`]: the arrays, row by row.
//! - [`bundles`]: nets that become bundles of policies, and bundles that decide.
//! - [`experts`]: what a published policy would do.
//! - [`forecasts`]: forecasters of load series.
//! - [`screen`]: an environment as text; [`pictures`]: what a picture of it shows.
//! - [`threads`]: the threads, which a fork of the process leaves behind.
//!
//! The package `goodput_gym`, beside this crate, makes Gymnasium's classes of it.

mod bundles;
mod environments;
mod experts;
mod forecasts;
mod options;
mod pictures;
mod rows;
mod screen;
mod seat;
mod threads;

use goodput_agents::compose;
use goodput_configs::shipped::SHIPPED;
use pyo3::prelude::*;

/// Extension module of the package `goodput_gym`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<environments::Environments>()?;
    module.add_class::<bundles::DeployedBundle>()?;
    module.add_class::<experts::Expert>()?;
    module.add_class::<forecasts::Forecaster>()?;
    module.add_function(wrap_pyfunction!(bundles::export, module)?)?;
    module.add_function(wrap_pyfunction!(bundles::export_graph, module)?)?;
    let experiments = SHIPPED.iter().filter(|config| config.folder() == "experiment");
    module.add("SHIPPED", experiments.map(|config| (config.stem(), config.text)).collect::<Vec<_>>())?;
    module.add("POLICIES", compose::names())?;
    module.add("MODELS", forecasts::models())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
