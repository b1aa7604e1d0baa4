//! Objects of Kueue, as far as they matter here.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::Resource;
use serde::{Deserialize, Serialize};

/// API group of Kueue.
pub(super) const GROUP: &str = "kueue.x-k8s.io";
/// Version of the API: Kueue 0.16 and later keep their objects in it.
const VERSION: &str = "v1beta2";

/// A job as Kueue counts it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KueueWorkload {
    /// Name, owner and version.
    pub metadata: ObjectMeta,
    /// Pods that are asked for, and the queue.
    #[serde(default)]
    pub spec: WorkloadSpec,
    /// Reservation of quota, and the words of controllers.
    #[serde(default)]
    pub status: WorkloadStatus,
}

/// Request of a [`KueueWorkload`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadSpec {
    pub pod_sets: Vec<PodSet>,
    pub queue_name: String,
    pub priority: Option<i32>,
    pub active: Option<bool>,
}

/// Equal pods of a [`KueueWorkload`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSet {
    pub name: String,
    pub count: u32,
    pub min_count: Option<u32>,
    pub template: PodTemplateSpec,
}

/// State of a [`KueueWorkload`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadStatus {
    pub conditions: Vec<Condition>,
    pub admission: Option<QuotaReservation>,
    pub admission_checks: Vec<CheckState>,
}

/// Reservation of quota.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QuotaReservation {
    pub cluster_queue: String,
    pub pod_set_assignments: Vec<Assignment>,
}

/// Pods of a set for which quota is reserved.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Assignment {
    pub name: String,
    pub count: Option<u32>,
}

/// Word of one controller about a [`KueueWorkload`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CheckState {
    pub name: String,
    pub state: String,
    pub message: String,
}

/// A check that ClusterQueues demand.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionCheck {
    /// Name and version.
    pub metadata: ObjectMeta,
    /// Controller of the check.
    pub spec: AdmissionCheckSpec,
    /// Whether the controller is there.
    #[serde(default)]
    pub status: AdmissionCheckStatus,
}

/// Controller of an [`AdmissionCheck`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionCheckSpec {
    pub controller_name: String,
}

/// State of an [`AdmissionCheck`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AdmissionCheckStatus {
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// A queue of a namespace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LocalQueue {
    /// Name and namespace.
    pub metadata: ObjectMeta,
    /// Cluster queue behind the queue.
    pub spec: LocalQueueSpec,
}

/// Cluster queue behind a [`LocalQueue`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalQueueSpec {
    pub cluster_queue: String,
}

/// Whether a condition of the type `kind` is true.
pub(super) fn holds<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind && condition.status == "True")
}

impl KueueWorkload {
    /// Annotations of the pods' templates and of the object itself, which go first.
    pub(super) fn annotations(&self) -> BTreeMap<String, String> {
        let of_pods = self.spec.pod_sets.iter().filter_map(|set| set.template.metadata.as_ref()?.annotations.clone());
        let mut all: BTreeMap<String, String> = of_pods.flatten().collect();
        all.extend(self.metadata.annotations.clone().unwrap_or_default());
        all
    }
}

macro_rules! object {
    ($object:ident, $kind:literal, $plural:literal, $scope:ty) => {
        impl Resource for $object {
            type DynamicType = ();
            type Scope = $scope;

            fn kind((): &()) -> Cow<'_, str> {
                $kind.into()
            }

            fn group((): &()) -> Cow<'_, str> {
                GROUP.into()
            }

            fn version((): &()) -> Cow<'_, str> {
                VERSION.into()
            }

            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

object!(KueueWorkload, "Workload", "workloads", NamespaceResourceScope);
object!(AdmissionCheck, "AdmissionCheck", "admissionchecks", ClusterResourceScope);
object!(LocalQueue, "LocalQueue", "localqueues", NamespaceResourceScope);
