//! Accelerators by Dynamic Resource Allocation: devices of slices are the capacity of a node, and claims
//! hold them.
//!
//! A claim that is allocated holds its devices whether a pod of it runs or not. The claim counts for the pod
//! that it is reserved for; what a claim without such a pod holds is capacity that is gone.

use std::collections::BTreeMap;
use std::time::Duration;

use goodput_configs::live::engine::ClaimsConfig;
use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::api::resource::v1::{DeviceClaim, DeviceRequest, ResourceClaim, ResourceClaimTemplate, ResourceSlice};
use kube::{Api, Client};

use super::access::unreachable;
use super::pods::PodRead;
use super::watch::ObjectWatch;
use crate::engine::EngineError;

/// Watches of devices and of claims.
pub(super) struct ClaimWatch {
    slices: ObjectWatch<ResourceSlice>,
    claims: ObjectWatch<ResourceClaim>,
    templates: ObjectWatch<ResourceClaimTemplate>,
}

/// Devices and claims at one moment.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// Devices by node.
    devices: BTreeMap<String, u32>,
    /// Node and number of the devices that are held for a pod, by the id of the pod.
    held: BTreeMap<String, (String, u32)>,
    /// Devices by node that are held for no pod.
    loose: BTreeMap<String, u32>,
    /// Devices that a claim or a template asks for, by namespace and name.
    claims: BTreeMap<(String, String), u32>,
    templates: BTreeMap<(String, String), u32>,
}

impl ClaimWatch {
    pub fn begin(client: &Client) -> Self {
        Self {
            slices: ObjectWatch::begin(Api::all(client.clone()), "", |_| {}),
            claims: ObjectWatch::begin(Api::all(client.clone()), "", |_| {}),
            templates: ObjectWatch::begin(Api::all(client.clone()), "", |_| {}),
        }
    }

    /// Devices and claims as the watches have them.
    ///
    /// # Errors
    /// [`EngineError::Unreachable`] where a watch is broken.
    pub async fn read(&self, patience: Duration, settings: &ClaimsConfig) -> Result<Claims, EngineError> {
        let problem = |problem: String| unreachable(format!("resource.k8s.io/v1: {problem}"));
        let slices = self.slices.objects(patience).await.map_err(problem)?;
        let claims = self.claims.objects(patience).await.map_err(problem)?;
        let templates = self.templates.objects(patience).await.map_err(problem)?;
        let mut read = Claims::default();
        let slices: Vec<&ResourceSlice> = slices.iter().map(AsRef::as_ref).collect();
        let places = read.offer(&slices, settings);
        claims.iter().for_each(|claim| read.claim(claim, &places, settings));
        for template in &templates {
            let asked = asked(&template.spec.spec.devices, settings);
            read.templates.insert(name_of(&template.metadata), asked);
        }
        Ok(read)
    }
}

/// Node of each device, by pool and name.
type Places<'a> = BTreeMap<(&'a str, &'a str), &'a str>;

impl Claims {
    /// Takes the devices of the driver in, where they belong to one node.
    fn offer<'a>(&mut self, slices: &[&'a ResourceSlice], settings: &ClaimsConfig) -> Places<'a> {
        let ours = || slices.iter().filter(|slice| slice.spec.driver == settings.driver).map(|slice| &slice.spec);
        // A pool that is published anew has slices of two generations for a while.
        let mut newest = BTreeMap::<&str, i64>::new();
        for spec in ours() {
            let newest = newest.entry(&spec.pool.name).or_default();
            *newest = spec.pool.generation.max(*newest);
        }
        let mut places = Places::new();
        for spec in ours().filter(|spec| newest.get(spec.pool.name.as_str()) == Some(&spec.pool.generation)) {
            let Some(node) = &spec.node_name else { continue };
            for device in spec.devices.iter().flatten() {
                places.insert((&spec.pool.name, &device.name), node);
                *self.devices.entry(node.clone()).or_default() += 1;
            }
        }
        places
    }

    /// Takes a claim in.
    fn claim(&mut self, claim: &ResourceClaim, places: &Places<'_>, settings: &ClaimsConfig) {
        self.claims.insert(name_of(&claim.metadata), asked(&claim.spec.devices, settings));
        let Some(status) = &claim.status else { return };
        let results = status.allocation.as_ref().and_then(|allocation| allocation.devices.as_ref()?.results.as_ref());
        let pod = status.reserved_for.iter().flatten().find(|user| user.resource == "pods");
        for result in results.into_iter().flatten() {
            if result.driver != settings.driver || result.admin_access == Some(true) {
                continue;
            }
            let Some(node) = places.get(&(result.pool.as_str(), result.device.as_str())) else { continue };
            match pod {
                Some(pod) => {
                    let held = self.held.entry(pod.uid.clone()).or_insert_with(|| ((*node).to_owned(), 0));
                    held.1 += 1;
                }
                None => *self.loose.entry((*node).to_owned()).or_default() += 1,
            }
        }
    }

    /// Devices of a node; `None` where the driver is not on it.
    pub fn devices(&self, node: &str) -> Option<u32> {
        self.devices.get(node).copied()
    }

    /// Devices that pods of the template `spec` get by claims.
    pub fn of_template(&self, namespace: &str, spec: &PodSpec) -> u32 {
        let of = |all: &BTreeMap<(String, String), u32>, name: &Option<String>| {
            let name = name.clone()?;
            all.get(&(namespace.to_owned(), name)).copied()
        };
        let claims = spec.resource_claims.iter().flatten();
        claims
            .filter_map(|claim| {
                let template = of(&self.templates, &claim.resource_claim_template_name);
                template.or(of(&self.claims, &claim.resource_claim_name))
            })
            .sum()
    }

    /// Adds what pods hold by claims, and what claims hold for no pod.
    pub fn add_to(&mut self, pods: &mut Vec<PodRead>) {
        for pod in pods.iter_mut() {
            if let Some((_, devices)) = self.held.remove(&pod.uid) {
                // kube-scheduler makes a claim for a counted resource that a DeviceClass stands for: one is the other.
                pod.gpus = pod.gpus.max(devices);
            }
        }
        let gone = std::mem::take(&mut self.held).into_values();
        let loose = std::mem::take(&mut self.loose).into_iter().chain(gone);
        pods.extend(loose.map(|(node, gpus)| PodRead { node: Some(node), gpus, ..PodRead::default() }));
    }
}

fn name_of(meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> (String, String) {
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

/// Devices of the driver's classes that a claim asks for. A claim of all devices of a node is counted once it has them.
fn asked(claim: &Option<DeviceClaim>, settings: &ClaimsConfig) -> u32 {
    let of = |request: &DeviceRequest| -> Option<i64> {
        let is_ours = |class: &str| settings.classes.iter().any(|ours| ours == class);
        if let Some(exactly) = &request.exactly {
            let counted = exactly.allocation_mode.as_deref() != Some("All") && exactly.admin_access != Some(true);
            return (counted && is_ours(&exactly.device_class_name)).then_some(exactly.count.unwrap_or(1));
        }
        let first = request.first_available.as_ref()?.first()?;
        is_ours(&first.device_class_name).then_some(first.count.unwrap_or(1))
    };
    let requests = claim.iter().flat_map(|claim| claim.requests.iter().flatten());
    requests.filter_map(of).sum::<i64>().clamp(0, i64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    fn slice(driver: &str, generation: i64, node: &str, devices: u32) -> ResourceSlice {
        let devices: Vec<Value> = (0..devices).map(|at| json!({ "name": format!("gpu-{at}") })).collect();
        let pool = json!({ "name": node, "generation": generation, "resourceSliceCount": 1 });
        let spec = json!({ "driver": driver, "pool": pool, "nodeName": node, "devices": devices });
        serde_json::from_value(json!({ "metadata": {}, "spec": spec })).unwrap()
    }

    fn claim(name: &str, devices: &[(&str, &str)], pod: Option<&str>) -> ResourceClaim {
        let result = |(pool, device): &(&str, &str)| json!({ "driver": "gpu.nvidia.com", "pool": pool, "device": device, "request": "gpus" });
        let results: Vec<Value> = devices.iter().map(result).collect();
        let users: Vec<Value> = pod.iter().map(|uid| json!({ "resource": "pods", "name": "p", "uid": uid })).collect();
        let exactly = json!({ "deviceClassName": "gpu.nvidia.com", "count": 2 });
        serde_json::from_value(json!({
            "metadata": { "namespace": "team", "name": name },
            "spec": { "devices": { "requests": [
                { "name": "gpus", "exactly": exactly },
                { "name": "nic", "exactly": { "deviceClassName": "nic" } },
                { "name": "look", "exactly": { "deviceClassName": "gpu.nvidia.com", "adminAccess": true } },
            ] } },
            "status": { "allocation": { "devices": { "results": results } }, "reservedFor": users },
        }))
        .unwrap()
    }

    #[test]
    fn devices_of_the_newest_pool_count_and_claims_hold_them() {
        let settings = ClaimsConfig::default();
        let slices = [
            slice("gpu.nvidia.com", 1, "n0", 8),
            slice("gpu.nvidia.com", 2, "n0", 4),
            slice("gpu.nvidia.com", 1, "n1", 2),
            slice("nic", 1, "n1", 9),
        ];
        let mut claims = Claims::default();
        let places = claims.offer(&slices.iter().collect::<Vec<_>>(), &settings);
        assert_eq!((claims.devices("n0"), claims.devices("n1"), claims.devices("n2")), (Some(4), Some(2), None));
        claims.claim(&claim("a", &[("n0", "gpu-0"), ("n0", "gpu-1")], Some("pod-a")), &places, &settings);
        claims.claim(&claim("b", &[("n1", "gpu-0")], None), &places, &settings);
        claims.claim(&claim("c", &[("n0", "gpu-3")], Some("pod-that-is-gone")), &places, &settings);
        claims.claim(&claim("d", &[("n0", "gpu-7")], None), &places, &settings);
        let spec = json!({ "containers": [], "resourceClaims": [{ "name": "x", "resourceClaimName": "a" }] });
        let spec: PodSpec = serde_json::from_value(spec).unwrap();
        assert_eq!((claims.of_template("team", &spec), claims.of_template("other", &spec)), (2, 0));
        let pod = |uid: &str, gpus| PodRead { uid: uid.into(), gpus, node: Some("n0".into()), ..PodRead::default() };
        let mut pods = vec![pod("pod-a", 0), pod("pod-b", 1)];
        claims.add_to(&mut pods);
        let held: Vec<(&str, u32)> = pods.iter().map(|pod| (pod.node.as_deref().unwrap(), pod.gpus)).collect();
        assert_eq!(
            held,
            [("n0", 2), ("n0", 1), ("n1", 1), ("n0", 1)],
            "a device that no slice has any more is not there"
        );
    }
}
