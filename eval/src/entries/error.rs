//! Errors of entries.

use goodput_agents::bundle::{BundleError, WrongTypes};
use goodput_agents::compose::PolicyNameError;
use goodput_agents::policies::external::ProcessError;
use goodput_configs::error::CheckError;
use thiserror::Error;

/// Reason for which a name is no entry of a comparison.
#[derive(Debug, Error)]
pub enum EntryError {
    /// There is no such heuristic, or it has no such parameter.
    #[error("{}", goodput_configs::policies::explain(.0))]
    Policy(#[from] PolicyNameError),
    /// Replica of an artifact where a policy by the paper's rule is wanted.
    #[error("{name} behaves as a public artifact does, defects included, and is for reproduction only; take {plain}")]
    Replica {
        /// Name that was given.
        name: String,
        /// The policy by the paper's rule.
        plain: String,
    },
    /// The policy does not know the quotas of the tenants, or the figures of the accelerators.
    #[error(transparent)]
    Unsuitable(CheckError),
    /// The bundle cannot be read.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The bundle does not say how it is to be run.
    #[error("the bundle's decoder options: {0}; export the policy again with this version")]
    Decoder(serde_json::Error),
    /// The bundle knows other accelerator types.
    #[error("{name}: {source}")]
    Types {
        /// Name of the bundle.
        name: String,
        /// Types that the bundle knows, and those of the cluster.
        source: WrongTypes,
    },
    /// The external program does not start.
    #[error("{name}: {source}")]
    External {
        /// Name of the policy.
        name: String,
        /// Command that was started.
        command: String,
        /// Error of the process.
        source: ProcessError,
    },
}
