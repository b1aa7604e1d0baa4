//! JSON schemas of the kinds of configuration files, for editors and for the reference.

use schemars::{Schema, schema_for};

use crate::experiment::Experiment;
use crate::federation::FederationConfig;
use crate::forecast::{ForecastConfig, ForecasterExperiment, WorthConfig};
use crate::kind::Kind;
use crate::live::deployment::Deployment;
use crate::live::node_agent::NodeAgentConfig;

/// Schema of the files of `kind`: every key with its type, default and meaning.
pub fn of(kind: Kind) -> Schema {
    match kind {
        Kind::Experiment => schema_for!(Experiment),
        Kind::Federation => schema_for!(FederationConfig),
        Kind::ForecastStudy => schema_for!(ForecastConfig),
        Kind::WorthStudy => schema_for!(WorthConfig),
        Kind::ForecasterTraining => schema_for!(ForecasterExperiment),
        Kind::Deployment => schema_for!(Deployment),
        Kind::NodeAgent => schema_for!(NodeAgentConfig),
    }
}
