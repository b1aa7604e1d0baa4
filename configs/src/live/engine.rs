//! Engines of a deployment: the machines that run the jobs, and how they are reached.

use std::net::SocketAddr;
use std::path::PathBuf;

use goodput_env::cluster::Pool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::name::JobName;
use super::times::check_millis;
use super::tls::TlsFiles;
use crate::error::CheckError;

/// Engine that runs the jobs of a deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum EngineConfig {
    /// Slurm, by its commands.
    Slurm(SlurmConfig),
    /// The node agents of goodput.
    Agents(AgentsConfig),
}

impl EngineConfig {
    pub(super) fn check(&self) -> Result<(), CheckError> {
        match self {
            Self::Agents(agents) if agents.nodes.is_empty() => {
                let expected = "the agents as { name = \"n0\", address = \"HOST:PORT\" }";
                Err(CheckError::value("engine.agents.nodes", "empty", expected))
            }
            Self::Agents(agents) => {
                check_millis("engine.agents.suspect_ms", agents.suspect_ms)?;
                check_millis("engine.agents.lease_ms", agents.lease_ms)?;
                check_millis("engine.agents.patience_ms", agents.patience_ms)
            }
            Self::Slurm(_) => Ok(()),
        }
    }
}

impl AgentsConfig {
    /// Shortest time that an agent may let jobs live on without a renewal, milliseconds: a renewal
    /// is missed at most once while two looks and a silent node's patience pass.
    #[must_use]
    pub fn shortest_fencing_ms(&self, poll_secs: f64) -> u64 {
        2 * ((poll_secs * 1000.0) as u64 + self.patience_ms)
    }

    /// Checks that leases outlast two looks at the cluster, `poll_secs` apart.
    pub(super) fn check_pace(&self, poll_secs: f64) -> Result<(), CheckError> {
        let shortest_ms = self.shortest_fencing_ms(poll_secs);
        if self.lease_ms <= shortest_ms {
            let expected = format!(
                "more than {shortest_ms}, twice the sum of cycle.poll_secs and engine.agents.patience_ms; raise it, or lower one of those"
            );
            return Err(CheckError::value("engine.agents.lease_ms", self.lease_ms, expected));
        }
        Ok(())
    }
}

/// A Slurm cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SlurmConfig {
    /// `slurm.conf`, where it is not the default one.
    pub conf: Option<PathBuf>,
    /// Folder of Slurm's commands, where the commands are not on the path.
    pub bin: Option<PathBuf>,
    /// Partitions that the daemon manages; all where empty.
    pub partitions: Vec<String>,
    /// URL under which jobs reach the daemon's interface to report their speed. Where the key is
    /// absent, jobs do not report, and policies do not learn their speeds.
    pub report_url: Option<String>,
    /// Reservation in which the replicas of services run. A deployment with services needs it.
    pub reservation: Option<String>,
}

/// Node agents that the daemon drives, and how it reaches them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentsConfig {
    /// Nodes in the order in which snapshots list them.
    pub nodes: Vec<NodeAddress>,
    /// Certificates of the daemon.
    pub tls: TlsFiles,
    /// Folder for jobs; all daemons that may lead share it.
    pub folder: PathBuf,
    /// Name of this daemon, for people.
    #[serde(default = "leader")]
    pub leader: String,
    /// Silence after which a node is suspect, milliseconds.
    #[serde(default = "suspect_ms")]
    pub suspect_ms: u64,
    /// How long agents may count on this daemon after its last word, milliseconds; longer than any
    /// agent's `fencing`.
    #[serde(default = "lease_ms")]
    pub lease_ms: u64,
    /// How long a call may take, milliseconds.
    #[serde(default = "patience_ms")]
    pub patience_ms: u64,
}

/// Address of a node's agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeAddress {
    /// Name of the node, as in its certificate.
    pub name: JobName,
    /// Address on which its agent listens: an IP address and a port.
    pub address: SocketAddr,
    /// Pool that the node belongs to: `shared`, `training` or `inference`.
    #[serde(default)]
    pub pool: Pool,
}

fn leader() -> String {
    "daemon".to_owned()
}
const fn suspect_ms() -> u64 {
    10_000
}
const fn lease_ms() -> u64 {
    30_000
}
const fn patience_ms() -> u64 {
    3000
}
