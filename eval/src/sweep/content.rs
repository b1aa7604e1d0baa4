//! Hashes of what a cell depends on.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;

use goodput_configs::experiment::Experiment;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::error::SweepError;

/// SHA-256 in hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Build of a program: the hash of its file. Programs of one build compute alike on machines that are alike.
///
/// # Errors
/// [`SweepError::File`] where the file cannot be read.
pub fn build_of(program: &Path) -> Result<String, SweepError> {
    let mut file = fs::File::open(program).map_err(SweepError::file(program))?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer).map_err(SweepError::file(program))? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&buffer[..read]),
        }
    }
}

/// Hash of the files that the tables of an experiment name.
///
/// # Errors
/// [`SweepError::File`] where one of them cannot be read.
pub fn files_of(experiment: &Experiment) -> Result<String, SweepError> {
    FileHashes::default().of(experiment)
}

/// Hashes of files by name. Each file is read once.
#[derive(Debug, Default)]
pub(super) struct FileHashes(BTreeMap<String, String>);

impl FileHashes {
    /// Hash of the files that the tables of an experiment name: traces, load series, forecasters. Every text of the
    /// tables that names a file counts.
    pub(super) fn of(&mut self, experiment: &Experiment) -> Result<String, SweepError> {
        let mut names = Vec::new();
        texts(&serde_json::to_value(experiment).unwrap_or_default(), &mut names);
        let mut all = String::new();
        for name in names.iter().filter(|name| Path::new(name).is_file()) {
            if !self.0.contains_key(name) {
                let bytes = fs::read(name).map_err(SweepError::file(name))?;
                self.0.insert(name.clone(), sha256(&bytes));
            }
            all += &format!("{name} {}\n", self.0[name]);
        }
        Ok(sha256(all.as_bytes()))
    }
}

fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| texts(value, found)),
        Value::Object(values) => values.values().for_each(|value| texts(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
