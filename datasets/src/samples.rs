//! Samples: small files that are part of the program, so that a first command needs nothing else.

use std::path::Path;

use crate::error::DataError;

/// Prefix of the names of samples, wherever a series is asked for.
const PREFIX: &str = "sample:";
/// Load of a service in two weeks: the sample `sample:load`.
const LOAD: &[u8] = include_bytes!("../samples/load.csv");
/// Jobs of a week, as `goodput data schema` describes them.
pub const JOBS: &[u8] = include_bytes!("../samples/jobs.csv");

/// Bytes of the load series that `path` names, as in `sample:load`; `None` for the path of a file.
///
/// # Errors
/// A name of no sample.
pub fn load_series(path: &Path) -> Result<Option<&'static [u8]>, DataError> {
    match path.to_str().and_then(|path| path.strip_prefix(PREFIX)) {
        None => Ok(None),
        Some("load") => Ok(Some(LOAD)),
        Some(_) => Err(DataError::NoSample { path: path.to_owned() }),
    }
}
