//! Everything a run needs to continue as if it had never stopped: weights, optimiser, reference,
//! scale of returns, and where every environment stands. Random streams need no state, because each
//! is named by (seed, iteration, environment).

use goodput_env::gym::Cursor;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::run_dir::{RunDir, RunDirError};
use crate::scaling::ReturnScale;

/// The part of a checkpoint that is not tensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// SHA-256 of the configuration it belongs to.
    pub config_sha256: String,
    /// Number of completed updates.
    pub updates: u64,
    /// Decisions learnt from, warm start not included.
    pub decisions: u64,
    /// Scale of returns.
    pub scale: ReturnScale,
    /// Position of every environment in its episode.
    pub cursors: Vec<Cursor>,
    /// Best mean completion time on validation seeds so far, seconds.
    pub best_jct_secs: Option<f64>,
    /// The latest one.
    pub latest_jct_secs: Option<f64>,
}

/// A checkpoint that cannot be continued.
#[derive(Debug, Error)]
pub enum StateError {
    /// Not the file of a checkpoint.
    #[error("{file} is damaged: {source}; delete its directory to continue from an earlier checkpoint")]
    Damaged {
        /// Path of the checkpoint file.
        file: String,
        /// Error of the JSON parser.
        source: serde_json::Error,
    },
    /// The configuration has changed.
    #[error(
        "the checkpoint was made under another configuration (sha256 {found}, now {expected}); a run continues only under its own"
    )]
    OtherConfig {
        /// SHA-256 of the configuration that the checkpoint was written under.
        found: String,
        /// The present one.
        expected: String,
    },
}

/// Names of the tensor files of a checkpoint.
pub const LEARNER: &str = "learner.bin";
/// The frozen policy to stay close to.
pub const REFERENCE: &str = "reference.bin";
/// The best policy so far.
pub const BEST: &str = "best.bin";

/// Writes a checkpoint; `latest` points to it once it is whole.
///
/// # Errors
/// [`RunDirError`] where it cannot be written.
pub fn save(dir: &RunDir, state: &State, files: &[(&str, Vec<u8>)]) -> Result<(), RunDirError> {
    let folder = format!("checkpoints/update-{:08}", state.updates);
    for (name, bytes) in files {
        dir.write(&format!("{folder}/{name}"), bytes)?;
    }
    let text = serde_json::to_vec_pretty(state).expect("a state is plain data");
    dir.write(&format!("{folder}/state.json"), &text)?;
    dir.write("checkpoints/latest", folder.as_bytes())
}

/// Reads the latest checkpoint: its state and a reader of its files. `None` where there is none.
///
/// # Errors
/// [`StateError`] or [`RunDirError`] where it cannot be read or belongs to another configuration.
pub fn latest(dir: &RunDir, config_sha256: &str) -> Result<Option<(State, String)>, crate::TrainError> {
    if !dir.path("checkpoints/latest").exists() {
        return Ok(None);
    }
    let folder = String::from_utf8_lossy(&dir.read("checkpoints/latest")?).trim().to_string();
    let file = format!("{folder}/state.json");
    let state: State =
        serde_json::from_slice(&dir.read(&file)?).map_err(|source| StateError::Damaged { file, source })?;
    if state.config_sha256 != config_sha256 {
        return Err(StateError::OtherConfig { found: state.config_sha256, expected: config_sha256.into() }.into());
    }
    Ok(Some((state, folder)))
}
