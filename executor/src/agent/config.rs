//! How an agent is set up.

use std::net::SocketAddr;
use std::path::PathBuf;

use goodput_configs::error::CheckError;
use goodput_configs::kind::Kind;
use goodput_configs::reader::ConfigFile;
use serde::{Deserialize, Serialize};

use super::tls::TlsFiles;
use crate::devices::{DeviceChoice, Pace};
use crate::job::JobName;

/// Settings of an agent, as in the file that `goodput live agent --config` reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentConfig {
    /// Name of the node, as in its certificate.
    pub node: JobName,
    /// Address for the daemon.
    pub listen: SocketAddr,
    /// Address for jobs on this node; anything but the loopback device is refused.
    #[serde(default = "loopback")]
    pub jobs: SocketAddr,
    /// Folder for attempts, the term and the lease; on a local disk.
    pub state_dir: PathBuf,
    /// Folder for checkpoints, seen by all nodes.
    pub checkpoint_root: PathBuf,
    /// Accelerators to offer.
    #[serde(default)]
    pub devices: DeviceChoice,
    /// Certificates.
    pub tls: TlsFiles,
    /// Name in the daemon's certificate.
    #[serde(default = "daemon_name")]
    pub daemon: String,
    /// What becomes of jobs when the daemon is not heard of.
    #[serde(default)]
    pub fencing: Fencing,
    /// How often and how patiently accelerators are read.
    #[serde(default)]
    pub pace: Pace,
    /// Program and arguments that run a keeper, to which the folder of the attempt is added; empty: this program with `live keep`.
    #[serde(default)]
    pub keeper: Vec<String>,
}

/// What becomes of jobs when the daemon is not heard of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fencing {
    /// They run on: nothing is lost when only the daemon or the network fails. The daemon never starts them elsewhere before the node is heard of again.
    #[default]
    Keep,
    /// Keepers kill them after so long without a renewed lease, so that the daemon may start them elsewhere after the lease.
    Kill {
        /// Milliseconds since the last renewal; shorter than the lease. 25 s suits a lease of 30 s.
        after_ms: u64,
    },
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn daemon_name() -> String {
    "goodput-daemon".to_owned()
}

impl ConfigFile for AgentConfig {
    const KIND: Kind = Kind::NodeAgent;

    fn check(&self) -> Result<(), CheckError> {
        // Names and addresses are checked as they are read.
        Ok(())
    }
}
