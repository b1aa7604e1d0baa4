//! The next step of an order by the state its job is in now. Every step can be taken twice, and is
//! refused by the API server where the job has changed since it was read.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::facts::{GATE, WantedState, annotation, placement_text};
use super::jobs::JobRead;
use super::kueue::{self, CheckWord};
use super::nodes::{HOSTNAME, NodeRead};
use super::pods::PodRead;
use super::shape::PodShape;
use crate::engine::{EngineAction, JobPhase, OnNode, Order, StepOutcome};

/// Reason to leave a job alone of which pods have ended well.
const ENDS: &str = "pods of the job have ended well: it is about to end";

/// Nodes by name.
pub(super) type Nodes = BTreeMap<String, NodeRead>;

/// One request to the API server, or a few for the pods of one job.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum KubernetesStep {
    /// The Job changes: a strategic merge patch that names the version it was made from. Its service
    /// is there before its pods are where it has one.
    Change { patch: Value, service: bool },
    /// Gated pods get their nodes.
    Open(Vec<OpenedPod>),
    /// The Job goes, with its pods.
    Delete,
    /// The end of rank 0, which the job controller did not count, is counted.
    CountEnd,
    /// The daemon's check on a Workload of Kueue says something.
    Check(CheckWord),
    /// A node changes: a strategic merge patch.
    Node { node: String, patch: Value },
}

/// A gated pod and the change that names its node and takes its gate away.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OpenedPod {
    pub namespace: String,
    pub name: String,
    pub patch: Value,
}

/// The next step of `order`; an outcome where there is none to take.
pub(super) fn next(
    order: &Order,
    jobs: &BTreeMap<String, JobRead>,
    nodes: &Nodes,
    resource: &str,
) -> Result<KubernetesStep, StepOutcome> {
    let refused = |reason: &str| Err(StepOutcome::Refused { reason: reason.into() });
    let later = |reason: &str| Err(StepOutcome::Later { reason: reason.into() });
    match &order.action {
        EngineAction::Drain { node, reason } => return cordon(node, Some(reason), nodes),
        EngineAction::Undrain { node } => return cordon(node, None, nodes),
        EngineAction::Place { share: Some(_), .. } => return refused("Kubernetes gives whole accelerators here"),
        EngineAction::Suspend | EngineAction::Resume => {
            return refused("a pod cannot stand still and keep its accelerators");
        }
        EngineAction::Lend { .. } | EngineAction::Return { .. } | EngineAction::Scale { .. } => {
            return refused("Kubernetes lends no nodes here and runs no services for the daemon");
        }
        _ => {}
    }
    let Some(job) = jobs.get(&order.job) else { return refused("there is no such job") };
    if let Some(reason) = &job.hands_off {
        return refused(reason);
    }
    if let Some(queued) = &job.queued {
        return kueue::next(order, job, queued, nodes);
    }
    if let EngineAction::Cancel { .. } = order.action {
        return Ok(KubernetesStep::Delete);
    }
    let started = job.facts.starts > order.starts;
    match (order.action.placement(), job.phase(false)) {
        (_, phase) if phase.is_over() || job.leaving => Err(StepOutcome::Accepted),
        (None, _) if job.suspended => Err(StepOutcome::Accepted),
        (None, _) if job.ends() => refused(ENDS),
        (None, _) => Ok(stop(job)),
        (Some(wanted), JobPhase::Held) if started => {
            refused(&format!("the job was started and stopped since; {} is void", placement_text(wanted)))
        }
        (Some(_), _) if job.suspended && !job.settled => later("its pods are leaving"),
        (Some(wanted), _) if job.suspended => start(job, wanted, nodes, resource),
        (Some(_), _) if started => opened(job, nodes).ok_or(StepOutcome::Accepted),
        (Some(_), _) if job.ends() => refused(ENDS),
        // Started for somewhere else, or for an order that was given up.
        (Some(wanted), _) => Ok(resized_in_place(job, wanted).unwrap_or_else(|| stop(job))),
    }
}

/// The end of a job that ended well in the moment in which it was stopped, and that the job controller did not count.
pub(super) fn uncounted_end(job: &JobRead) -> Option<KubernetesStep> {
    let left = job.leaving || job.over.is_some() || job.hands_off.is_some() || job.queued.is_some();
    (job.ended_well && job.suspended && job.settled && job.succeeded == 0 && !left).then_some(KubernetesStep::CountEnd)
}

fn stop(job: &JobRead) -> KubernetesStep {
    let patch = json!({
        "metadata": { "resourceVersion": job.version, "annotations": { annotation::WANTED: WantedState::Held.word() } },
        "spec": { "suspend": true },
    });
    KubernetesStep::Change { patch, service: false }
}

/// Start of a job that stands still: sizes, place and the number of the attempt in one request, so
/// that a job is started once or not at all.
fn start(job: &JobRead, wanted: &[OnNode], nodes: &Nodes, resource: &str) -> Result<KubernetesStep, StepOutcome> {
    let refused = |reason: String| StepOutcome::Refused { reason };
    // A template of claims is the same for every pod.
    let is_fixed = job.facts.in_place || job.claimed;
    let fixed = job.facts.pod_gpus.filter(|_| !job.claimed).or(is_fixed.then_some(job.pod_gpus));
    let shape = PodShape::of(wanted, fixed);
    let shape = shape.ok_or_else(|| refused(format!("{} cannot be cut into equal pods", placement_text(wanted))))?;
    if let Some(on) = wanted.iter().find(|on| !nodes.contains_key(&on.node)) {
        return Err(refused(format!("there is no node {}", on.node)));
    }
    let (pods, attempt) = (shape.nodes.len(), job.facts.starts);
    if pods > 1 && job.succeeded > 0 && !job.facts.in_place {
        let text = "pods of the job have ended well, and Kubernetes does not start them again beside the others: the job can go on in one pod only";
        return Err(refused(text.into()));
    }
    let host = shape.only_node().filter(|_| !job.facts.in_place).and_then(|node| nodes.get(node));
    let gate = match host {
        Some(_) => json!([{ "$patch": "delete", "name": GATE }]),
        None => json!([{ "name": GATE }]),
    };
    let resources = || job.facts.each.container(resource, shape.gpus);
    // Containers that are not named stay as they are.
    let containers: Vec<Value> =
        (!job.claimed).then(|| json!({ "name": job.container, "resources": resources() })).into_iter().collect();
    let patch = json!({
        "metadata": {
            "resourceVersion": job.version,
            "annotations": {
                annotation::GPUS: job.sizes().0.to_string(),
                annotation::STARTS: (attempt + 1).to_string(),
                annotation::PLACEMENT: placement_text(&shape.placement()),
                annotation::WANTED: WantedState::Running.word(),
            },
        },
        "spec": {
            "suspend": false,
            "parallelism": pods,
            "completions": pods,
            "template": {
                "metadata": { "annotations": {
                    annotation::KEY: job.key,
                    annotation::ATTEMPT: attempt.to_string(),
                    annotation::WORLD: shape.world().to_string(),
                    annotation::PODS: pods.to_string(),
                    annotation::POD_GPUS: shape.gpus.to_string(),
                } },
                "spec": {
                    // Null takes the key away.
                    "nodeSelector": { HOSTNAME: host.map(|node| &node.hostname) },
                    "schedulingGates": gate,
                    "containers": containers,
                },
            },
        },
    });
    // `MASTER_ADDR` of a submitted job is a name in the service, also where the job is one pod.
    Ok(KubernetesStep::Change { patch, service: pods > 1 || job.facts.token.is_some() })
}

/// Change of the number of pods of a job that runs, for programs that take it as it comes.
fn resized_in_place(job: &JobRead, wanted: &[OnNode]) -> Option<KubernetesStep> {
    let runs = job.phase(false) == JobPhase::Running || job.changes_in_place(false);
    if !job.facts.in_place || !job.gated || !runs {
        return None;
    }
    let now = job.shape()?;
    let shape = now.resized_in_place(&PodShape::of(wanted, Some(now.gpus))?)?;
    let pods = shape.nodes.len();
    let patch = json!({
        "metadata": {
            "resourceVersion": job.version,
            "annotations": {
                annotation::STARTS: (job.facts.starts + 1).to_string(),
                annotation::PLACEMENT: placement_text(&shape.placement()),
            },
        },
        "spec": { "parallelism": pods, "completions": pods },
    });
    Some(KubernetesStep::Change { patch, service: pods > 1 })
}

/// Nodes for the gated pods of a job that was started; `None` where no pod waits for one. A pod waits on while another
/// pod of its rank is left: a job controller that is killed may make a pod twice, and a pod that was told to go may
/// still run.
pub(super) fn opened(job: &JobRead, nodes: &Nodes) -> Option<KubernetesStep> {
    if job.suspended || job.leaving || job.over.is_some() || job.hands_off.is_some() {
        return None;
    }
    let shape = job.shape()?;
    let open = |pod: &PodRead| {
        let node = nodes.get(shape.nodes.get(pod.index? as usize)?)?;
        let patch = json!({
            "metadata": { "resourceVersion": pod.version },
            "spec": {
                "nodeSelector": { HOSTNAME: node.hostname },
                "schedulingGates": [{ "$patch": "delete", "name": GATE }],
            },
        });
        Some(OpenedPod { namespace: pod.namespace.clone(), name: pod.name.clone(), patch })
    };
    let alone = |pod: &PodRead| {
        let mut others = job.pods.iter().filter(|other| other.name != pod.name && other.index == pod.index);
        others.all(|other| other.over)
    };
    let waiting = job.current().filter(|pod| pod.gated && !pod.leaving && !pod.over && alone(pod));
    let pods: Vec<OpenedPod> = waiting.filter_map(open).collect();
    (!pods.is_empty()).then_some(KubernetesStep::Open(pods))
}

/// Pods of a running job that do not belong to it as it is now: something other than kube-scheduler bound them to
/// another node, or the job controller made them from an older start of the job.
pub(super) fn misplaced(job: &JobRead) -> Vec<&PodRead> {
    let Some(shape) = job.shape().filter(|_| !job.suspended && job.hands_off.is_none()) else { return Vec::new() };
    let attempt = job.facts.starts.checked_sub(1);
    let wrong = |pod: &&PodRead| {
        let place = pod.index.and_then(|index| shape.nodes.get(index as usize));
        let elsewhere = pod.holds() && place.is_some() && pod.node.as_ref() != place;
        let older = !job.facts.in_place && pod.attempt < attempt;
        !pod.leaving && !pod.over && (elsewhere || older)
    };
    job.pods.iter().filter(wrong).collect()
}

fn cordon(name: &str, reason: Option<&str>, nodes: &Nodes) -> Result<KubernetesStep, StepOutcome> {
    if !nodes.contains_key(name) {
        return Err(StepOutcome::Refused { reason: format!("there is no node {name}") });
    }
    let patch = json!({
        "metadata": { "annotations": { annotation::DRAINED: reason } },
        "spec": { "unschedulable": reason.map(|_| true) },
    });
    Ok(KubernetesStep::Node { node: name.into(), patch })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::super::facts::JobNotes;
    use super::*;

    #[test]
    fn of_two_pods_of_one_rank_none_is_let_go_until_one_is_left() {
        let on = |node: &str| OnNode { node: node.into(), gpus: 1, ..OnNode::default() };
        let pod = |name: &str, index: u32| PodRead {
            name: name.into(),
            index: Some(index),
            attempt: Some(0),
            gpus: 1,
            gated: true,
            ..PodRead::default()
        };
        let mut job = JobRead {
            pod_gpus: 1,
            pods_wanted: 2,
            facts: JobNotes { starts: 1, placement: vec![on("a"), on("b")], ..JobNotes::default() },
            pods: vec![pod("zero", 0), pod("one", 1), pod("one-again", 1)],
            ..JobRead::default()
        };
        let node = |name: &str| (name.to_owned(), NodeRead { hostname: name.into(), ..NodeRead::default() });
        let nodes: BTreeMap<_, _> = ["a", "b"].map(node).into();
        let names = |job: &JobRead| match opened(job, &nodes) {
            Some(KubernetesStep::Open(pods)) => pods.into_iter().map(|pod| pod.name).collect(),
            _ => Vec::new(),
        };
        assert_eq!(names(&job), ["zero"]);
        job.pods[1].leaving = true;
        assert_eq!(names(&job), ["zero"], "what was told to go may still run");
        job.pods.remove(1);
        assert_eq!(names(&job), ["zero", "one-again"]);
        job.pods[0].over = true;
        assert_eq!(names(&job), ["one-again"]);
    }
}
