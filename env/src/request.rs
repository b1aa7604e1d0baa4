//! Inference one request at a time (DeepBoot, TPDS'23): each request holds one accelerator for a known time, on an instance of the model it asks for.
//!
//! Instances are short-lived: one is started for a request, stays protected for a while in case another request for its model comes, and
//! then gives its accelerator to whoever wants it. Load in requests per second with replicas and latency targets is another thing: a service.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cluster::NodeId;
use crate::time::SimTime;

/// Index of a request in its workload, which is sorted by submission: ids ascend with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub u32);

impl RequestId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An instance of a model on one accelerator. Numbers of instances that are gone are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstanceId(pub u32);

/// A request for inference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InferenceRequest {
    /// Index into [`crate::job::Workload::served`].
    pub model: u16,
    /// When it comes.
    pub submit: SimTime,
    /// How long it computes on a warm instance.
    pub duration: SimTime,
}

/// A model that answers requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedModel {
    /// Its own name, for example `infer-bert-1`.
    pub name: Arc<str>,
    /// The application it is a variant of, which decides its cold start, for example `bert`.
    pub application: Arc<str>,
}

/// Where a request is to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// An idle instance of its model.
    Instance(InstanceId),
    /// A new instance on this node: on an empty accelerator, else on that of the instance that has been free longest.
    Node(NodeId),
}

/// A request is answered from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assign {
    /// The request, one of those that wait.
    pub request: RequestId,
    /// By whom.
    pub target: Target,
}
