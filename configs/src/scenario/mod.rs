//! From a configuration to scenarios: the cluster, the workload and the environment, as every
//! command reads them.
//!
//! `sim`, `train` and `eval` share these tables, so one file describes a run whatever is done with
//! it. [`Setup`] makes the scenario of each seed.

mod bursts;
mod card_sharing;
mod cluster;
mod environment;
mod error;
mod faults;
mod instances;
mod language;
mod loaning;
mod preset;
mod rental;
mod services;
mod setup;
mod speeds;
mod windows;

use std::path::PathBuf;

use goodput_datasets::DataError;
use goodput_datasets::speed_table::ShippedSpeeds;
use goodput_datasets::synth::SynthConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use bursts::Burst;
pub use card_sharing::{CardIsolation, CardSharingConfig, prepare_shares};
pub use cluster::{ClusterConfig, NodeGroup};
pub use environment::EnvironmentConfig;
pub(crate) use environment::switch_cost;
pub use error::SetupError;
pub use instances::InstancesConfig;
pub use language::{ColdStartConfig, LengthsConfig, LlmConfig, TokenService};
pub use loaning::{ForecasterConfig, LoaningConfig, SteeringConfig};
pub use preset::{AsPublished, Override};
pub use services::{LoadConfig, LoadFile, LoadUnit, ServiceConfig};
pub use setup::{Setup, too_large};
pub use speeds::{ANY_TYPE, known_speeds};
pub use windows::WindowsConfig;

use crate::error::CheckError;

/// The jobs: `[workload.synthetic.diurnal]`, `[workload.synthetic.pollux]`, `[workload.file]` or
/// `[[workload.bursts]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkloadConfig {
    /// Drawn anew for each seed.
    Synthetic(SynthConfig),
    /// Read from a file: all of it for each seed, or a window.
    File(FileWorkload),
    /// Written down, the same for each seed.
    Bursts(Vec<Burst>),
}

/// A workload in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileWorkload {
    /// Canonical Parquet, or csv in a format that `goodput list formats` names.
    pub path: PathBuf,
    /// Measured speeds by number of accelerators of the models that the trace names. Absent: jobs of models beyond the
    /// shipped catalog are rigid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speeds: Option<ShippedSpeeds>,
    /// Windows of the file; absent: each seed has all of its jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<WindowsConfig>,
}

impl FileWorkload {
    /// Error of a file that cannot be read; where the speeds say which trace is meant, with the place to get it from.
    fn unread(&self, error: DataError) -> SetupError {
        match (self.speeds, &error) {
            (Some(speeds), DataError::Read { .. }) => {
                CheckError { remedy: Some(speeds.place()), ..CheckError::at("workload.file.path", error) }.into()
            }
            _ => error.into(),
        }
    }
}
