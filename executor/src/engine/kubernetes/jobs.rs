//! Jobs that were given to the daemon, read together with their pods.

use std::collections::BTreeSet;

use goodput_configs::live::engine::KubernetesConfig;
use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work};
use goodput_env::time::SimTime;
use k8s_openapi::api::batch::v1::Job;

use super::facts::{GATE, JobNotes, TENANT, WantedState};
use super::kueue::Queued;
use super::pods::{PodRead, asked};
use super::shape::PodShape;
use crate::engine::{Attempt, JobPhase, JobSeen, OnNode};

/// Label by which Kueue takes a Job for itself.
const KUEUE: &str = "kueue.x-k8s.io/queue-name";

/// A Job with its pods, read.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "each is the field of that name")]
pub struct JobRead {
    pub key: String,
    pub uid: String,
    pub namespace: String,
    pub name: String,
    /// Version of the object: a change that was made from an older one is refused.
    pub version: String,
    pub facts: JobNotes,
    pub tenant: String,
    pub owner: String,
    /// Whether its specification says that it stands still.
    pub suspended: bool,
    /// Whether the job controller has recorded that it stands still, and no pod of it is left: it may start again.
    pub settled: bool,
    /// Whether no pod of it is seen any more, and the job controller makes none before the one before is gone. Where
    /// the pods were seen before, it may start again: the job controller counts pods that have gone a second late.
    pub emptied: bool,
    /// Pods that it is to have.
    pub pods_wanted: u32,
    /// Accelerators of each pod by its template.
    pub pod_gpus: u32,
    /// Whether its pods get accelerators by claims, which are the same for every pod.
    pub claimed: bool,
    /// Container of the template that asks for accelerators.
    pub container: String,
    /// Whether its template has the daemon's scheduling gate.
    pub gated: bool,
    /// Name of the service of its pods, where they have names.
    pub subdomain: Option<String>,
    pub created_ms: i64,
    pub over: Option<JobPhase>,
    /// Pods that failed.
    pub failed: u32,
    /// Pods that ended well.
    pub succeeded: u32,
    /// Whether the job is over once its pod of rank 0 has ended well: its success policy says so. Other programs may
    /// exit with 0 because they were told to go.
    pub rank_0_decides: bool,
    /// Whether the last attempt is known to have ended well: the job is not started again, whatever was counted.
    pub ended_well: bool,
    /// Whether the API server is told to delete the Job.
    pub leaving: bool,
    /// Admission of a job that Kueue counts.
    pub queued: Option<Queued>,
    /// Reason why the daemon must not act on it.
    pub hands_off: Option<String>,
    /// The job controller's own words about its end.
    pub note: String,
    pub pods: Vec<PodRead>,
}

impl JobRead {
    /// Reads a Job; `pods` are those that it owns, and `claimed` the accelerators of each pod by claims.
    pub fn of(job: &Job, pods: Vec<PodRead>, claimed: u32, settings: &KubernetesConfig) -> Self {
        let meta = &job.metadata;
        let (spec, status) = (job.spec.clone().unwrap_or_default(), job.status.clone().unwrap_or_default());
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let (namespace, name, uid) = (text(&meta.namespace), text(&meta.name), text(&meta.uid));
        let facts = JobNotes::read(meta.annotations.as_ref().unwrap_or(&Default::default()));
        let condition = |kind: &str| {
            let of_kind = status.conditions.iter().flatten().find(|condition| condition.type_ == kind);
            of_kind.filter(|condition| condition.status == "True")
        };
        let suspended = spec.suspend == Some(true);
        let (active, terminating) = (status.active.unwrap_or(0), status.terminating.unwrap_or(0));
        let empty = suspended
            && active == 0
            && (condition("Suspended").is_some() || status.start_time.is_none())
            && pods.iter().all(|pod| pod.over);
        let mut success = spec.success_policy.iter().flat_map(|policy| &policy.rules);
        let rank_0_decides = success.any(|rule| rule.succeeded_indexes.as_deref() == Some("0"));
        let waits_for_gone = spec.pod_replacement_policy.as_deref() == Some("Failed");
        let template = spec.template.spec.unwrap_or_default();
        let container = template.containers.iter().find(|container| asked(container, &settings.resource) > 0);
        let failed_with = condition("Failed").or(condition("FailureTarget"));
        let over = match () {
            () if condition("Complete").is_some() => Some(JobPhase::Done),
            () if condition("Failed").is_some() => Some(JobPhase::Failed),
            () => None,
        };
        // In the namespace of submissions only the daemon hands jobs in, so these are its words.
        let label = meta.labels.as_ref().and_then(|labels| labels.get(TENANT)).cloned();
        let (tenant, owner) = match namespace == settings.namespace {
            true => (label.unwrap_or_default(), facts.owner.clone().unwrap_or_default()),
            false => (namespace.clone(), String::new()),
        };
        let pods_wanted = spec.parallelism.unwrap_or(1).max(0) as u32;
        let mut read = Self {
            key: format!("{namespace}.{name}.{}", uid.split('-').next().unwrap_or_default()),
            uid,
            namespace,
            name,
            version: text(&meta.resource_version),
            tenant,
            owner,
            suspended,
            settled: empty && terminating == 0,
            emptied: empty && waits_for_gone,
            pods_wanted,
            pod_gpus: container.map_or(0, |container| asked(container, &settings.resource)) + claimed,
            claimed: claimed > 0,
            container: container.map(|container| container.name.clone()).unwrap_or_default(),
            gated: template.scheduling_gates.iter().flatten().any(|gate| gate.name == GATE),
            subdomain: template.subdomain.filter(|name| !name.is_empty()),
            created_ms: meta.creation_timestamp.as_ref().map_or(0, |at| at.0.as_millisecond()),
            over,
            failed: status.failed.unwrap_or(0).max(0) as u32,
            succeeded: status.succeeded.unwrap_or(0).max(0) as u32,
            rank_0_decides,
            ended_well: false,
            leaving: meta.deletion_timestamp.is_some(),
            queued: None,
            hands_off: None,
            note: failed_with.and_then(|condition| condition.message.clone()).unwrap_or_default(),
            facts,
            pods,
        };
        let labelled = |label: &str| meta.labels.as_ref().is_some_and(|labels| labels.contains_key(label));
        let indexed = spec.completion_mode.as_deref() == Some("Indexed") && spec.completions == spec.parallelism;
        let other = spec.managed_by.filter(|by| by != "kubernetes.io/job-controller");
        read.hands_off = match () {
            () if read.facts.hands_off => Some("its annotation goodput.dev/hands-off says so".into()),
            () if labelled(KUEUE) => Some(format!("Kueue has it: it has the label {KUEUE}")),
            () if other.is_some() => Some(format!("{} runs it, not the job controller", other.unwrap_or_default())),
            () if container.is_none() && claimed == 0 => {
                Some(format!("no container of its template asks for {}", settings.resource))
            }
            () if !indexed => {
                Some("it needs completionMode: Indexed and completions equal to parallelism to change its size".into())
            }
            () => read.fought_over(),
        };
        read
    }

    /// Reason to keep off where another hand starts or suspends the job: the daemon does not fight.
    fn fought_over(&self) -> Option<String> {
        let wanted_suspended = self.facts.wanted != Some(WantedState::Running);
        (self.over.is_none() && !self.leaving && wanted_suspended != self.suspended).then(|| {
            let done = if self.suspended { "suspended it" } else { "started it" };
            format!("something other than the daemon {done}; set spec.suspend to {wanted_suspended} to give it back")
        })
    }

    /// Pods of the attempt that was started last.
    pub fn current(&self) -> impl Iterator<Item = &PodRead> {
        let attempt = self.facts.starts.checked_sub(1);
        self.pods.iter().filter(move |pod| attempt.is_some() && pod.attempt == attempt || self.facts.in_place)
    }

    /// Whether pods have ended well, so that the others soon will: to move the job now would leave these out.
    pub fn ends(&self) -> bool {
        !self.facts.in_place && (self.succeeded > 0 || self.current().any(|pod| pod.done))
    }

    /// Whether all pods have ended well: the job controller takes a second to say so of the Job, and meanwhile their
    /// accelerators are free.
    fn all_done(&self) -> bool {
        let done: BTreeSet<(Option<u32>, Option<&str>)> =
            self.current().filter(|pod| pod.done).map(PodRead::rank).collect();
        !self.suspended && done.len() as u32 >= self.pods_wanted.max(1) && !self.pods.iter().any(PodRead::holds)
    }

    /// Whether every pod of the last start has been bound to its node.
    fn all_bound(&self) -> bool {
        let bound: BTreeSet<(Option<u32>, Option<&str>)> =
            self.current().filter(|pod| pod.node.is_some()).map(PodRead::rank).collect();
        // Pods that ended well may be gone already.
        bound.len() as u32 >= self.pods_wanted.saturating_sub(self.succeeded)
    }

    /// Whether the job was resized in place, and pods still come or go. It holds the accelerators of all pods that are
    /// there. `ran` is whether its present start was seen to run: a pod that is made anew later is no resize.
    pub fn changes_in_place(&self, ran: bool) -> bool {
        let attempt = self.facts.starts.checked_sub(1);
        let mut holding = self.pods.iter().filter(|pod| pod.holds()).peekable();
        // A template does not change while its Job runs, so pods have the number of the last whole start.
        let resized = self.facts.in_place && !self.suspended && holding.peek().is_some_and(|pod| pod.attempt < attempt);
        resized && (holding.any(|pod| pod.index >= Some(self.pods_wanted)) || !ran && !self.all_bound())
    }

    /// Accelerators that its pods hold on their nodes now.
    pub fn held(&self) -> Vec<OnNode> {
        let mut held: Vec<OnNode> = Vec::new();
        let mut pods: Vec<&PodRead> = self.pods.iter().filter(|pod| pod.holds()).collect();
        pods.sort_by_key(|pod| pod.index);
        for pod in pods {
            let Some(node) = &pod.node else { continue };
            match held.iter_mut().find(|on| on.node == *node) {
                Some(on) => on.gpus += pod.gpus,
                None => held.push(OnNode { node: node.clone(), gpus: pod.gpus, ..OnNode::default() }),
            }
        }
        held
    }

    /// Shape in which it was started last.
    pub fn shape(&self) -> Option<PodShape> {
        PodShape::of(&self.facts.placement, Some(self.pod_gpus).filter(|&gpus| gpus > 0))
    }

    /// Phase of the job; `ran` is whether its present start was seen to run.
    pub fn phase(&self, ran: bool) -> JobPhase {
        match self.over {
            Some(_) if self.pods.iter().any(PodRead::holds) => JobPhase::Stopping,
            Some(over) => over,
            None if self.leaving && self.pods.is_empty() => JobPhase::Cancelled,
            None if self.leaving => JobPhase::Stopping,
            None if self.all_done() => JobPhase::Done,
            None if self.ended_well && !self.pods.iter().any(PodRead::holds) => JobPhase::Done,
            None if self.suspended && self.pods.iter().any(PodRead::holds) => JobPhase::Stopping,
            None if self.suspended => JobPhase::Held,
            None if self.changes_in_place(ran) => JobPhase::Stopping,
            None if ran || self.all_bound() => JobPhase::Running,
            None => JobPhase::Released,
        }
    }

    /// Accelerators asked for, and the least and the most that the job runs on.
    pub fn sizes(&self) -> (u32, u32, u32) {
        let gpus = self.facts.gpus.unwrap_or(self.pods_wanted * self.pod_gpus).max(1);
        let min = self.facts.min.unwrap_or(gpus).clamp(1, gpus);
        (gpus, min, self.facts.max.unwrap_or(gpus).max(gpus))
    }

    /// In the terms of the seam; `ran` is whether its present start was seen to run.
    pub fn seen(&self, ran: bool) -> JobSeen {
        let (gpus, min, max) = self.sizes();
        let elasticity = if min == max { Elasticity::Rigid } else { Elasticity::Elastic { min, max } };
        let submit = SimTime::from_millis(self.facts.submit_ms.unwrap_or(self.created_ms));
        let priority = self.facts.priority.unwrap_or(0);
        let name = self.facts.name.clone().unwrap_or_else(|| self.name.clone());
        let request = JobRequest { name, submit, gpus, elasticity, priority, ..JobRequest::default() };
        let duration = SimTime::from_millis(self.facts.duration_ms.unwrap_or(0));
        let phase = self.phase(ran);
        let running = phase == JobPhase::Running;
        let all_here = self.held().iter().all(|on| self.facts.placement.iter().any(|wanted| wanted.node == on.node));
        // A pod that is made anew keeps its place.
        let placement = if running && all_here { self.shape().map(|shape| shape.placement()) } else { None };
        let placement = placement.unwrap_or_else(|| self.held());
        let since_ms = self.current().filter_map(|pod| pod.since_ms).max().unwrap_or(self.created_ms);
        let attempt =
            Attempt { number: self.facts.starts.saturating_sub(1), placement, since_ms, ..Attempt::default() };
        let waiting = self.current().find(|pod| pod.node.is_none() && !pod.note.is_empty());
        let note = match (&self.hands_off, waiting) {
            (Some(reason), _) => reason.clone(),
            (None, _) if !self.note.is_empty() => self.note.clone(),
            (None, Some(pod)) if phase == JobPhase::Released => format!("pod {}: {}", pod.name, pod.note),
            (None, _) if self.suspended && !self.settled && !phase.holds() => "its pods are leaving".into(),
            _ => String::new(),
        };
        JobSeen {
            key: self.key.clone(),
            spec: JobSpec { request, work: Work::Fixed { duration } },
            application: self.facts.application.clone(),
            tenant: self.tenant.clone(),
            owner: self.owner.clone(),
            phase,
            starts: self.facts.starts,
            attempt: (phase.holds() && !attempt.placement.is_empty()).then_some(attempt),
            failures: self.failed,
            hands_off: self.hands_off.is_some(),
            // The job controller starts pods anew by itself: a job waits only where something suspended it.
            ended_itself: false,
            members: None,
            done: None,
            epoch: 0,
            batch: self.facts.batch,
            history: None,
            note,
        }
    }
}
