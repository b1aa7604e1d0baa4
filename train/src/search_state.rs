//! State of a search between two stops: one file of JSON in the folder of the run.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::checkpoint::StateError;
use crate::error::TrainError;
use crate::run_dir::{RunDir, RunDirError};

/// Everything that a search needs to continue. It belongs to the configuration that it was written under.
pub(crate) trait SearchState: Serialize + DeserializeOwned {
    /// Path of the file in the folder of the run.
    const FILE: &str;

    /// SHA-256 of the configuration.
    fn config_sha256(&self) -> &str;

    /// Reads the state; `None` where the search has not begun.
    ///
    /// # Errors
    /// The file is damaged, or was written under a configuration other than `config_sha256`.
    fn read(dir: &RunDir, config_sha256: &str) -> Result<Option<Self>, TrainError> {
        if !dir.path(Self::FILE).exists() {
            return Ok(None);
        }
        let damaged = |source| StateError::Damaged { file: Self::FILE.into(), source };
        let state: Self = serde_json::from_slice(&dir.read(Self::FILE)?).map_err(damaged)?;
        if state.config_sha256() != config_sha256 {
            let (found, expected) = (state.config_sha256().into(), config_sha256.into());
            return Err(StateError::OtherConfig { found, expected }.into());
        }
        Ok(Some(state))
    }

    /// Writes the state.
    ///
    /// # Errors
    /// The file cannot be written.
    fn write(&self, dir: &RunDir) -> Result<(), RunDirError> {
        dir.write(Self::FILE, &serde_json::to_vec_pretty(self).expect("a state is plain data"))
    }
}
