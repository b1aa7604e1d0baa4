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
//! its first pod, in `items`. A pod may stand anywhere in the list. The jobs are therefore held in parts
//! (`job_parts`), about 300 bytes each, and of a job without an object each pod, 24 bytes.

use std::collections::BTreeMap;

use goodput_env::time::SimTime;
use serde::Deserialize;
use serde_json::Value;

use super::dates::seconds;
use super::job_parts::{JobParts, MOST_HELD, key};
use super::rows::Each;
use super::{Body, Clock, ReadRow, RowFormat, TraceSource, WorkloadFormat, elements};
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

/// Time of a pod on a node, and the accelerators that it held.
#[derive(Clone, Copy, Debug)]
struct HeldPods {
    start: SimTime,
    /// [`SimTime::NEVER`] where it still runs.
    end: SimTime,
    gpus: u32,
}

/// A job while the list is read, in a compact form: a list has up to a million. A time that is not known is
/// [`SimTime::NEVER`].
#[derive(Debug)]
struct PodGroup {
    /// Number in the list: of the job, or of the first pod.
    line: u64,
    /// Name with its namespace.
    name: Box<str>,
    /// Bytes of the name that are the namespace.
    namespace: u32,
    /// Submission; for a job without an object, of its first pod.
    submit: SimTime,
    /// Run time by the object of the job.
    start: SimTime,
    end: SimTime,
    /// Accelerators that the object of the job asks for.
    asked: Option<u32>,
    gpu_min: Option<u32>,
    limit: Option<SimTime>,
    priority: Option<i32>,
    /// All pods that started, together.
    all: Option<HeldPods>,
    /// Each of several pods of a job without an object, from which the most accelerators at one time follow.
    several: Vec<HeldPods>,
}

fn read(source: &TraceSource<'_>, each: Each<'_>) -> Result<(), DataError> {
    read_parts(source, each, MOST_HELD)
}

/// Reads a list, of which `most` jobs are held at once.
pub(super) fn read_parts(source: &TraceSource<'_>, each: Each<'_>, most: usize) -> Result<(), DataError> {
    let mut groups = JobParts::first(most);
    loop {
        elements::each(source, &mut |line, object: Result<Object, RowProblem>| {
            let added = object.and_then(|object| match object.kind.as_str() {
                "Job" => add_job(line, &object, &mut groups),
                "Pod" => add_pod(line, &object, &mut groups),
                other => {
                    Err(RowProblem::Value { column: "kind", value: excerpt(other.as_bytes()), expected: "Job or Pod" })
                }
            });
            added.or_else(|problem| if groups.is_first() { each(Err((line, problem))) } else { Ok(()) })
        })?;
        groups.take(|group| group.line).try_for_each(|group| {
            let line = group.line;
            each(group.row().map_err(|problem| (line, problem)))
        })?;
        if !groups.next_part() {
            return Ok(());
        }
    }
}

fn add_job(line: u64, object: &Object, groups: &mut JobParts<PodGroup>) -> Result<(), RowProblem> {
    let Object { metadata, spec, status, .. } = object;
    let submit = time("creationTimestamp", &metadata.creation_timestamp)?;
    let start = optional("startTime", status.start_time.as_deref())?;
    let failed = since(&status.conditions, "Failed");
    let end = optional("completionTime", status.completion_time.as_deref().or(failed))?;
    let parallelism = spec.parallelism.unwrap_or(1).min(spec.completions.unwrap_or(u32::MAX));
    let least = metadata.annotations.get(MIN_PARALLELISM).and_then(|text| text.parse().ok());
    let per_pod = spec.template.spec.gpus();
    let asked = per_pod.saturating_mul(parallelism);
    groups.change(key(metadata.uid.as_bytes()), |known| {
        let mut group = PodGroup {
            submit,
            start: start.unwrap_or(SimTime::NEVER),
            end: end.unwrap_or(SimTime::NEVER),
            asked: Some(asked),
            gpu_min: least.map(|least: u32| per_pod.saturating_mul(least)).filter(|min| (1..asked).contains(min)),
            limit: spec.active_deadline_seconds.filter(|secs| *secs > 0).map(SimTime::from_secs),
            ..PodGroup::new(line, metadata, &metadata.name)
        };
        let Some(known) = known else { return Some(group) };
        (group.all, group.priority) = (known.all, known.priority);
        *known = group;
        None
    });
    Ok(())
}

fn add_pod(line: u64, object: &Object, groups: &mut JobParts<PodGroup>) -> Result<(), RowProblem> {
    let Object { metadata, spec, status, .. } = object;
    let submit = time("creationTimestamp", &metadata.creation_timestamp)?;
    let start = optional("startTime", status.start_time.as_deref())?;
    let ended = status.container_statuses.iter().map(|container| {
        let finished = container.state.terminated.as_ref().and_then(|terminated| terminated.finished_at.as_deref());
        optional("finishedAt", finished)
    });
    let ended: Vec<Option<SimTime>> = ended.collect::<Result<_, _>>()?;
    // A pod ends with its last container; one without any runs, as far as is known.
    let end = ended.into_iter().reduce(|end, other| Some(end?.max(other?))).flatten().unwrap_or(SimTime::NEVER);
    let owner = metadata.owner_references.iter().find(|owner| owner.controller);
    let (uid, name) = owner.map_or((&metadata.uid, &metadata.name), |owner| (&owner.uid, &owner.name));
    let held = start.map(|start| HeldPods { start, end, gpus: spec.pod.gpus() });
    groups.change(key(uid.as_bytes()), |known| {
        let mut group = known.is_none().then(|| PodGroup::new(line, metadata, name));
        if let Some(of_pod) = known.or(group.as_mut()) {
            if of_pod.asked.is_none() {
                of_pod.submit = of_pod.submit.min(submit);
            }
            of_pod.priority = of_pod.priority.max(spec.priority);
            held.into_iter().for_each(|held| of_pod.hold(held));
        }
        group
    });
    Ok(())
}

impl PodGroup {
    /// A job without pods, and without what its object says.
    fn new(line: u64, metadata: &Metadata, name: &str) -> Self {
        Self {
            line,
            name: format!("{}/{name}", metadata.namespace).into(),
            namespace: metadata.namespace.len() as u32,
            submit: SimTime::NEVER,
            start: SimTime::NEVER,
            end: SimTime::NEVER,
            asked: None,
            gpu_min: None,
            limit: None,
            priority: None,
            all: None,
            several: Vec::new(),
        }
    }

    /// Adds a pod that started.
    fn hold(&mut self, pod: HeldPods) {
        let Some(all) = &mut self.all else {
            self.all = Some(pod);
            return;
        };
        if self.asked.is_none() {
            if self.several.is_empty() {
                self.several.push(*all);
            }
            self.several.push(pod);
        }
        (all.start, all.end) = (all.start.min(pod.start), all.end.max(pod.end));
    }

    fn row(self) -> Result<ReadRow, RowProblem> {
        let known = |time: SimTime| (time != SimTime::NEVER).then_some(time);
        let held =
            || if self.several.is_empty() { self.all.map_or(0, |pod| pod.gpus) } else { most_held(&self.several) };
        let gpus = self.asked.unwrap_or_else(held);
        if gpus == 0 {
            return Err(missing("resources", "a request of */gpu, */tpu, */neuron or */gaudi in a container"));
        }
        let start = self.all.map(|pods| pods.start).or(known(self.start));
        let start = start.ok_or_else(|| missing("startTime", "a time: the job never ran"))?;
        let end = self.all.and_then(|pods| known(pods.end)).or(known(self.end));
        let end = end.ok_or_else(|| missing("finishedAt", "a time: the job still runs"))?;
        if end <= start {
            return Err(missing("finishedAt", "a time after the start"));
        }
        let tenant = &self.name[..self.namespace as usize];
        Ok(JobRow {
            line: self.line,
            submit: known(self.submit).unwrap_or(start),
            duration: Some(end - start),
            gpus,
            gpu_min: self.gpu_min,
            limit: self.limit,
            priority: self.priority,
            tenant: (!tenant.is_empty()).then(|| tenant.to_owned()),
            job_id: self.name.into(),
            ..JobRow::default()
        }
        .into())
    }
}

/// Most accelerators that pods held at one time. A pod no longer holds its own at the moment of its end.
fn most_held(pods: &[HeldPods]) -> u32 {
    // Of the changes of one moment, those of ends are below 0 and come first.
    let change = |pod: &HeldPods| [(pod.start, i64::from(pod.gpus)), (pod.end, -i64::from(pod.gpus))];
    let mut changes: Vec<_> = pods.iter().filter(|pod| pod.start < pod.end).flat_map(change).collect();
    changes.sort_unstable();
    let (mut held, mut most) = (0, 0);
    for (_, change) in changes {
        held += change;
        most = most.max(held);
    }
    u32::try_from(most).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_pods_held_is_that_at_one_of_their_starts() {
        let pod = |start, end, gpus| HeldPods { start: SimTime::from_secs(start), end, gpus };
        let secs = SimTime::from_secs;
        assert_eq!(most_held(&[]), 0);
        assert_eq!(most_held(&[pod(0, secs(10), 4), pod(10, secs(20), 8)]), 8, "one after the other");
        assert_eq!(most_held(&[pod(0, secs(11), 4), pod(10, secs(20), 8)]), 12);
        let never_held = [pod(10, secs(10), 8), pod(20, secs(5), 16)];
        assert_eq!(most_held(&[&never_held[..], &[pod(0, SimTime::NEVER, 4)]].concat()), 4);
        let mut seed = 7_u64;
        let mut draw = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..200 {
            let pods: Vec<HeldPods> = (0..draw(30))
                .map(|_| {
                    let (start, secs, gpus) = (draw(20) as i64, draw(8) as i64, draw(9) as u32);
                    let end = if secs == 7 { SimTime::NEVER } else { SimTime::from_secs(start + secs) };
                    pod(start, end, gpus)
                })
                .collect();
            let held =
                |at: SimTime| pods.iter().filter(|pod| pod.start <= at && at < pod.end).map(|pod| pod.gpus).sum();
            let expected: u32 = pods.iter().map(|pod| held(pod.start)).max().unwrap_or(0);
            assert_eq!(most_held(&pods), expected, "{pods:?}");
        }
    }
}
