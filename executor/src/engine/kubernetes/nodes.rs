//! Nodes as Kubernetes tells them, in the terms of the seam.

use std::collections::BTreeMap;

use goodput_configs::live::engine::KubernetesConfig;
use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};

use super::facts::annotation;
use crate::devices::accelerator_type;
use crate::engine::{NodeHealth, NodeSeen};

/// Label of a node's own name, which kubelet sets and node selectors go by.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// Label of the product of a node's accelerators, as NVIDIA's device plugin sets it.
const PRODUCT: &str = "nvidia.com/gpu.product";
/// Taint by which an administrator says that a node is off for sure.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// Taint of a node that is cordoned.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// A node, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeRead {
    /// Name of the node.
    pub name: String,
    /// Value of the node's label `kubernetes.io/hostname`.
    pub hostname: String,
    /// Name of the type of its accelerators.
    pub accelerator: String,
    /// Accelerators that its kubelet offers.
    pub gpus: u32,
    /// Health of the node.
    pub health: NodeHealth,
    /// Reason of a health that is not good.
    pub note: String,
}

impl NodeRead {
    /// Reads a node with `devices` by a driver of Dynamic Resource Allocation; `None` where it has neither those nor
    /// accelerators of the resource.
    pub fn of(node: &Node, settings: &KubernetesConfig, devices: Option<u32>) -> Option<Self> {
        let status = node.status.as_ref()?;
        let quantity = status.allocatable.as_ref().and_then(|all| all.get(&settings.resource));
        let counted = quantity.and_then(|quantity| quantity.0.parse().ok()).unwrap_or(0);
        // A device plugin that is away shows none for a while; the machine still has them.
        let capacity = status.capacity.as_ref().and_then(|all| all.get(&settings.resource));
        let gpus = match devices {
            Some(devices) => devices,
            None => capacity.or(quantity).map(|_| counted)?,
        };
        let name = node.metadata.name.clone()?;
        let labels = node.metadata.labels.clone().unwrap_or_default();
        if !settings.nodes.iter().all(|(label, value)| labels.get(label) == Some(value)) {
            return None;
        }
        let (health, note) = health(node, settings);
        let hostname = labels.get(HOSTNAME).cloned().unwrap_or_else(|| name.clone());
        Some(Self { hostname, accelerator: accelerator(&labels, settings), gpus, health, note, name })
    }

    /// In the terms of the seam: `ours` of its accelerators are held by jobs of the daemon, and
    /// `foreign` by pods of others, which are capacity that is gone.
    pub fn seen(&self, ours: u32, foreign: u32) -> NodeSeen {
        // What the daemon's jobs hold stays in service, whatever a device plugin says.
        let gpus = self.gpus.saturating_sub(foreign).max(ours);
        let mut note = self.note.clone();
        if foreign > 0 && note.is_empty() {
            note =
                format!("{foreign} of {} accelerators are held by pods that were not given to the daemon", self.gpus);
        }
        NodeSeen {
            name: self.name.clone(),
            accelerator: self.accelerator.clone(),
            gpus,
            free: gpus - ours,
            health: self.health,
            note,
            ..NodeSeen::default()
        }
    }
}

/// Name of the type of a node's accelerators: the file's for the product, or the product's own.
fn accelerator(labels: &BTreeMap<String, String>, settings: &KubernetesConfig) -> String {
    match labels.get(PRODUCT) {
        Some(product) => settings.accelerators.get(product).cloned().unwrap_or_else(|| accelerator_type(product)),
        None => "gpu".into(),
    }
}

fn health(node: &Node, settings: &KubernetesConfig) -> (NodeHealth, String) {
    let spec = node.spec.clone().unwrap_or_default();
    let taints = spec.taints.unwrap_or_default();
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.into_iter().flatten().find(|condition| condition.type_ == "Ready");
    let says = |condition: &NodeCondition| condition.message.clone().unwrap_or_default();
    let keeps_away = |taint: &&Taint| {
        let system = taint.key.starts_with("node.kubernetes.io/") && taint.key != UNSCHEDULABLE;
        taint.effect != "PreferNoSchedule" && !system && !settings.tolerated.contains(&taint.key)
    };
    match ready {
        _ if taints.iter().any(|taint| taint.key == OUT_OF_SERVICE) => {
            (NodeHealth::Down, format!("it has the taint {OUT_OF_SERVICE}"))
        }
        None => (NodeHealth::Suspect, "its kubelet has not reported yet".into()),
        // The pods may still run: only an administrator can say that they do not.
        Some(ready) if ready.status == "Unknown" => (NodeHealth::Suspect, says(ready)),
        Some(ready) if ready.status != "True" => (NodeHealth::Drained, says(ready)),
        Some(_) if spec.unschedulable == Some(true) => {
            let reason = node.metadata.annotations.as_ref().and_then(|all| all.get(annotation::DRAINED));
            (NodeHealth::Drained, reason.cloned().unwrap_or_else(|| "it is cordoned".into()))
        }
        Some(_) => match taints.iter().find(keeps_away) {
            Some(taint) => (NodeHealth::Drained, format!("it has the taint {}", taint.key)),
            None => (NodeHealth::Up, String::new()),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn read(change: impl FnOnce(&mut serde_json::Value)) -> Option<NodeRead> {
        let mut node = json!({
            "metadata": { "name": "n0", "labels": { HOSTNAME: "host-0", PRODUCT: "NVIDIA-A100-SXM4-80GB" } },
            "spec": {},
            "status": {
                "capacity": { "nvidia.com/gpu": "8" }, "allocatable": { "nvidia.com/gpu": "8" },
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        });
        change(&mut node);
        NodeRead::of(&serde_json::from_value(node).unwrap(), &KubernetesConfig::default(), None)
    }

    #[test]
    fn a_node_says_what_it_offers_and_how_it_is() {
        let good = read(|_| {}).unwrap();
        assert_eq!((good.hostname.as_str(), good.accelerator.as_str(), good.gpus), ("host-0", "a100", 8));
        assert_eq!(good.health, NodeHealth::Up);
        assert_eq!(read(|node| node["status"]["capacity"] = json!({ "cpu": "8" })).map(|node| node.gpus), Some(8));
        let none = json!({ "cpu": "8" });
        let bare = read(|node| {
            node["status"]["capacity"] = none.clone();
            node["status"]["allocatable"] = none.clone();
        });
        assert_eq!(bare, None, "a node without accelerators is none of ours");
    }

    #[test]
    fn a_node_that_is_silent_is_suspect_and_one_that_is_kept_free_is_drained() {
        let of = |change: fn(&mut serde_json::Value)| read(change).unwrap().health;
        assert_eq!(of(|node| node["status"]["conditions"][0]["status"] = json!("Unknown")), NodeHealth::Suspect);
        assert_eq!(of(|node| node["status"]["conditions"][0]["status"] = json!("False")), NodeHealth::Drained);
        assert_eq!(of(|node| node["spec"]["unschedulable"] = json!(true)), NodeHealth::Drained);
        let taint = |key: &'static str, effect: &'static str| {
            read(move |node| node["spec"]["taints"] = json!([{ "key": key, "effect": effect }])).unwrap().health
        };
        assert_eq!(taint("team", "NoSchedule"), NodeHealth::Drained);
        assert_eq!(taint("team", "PreferNoSchedule"), NodeHealth::Up);
        assert_eq!(taint("nvidia.com/gpu", "NoSchedule"), NodeHealth::Up, "pods with accelerators tolerate it");
        assert_eq!(taint(OUT_OF_SERVICE, "NoExecute"), NodeHealth::Down);
    }

    #[test]
    fn what_others_hold_is_gone_and_what_ours_hold_stays() {
        let node = read(|_| {}).unwrap();
        let seen = node.seen(4, 2);
        assert_eq!((seen.gpus, seen.free), (6, 2));
        let crowded = node.seen(8, 2);
        assert_eq!((crowded.gpus, crowded.free), (8, 0));
    }
}
