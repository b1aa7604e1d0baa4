//! Pods, as far as their accelerators and their place matter.

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};

use super::facts::{GATE, annotation};

/// Annotation of the job controller: which of a Job's pods it is.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// A pod, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodRead {
    /// Namespace of the pod.
    pub namespace: String,
    /// Unique id of the pod.
    pub uid: String,
    /// Name of the pod.
    pub name: String,
    /// Version of the object: a change that was made from an older one is refused.
    pub version: String,
    /// Unique id of the object that owns it.
    pub owner: Option<String>,
    /// Node that the pod is bound to.
    pub node: Option<String>,
    /// Number of the pod among those of its Job.
    pub index: Option<u32>,
    /// Address of the pod, once its node has given it one.
    pub address: Option<String>,
    /// Attempt of the job that the pod belongs to.
    pub attempt: Option<u32>,
    /// Accelerators that the pod asks for.
    pub gpus: u32,
    /// Whether the pod waits for the daemon to name its node.
    pub gated: bool,
    /// Whether its containers have ended.
    pub over: bool,
    /// Whether all of its containers have ended well.
    pub done: bool,
    /// Whether the pod is told to go.
    pub leaving: bool,
    /// Time at which its node began with it, milliseconds of the Unix epoch.
    pub since_ms: Option<i64>,
    /// Reason why it is not bound, by kube-scheduler.
    pub note: String,
}

impl PodRead {
    /// Reads a pod; accelerators are the resource called `resource`.
    pub fn of(pod: &Pod, resource: &str) -> Self {
        let (meta, spec, status) = (&pod.metadata, pod.spec.as_ref(), pod.status.as_ref());
        let annotated = |name: &str| meta.annotations.as_ref()?.get(name)?.parse().ok();
        let gates = spec.and_then(|spec| spec.scheduling_gates.as_ref());
        let owner = meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
        let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or_default();
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let unbound = conditions.into_iter().flatten().find(|is| is.type_ == "PodScheduled" && is.status != "True");
        let started = status.and_then(|status| status.start_time.as_ref());
        Self {
            namespace: meta.namespace.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            version: meta.resource_version.clone().unwrap_or_default(),
            owner: owner.map(|owner| owner.uid.clone()),
            node: spec.and_then(|spec| spec.node_name.clone()).filter(|node| !node.is_empty()),
            index: annotated(INDEX),
            address: status.and_then(|status| status.pod_ip.clone()).filter(|address| !address.is_empty()),
            attempt: annotated(annotation::ATTEMPT),
            gpus: spec.map_or(0, |spec| gpus_of(spec, resource)),
            gated: gates.into_iter().flatten().any(|gate| gate.name == GATE),
            over: matches!(phase, "Succeeded" | "Failed"),
            done: phase == "Succeeded",
            leaving: meta.deletion_timestamp.is_some(),
            since_ms: started.map(|at| at.0.as_millisecond()),
            note: unbound.and_then(|is| is.message.clone()).unwrap_or_default(),
        }
    }

    /// Number of the pod among those of its Job; its name where the Job does not count them.
    pub fn rank(&self) -> (Option<u32>, Option<&str>) {
        (self.index, self.index.is_none().then_some(self.name.as_str()))
    }

    /// Whether the pod holds accelerators of its node.
    pub fn holds(&self) -> bool {
        self.node.is_some() && !self.over
    }
}

/// Accelerators that a pod asks for: the sum over its containers, or what an init container needs
/// where that is more.
pub fn gpus_of(spec: &PodSpec, resource: &str) -> u32 {
    let sum: u32 = spec.containers.iter().map(|container| asked(container, resource)).sum();
    let first = spec.init_containers.iter().flatten().map(|container| asked(container, resource)).max();
    sum.max(first.unwrap_or(0))
}

/// Accelerators that a container asks for. Kubernetes keeps requests and limits of them equal.
pub fn asked(container: &Container, resource: &str) -> u32 {
    let resources = container.resources.as_ref();
    let limits = resources.and_then(|resources| resources.limits.as_ref()?.get(resource));
    let requests = resources.and_then(|resources| resources.requests.as_ref()?.get(resource));
    limits.or(requests).and_then(|quantity| quantity.0.parse().ok()).unwrap_or(0)
}
