//! Workloads of Kueue as jobs of the policy.
//!
//! Kueue keeps the quotas: a Workload that has none reserved waits in its queue. With the role
//! `observe` the policy sees all Workloads, and what it would do is reported. With the role `check`
//! the daemon is the controller of an AdmissionCheck: a Workload with quota starts when the policy
//! places it (`Ready`, with the node and the numbers of the attempt as updates of its pods), goes
//! back into its queue when the policy takes its accelerators away (`Retry`), and is switched off
//! where a person cancels it (`Rejected`).
//!
//! The number of starts is an annotation of the Workload. It is written before the word of the check,
//! so that a daemon that dies between the two leaves a start that never happened, and no second one.

mod objects;
mod read;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use goodput_configs::live::engine::{KubernetesConfig, KueueRole};
use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Client, Resource};
pub use objects::{AdmissionCheck, KueueWorkload};
pub use read::Queued;
pub(super) use steps::{CheckWord, active, next, waits_again};

use super::access::unreachable;
use super::claims::Claims;
use super::jobs::JobRead;
use super::pods::PodRead;
use super::watch::ObjectWatch;
use crate::engine::EngineError;
use objects::{LocalQueue, holds};
use read::KueueReading;

/// Watches of Kueue's objects.
pub(super) struct KueueWatch {
    workloads: Vec<ObjectWatch<KueueWorkload>>,
    checks: ObjectWatch<AdmissionCheck>,
    queues: ObjectWatch<LocalQueue>,
}

/// Kueue's objects at one moment.
pub(super) struct KueueSeen {
    workloads: Vec<Arc<KueueWorkload>>,
    /// Checks of the daemon.
    pub checks: Vec<Arc<AdmissionCheck>>,
    /// ClusterQueue behind each LocalQueue, by namespace and name.
    queues: BTreeMap<(String, String), String>,
}

impl KueueWatch {
    pub fn begin(client: &Client, namespaces: &[String]) -> Self {
        let workloads = match namespaces {
            [] => vec![Api::all(client.clone())],
            some => some.iter().map(|namespace| Api::namespaced(client.clone(), namespace)).collect(),
        };
        let strip = |workload: &mut KueueWorkload| {
            let templates = workload.spec.pod_sets.iter_mut().filter_map(|set| set.template.spec.as_mut());
            templates.for_each(strip);
        };
        Self {
            workloads: workloads.into_iter().map(|api| ObjectWatch::begin(api, "", strip)).collect(),
            checks: ObjectWatch::begin(Api::all(client.clone()), "", |_| {}),
            queues: ObjectWatch::begin(Api::all(client.clone()), "", |_| {}),
        }
    }

    /// Objects as the watches have them.
    ///
    /// # Errors
    /// [`EngineError::Unreachable`] where a watch is broken, as where Kueue is not installed.
    pub async fn read(&self, patience: Duration, controller: &str) -> Result<KueueSeen, EngineError> {
        let problem = |problem: String| {
            unreachable(format!(
                "Kueue: {problem} ([engine.kubernetes.kueue] needs Kueue 0.16 or later and the rights)"
            ))
        };
        let mut workloads = Vec::new();
        for watched in &self.workloads {
            workloads.extend(watched.objects(patience).await.map_err(problem)?);
        }
        let mut checks = self.checks.objects(patience).await.map_err(problem)?;
        checks.retain(|check| check.spec.controller_name == controller);
        let queues = self.queues.objects(patience).await.map_err(problem)?;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let behind = |queue: &Arc<LocalQueue>| {
            let meta = &queue.metadata;
            ((text(&meta.namespace), text(&meta.name)), queue.spec.cluster_queue.clone())
        };
        Ok(KueueSeen { workloads, checks, queues: queues.iter().map(behind).collect() })
    }
}

impl KueueSeen {
    /// Ids of the objects that are counted as Workloads: their pods belong to these.
    pub fn owners(&self) -> BTreeSet<String> {
        self.workloads.iter().filter_map(|workload| Some(owner(workload)?.uid.clone())).collect()
    }

    /// The Workloads as jobs; `pods` are the pods by the id of their owner.
    pub fn jobs(
        &self,
        pods: &mut BTreeMap<String, Vec<PodRead>>,
        claims: &Claims,
        settings: &KubernetesConfig,
    ) -> Vec<JobRead> {
        let Some(kueue) = &settings.kueue else { return Vec::new() };
        let checks: BTreeSet<&str> = self.checks.iter().filter_map(|check| check.metadata.name.as_deref()).collect();
        let reading = KueueReading { settings, claims, kueue, queues: &self.queues, checks: &checks };
        // Of Workloads of one owner the one that is not over has its pods.
        let mut workloads: Vec<&Arc<KueueWorkload>> = self.workloads.iter().collect();
        workloads.sort_by_key(|workload| holds(&workload.status.conditions, "Finished").is_some());
        let of = |workload: &Arc<KueueWorkload>| {
            let owned = owner(workload).and_then(|owner| pods.remove(&owner.uid)).unwrap_or_default();
            reading.job(workload, owned)
        };
        workloads.into_iter().filter_map(of).collect()
    }

    /// Checks of the daemon that do not say yet that their controller is there.
    pub fn silent_checks(&self) -> impl Iterator<Item = &AdmissionCheck> {
        let silent = |check: &&AdmissionCheck| holds(&check.status.conditions, "Active").is_none();
        self.checks.iter().map(AsRef::as_ref).filter(silent)
    }
}

/// Whether the daemon acts on Workloads.
pub(super) fn acts(settings: &KubernetesConfig) -> bool {
    settings.kueue.as_ref().is_some_and(|kueue| kueue.role == KueueRole::Check)
}

/// The object that a Workload counts.
fn owner(workload: &KueueWorkload) -> Option<&OwnerReference> {
    let owners = workload.meta().owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true)).or(owners.first())
}

/// Takes away what is not looked at, so that many pods need little memory.
pub(super) fn strip(spec: &mut PodSpec) {
    spec.volumes = None;
    for container in &mut spec.containers {
        (container.env, container.command, container.args) = (None, None, None);
    }
}
