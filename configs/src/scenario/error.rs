//! Errors of scenarios that parse but cannot be run.

use goodput_datasets::DataError;
use goodput_datasets::synth::SynthError;
use thiserror::Error;

use crate::error::CheckError;

/// Error of a configuration that parses but cannot be run.
#[derive(Debug, Error)]
pub enum SetupError {
    /// A value outside its range.
    #[error("{key} is {value}, expected {expected}")]
    Value {
        /// The key, dotted.
        key: &'static str,
        /// Value in the file.
        value: String,
        /// Values that the key allows.
        expected: String,
    },
    /// The workload cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The generator's settings make no workload.
    #[error("workload.synthetic: {0}")]
    Synthetic(#[from] SynthError),
    /// A table that is not of the scenario alone is wrong.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// One of several clusters cannot be run.
    #[error("clusters, {cluster}: {source}")]
    Member {
        /// Name of the cluster.
        cluster: String,
        /// Error of the cluster's settings.
        source: Box<SetupError>,
    },
    /// A service's settings make no service.
    #[error("services, {service}: {source}")]
    Service {
        /// Name of the service.
        service: String,
        /// Error of the service's settings.
        source: Box<SetupError>,
    },
}

impl SetupError {
    /// Error of the settings of one cluster or service, or this error where there is no such part.
    pub(crate) fn innermost(&self) -> &Self {
        match self {
            Self::Member { source, .. } | Self::Service { source, .. } => source.innermost(),
            error => error,
        }
    }

    /// Remedy: what the user can do about the error.
    pub fn remedy(&self) -> Option<&'static str> {
        match self.innermost() {
            Self::Data(error) => Some(error.remedy()).filter(|remedy| !remedy.is_empty()),
            Self::Check(error) => error.remedy,
            _ => None,
        }
    }
}

impl From<SetupError> for CheckError {
    fn from(error: SetupError) -> Self {
        let (mut inner, mut names) = (&error, Vec::new());
        loop {
            inner = match inner {
                SetupError::Member { cluster, source } => {
                    names.push(("clusters", cluster.clone()));
                    source
                }
                SetupError::Service { service, source } => {
                    names.push(("services", service.clone()));
                    source
                }
                _ => break,
            };
        }
        let key = match inner {
            SetupError::Value { key, .. } => Some((*key).into()),
            SetupError::Check(inner) => {
                names.extend(inner.names.iter().cloned());
                inner.key.clone()
            }
            SetupError::Data(_) if names.is_empty() => Some("workload.file.path".into()),
            _ => None,
        };
        Self { message: error.to_string(), key, names, remedy: error.remedy() }
    }
}
