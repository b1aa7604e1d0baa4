//! Workloads of Kueue: `kubectl get workloads --all-namespaces -o json` (kubernetes-sigs/kueue,
//! `apis/kueue/v1beta2/workload_types.go`; v1 and v1beta1 have these keys too).
//!
//! | of the job | from |
//! |---|---|
//! | submission | `creationTimestamp` |
//! | run time | from the condition `Admitted`, or `QuotaReserved` without it, to `Finished` |
//! | accelerators | the sum over `podSets` of `count`, or of the count admitted, times those of a pod |
//! | fewest and most accelerators | where a pod set has a `minCount`: the sums with it, and with `count` |
//! | tenant | `queueName` |
//! | priority, time limit | `priority`, `maximumExecutionTimeSeconds` |
//!
//! A workload that was evicted and admitted again has the time of its last admission only, as Kueue keeps no other. One
//! that holds no accelerator, was never admitted or has not finished is refused. The number of a row is that in
//! `items`.

use std::collections::BTreeMap;

use goodput_env::time::SimTime;
use serde::Deserialize;

use super::kubernetes::{Condition, Metadata, Template, missing, since, time};
use super::rows::Each;
use super::{Body, Clock, ReadRow, RowFormat, TraceSource, WorkloadFormat, elements};
use crate::error::{DataError, RowProblem};
use crate::jobs::JobRow;

/// The format as a list.
pub(super) const ROWS: RowFormat =
    RowFormat { format: WorkloadFormat::Kueue, clock: Clock::Unix, body: Body::Text(read) };

#[derive(Debug, Deserialize)]
struct KueueRow {
    metadata: Metadata,
    spec: KueueSpec,
    #[serde(default)]
    status: KueueStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KueueSpec {
    pod_sets: Vec<WorkloadPodSet>,
    #[serde(default)]
    queue_name: String,
    priority: Option<i32>,
    maximum_execution_time_seconds: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkloadPodSet {
    #[serde(default)]
    name: String,
    count: u32,
    min_count: Option<u32>,
    template: Template,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct KueueStatus {
    conditions: Vec<Condition>,
    admission: Option<KueueAdmission>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KueueAdmission {
    #[serde(default)]
    pod_set_assignments: Vec<PodSetAssignment>,
}

#[derive(Debug, Deserialize)]
struct PodSetAssignment {
    #[serde(default)]
    name: String,
    count: Option<u32>,
}

fn read(source: &TraceSource<'_>, each: Each<'_>) -> Result<(), DataError> {
    elements::each(source, &mut |line, workload: Result<KueueRow, RowProblem>| {
        each(workload.and_then(|workload| row(line, workload)).map_err(|problem| (line, problem)))
    })
}

fn row(line: u64, workload: KueueRow) -> Result<ReadRow, RowProblem> {
    let KueueRow { metadata, spec, status } = workload;
    let assignments = status.admission.iter().flat_map(|admission| &admission.pod_set_assignments);
    let admitted: BTreeMap<&str, u32> = assignments.filter_map(|set| Some((set.name.as_str(), set.count?))).collect();
    let sum = |count: &dyn Fn(&WorkloadPodSet) -> u32| {
        let gpus = spec.pod_sets.iter().map(|set| set.template.spec.gpus().saturating_mul(count(set)));
        gpus.fold(0, u32::saturating_add)
    };
    let most = sum(&|set| set.count);
    let least = sum(&|set| set.min_count.unwrap_or(set.count));
    let gpus = sum(&|set| admitted.get(set.name.as_str()).map_or(set.count, |admitted| (*admitted).min(set.count)));
    if gpus == 0 {
        return Err(missing("podSets", "a request of */gpu, */tpu, */neuron or */gaudi in a container"));
    }
    let admitted = since(&status.conditions, "Admitted").or_else(|| since(&status.conditions, "QuotaReserved"));
    let start = time("Admitted", admitted.ok_or_else(|| missing("Admitted", "a time: it was never admitted"))?)?;
    let finished = since(&status.conditions, "Finished");
    let end = time("Finished", finished.ok_or_else(|| missing("Finished", "a time: it has not finished"))?)?;
    if end <= start {
        return Err(missing("Finished", "a time after the admission"));
    }
    let elastic = (1..most).contains(&least);
    Ok(JobRow {
        line,
        job_id: format!("{}/{}", metadata.namespace, metadata.name),
        submit: time("creationTimestamp", &metadata.creation_timestamp)?,
        duration: Some(end - start),
        gpus,
        gpu_min: elastic.then_some(least.min(gpus)),
        gpu_max: elastic.then_some(most),
        tenant: Some(spec.queue_name).filter(|queue| !queue.is_empty()),
        priority: spec.priority,
        limit: spec.maximum_execution_time_seconds.filter(|secs| *secs > 0).map(SimTime::from_secs),
        ..JobRow::default()
    }
    .into())
}
