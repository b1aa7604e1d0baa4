//! The file of the agent of one node.

use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dcgm::DcgmConfig;
use super::devices::DeviceChoice;
use super::name::JobName;
use super::times::check_millis;
use super::tls::TlsFiles;
use crate::error::CheckError;
use crate::kind::Kind;
use crate::reader::ConfigFile;

/// The agent of one node of a live cluster: `goodput live agent --config FILE`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeAgentConfig {
    /// Name of the node, as in its certificate.
    pub node: JobName,
    /// Address for the daemon.
    pub listen: SocketAddr,
    /// Address for jobs on this node; anything but the loopback device is refused. Port 0 stands
    /// for any free port.
    #[serde(default = "loopback")]
    pub jobs: SocketAddr,
    /// Folder for attempts, the term and the lease; on a local disk.
    pub state_dir: PathBuf,
    /// Folder for checkpoints, seen by all nodes.
    pub checkpoint_root: PathBuf,
    /// Accelerators to offer: `nvml`, `nvml:/path/to/library` or `fake:COUNTxTYPE`.
    #[serde(default)]
    pub devices: DeviceChoice,
    /// DCGM exporter that tells the health of the accelerators beside the driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dcgm: Option<DcgmConfig>,
    /// Certificate, key and authority for mutual TLS with the daemon.
    pub tls: TlsFiles,
    /// Name in the daemon's certificate.
    #[serde(default = "daemon_name")]
    pub daemon: String,
    /// Fate of the jobs while the daemon is silent.
    #[serde(default)]
    pub fencing: Fencing,
    /// Folder of the control daemon of CUDA MPS (`nvidia-cuda-mps-control -d`), through which jobs are kept to parts of
    /// accelerators. Where it does not run, the node gives whole accelerators only.
    #[serde(default = "mps_pipes")]
    pub mps_pipes: PathBuf,
    /// Interval and patience of reading the accelerators.
    #[serde(default)]
    pub pace: PaceConfig,
    /// Program and arguments that run a keeper. The folder of the attempt is added at the end. An
    /// empty list stands for the program of the agent itself.
    #[serde(default)]
    pub keeper: Vec<String>,
}

/// Fate of a node's jobs while the daemon is silent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// Interval and patience of asking the driver of the accelerators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PaceConfig {
    /// Time between two readings, milliseconds.
    pub period_ms: u64,
    /// Time without an answer after which the driver counts as stuck, milliseconds.
    pub deadline_ms: u64,
    /// Time for which a device must be well before it comes back, milliseconds.
    pub back_after_ms: u64,
}

impl Default for PaceConfig {
    /// Every second, 5 s, 10 min.
    fn default() -> Self {
        Self { period_ms: 1000, deadline_ms: 5000, back_after_ms: 600_000 }
    }
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Default folder of the control daemon of CUDA MPS.
fn mps_pipes() -> PathBuf {
    "/tmp/nvidia-mps".into()
}

fn daemon_name() -> String {
    "goodput-daemon".to_owned()
}

impl ConfigFile for NodeAgentConfig {
    const KIND: Kind = Kind::NodeAgent;

    fn check(&self) -> Result<(), CheckError> {
        if !self.jobs.ip().is_loopback() {
            return Err(CheckError::value("jobs", self.jobs, "an address of the loopback device, such as 127.0.0.1:0"));
        }
        if self.pace.period_ms == 0 {
            return Err(CheckError::value("pace.period_ms", 0, "at least 1"));
        }
        self.dcgm.as_ref().map_or(Ok(()), DcgmConfig::check)?;
        if let Fencing::Kill { after_ms } = self.fencing {
            check_millis("fencing.kill.after_ms", after_ms)?;
        }
        check_millis("pace.period_ms", self.pace.period_ms)?;
        check_millis("pace.deadline_ms", self.pace.deadline_ms)?;
        check_millis("pace.back_after_ms", self.pace.back_after_ms)
    }
}
