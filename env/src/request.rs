//! Single inference requests (DeepBoot, TPDS'23): each request holds one accelerator for a known
//! time, on an instance of the requested model.
//!
//! Instances are short-lived. An instance is started for a request and stays protected for a while
//! in case another request for its model arrives. After that, other work may take its accelerator.
//! Load in requests per second with replicas and latency objectives is modelled as a service
//! instead; see [`crate::service`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cluster::NodeId;
use crate::time::SimTime;

/// Index of a request in its workload, which is sorted by submission: ids ascend with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub u32);

impl RequestId {
    /// Position of the request in its workload.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Identifier of an instance of a model on one accelerator. Identifiers of instances that have
/// ended are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstanceId(pub u32);

/// Inference request for a served model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InferenceRequest {
    /// Index into [`crate::job::Workload::served`].
    pub model: u16,
    /// Time of arrival.
    pub submit: SimTime,
    /// Computing time on a warm instance.
    pub duration: SimTime,
}

/// Model that answers requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedModel {
    /// Name of the model, for example `infer-bert-1`.
    pub name: Arc<str>,
    /// Name of the application of which the model is a variant, for example `bert`; it determines
    /// the cold start.
    pub application: Arc<str>,
}

/// Instance or node that is to answer a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Idle instance of the requested model.
    Instance(InstanceId),
    /// New instance on this node: on an empty accelerator, else on the accelerator of the instance
    /// that has been idle longest.
    Node(NodeId),
}

/// Start of a request on its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assign {
    /// Request, one of the waiting ones.
    pub request: RequestId,
    /// Instance or node that answers the request.
    pub target: Target,
}
