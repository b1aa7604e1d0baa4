//! Samples: small public files that are part of the program, so that a first command needs nothing else.

use std::path::Path;

/// Prefix of the names of samples, wherever a series is asked for.
const PREFIX: &str = "sample:";
/// All samples, by name.
const SAMPLES: [(&str, &[u8]); 1] = [("load", include_bytes!("../samples/load.csv"))];

/// Bytes of the sample that `path` names, as in `sample:load`; `None` where it names none.
pub fn sample(path: &Path) -> Option<&'static [u8]> {
    let name = path.to_str()?.strip_prefix(PREFIX)?;
    SAMPLES.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
}
