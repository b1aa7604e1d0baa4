//! Resources of a pod that grow with its accelerators.

use goodput_configs::live::engine::KubernetesConfig;
use serde_json::{Map, Value, json};

use crate::engine::JobResources;

/// Processors and memory for each accelerator of a job; what is absent is left to the template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerGpu {
    /// Processors of a pod for each of its accelerators.
    pub cpus: Option<u32>,
    /// Memory of a pod for each of its accelerators, MiB.
    pub memory_mib: Option<u64>,
}

impl PerGpu {
    /// Resources that a submission asks for, else those of the deployment.
    ///
    /// # Errors
    /// The resources that Kubernetes does not know.
    pub fn of(asked: &JobResources, settings: &KubernetesConfig) -> Result<Self, String> {
        let JobResources { cpus_per_gpu, memory_per_gpu_mib, time_limit_mins, .. } = *asked;
        if (JobResources { cpus_per_gpu, memory_per_gpu_mib, time_limit_mins, ..JobResources::default() }) != *asked {
            return Err("Kubernetes knows accelerators, processors, memory and time limit; leave out account, QOS, \
                        partition and constraint"
                .to_owned());
        }
        Ok(Self {
            cpus: cpus_per_gpu.or(settings.cpus_per_gpu),
            memory_mib: memory_per_gpu_mib.or(settings.memory_per_gpu_mib),
        })
    }

    /// The `resources` of a container with `gpus` accelerators of the resource `resource`. Requests and limits are
    /// equal: the pod has what it asks for and no more, as a job under Slurm or a node agent.
    pub fn container(self, resource: &str, gpus: u32) -> Value {
        let mut quantity = Map::from_iter([(resource.to_owned(), gpus.to_string().into())]);
        quantity.extend(self.cpus.map(|cpus| ("cpu".to_owned(), cpus.saturating_mul(gpus).to_string().into())));
        let memory = self.memory_mib.map(|mib| format!("{}Mi", mib.saturating_mul(u64::from(gpus))));
        quantity.extend(memory.map(|memory| ("memory".to_owned(), memory.into())));
        json!({ "limits": quantity, "requests": quantity })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_job_has_what_it_asks_for_and_else_what_the_deployment_says() {
        let settings = KubernetesConfig { cpus_per_gpu: Some(4), ..KubernetesConfig::default() };
        let asked = JobResources { memory_per_gpu_mib: Some(1024), ..JobResources::default() };
        let of = PerGpu::of(&asked, &settings).unwrap();
        let quantity = json!({ "nvidia.com/gpu": "3", "cpu": "12", "memory": "3072Mi" });
        assert_eq!(of.container("nvidia.com/gpu", 3), json!({ "limits": quantity, "requests": quantity }));
        let account = JobResources { account: Some("vision".into()), ..JobResources::default() };
        assert!(PerGpu::of(&account, &settings).unwrap_err().contains("account"));
        let bare = PerGpu::default().container("gpu", 1);
        assert_eq!(bare["limits"], json!({ "gpu": "1" }));
    }
}
