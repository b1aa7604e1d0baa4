//! Sharing of accelerators by jobs that ask for parts of them: `[environment.sharing]`, the memory that cards have, and
//! requests that no card could hold.

use std::sync::Arc;

use goodput_datasets::Accelerators;
use goodput_datasets::synth::{CardPart, Generator};
use goodput_env::cluster::Cluster;
use goodput_env::job::Workload;
use goodput_env::model::sharing::{Isolation, ShareRequest};
use goodput_env::scenario::CardSharing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SetupError;
use crate::error::CheckError;
use crate::tenants::TenantConfig;

/// Mechanism that keeps jobs on one accelerator apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CardIsolation {
    /// Each job has the compute that it asked for, as by CUDA MPS or HAMi; memory bandwidth and caches are shared.
    #[default]
    Mps,
    /// The driver gives each job an equal part of the time, whatever the job asked for.
    TimeSlice,
}

/// Sharing of one accelerator by jobs that ask for parts: `[environment.sharing]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CardSharingConfig {
    /// Mechanism that keeps jobs on one accelerator apart.
    pub isolation: CardIsolation,
    /// Fraction of its speed, at least 0 and below 1, that a job loses beside others that use a whole accelerator; in
    /// proportion to what they use. For `isolation = "mps"`. The default is an assumption: measure your own jobs.
    pub contention: f64,
    /// Most jobs on one accelerator at a time. CUDA MPS allows 48.
    pub slots: u32,
}

impl Default for CardSharingConfig {
    fn default() -> Self {
        Self { isolation: CardIsolation::Mps, contention: 0.1, slots: CardSharing::MPS.slots }
    }
}

impl CardSharingConfig {
    /// The simulator's options.
    ///
    /// # Errors
    /// [`SetupError::Value`] for values outside their range.
    pub(super) fn options(&self) -> Result<CardSharing, SetupError> {
        let value = |key, value: String, expected: &str| SetupError::Value { key, value, expected: expected.into() };
        if !(0.0..1.0).contains(&self.contention) {
            let found = self.contention.to_string();
            return Err(value("environment.sharing.contention", found, "at least 0 and below 1"));
        }
        if !(1..=1024).contains(&self.slots) {
            return Err(value("environment.sharing.slots", self.slots.to_string(), "1 to 1024"));
        }
        let isolation = match self.isolation {
            CardIsolation::Mps => Isolation::Mps { contention: self.contention },
            CardIsolation::TimeSlice => Isolation::TimeSlice,
        };
        Ok(CardSharing { isolation, slots: self.slots })
    }
}

/// Gives the accelerator types of a cluster the device memory that the catalog has for them, where they have none.
pub(super) fn know_memory(cluster: &mut Cluster) {
    for kind in cluster.types.iter_mut().filter(|kind| kind.memory_mib.is_none()) {
        let known = Accelerators::shipped().get(&kind.name);
        kind.memory_mib = known.and_then(|known| known.memory.as_ref()).map(|memory| memory.mib);
    }
}

/// Prepares a cluster for a workload with jobs on parts of cards: gives cards their memory, and checks that cards of one
/// node can hold each request. For another workload the cluster stays as it is.
///
/// # Errors
/// A sentence about the first job that no node could hold.
pub fn prepare_shares(cluster: &mut Arc<Cluster>, workload: &Workload) -> Result<(), String> {
    let asked = workload.jobs.iter().map(|job| &job.request);
    prepare(cluster, asked.filter_map(|job| Some((format!("job {:?}", job.name), job.gpus, job.share?))))
}

/// As [`prepare_shares`] for the requests of a generator.
pub(super) fn prepare_parts(cluster: &mut Arc<Cluster>, generator: &Generator) -> Result<(), String> {
    let share = |part: &CardPart| ShareRequest { compute_percent: part.compute_percent, memory_mib: part.memory_mib };
    prepare(cluster, generator.parts().iter().map(|part| ("a job of lengths.parts".into(), 1, share(part))))
}

fn prepare(cluster: &mut Arc<Cluster>, asked: impl Iterator<Item = (String, u32, ShareRequest)>) -> Result<(), String> {
    let mut asked = asked.peekable();
    if asked.peek().is_none() {
        return Ok(());
    }
    know_memory(Arc::make_mut(cluster));
    asked.try_for_each(|(job, gpus, share)| check(cluster, gpus, share).map_err(|problem| format!("{job} {problem}")))
}

/// Checks one request against the nodes of a cluster.
fn check(cluster: &Cluster, gpus: u32, share: ShareRequest) -> Result<(), String> {
    let widest = cluster.gpus_per_node();
    if gpus > widest {
        return Err(format!("asks for a share of {gpus} accelerators of one node, and the largest node has {widest}"));
    }
    let most = share.part(gpus.max(1), 0).memory_mib;
    if most == 0 {
        return Ok(());
    }
    if let Some(kind) = cluster.types.iter().find(|kind| kind.memory_mib.is_none()) {
        return Err(format!("asks for {most} MiB of an accelerator; {}", unknown_memory(&kind.name)));
    }
    let memory = cluster.nodes.iter().filter(|node| node.gpus >= gpus);
    let largest = memory.filter_map(|node| cluster.types[node.accelerator.index()].memory_mib).max().unwrap_or(0);
    if most > largest {
        return Err(format!("asks for {most} MiB of an accelerator, and the largest has {largest} MiB"));
    }
    Ok(())
}

/// Gives cards their memory where a tenant has a limit of it.
///
/// # Errors
/// Where the memory of a type is not known.
pub(super) fn prepare_limits(cluster: &mut Arc<Cluster>, tenants: &[TenantConfig]) -> Result<(), CheckError> {
    let Some(tenant) = tenants.iter().find(|tenant| tenant.share_limit.memory_mib.is_some()) else { return Ok(()) };
    know_memory(Arc::make_mut(cluster));
    match cluster.types.iter().find(|kind| kind.memory_mib.is_none()) {
        Some(kind) => {
            let problem = format!("tenants.share_limit limits memory; {}", unknown_memory(&kind.name));
            Err(CheckError::at("tenants.share_limit", problem).within("tenants", &tenant.name))
        }
        None => Ok(()),
    }
}

/// Sentence about a type without a known memory, with the remedy.
fn unknown_memory(name: &str) -> String {
    format!(
        "the memory of type {name:?} is not known, so name a type that `goodput list accelerators` has, or say \
         memory_mib in [[cluster.groups]]"
    )
}
