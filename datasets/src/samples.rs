//! Samples: small files that are part of the program, so that a first command needs nothing else.

use std::path::Path;

/// Prefix of the names of samples, wherever a series is asked for.
const PREFIX: &str = "sample:";
/// All samples, by name.
const SAMPLES: [(&str, &[u8]); 2] = [("jobs", JOBS), ("load", include_bytes!("../samples/load.csv"))];
/// Jobs of a week, as `goodput data schema` describes them.
pub const JOBS: &[u8] = include_bytes!("../samples/jobs.csv");

/// Bytes of the sample that `path` names, as in `sample:load`; `None` where it names none.
pub fn sample(path: &Path) -> Option<&'static [u8]> {
    let name = path.to_str()?.strip_prefix(PREFIX)?;
    SAMPLES.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
}
