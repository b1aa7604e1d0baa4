//! Processors and memory for each accelerator of a job of `live submit`: as the job asks, else as the deployment says,
//! else in proportion to the accelerators of the nodes.

use goodput_configs::live::engine::SlurmConfig;

use super::read::RawNode;
use crate::engine::JobResources;

/// Processors and memory for each accelerator; absent where Slurm's own default counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct JobDefaults {
    pub cpus: Option<u32>,
    pub memory_mib: Option<u64>,
}

impl JobDefaults {
    /// Processors and memory of a job that asks for `asked`. A key of the deployment that is 0 leaves the choice to
    /// Slurm.
    pub fn of(asked: &JobResources, settings: &SlurmConfig, nodes: &[RawNode]) -> Self {
        let part = Self::in_proportion(nodes, asked.partition.as_deref());
        Self {
            cpus: asked.cpus_per_gpu.or(settings.cpus_per_gpu).or(part.cpus).filter(|&cpus| cpus > 0),
            memory_mib: asked.memory_per_gpu_mib.or(settings.memory_per_gpu_mib).or(part.memory_mib).filter(|&m| m > 0),
        }
    }

    /// The part that every node can give to each of its accelerators: the least of the nodes, or of those in
    /// `partition`. So jobs that fill the accelerators of a node find processors and memory there. Absent where one of
    /// these nodes has less than one of it for each accelerator, or does not say.
    fn in_proportion(nodes: &[RawNode], partition: Option<&str>) -> Self {
        let is_in = |node: &&RawNode| partition.is_none_or(|name| node.partitions.iter().any(|of| of == name));
        let nodes = || nodes.iter().filter(is_in).filter(|node| node.has_accelerators());
        // `None` is the least of all.
        Self {
            cpus: nodes().map(RawNode::cpus_per_gpu).min().flatten(),
            memory_mib: nodes().map(RawNode::memory_per_gpu_mib).min().flatten(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_asks_the_deployment_says_and_nodes_are_divided() {
        let node = |gpus: u32, cpus: u32, threads: u32, memory: u64, partition: &str| {
            RawNode::from(&json!({
                "name": "n", "gres": format!("gpu:a100:{gpus}"), "state": ["IDLE"], "partitions": [partition],
                "cpus": cpus, "threads": threads, "real_memory": memory,
            }))
        };
        let nodes = [node(8, 64, 1, 512_000, "train"), node(4, 24, 2, 200_001, "train"), node(2, 60, 2, 1, "other")];
        let asked = JobResources::default();
        let of = |asked: &JobResources, settings: &SlurmConfig| {
            let each = JobDefaults::of(asked, settings, &nodes);
            (each.cpus, each.memory_mib)
        };
        let plain = SlurmConfig::default();
        // Three cores of two threads for each of four accelerators. A node of 1 MiB does not say its memory, so that a
        // job that may run there leaves the memory to Slurm.
        assert_eq!(of(&asked, &plain), (Some(6), None));
        let partition = |name: &str| JobResources { partition: Some(name.into()), ..JobResources::default() };
        assert_eq!(of(&partition("train"), &plain), (Some(6), Some(50_000)));
        assert_eq!(of(&partition("other"), &plain), (Some(30), None));
        assert_eq!(of(&partition("absent"), &plain), (None, None));
        let key = SlurmConfig { cpus_per_gpu: Some(4), memory_per_gpu_mib: Some(0), ..SlurmConfig::default() };
        assert_eq!(of(&asked, &key), (Some(4), None), "the key overrides, and 0 is Slurm's own default");
        let asks = JobResources { cpus_per_gpu: Some(2), memory_per_gpu_mib: Some(10), ..JobResources::default() };
        assert_eq!(of(&asks, &key), (Some(2), Some(10)));
        assert_eq!(JobDefaults::of(&asked, &plain, &[]), JobDefaults::default(), "no node is known yet");
    }

    #[test]
    fn what_a_node_keeps_for_itself_is_not_divided() {
        let node = RawNode::from(&json!({
            "name": "n", "gres": "gpu:8", "cpus": 64, "effective_cpus": 60, "threads": 2, "real_memory": 512_000,
            "specialized_memory": 32_000,
        }));
        assert_eq!((node.cpus_per_gpu(), node.memory_per_gpu_mib()), (Some(6), Some(60_000)));
        let small = RawNode::from(&json!({ "name": "n", "gres": "gpu:8", "cpus": 2, "real_memory": 1 }));
        assert_eq!((small.cpus_per_gpu(), small.memory_per_gpu_mib()), (None, None), "less than one of each");
    }
}
