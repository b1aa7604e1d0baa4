//! Assumptions that a workload rests on, printed before its results.

use std::path::Path;

use goodput_console::{CommandError, say};
use goodput_datasets::assumption_of;

use super::sim::data_fault;

/// Says the assumption that the jobs of a file rest on, where there is one.
pub fn say_of(workload: &Path) -> Result<(), CommandError> {
    if let Some(assumption) = assumption_of(workload).map_err(data_fault)? {
        say(&format!("{}: assumption: {assumption}", workload.display()));
    }
    Ok(())
}
