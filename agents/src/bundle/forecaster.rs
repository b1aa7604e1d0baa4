//! A trained forecaster as a file: what `train` writes and `forecast`, `eval` and the executor
//! read.
//!
//! The form is that of a policy's bundle ([`crate::bundle`]): a safetensors file with one named
//! tensor a matrix, and the rest as JSON in its metadata. The schema of a forecaster is its step,
//! its day and its window; a study of another step is refused, because a net would answer anyway,
//! and wrongly.

use std::fs;
use std::path::{Path, PathBuf};

use goodput_forecast::neural::{NetError, NeuralNet, Spec};
use serde::{Deserialize, Serialize};

use crate::bundle::Provenance;
use crate::compose::serving::SavedForecaster;
use crate::nets::archive::{Archive, ArchiveError, Entry, write};

/// Version of the format this build writes and reads.
pub const FORMAT: u32 = 2;
/// Key of the manifest in the file's metadata.
const MANIFEST: &str = "goodput.forecaster";

/// A trained forecaster with what it was trained on.
#[derive(Clone, Debug, PartialEq)]
pub struct ForecasterBundle {
    /// Name of the forecaster in tables.
    pub name: String,
    /// Net with its weights and scale.
    pub net: NeuralNet,
    /// Model card: the series and the training.
    pub card: Card,
}

/// Model card of a forecaster: its series and its training.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Milliseconds of a step.
    pub step_millis: i64,
    /// Column of the series; of a net of all series, the names of the real ones, with commas between them.
    pub series: String,
    /// First step that the net has not seen, validation included, milliseconds since 1970: only
    /// later forecasts tell anything about it. 0 of a net of all series, of which `series` tells that.
    pub unseen_from_epoch_millis: i64,
    /// Least loss in validation, in units of the spread of the series.
    pub validation_loss: Option<f64>,
    /// Provenance of the net.
    pub provenance: Provenance,
}

impl Card {
    /// Whether this is the card of a net of all series that was trained on the series `name`, `FILE:COLUMN`.
    pub fn names(&self, name: &str) -> bool {
        self.unseen_from_epoch_millis == 0 && self.series.split(',').any(|series| series.trim() == name)
    }
}

/// The manifest as stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    format: u32,
    name: String,
    spec: Spec,
    mean: f64,
    spread: f64,
    card: Card,
}

/// The part of the manifest that every version has.
#[derive(Deserialize)]
struct Version {
    format: u32,
}

/// A forecaster that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ForecasterError {
    /// The file system refused.
    #[error("{path}: cannot {action}: {source}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Operation that failed, as a verb.
        action: &'static str,
        /// Error of the file system.
        source: std::io::Error,
    },
    /// Another kind of file, or a damaged one.
    #[error("{path}: not a sound forecaster bundle: {source}; `goodput train` with a [forecaster] writes one")]
    Archive {
        /// Path of the file.
        path: PathBuf,
        /// Fault of the content.
        source: ArchiveError,
    },
    /// Numbers that do not fit their own net.
    #[error("{path}: damaged forecaster bundle: {source}")]
    Net {
        /// Path of the file.
        path: PathBuf,
        /// Fault of the content.
        source: NetError,
    },
    /// A file that begins like a fitted forecaster and is none.
    #[error("{path}: not a fitted forecaster: {source}; `goodput forecast fit` writes one")]
    Snapshot {
        /// Path of the file.
        path: PathBuf,
        /// Fault of the content.
        source: serde_json::Error,
    },
    /// No forecaster of this name is shipped.
    #[error("{name}: no shipped forecaster of this name; there is {known}")]
    NotShipped {
        /// Name that was asked for.
        name: String,
        /// Names of the shipped ones.
        known: String,
    },
    /// A bundle of another version of this program.
    #[error("{path}: forecaster format {found}, this program reads format {FORMAT}; train it again with this version")]
    Format {
        /// Path of the file.
        path: PathBuf,
        /// The format it has.
        found: u32,
    },
}

fn read(path: &Path) -> Result<Vec<u8>, ForecasterError> {
    fs::read(path).map_err(|source| ForecasterError::Io { path: path.into(), action: "read", source })
}

/// Reads a forecaster of either kind: fitted, or trained.
///
/// # Errors
/// When the file is neither.
pub fn open(path: &Path) -> Result<SavedForecaster, ForecasterError> {
    let bytes = read(path)?;
    // Fitted forecasters are JSON; a bundle begins with the length of its header, a multiple of
    // eight, which no `{` is.
    if bytes.first() != Some(&b'{') {
        return Ok(ForecasterBundle::from_bytes(&bytes, path)?.into_saved());
    }
    let broken = |source| ForecasterError::Snapshot { path: path.into(), source };
    Ok(SavedForecaster::Fitted(Box::new(serde_json::from_slice(&bytes).map_err(broken)?)))
}

impl ForecasterBundle {
    /// Reads a bundle.
    ///
    /// # Errors
    /// When the file is not a sound forecaster of this format.
    pub fn load(path: &Path) -> Result<Self, ForecasterError> {
        Self::from_bytes(&read(path)?, path)
    }

    /// The bundle for a series with steps of `step_millis`, `day_steps` of them to a day.
    ///
    /// # Errors
    /// Step and steps to a day of a bundle that knows only its own.
    pub fn suited(mut self, own: (i64, usize)) -> Result<Self, (i64, usize)> {
        let of = (self.card.step_millis, self.net.spec().day_steps);
        if self.net.spec().is_global() {
            self.net = self.net.for_day(own.1).map_err(|_| of)?;
            return Ok(self);
        }
        if of == own { Ok(self) } else { Err(of) }
    }

    /// Forecaster for a run: the net and its step, without the model card.
    pub fn into_saved(self) -> SavedForecaster {
        SavedForecaster::Trained { net: Box::new(self.net), step_millis: self.card.step_millis }
    }

    /// Parses the bytes of a bundle; `path` is only for messages.
    ///
    /// # Errors
    /// When they are not those of a sound forecaster of this format.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self, ForecasterError> {
        let explain = |source| ForecasterError::Archive { path: path.into(), source };
        let broken = |source| ForecasterError::Net { path: path.into(), source };
        let archive = Archive::read(bytes).map_err(explain)?;
        // Only the version is read first, because the rest may have changed between versions.
        let Version { format } = archive.header(MANIFEST).map_err(explain)?;
        if format != FORMAT {
            return Err(ForecasterError::Format { path: path.into(), found: format });
        }
        let manifest: Manifest = archive.header(MANIFEST).map_err(explain)?;
        let mut weights = Vec::new();
        for (name, shape) in NeuralNet::shapes(&manifest.spec).map_err(|error| broken(error.into()))? {
            weights.extend(archive.tensor(&name, &shape).map_err(explain)?);
        }
        let net = NeuralNet::from_parts(manifest.spec, manifest.mean, manifest.spread, weights).map_err(broken)?;
        Ok(Self { name: manifest.name, net, card: manifest.card })
    }

    /// The bytes of the bundle; the same bundle gives the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (mean, spread) = self.net.scale();
        let (name, spec, card) = (self.name.clone(), self.net.spec().clone(), self.card.clone());
        let tensors: Vec<Entry<'_>> =
            self.net.tensors().map(|(name, shape, values)| (name.to_owned(), shape.to_vec(), values)).collect();
        write(MANIFEST, &Manifest { format: FORMAT, name, spec, mean, spread, card }, &tensors)
    }
}

#[cfg(test)]
mod tests {
    use goodput_forecast::neural::{Architecture, Lstm};

    use super::*;

    #[test]
    fn a_bundle_reads_back_and_broken_ones_are_named() {
        let spec = Spec::daily(Architecture::Lstm(Lstm { hidden: 3, chunk: 2 }), 4);
        let length = NeuralNet::shapes(&spec).unwrap().iter().map(|(_, [rows, columns])| rows * columns).sum();
        let weights = (0..length).map(|i| i as f32 / 7.0).collect();
        let net = NeuralNet::from_parts(spec, 3.0, 2.0, weights).unwrap();
        let card = Card { step_millis: 600_000, series: "rate".into(), ..Card::default() };
        let bundle = ForecasterBundle { name: "lstm".into(), net, card };
        let bytes = bundle.to_bytes();
        let path = Path::new("a.bundle");
        assert_eq!(ForecasterBundle::from_bytes(&bytes, path).unwrap(), bundle);
        assert_eq!(bundle.to_bytes(), bytes);
        let said = |bytes: &[u8]| ForecasterBundle::from_bytes(bytes, path).unwrap_err().to_string();
        assert!(said(b"{}").contains("not a sound forecaster"));
        assert!(said(&bytes[..bytes.len() - 4]).contains("truncated"));
    }
}
