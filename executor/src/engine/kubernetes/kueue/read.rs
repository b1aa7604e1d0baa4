//! A Workload with its pods, read as a job.

use std::collections::{BTreeMap, BTreeSet};

use goodput_configs::live::engine::{KubernetesConfig, KueueConfig, KueueRole};
use k8s_openapi::api::core::v1::PodSpec;

use super::super::claims::Claims;
use super::super::facts::{GATE, JobNotes};
use super::super::jobs::JobRead;
use super::super::pods::{PodRead, gpus_of};
use super::objects::{KueueWorkload, PodSet, holds};
use super::owner;
use crate::engine::JobPhase;

/// Admission of a job by Kueue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queued {
    /// ClusterQueue that the job waits in or runs from.
    pub cluster_queue: String,
    /// The daemon's check on the job, where the job has one.
    pub check: Option<String>,
    /// State of that check, in Kueue's word.
    pub state: String,
    /// The set of pods with accelerators.
    pub pod_set: String,
    /// Whether Kueue has reserved quota for the job.
    pub reserved: bool,
}

/// Circumstances in which Workloads are read.
#[derive(Clone, Copy)]
pub(super) struct KueueReading<'a> {
    pub settings: &'a KubernetesConfig,
    pub claims: &'a Claims,
    pub kueue: &'a KueueConfig,
    /// ClusterQueue behind each LocalQueue, by namespace and name.
    pub queues: &'a BTreeMap<(String, String), String>,
    /// Names of the daemon's checks.
    pub checks: &'a BTreeSet<&'a str>,
}

impl KueueReading<'_> {
    /// The job; `None` where the Workload has no accelerators or belongs to another ClusterQueue.
    pub fn job(self, workload: &KueueWorkload, pods: Vec<PodRead>) -> Option<JobRead> {
        let (meta, spec, status) = (&workload.metadata, &workload.spec, &workload.status);
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let (namespace, uid) = (text(&meta.namespace), text(&meta.uid));
        let admission = status.admission.as_ref();
        let cluster_queue = match admission {
            Some(admission) => admission.cluster_queue.clone(),
            None => self.queues.get(&(namespace.clone(), spec.queue_name.clone())).cloned().unwrap_or_default(),
        };
        if !self.kueue.queues.is_empty() && !self.kueue.queues.contains(&cluster_queue) {
            return None;
        }
        let gpus = |set: &PodSet| {
            let counted = |spec: &PodSpec| gpus_of(spec, &self.settings.resource);
            let template = set.template.spec.as_ref();
            template.map_or(0, |spec| counted(spec) + self.claims.of_template(&namespace, spec))
        };
        let sets: Vec<(&PodSet, u32)> =
            spec.pod_sets.iter().map(|set| (set, gpus(set))).filter(|(_, gpus)| *gpus > 0).collect();
        let (main, pod_gpus) = *sets.first()?;
        let reserved_for = |set: &PodSet| {
            let assigned = admission?.pod_set_assignments.iter().find(|assigned| assigned.name == set.name)?;
            assigned.count
        };
        let is_observed = self.kueue.role == KueueRole::Observe;
        let pods_of = |set: &PodSet| reserved_for(set).unwrap_or(set.count);
        let asked = total(sets.iter().map(|&(set, gpus)| (set.count, gpus)));
        let least = total(sets.iter().map(|&(set, gpus)| (set.min_count.unwrap_or(set.count), gpus)));
        let given = total(sets.iter().map(|&(set, gpus)| (pods_of(set), gpus)));

        let is = |kind: &str| holds(&status.conditions, kind);
        // Kueue takes the quota back once the pods of a Workload that it evicts are gone.
        let stays = is("Evicted").is_none();
        let (reserved, admitted) = (stays && is("QuotaReserved").is_some(), stays && is("Admitted").is_some());
        let check = status.admission_checks.iter().find(|check| self.checks.contains(check.name.as_str()));
        let ready = check.is_some_and(|check| check.state == "Ready");
        let over = is("Finished").map(|finished| match finished.reason.as_str() {
            "Succeeded" => JobPhase::Done,
            reason if reason.starts_with("Failed") => JobPhase::Failed,
            _ => JobPhase::Cancelled,
        });
        // A Workload that was switched off is as good as cancelled, until its user switches it on again.
        let is_off = spec.active == Some(false);
        let over = over.or((is_off && !admitted).then_some(JobPhase::Cancelled));

        // The daemon's own notes are on the Workload; users write theirs on the template.
        let own = JobNotes::read(meta.annotations.as_ref().unwrap_or(&BTreeMap::new()));
        let mut facts = JobNotes::read(&workload.annotations());
        (facts.placement, facts.wanted) = (own.placement, own.wanted);
        // A start that the daemon did not number is one in which all pods count.
        facts.in_place = own.starts == 0;
        facts.starts = own.starts.max(u32::from(admitted));
        (facts.gpus, facts.min, facts.max) = match is_observed {
            true => (Some(asked), Some(least), Some(asked)),
            // The size is what Kueue has reserved.
            false => (Some(given), None, None),
        };
        facts.priority = facts.priority.or(spec.priority);

        let counted = owner(workload);
        let name = facts.name.clone().or(counted.map(|owner| owner.name.clone())).unwrap_or(text(&meta.name));
        let gated = main.template.spec.as_ref().and_then(|template| template.scheduling_gates.as_ref());
        let suspended = over.is_none() && !admitted && !(reserved && ready);
        let mut read = JobRead {
            key: format!("{namespace}.{}.{}", text(&meta.name), uid.split('-').next().unwrap_or_default()),
            uid,
            tenant: if cluster_queue.is_empty() { namespace.clone() } else { cluster_queue.clone() },
            namespace,
            name: text(&meta.name),
            version: text(&meta.resource_version),
            suspended,
            settled: suspended && pods.iter().all(|pod| pod.over),
            pods_wanted: total(sets.iter().map(|(set, _)| (pods_of(set), 1))),
            pod_gpus: if sets.len() == 1 { pod_gpus } else { 0 },
            gated: gated.into_iter().flatten().any(|gate| gate.name == GATE),
            created_ms: meta.creation_timestamp.as_ref().map_or(0, |at| at.0.as_millisecond()),
            over,
            succeeded: pods.iter().filter(|pod| pod.done).count() as u32,
            leaving: meta.deletion_timestamp.is_some(),
            queued: Some(Queued {
                check: check.map(|check| check.name.clone()),
                state: check.map(|check| check.state.clone()).unwrap_or_default(),
                pod_set: main.name.clone(),
                reserved,
                cluster_queue,
            }),
            facts: JobNotes { name: Some(name), ..facts },
            pods,
            ..JobRead::default()
        };
        let is_job = counted.is_some_and(|owner| owner.kind == "Job" && owner.api_version.starts_with("batch/"));
        let queue = &read.tenant;
        read.hands_off = match () {
            () if read.over.is_some() => None,
            () if read.facts.hands_off => Some("its annotation goodput.dev/hands-off says so".into()),
            () if is_off => Some("Kueue has switched it off (spec.active is false)".into()),
            () if is_observed => None,
            () if check.is_none() => Some(format!("its ClusterQueue {queue} has no AdmissionCheck of the daemon")),
            () if !is_job => Some("only Jobs of batch/v1 are placed for Kueue".into()),
            () if sets.len() > 1 => Some("it has several sets of pods with accelerators".into()),
            () if read.pods_wanted > 1 && !read.gated => {
                Some(format!("it has several pods: their template needs the scheduling gate {GATE}"))
            }
            () if !reserved && !admitted => Some(format!("it waits for quota in ClusterQueue {queue}")),
            () => None,
        };
        Some(read)
    }
}

/// Accelerators of pods, by their number and the accelerators of each.
fn total(pods: impl Iterator<Item = (u32, u32)>) -> u32 {
    pods.fold(0, |sum: u32, (pods, gpus)| sum.saturating_add(pods.saturating_mul(gpus)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    fn read(role: KueueRole, change: impl FnOnce(&mut Value)) -> JobRead {
        let requests = json!({ "requests": { "nvidia.com/gpu": "2" } });
        let template = json!({ "spec": { "containers": [{ "name": "train", "resources": requests }] } });
        let mut workload = json!({
            "metadata": { "namespace": "team", "name": "job-a", "uid": "1-2", "ownerReferences": [
                { "apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "9", "controller": true }] },
            "spec": { "queueName": "local",
                      "podSets": [{ "name": "main", "count": 4, "minCount": 1, "template": template }] },
        });
        change(&mut workload);
        let workload: KueueWorkload = serde_json::from_value(workload).unwrap();
        let kueue = KueueConfig { role, ..KueueConfig::default() };
        let queues = BTreeMap::from([(("team".to_owned(), "local".to_owned()), "cluster".to_owned())]);
        let (settings, claims) = (KubernetesConfig::default(), Claims::default());
        let checks = BTreeSet::from(["goodput"]);
        let reading =
            KueueReading { settings: &settings, claims: &claims, kueue: &kueue, queues: &queues, checks: &checks };
        reading.job(&workload, Vec::new()).unwrap()
    }

    fn condition(kind: &str) -> Value {
        json!({ "type": kind, "status": "True", "reason": "Test", "message": "",
                "lastTransitionTime": "2026-11-25T00:00:00Z" })
    }

    #[test]
    fn an_observer_sees_the_sizes_that_were_asked_for_and_a_check_those_that_have_quota() {
        let seen = read(KueueRole::Observe, |_| {});
        assert_eq!((seen.sizes(), seen.tenant.as_str(), seen.hands_off), ((8, 2, 8), "cluster", None));
        let without = read(KueueRole::Check, |_| {});
        assert!(without.hands_off.unwrap().contains("no AdmissionCheck"));
        let given = |check: &str, conditions: Value| {
            let check = json!([{ "name": check, "state": "Pending" }]);
            read(KueueRole::Check, |workload| {
                workload["spec"]["podSets"][0]["template"]["spec"]["schedulingGates"] = json!([{ "name": GATE }]);
                let assigned = json!([{ "name": "main", "count": 3 }]);
                workload["status"] = json!({ "admissionChecks": check, "conditions": conditions,
                    "admission": { "clusterQueue": "cluster", "podSetAssignments": assigned } });
            })
        };
        let waits = given("goodput", json!([]));
        assert!(waits.hands_off.unwrap().contains("quota"));
        let held = given("goodput", json!([condition("QuotaReserved")]));
        assert_eq!((held.sizes(), held.pods_wanted, held.hands_off.clone()), ((6, 6, 6), 3, None));
        assert_eq!(held.phase(false), JobPhase::Held);
        let another = given("another", json!([condition("QuotaReserved")]));
        assert!(another.hands_off.is_some(), "the check of another controller is not the daemon's");
        let leaves = given("goodput", json!([condition("QuotaReserved"), condition("Admitted"), condition("Evicted")]));
        assert!(leaves.suspended, "a Workload that is evicted is told nothing more");
    }
}
