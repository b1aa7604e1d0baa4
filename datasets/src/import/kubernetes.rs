//! Jobs and pods of a Kubernetes cluster: `kubectl get jobs,pods --all-namespaces -o json` (batch/v1 and core/v1).
//!
//! A job is an object `Job`, the pods of another controller, or a pod without one; pods are joined to their controller
//! by `ownerReferences`. It is called `NAMESPACE/NAME`, and its namespace is its tenant. A pod holds the accelerators
//! that its containers ask for: the resources `*/gpu`, `*/tpu`, `*/neuron` and `*/gaudi`.
//!
//! | of the job | from |
//! |---|---|
//! | submission | `creationTimestamp` |
//! | run time | from the first `startTime` of a pod to the last `finishedAt` of a container |
//! | run time of a job without pods | from its `startTime` to its completion or failure |
//! | accelerators | those of a pod times `parallelism`; of another controller's pods, the most held at once |
//! | fewest accelerators | the annotation `kueue.x-k8s.io/job-min-parallelism`, which makes a job elastic |
//! | time limit | `activeDeadlineSeconds` |
//! | priority | `priority` of a pod |
//!
//! A job that holds no accelerator, never ran or still runs is refused. The number of a row is that of its job, or of
//! its first pod, in `items`. The whole list is held in a compact form, because a pod may come before its job.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use goodput_env::time::SimTime;
use serde::Deserialize;
use serde_json::Value;

use super::dates::seconds;
use super::rows::Each;
use super::{Body, Clock, ReadRow, RowFormat, WorkloadFormat, elements};
use crate::csv_rows::excerpt;
use crate::error::{DataError, RowProblem};
use crate::jobs::JobRow;

/// The format as a list.
pub(super) const ROWS: RowFormat =
    RowFormat { format: WorkloadFormat::Kubernetes, clock: Clock::Unix, body: Body::Text(read) };

/// Annotation with the fewest pods that a job starts with.
const MIN_PARALLELISM: &str = "kueue.x-k8s.io/job-min-parallelism";

/// Last parts of the names of resources that are accelerators.
const ACCELERATORS: [&str; 4] = ["gpu", "tpu", "neuron", "gaudi"];

/// An object of the list, with the keys that are read.
#[derive(Debug, Deserialize)]
struct Object {
    kind: String,
    metadata: Metadata,
    #[serde(default)]
    spec: ObjectSpec,
    #[serde(default)]
    status: ObjectStatus,
}

/// Metadata of an object.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) name: String,
    #[serde(default)]
    pub(super) namespace: String,
    #[serde(default)]
    uid: String,
    pub(super) creation_timestamp: String,
    #[serde(default)]
    owner_references: Vec<Owner>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct Owner {
    name: String,
    uid: String,
    #[serde(default)]
    controller: bool,
}

/// Specification of a job (`parallelism` and beyond) or of a pod.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectSpec {
    #[serde(flatten)]
    pod: PodSpec,
    priority: Option<i32>,
    parallelism: Option<u32>,
    completions: Option<u32>,
    active_deadline_seconds: Option<i64>,
    template: Template,
}

/// Template of pods.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Template {
    pub(super) spec: PodSpec,
}

/// Containers of a pod.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodSpec {
    containers: Vec<Container>,
    init_containers: Vec<Container>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    resources: Resources,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Resources {
    requests: BTreeMap<String, Value>,
    limits: BTreeMap<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectStatus {
    start_time: Option<String>,
    completion_time: Option<String>,
    conditions: Vec<Condition>,
    container_statuses: Vec<ContainerStatus>,
}

/// A condition of a job or a workload.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) status: String,
    #[serde(default)]
    pub(super) last_transition_time: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerStatus {
    state: ContainerState,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    terminated: Option<Terminated>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Terminated {
    finished_at: Option<String>,
}

impl PodSpec {
    /// Accelerators of a pod: of all containers together, or of the largest one that runs before them.
    pub(super) fn gpus(&self) -> u32 {
        let together = self.containers.iter().map(Container::gpus).fold(0, u32::saturating_add);
        let before = self.init_containers.iter().map(Container::gpus).max().unwrap_or(0);
        together.max(before)
    }
}

impl Container {
    fn gpus(&self) -> u32 {
        let of = |resources: &BTreeMap<String, Value>| {
            let counts = resources.iter().filter(|(name, _)| is_accelerator(name)).map(|(_, value)| whole(value));
            counts.fold(0, u32::saturating_add)
        };
        // Extended resources have one number as request and as limit; either may be left out.
        of(&self.resources.requests).max(of(&self.resources.limits))
    }
}

fn is_accelerator(resource: &str) -> bool {
    resource.rsplit_once('/').is_some_and(|(_, last)| ACCELERATORS.contains(&last))
}

/// Whole number of a quantity; 0 where it is none.
fn whole(value: &Value) -> u32 {
    let text = value.as_str().and_then(|text| text.parse().ok());
    text.or_else(|| value.as_u64().and_then(|number| number.try_into().ok())).unwrap_or(0)
}

/// The time of a condition that holds; `None` where it does not.
pub(super) fn since<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a str> {
    let holds = conditions.iter().find(|condition| condition.kind == kind && condition.status == "True")?;
    holds.last_transition_time.as_deref()
}

/// Time of a value in RFC 3339.
pub(super) fn time(column: &'static str, text: &str) -> Result<SimTime, RowProblem> {
    let secs = seconds(text.as_bytes()).ok_or_else(|| RowProblem::Value {
        column,
        value: excerpt(text.as_bytes()),
        expected: "a time as 2026-10-01T08:30:00Z",
    })?;
    Ok(SimTime::from_secs(secs))
}

/// As [`time`], of a value that may be missing.
fn optional(column: &'static str, text: Option<&str>) -> Result<Option<SimTime>, RowProblem> {
    text.map(|text| time(column, text)).transpose()
}

/// Object without something that an import needs.
pub(super) fn missing(column: &'static str, expected: &'static str) -> RowProblem {
    RowProblem::Value { column, value: String::new(), expected }
}

/// A pod that started: its time on a node, and the accelerators that it held.
#[derive(Clone, Copy, Debug)]
struct HeldPods {
    start: SimTime,
    /// `None` where it still runs.
    end: Option<SimTime>,
    gpus: u32,
}

/// A job while the list is read.
#[derive(Debug, Default)]
struct PodGroup {
    /// Number in the list: of the job, or of the first pod.
    line: u64,
    job: JobRow,
    /// Submission; for a job without an object, of its first pod.
    submit: Option<SimTime>,
    /// Run time by the object of the job.
    start: Option<SimTime>,
    end: Option<SimTime>,
    /// Accelerators that the object of the job asks for.
    asked: Option<u32>,
    pods: Vec<HeldPods>,
}

fn read(path: &Path, text: Box<dyn Read>, each: Each<'_>) -> Result<(), DataError> {
    let mut groups: BTreeMap<String, PodGroup> = BTreeMap::new();
    elements::each(path, text, &mut |line, object: Result<Object, RowProblem>| {
        let added = object.and_then(|object| match object.kind.as_str() {
            "Job" => add_job(line, &object, &mut groups),
            "Pod" => add_pod(line, &object, &mut groups),
            other => {
                Err(RowProblem::Value { column: "kind", value: excerpt(other.as_bytes()), expected: "Job or Pod" })
            }
        });
        added.or_else(|problem| each(Err((line, problem))))
    })?;
    let mut groups: Vec<PodGroup> = groups.into_values().collect();
    groups.sort_by_key(|group| group.line);
    groups.into_iter().try_for_each(|group| {
        let line = group.line;
        each(group.row().map_err(|problem| (line, problem)))
    })
}

fn add_job(line: u64, object: &Object, groups: &mut BTreeMap<String, PodGroup>) -> Result<(), RowProblem> {
    let Object { metadata, spec, status, .. } = object;
    let submit = time("creationTimestamp", &metadata.creation_timestamp)?;
    let start = optional("startTime", status.start_time.as_deref())?;
    let failed = since(&status.conditions, "Failed");
    let end = optional("completionTime", status.completion_time.as_deref().or(failed))?;
    let parallelism = spec.parallelism.unwrap_or(1).min(spec.completions.unwrap_or(u32::MAX));
    let least = metadata.annotations.get(MIN_PARALLELISM).and_then(|text| text.parse().ok());
    let per_pod = spec.template.spec.gpus();
    let asked = per_pod.saturating_mul(parallelism);
    let group = groups.entry(metadata.uid.clone()).or_default();
    group.name(line, metadata, &metadata.name);
    group.submit = Some(submit);
    (group.start, group.end, group.asked) = (start, end, Some(asked));
    group.job.gpu_min = least.map(|least: u32| per_pod.saturating_mul(least)).filter(|min| (1..asked).contains(min));
    group.job.limit = spec.active_deadline_seconds.filter(|secs| *secs > 0).map(SimTime::from_secs);
    Ok(())
}

fn add_pod(line: u64, object: &Object, groups: &mut BTreeMap<String, PodGroup>) -> Result<(), RowProblem> {
    let Object { metadata, spec, status, .. } = object;
    let submit = time("creationTimestamp", &metadata.creation_timestamp)?;
    let start = optional("startTime", status.start_time.as_deref())?;
    let ended = status.container_statuses.iter().map(|container| {
        let finished = container.state.terminated.as_ref().and_then(|terminated| terminated.finished_at.as_deref());
        optional("finishedAt", finished)
    });
    let ended: Vec<Option<SimTime>> = ended.collect::<Result<_, _>>()?;
    // A pod ends with its last container; one without any runs, as far as is known.
    let end = ended.into_iter().reduce(|end, other| Some(end?.max(other?))).flatten();
    let owner = metadata.owner_references.iter().find(|owner| owner.controller);
    let (uid, name) = owner.map_or((&metadata.uid, &metadata.name), |owner| (&owner.uid, &owner.name));
    let group = groups.entry(uid.clone()).or_default();
    if group.asked.is_none() {
        if group.line == 0 {
            group.name(line, metadata, name);
        }
        group.submit = Some(group.submit.map_or(submit, |first| first.min(submit)));
    }
    group.job.priority = group.job.priority.max(spec.priority);
    group.pods.extend(start.map(|start| HeldPods { start, end, gpus: spec.pod.gpus() }));
    Ok(())
}

impl PodGroup {
    fn name(&mut self, line: u64, metadata: &Metadata, name: &str) {
        self.line = line;
        self.job.job_id = format!("{}/{name}", metadata.namespace);
        self.job.tenant = (!metadata.namespace.is_empty()).then(|| metadata.namespace.clone());
    }

    fn row(self) -> Result<ReadRow, RowProblem> {
        let gpus = self.asked.unwrap_or_else(|| most_held(&self.pods));
        if gpus == 0 {
            return Err(missing("resources", "a request of */gpu, */tpu, */neuron or */gaudi in a container"));
        }
        let start = self.pods.iter().map(|pod| pod.start).min().or(self.start);
        let start = start.ok_or_else(|| missing("startTime", "a time: the job never ran"))?;
        let ends = self.pods.iter().map(|pod| pod.end).reduce(|end, other| Some(end?.max(other?)));
        let end = ends.flatten().or(self.end).ok_or_else(|| missing("finishedAt", "a time: the job still runs"))?;
        if end <= start {
            return Err(missing("finishedAt", "a time after the start"));
        }
        let submit = self.submit.unwrap_or(start);
        Ok(JobRow { line: self.line, submit, duration: Some(end - start), gpus, ..self.job }.into())
    }
}

/// Most accelerators that pods held at one time.
fn most_held(pods: &[HeldPods]) -> u32 {
    let end = |pod: &HeldPods| pod.end.unwrap_or(SimTime::NEVER);
    let held = |at: SimTime| pods.iter().filter(|pod| pod.start <= at && at < end(pod)).map(|pod| pod.gpus).sum();
    pods.iter().map(|pod| held(pod.start)).max().unwrap_or(0)
}
