//! Engines of a deployment: the machines that run the jobs, and how they are reached.

mod kubernetes;

use std::net::SocketAddr;
use std::path::PathBuf;

use goodput_env::cluster::Pool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::name::JobName;
use super::times::check_millis;
use super::tls::TlsFiles;
use crate::error::CheckError;
pub use kubernetes::{ClaimsConfig, KubernetesConfig, KueueConfig, KueueRole};

/// Engine that runs the jobs of a deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum EngineConfig {
    /// Slurm, by its commands.
    Slurm(SlurmConfig),
    /// The node agents of goodput.
    Agents(AgentsConfig),
    /// Kubernetes, by its API server.
    Kubernetes(Box<KubernetesConfig>),
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
            Self::Slurm(slurm) => slurm.check(),
            Self::Kubernetes(kubernetes) => kubernetes.check(),
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
    /// Partitions of which all jobs are given to the daemon, beside jobs with its comment. The daemon
    /// holds them until an order places them; a job that its user holds stays held.
    pub given_partitions: Vec<String>,
    /// Qualities of service of which all jobs are given to the daemon, as with `given_partitions`.
    pub given_qos: Vec<String>,
    /// Processors for each accelerator of a job of `live submit` that does not say. Where the key is absent, a job
    /// gets the processors of a node divided by its accelerators, the least of the nodes with accelerators. 0: Slurm's
    /// own default (`DefCpuPerGPU`, else one processor).
    pub cpus_per_gpu: Option<u32>,
    /// Memory for each accelerator of a job of `live submit` that does not say, MiB. Where the key is absent, a job
    /// gets the memory of a node divided by its accelerators, the least of the nodes with accelerators. 0: Slurm's own
    /// default (`DefMemPerGPU`, `DefMemPerCPU`).
    pub memory_per_gpu_mib: Option<u64>,
    /// URL under which jobs reach the daemon's interface to report their speed. Where the key is
    /// absent, jobs do not report, and policies do not learn their speeds.
    pub report_url: Option<String>,
    /// Certificate of the authority that signed the interface's, as the nodes see the file. A
    /// `report_url` with `https` needs the key, unless a public authority signed.
    pub report_ca: Option<PathBuf>,
    /// Whether a job of `live submit` runs as the user that owns it, which is the `user` of the token or
    /// else its name. The daemon has to run as root. Else all jobs run as the user of the daemon.
    pub run_as_owner: bool,
    /// Reservation in which the replicas of services run. A deployment with services needs it.
    pub reservation: Option<String>,
}

impl SlurmConfig {
    fn check(&self) -> Result<(), CheckError> {
        let unmanaged = |given: &&String| !self.partitions.is_empty() && !self.partitions.contains(given);
        if let Some(given) = self.given_partitions.iter().find(unmanaged) {
            let expected = "names that engine.slurm.partitions has as well, or an empty engine.slurm.partitions";
            return Err(CheckError::value("engine.slurm.given_partitions", format!("{given:?}"), expected));
        }
        check_report_url("engine.slurm.report_url", self.report_url.as_deref())?;
        let Some(ca) = &self.report_ca else { return Ok(()) };
        let is_secure = self.report_url.as_ref().is_some_and(|url| url.starts_with("https://"));
        if !ca.is_absolute() {
            let value = format!("{:?}", ca.display().to_string());
            return Err(CheckError::value("engine.slurm.report_ca", value, "an absolute path: jobs read the file"));
        }
        if !is_secure {
            let value = self.report_url.as_ref().map_or("absent".to_owned(), |url| format!("{url:?}"));
            let expected = "an address with https, since `report_ca` is set";
            return Err(CheckError::value("engine.slurm.report_url", value, expected));
        }
        Ok(())
    }
}

/// Checks the address to which jobs report, where there is one.
fn check_report_url(key: &'static str, url: Option<&str>) -> Result<(), CheckError> {
    match url {
        Some(url) if !(url.starts_with("http://") || url.starts_with("https://")) => {
            Err(CheckError::value(key, format!("{url:?}"), "http://HOST:PORT or https://HOST:PORT"))
        }
        _ => Ok(()),
    }
}

/// Whether Kubernetes takes a name for a namespace.
pub(super) fn is_label(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with('-') && !name.ends_with('-')
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
    /// Time for which agents may count on this daemon after its last word, milliseconds; longer
    /// than any agent's `fencing`.
    #[serde(default = "lease_ms")]
    pub lease_ms: u64,
    /// Longest time that a call may take, milliseconds.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_for_reports_belongs_to_an_address_with_https() {
        let check = |url: Option<&str>, ca: &str| {
            let slurm = SlurmConfig {
                report_url: url.map(str::to_owned),
                report_ca: Some(ca.into()),
                ..SlurmConfig::default()
            };
            slurm.check().err().and_then(|error| error.key)
        };
        assert_eq!(check(Some("https://head:7070"), "/etc/goodput/ca.pem"), None);
        assert_eq!(check(Some("https://head:7070"), "ca.pem"), Some("engine.slurm.report_ca".into()));
        for url in [None, Some("http://head:7070")] {
            assert_eq!(check(url, "/etc/goodput/ca.pem"), Some("engine.slurm.report_url".into()));
        }
    }
}
