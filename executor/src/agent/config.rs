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
    /// Certificate, key and authority for mutual TLS with the daemon.
    pub tls: TlsFiles,
    /// Name in the daemon's certificate.
    #[serde(default = "daemon_name")]
    pub daemon: String,
    /// Fate of the jobs while the daemon is silent.
    #[serde(default)]
    pub fencing: Fencing,
    /// How often and how patiently accelerators are read.
    #[serde(default)]
    pub pace: Pace,
    /// Program and arguments that run a keeper. The folder of the attempt is added at the end. An
    /// empty list stands for this program with `live keep`.
    #[serde(default)]
    pub keeper: Vec<String>,
}

/// Fate of a node's jobs while the daemon is silent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fencing {
    /// Jobs run on, so nothing is lost when only the daemon or the network fails. The daemon never
    /// starts them elsewhere before it hears of the node again.
    #[default]
    Keep,
    /// Keepers kill jobs that have had no renewed lease for a while. After the lease the daemon may
    /// start the jobs elsewhere.
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
