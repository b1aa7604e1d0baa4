//! Records on disk: JSON objects that carry the number of their format.
//!
//! A program reads the records of every format up to its own, and refuses those of a later one: a
//! record that is half understood is worse than one that is not read. Objects without a number are
//! of format 0, which was written before formats were numbered.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

/// Format of the records that this program writes.
pub const FORMAT: u64 = 1;

/// Key of the number in a record. No name of a node or a job begins with a dollar.
const KEY: &str = "$format";

/// Record that is there and cannot be used.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The system does not let it be read.
    #[error("{}: cannot be read: {source}; mend the disk, or its permissions", path.display())]
    Unreadable {
        /// Path of the record.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The file is torn, or was changed by something else.
    #[error("{} is damaged ({problem}): put back its copy from a backup, or remove it when nothing needs it", path.display())]
    Damaged {
        /// Path of the record.
        path: PathBuf,
        /// Error of the parser.
        problem: String,
    },
    /// A later program wrote it.
    #[error(
        "{} has format {found}, and this program reads formats up to {FORMAT}: run the program that wrote it or a later one, or restore the state from before the upgrade",
        path.display()
    )]
    Newer {
        /// Path of the record.
        path: PathBuf,
        /// Format of the record.
        found: u64,
    },
}

/// Bytes of a record. A value that is no object has no room for the number and is of format 0.
///
/// # Errors
/// The value cannot be written as JSON.
pub fn encode<T: Serialize>(value: &T) -> serde_json::Result<Vec<u8>> {
    let mut value = serde_json::to_value(value)?;
    if let Value::Object(fields) = &mut value {
        fields.insert(KEY.to_owned(), FORMAT.into());
    }
    serde_json::to_vec(&value)
}

/// Reads a record; `None` where there is none.
///
/// # Errors
/// [`RecordError`] where there is one that cannot be used.
pub fn load<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, RecordError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(RecordError::Unreadable { path: path.into(), source }),
    };
    decode(path, &bytes).map(Some)
}

/// Reads the bytes of a record at `path`, which errors name.
///
/// # Errors
/// [`RecordError::Damaged`], or [`RecordError::Newer`] where a later program wrote it.
pub fn decode<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, RecordError> {
    let damaged = |error: serde_json::Error| {
        let problem = if bytes.is_empty() { "it is empty".to_owned() } else { error.to_string() };
        RecordError::Damaged { path: path.into(), problem }
    };
    let mut value: Value = serde_json::from_slice(bytes).map_err(damaged)?;
    if let Value::Object(fields) = &mut value
        && let Some(found) = fields.get(KEY).and_then(Value::as_u64)
    {
        if found > FORMAT {
            return Err(RecordError::Newer { path: path.into(), found });
        }
        fields.remove(KEY);
    }
    serde_json::from_value(value).map_err(damaged)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_record_is_read_refused_or_told_to_be_damaged_and_never_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.json");
        let load = || load::<BTreeMap<String, u32>>(&path);
        assert!(load().unwrap().is_none(), "there is none");
        let record = BTreeMap::from([("a".to_owned(), 7)]);
        for (text, what) in [
            (r#"{"a":7}"#.as_bytes().to_vec(), "a record of before formats were numbered"),
            (encode(&record).unwrap(), "a record of this program"),
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(load().unwrap(), Some(record.clone()), "{what}");
        }
        fs::write(&path, r#"{"a":7,"$format":2}"#).unwrap();
        let newer = load().unwrap_err().to_string();
        assert!(newer.contains("record.json has format 2, and this program reads formats up to 1"), "{newer}");
        for torn in ["", r#"{"a":7,"$for"#, r#"{"a":"seven"}"#, "[]"] {
            fs::write(&path, torn).unwrap();
            let error = load().unwrap_err();
            assert!(matches!(error, RecordError::Damaged { .. }), "{torn}: {error}");
            assert!(error.to_string().contains("backup"), "{error}");
        }
    }
}
