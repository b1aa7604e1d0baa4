//! A Kubernetes cluster: access to it, the jobs that are handed in, and what counts as an accelerator.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::times::check_millis;
use super::{check_report_url, is_label};
use crate::error::CheckError;

/// Shortest time for which a Job that is over may be kept, seconds: a daemon that was away reads its end within it.
const SHORTEST_KEPT_SECS: u32 = 600;

/// A Kubernetes cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KubernetesConfig {
    /// File with the address of the API server and the credentials for it. Where the key is absent,
    /// the daemon goes by its service account inside a pod, and by `KUBECONFIG` or `~/.kube/config`
    /// elsewhere.
    pub kubeconfig: Option<PathBuf>,
    /// Context of that file; the current one where absent.
    pub context: Option<String>,
    /// Namespaces of the jobs that the daemon looks at; all where empty.
    pub namespaces: Vec<String>,
    /// Namespace of the jobs that `goodput live submit` hands in.
    pub namespace: String,
    /// Image of the jobs that `goodput live submit` hands in. Without it, jobs are handed in with
    /// `kubectl` only.
    pub image: Option<String>,
    /// Processors for each accelerator of a job of `live submit` that does not say; as many as the
    /// node gives where absent.
    pub cpus_per_gpu: Option<u32>,
    /// Memory for each accelerator of a job of `live submit` that does not say, MiB; as much as the
    /// node gives where absent.
    pub memory_per_gpu_mib: Option<u64>,
    /// Time for which a Job of `live submit` that is over stays in the cluster, seconds; for ever
    /// where absent. A daemon that is away for longer does not learn how the job ended.
    pub keep_ended_secs: Option<u32>,
    /// Claim of a volume for checkpoints that is mounted into submitted jobs at their checkpoint
    /// folder.
    pub checkpoint_claim: Option<String>,
    /// Resource that counts accelerators.
    pub resource: String,
    /// Labels of the nodes that the daemon manages; all nodes with accelerators where empty.
    pub nodes: BTreeMap<String, String>,
    /// Names of accelerator types by the label `nvidia.com/gpu.product`. A product that is not listed
    /// has the type that its name says: `NVIDIA-A100-SXM4-80GB` is `a100`.
    pub accelerators: BTreeMap<String, String>,
    /// Taints of nodes that jobs tolerate. A node with another taint takes no new jobs.
    pub tolerated: Vec<String>,
    /// URL under which jobs reach the daemon's interface to report their speed. Where the key is
    /// absent, jobs do not report, and policies do not learn their speeds.
    pub report_url: Option<String>,
    /// ConfigMap in the namespace of submissions, with the certificate of the authority that signed the
    /// interface's under the key `ca.crt`. The map is mounted into jobs of `live submit`. A `report_url` with
    /// `https` needs the key, unless a public authority signed.
    pub report_ca: Option<String>,
    /// Workloads of Kueue as jobs of the policy. Where the table is absent, what Kueue runs is capacity
    /// that is gone.
    pub kueue: Option<KueueConfig>,
    /// Accelerators by Dynamic Resource Allocation. Where the table is absent, only the counted resource
    /// counts.
    pub claims: Option<ClaimsConfig>,
    /// Longest time of one call, milliseconds.
    pub patience_ms: u64,
}

/// Accelerators by Dynamic Resource Allocation: devices that a driver offers, and claims that hold them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClaimsConfig {
    /// Name of the driver with devices that are accelerators. A node with such devices has as many
    /// accelerators, whatever its counted resource says.
    pub driver: String,
    /// Names of the DeviceClasses by which claims ask for these devices.
    pub classes: Vec<String>,
}

impl Default for ClaimsConfig {
    fn default() -> Self {
        Self { driver: "gpu.nvidia.com".into(), classes: vec!["gpu.nvidia.com".into()] }
    }
}

impl ClaimsConfig {
    fn check(&self) -> Result<(), CheckError> {
        let is_name = |name: &str| name.split('.').all(is_label);
        if !is_name(&self.driver) {
            let value = format!("{:?}", self.driver);
            return Err(CheckError::value("engine.kubernetes.claims.driver", value, "a name such as gpu.nvidia.com"));
        }
        if self.classes.is_empty() || !self.classes.iter().all(|name| is_name(name)) {
            let expected = "names of DeviceClasses, such as gpu.nvidia.com: `kubectl get deviceclasses` lists them";
            return Err(CheckError::value("engine.kubernetes.claims.classes", format!("{:?}", self.classes), expected));
        }
        Ok(())
    }
}

/// Part of the daemon in the admission of Workloads by Kueue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KueueRole {
    /// The policy sees every Workload, and its decisions about Workloads are reported. Nothing is done.
    #[default]
    Observe,
    /// The daemon is the controller of an AdmissionCheck: a Workload with the check starts when the
    /// policy places it, and is evicted when the policy takes its accelerators back.
    Check,
}

/// Workloads of Kueue (0.16 or later) as jobs of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KueueConfig {
    /// Part of the daemon in their admission: `observe` or `check`.
    pub role: KueueRole,
    /// Names of the ClusterQueues with Workloads that the policy sees; all where empty.
    pub queues: Vec<String>,
    /// `controllerName` of the AdmissionChecks that are the daemon's.
    pub controller: String,
}

impl Default for KueueConfig {
    fn default() -> Self {
        Self { role: KueueRole::Observe, queues: Vec::new(), controller: "goodput.dev/policy".into() }
    }
}

impl KueueConfig {
    fn check(&self) -> Result<(), CheckError> {
        if let Some(wrong) = self.queues.iter().find(|name| !name.split('.').all(is_label)) {
            let expected = "names of ClusterQueues, such as team-a";
            return Err(CheckError::value("engine.kubernetes.kueue.queues", format!("{wrong:?}"), expected));
        }
        let path = |byte: u8| byte.is_ascii_alphanumeric() || b"./-".contains(&byte);
        if self.controller.is_empty() || self.controller.len() > 253 || !self.controller.bytes().all(path) {
            let expected = "a name such as goodput.dev/policy, in at most 253 letters";
            let value = format!("{:?}", self.controller);
            return Err(CheckError::value("engine.kubernetes.kueue.controller", value, expected));
        }
        Ok(())
    }
}

impl Default for KubernetesConfig {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            context: None,
            namespaces: Vec::new(),
            namespace: "default".into(),
            image: None,
            cpus_per_gpu: None,
            memory_per_gpu_mib: None,
            keep_ended_secs: None,
            checkpoint_claim: None,
            resource: "nvidia.com/gpu".into(),
            nodes: BTreeMap::new(),
            accelerators: BTreeMap::new(),
            tolerated: vec!["nvidia.com/gpu".into()],
            report_url: None,
            report_ca: None,
            kueue: None,
            claims: None,
            patience_ms: 5000,
        }
    }
}

impl KubernetesConfig {
    pub(super) fn check(&self) -> Result<(), CheckError> {
        for name in self.namespaces.iter().chain([&self.namespace]) {
            if !is_label(name) {
                let expected = "the name of a namespace: at most 63 of a-z, 0-9 and -";
                return Err(CheckError::value("engine.kubernetes.namespace", format!("{name:?}"), expected));
            }
        }
        for (key, zero) in [
            ("engine.kubernetes.cpus_per_gpu", self.cpus_per_gpu == Some(0)),
            ("engine.kubernetes.memory_per_gpu_mib", self.memory_per_gpu_mib == Some(0)),
        ] {
            if zero {
                return Err(CheckError::value(key, 0, "a positive number, or no such key to ask for none"));
            }
        }
        if let Some(short) = self.keep_ended_secs.filter(|&secs| secs < SHORTEST_KEPT_SECS) {
            let expected =
                format!("{SHORTEST_KEPT_SECS} or more, so that a daemon that restarts learns how a job ended");
            return Err(CheckError::value("engine.kubernetes.keep_ended_secs", short, expected));
        }
        self.check_reports()?;
        self.kueue.as_ref().map_or(Ok(()), KueueConfig::check)?;
        self.claims.as_ref().map_or(Ok(()), ClaimsConfig::check)?;
        if !self.namespaces.is_empty() && !self.namespaces.contains(&self.namespace) {
            let expected = "one of engine.kubernetes.namespaces, else submitted jobs are never seen";
            return Err(CheckError::value("engine.kubernetes.namespace", format!("{:?}", self.namespace), expected));
        }
        if self.resource.is_empty() {
            return Err(CheckError::value("engine.kubernetes.resource", "empty", "a resource such as nvidia.com/gpu"));
        }
        if self.patience_ms == 0 {
            return Err(CheckError::value("engine.kubernetes.patience_ms", 0, "1 millisecond or more"));
        }
        check_millis("engine.kubernetes.patience_ms", self.patience_ms)
    }

    /// Checks that a policy that acts does not count on Workloads that it only observes.
    pub(in crate::live) fn check_mode(&self, acts: bool) -> Result<(), CheckError> {
        let observes = self.kueue.as_ref().is_some_and(|kueue| kueue.role == KueueRole::Observe);
        if acts && observes {
            let expected = "\"check\", or no table of Kueue, since `mode` is not observe: a policy that acts on other \
                            jobs must not count on Workloads that it cannot move";
            return Err(CheckError::value("engine.kubernetes.kueue.role", "\"observe\"", expected));
        }
        Ok(())
    }

    fn check_reports(&self) -> Result<(), CheckError> {
        let url = self.report_url.as_deref();
        check_report_url("engine.kubernetes.report_url", url)?;
        let Some(ca) = &self.report_ca else { return Ok(()) };
        if ca.is_empty() || !ca.split('.').all(is_label) {
            let expected = "the name of a ConfigMap in the namespace of submissions, with the key ca.crt";
            return Err(CheckError::value("engine.kubernetes.report_ca", format!("{ca:?}"), expected));
        }
        if !url.is_some_and(|url| url.starts_with("https://")) {
            let value = url.map_or("absent".to_owned(), |url| format!("{url:?}"));
            let expected = "an address with https, since `report_ca` is set";
            return Err(CheckError::value("engine.kubernetes.report_url", value, expected));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key that is refused, or nothing.
    fn refused(change: impl FnOnce(&mut KubernetesConfig)) -> String {
        let mut settings = KubernetesConfig::default();
        change(&mut settings);
        settings.check().err().and_then(|error| error.key).unwrap_or_default().into()
    }

    #[test]
    fn an_authority_for_reports_is_a_map_and_belongs_to_an_address_with_https() {
        let of = |url: Option<&str>, ca: &str| {
            refused(|settings| {
                (settings.report_url, settings.report_ca) = (url.map(str::to_owned), Some(ca.into()));
            })
        };
        assert_eq!(of(Some("https://head:7070"), "kube-root-ca.crt"), "");
        assert_eq!(of(Some("https://head:7070"), "/etc/ca.pem"), "engine.kubernetes.report_ca");
        for url in [None, Some("http://head:7070")] {
            assert_eq!(of(url, "ca"), "engine.kubernetes.report_url");
        }
    }

    #[test]
    fn a_policy_that_acts_does_not_only_observe_kueue() {
        let of = |role| KubernetesConfig {
            kueue: Some(KueueConfig { role, ..KueueConfig::default() }),
            ..KubernetesConfig::default()
        };
        assert!(of(KueueRole::Observe).check_mode(false).is_ok() && of(KueueRole::Check).check_mode(true).is_ok());
        let refused = of(KueueRole::Observe).check_mode(true).err().and_then(|error| error.key);
        assert_eq!(refused.as_deref(), Some("engine.kubernetes.kueue.role"));
    }

    #[test]
    fn queues_and_the_controller_of_kueue_are_names() {
        let of = |kueue: KueueConfig| refused(|settings| settings.kueue = Some(kueue));
        assert_eq!(of(KueueConfig::default()), "");
        let queues = KueueConfig { queues: vec!["team a".into()], ..KueueConfig::default() };
        assert_eq!(of(queues), "engine.kubernetes.kueue.queues");
        let controller = KueueConfig { controller: String::new(), ..KueueConfig::default() };
        assert_eq!(of(controller), "engine.kubernetes.kueue.controller");
    }

    #[test]
    fn a_driver_has_classes() {
        let of = |claims: ClaimsConfig| refused(|settings| settings.claims = Some(claims));
        assert_eq!(of(ClaimsConfig::default()), "");
        let driver = ClaimsConfig { driver: "GPU".into(), ..ClaimsConfig::default() };
        assert_eq!(of(driver), "engine.kubernetes.claims.driver");
        let classes = ClaimsConfig { classes: Vec::new(), ..ClaimsConfig::default() };
        assert_eq!(of(classes), "engine.kubernetes.claims.classes");
    }

    #[test]
    fn numbers_are_positive_and_an_end_is_kept_long_enough() {
        assert_eq!(refused(|settings| settings.cpus_per_gpu = Some(0)), "engine.kubernetes.cpus_per_gpu");
        let memory = "engine.kubernetes.memory_per_gpu_mib";
        assert_eq!(refused(|settings| settings.memory_per_gpu_mib = Some(0)), memory);
        let kept = "engine.kubernetes.keep_ended_secs";
        assert_eq!(refused(|settings| settings.keep_ended_secs = Some(60)), kept);
        assert_eq!(refused(|settings| settings.keep_ended_secs = Some(86_400)), "");
    }
}
