//! The next step of an order about a Workload: the word of the daemon's check.

use serde_json::{Value, json};

use super::super::facts::{annotation, placement_text};
use super::super::jobs::JobRead;
use super::super::nodes::HOSTNAME;
use super::super::shape::PodShape;
use super::super::steps::{KubernetesStep, Nodes, opened};
use super::objects::AdmissionCheck;
use super::read::Queued;
use crate::engine::{EngineAction, JobPhase, OnNode, Order, StepOutcome};
use crate::machine::wall_ms;

/// Word of the daemon's check on a Workload.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::engine::kubernetes) struct CheckWord {
    /// Annotations of the Workload that are written before, as a merge patch.
    pub notes: Option<Value>,
    /// State of the check, for server-side apply.
    pub state: Value,
}

/// The next step of `order` about the job `job`.
pub(in crate::engine::kubernetes) fn next(
    order: &Order,
    job: &JobRead,
    queued: &Queued,
    nodes: &Nodes,
) -> Result<KubernetesStep, StepOutcome> {
    let refused = |reason: String| Err(StepOutcome::Refused { reason });
    let Some(check) = &queued.check else {
        return refused("the daemon observes Kueue: it has no AdmissionCheck on the Workload".into());
    };
    if matches!(order.action, EngineAction::Cancel { .. }) && queued.state != "Rejected" {
        return Ok(said(check, "Rejected", "cancelled", None));
    }
    if matches!(queued.state.as_str(), "Retry" | "Rejected") {
        return Err(StepOutcome::Later { reason: "Kueue takes it out".into() });
    }
    let started = job.facts.starts > order.starts;
    match (order.action.placement(), job.phase(false)) {
        (_, phase) if phase.is_over() || job.leaving => Err(StepOutcome::Accepted),
        (None, _) if job.suspended => Err(StepOutcome::Accepted),
        (None, _) => Ok(said(check, "Retry", "the policy takes its accelerators back", None)),
        (Some(wanted), JobPhase::Held) if started => {
            refused(format!("the job was started and stopped since; {} is void", placement_text(wanted)))
        }
        (Some(_), _) if job.suspended && !job.settled => {
            Err(StepOutcome::Later { reason: "its pods are leaving".into() })
        }
        (Some(wanted), _) if job.suspended => start(job, check, &queued.pod_set, wanted, nodes),
        (Some(_), _) if started => opened(job, nodes).ok_or(StepOutcome::Accepted),
        (Some(wanted), _) if size(wanted) != job.sizes().0 => refused(kept(job, wanted)),
        (Some(_), _) => Ok(said(check, "Retry", "the policy moves it", None)),
    }
}

fn size(placement: &[OnNode]) -> u32 {
    placement.iter().map(|on| on.gpus).sum()
}

fn kept(job: &JobRead, wanted: &[OnNode]) -> String {
    format!("Kueue has reserved {} accelerators for it, and {} are wanted", job.sizes().0, size(wanted))
}

/// Start of a Workload with quota: its node and the numbers of the attempt become part of its pods.
fn start(
    job: &JobRead,
    check: &str,
    pod_set: &str,
    wanted: &[OnNode],
    nodes: &Nodes,
) -> Result<KubernetesStep, StepOutcome> {
    let refused = |reason: String| StepOutcome::Refused { reason };
    let shape = PodShape::of(wanted, Some(job.pod_gpus)).filter(|shape| shape.nodes.len() as u32 == job.pods_wanted);
    let shape = shape.ok_or_else(|| refused(kept(job, wanted)))?;
    if let Some(on) = wanted.iter().find(|on| !nodes.contains_key(&on.node)) {
        return Err(refused(format!("there is no node {}", on.node)));
    }
    let attempt = job.facts.starts;
    let notes = json!({
        annotation::STARTS: (attempt + 1).to_string(),
        annotation::PLACEMENT: placement_text(&shape.placement()),
    });
    let mut update = json!({
        "name": pod_set,
        "annotations": {
            annotation::KEY: job.key,
            annotation::ATTEMPT: attempt.to_string(),
            annotation::WORLD: shape.world().to_string(),
            annotation::PODS: shape.nodes.len().to_string(),
            annotation::POD_GPUS: shape.gpus.to_string(),
        },
    });
    // Gated pods get their nodes one by one.
    if let Some(node) = shape.only_node().filter(|_| !job.gated).and_then(|node| nodes.get(node)) {
        update["nodeSelector"] = json!({ HOSTNAME: node.hostname });
    }
    let message = format!("placed on {}", placement_text(&shape.placement()));
    match said(check, "Ready", &message, Some(update)) {
        KubernetesStep::Check(word) => Ok(KubernetesStep::Check(CheckWord { notes: Some(notes), ..word })),
        step => Ok(step),
    }
}

/// The word that lets a Workload wait again: Kueue considers none with the state `Retry`, and a word that came late
/// stays.
pub(in crate::engine::kubernetes) fn waits_again(job: &JobRead) -> Option<KubernetesStep> {
    let queued = job.queued.as_ref().filter(|queued| queued.state == "Retry" && !queued.reserved)?;
    let check = queued.check.as_ref().filter(|_| job.suspended && job.settled)?;
    Some(said(check, "Pending", "the policy decides when it starts", None))
}

fn said(check: &str, state: &str, message: &str, update: Option<Value>) -> KubernetesStep {
    let mut word = json!({ "name": check, "state": state, "message": message, "lastTransitionTime": now() });
    if let Some(update) = update {
        word["podSetUpdates"] = json!([update]);
    }
    KubernetesStep::Check(CheckWord { notes: None, state: word })
}

/// Status of a check of the daemon: Kueue admits nothing to a ClusterQueue while one of its checks has no controller.
pub(in crate::engine::kubernetes) fn active(check: &AdmissionCheck) -> Value {
    json!({ "conditions": [{
        "type": "Active", "status": "True", "reason": "Active", "message": "goodput decides",
        "lastTransitionTime": now(), "observedGeneration": check.metadata.generation,
    }] })
}

fn now() -> String {
    k8s_openapi::jiff::Timestamp::from_second(wall_ms() / 1000).map(|at| at.to_string()).unwrap_or_default()
}
