//! A generation as a file, with what machines must have in common to compute alike.

use goodput_configs::experiment::Experiment;
use goodput_eval::sweep::{SharedFolder, files_of};
use serde::{Deserialize, Serialize};

use super::error::SpoolError;
use crate::error::TrainError;
use crate::evolution::Generation;
use crate::run_dir::{RunDir, sha256};

/// Name of the file.
const FILE: &str = "generation.json";

/// Everything that the cost of a run depends on, beside the generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Identity {
    build: String,
    config_sha256: String,
    /// Hash of the files that the experiment names.
    files: String,
}

impl Identity {
    pub fn of(experiment: &Experiment, dir: &RunDir, build: &str) -> Result<Self, TrainError> {
        let files = files_of(experiment).map_err(SpoolError::from)?;
        Ok(Self { build: build.to_owned(), config_sha256: dir.config_sha256()?, files })
    }

    /// Checks that a worker with this identity may play what `posted` asks for.
    pub fn accepts(&self, posted: &Self) -> Result<(), SpoolError> {
        if self.build != posted.build {
            return Err(SpoolError::Build { posted: posted.build.clone(), own: self.build.clone() });
        }
        if self.config_sha256 != posted.config_sha256 {
            return Err(SpoolError::Input { what: "config.toml" });
        }
        if self.files != posted.files {
            return Err(SpoolError::Input { what: "a file that the experiment names" });
        }
        Ok(())
    }
}

/// A generation that is to be played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Posted {
    pub identity: Identity,
    pub generation: Generation,
}

impl Posted {
    /// Text of the file and its hash.
    pub fn text(&self) -> (String, String) {
        let text = serde_json::to_string_pretty(self).expect("a generation is plain data");
        let key = sha256(text.as_bytes());
        (text, key)
    }

    /// Writes the file to a folder.
    pub fn write(&self, folder: &SharedFolder) -> Result<(), SpoolError> {
        folder.put(FILE, self.text().0.as_bytes())?;
        Ok(())
    }

    /// Reads the file of a folder; `None` where it is not there, or not any more.
    pub fn read(folder: &SharedFolder) -> Result<Option<Self>, SpoolError> {
        match folder.read(FILE) {
            Err(error) if error.is_absence() => Ok(None),
            Err(error) => Err(error.into()),
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(posted) => Ok(Some(posted)),
                Err(error) => Err(SpoolError::Damaged { path: folder.path(FILE), problem: error.to_string() }),
            },
        }
    }
}
