//! Contract with a job at its start: environment variables, and the signals that follow.
//!
//! | signal | means |
//! |---|---|
//! | SIGTERM to the process group | write a checkpoint and exit 143 within `SCHED_GRACE_S`; SIGKILL comes after |
//! | SIGUSR1 | write a checkpoint and go on |
//! | SIGUSR2 | reserved |
//!
//! The variables `RANK`-like programs know are set as torchrun sets them for a node, and those of
//! AdaptDL (petuum/adaptdl, `adaptdl/env.py`) as its scheduler sets them, so that jobs written for
//! either run unchanged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use goodput_configs::live::name::JobName;
use serde::{Deserialize, Serialize};

use super::fence::Fence;
use super::members::MemberLaunch;
use super::program::Program;

/// Version of this protocol, as `SCHED_PROTOCOL` says it.
pub const VERSION: u32 = 1;

/// Variable that marks every process of an attempt: a process with this variable belongs to the
/// attempt.
pub const FENCE: &str = "SCHED_FENCE";

/// The variable that says which node's agent started a process.
pub const NODE: &str = "SCHED_NODE";

/// One accelerator, or a part of it, given to a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceleratorGrant {
    /// The device's own name for itself.
    pub uuid: String,
    /// Part of its compute, 1 to 100 percent.
    pub compute_percent: u32,
    /// Memory, MiB; `None`: all of it.
    pub memory_mib: Option<u64>,
    /// Isolation of the job from others on the accelerator.
    pub isolation: GrantIsolation,
}

impl AcceleratorGrant {
    /// A whole accelerator.
    #[must_use]
    pub fn whole(uuid: impl Into<String>) -> Self {
        Self { uuid: uuid.into(), compute_percent: 100, memory_mib: None, isolation: GrantIsolation::Exclusive }
    }
}

/// Isolation of a job's part of an accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantIsolation {
    /// No isolation is needed: the job is alone on the accelerator.
    Exclusive,
    /// NVIDIA's Multi-Process Service.
    Mps,
    /// HAMi-core, preloaded into the job.
    Hami,
    /// The device itself: the UUID is that of an instance.
    Mig,
}

/// Place of a node among those that run one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GangPlan {
    /// This node's number, from 0.
    pub rank: u32,
    /// Nodes in all.
    pub nodes: u32,
    /// Accelerators of the attempt on all nodes.
    pub world: u32,
    /// Number of this node's first accelerator among them.
    pub first: u32,
    /// Address of rank 0, as its peers reach it.
    pub master_addr: String,
    /// Port on which rank 0 may listen.
    pub master_port: u16,
    /// Address of each accelerator's node, by rank, as AdaptDL's `/discover` tells it.
    pub peers: Vec<String>,
}

impl GangPlan {
    /// All on one node.
    #[must_use]
    pub fn alone(accelerators: u32, master_port: u16) -> Self {
        let master_addr = "127.0.0.1".to_owned();
        let peers = vec![master_addr.clone(); accelerators as usize];
        Self { rank: 0, nodes: 1, world: accelerators, first: 0, master_addr, master_port, peers }
    }
}

/// Limits of an attempt on one node, beside its accelerators. An absent value limits nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NodeLimits {
    /// Processors: the time that it may use is that of so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Memory, MiB. The attempt ends where it needs more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
}

/// One attempt of a job on one node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// Program of the attempt.
    pub program: Program,
    /// Number of this attempt, from 0; one more at each start.
    pub attempt: u32,
    /// Fence of the attempt, equal on all nodes.
    pub fence: Fence,
    /// Accelerators of this node it may use.
    pub grants: Vec<AcceleratorGrant>,
    /// The node's place among those of the attempt.
    pub gang: GangPlan,
    /// Limits beside the accelerators.
    #[serde(default)]
    pub limits: NodeLimits,
    /// Place among the members of an elastic attempt; `None` where the attempt runs once a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<MemberLaunch>,
}

/// Facts that the agent adds to a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// Name of the node.
    pub node: JobName,
    /// Folder that survives attempts.
    pub checkpoint_dir: PathBuf,
    /// Socket for reports.
    pub socket: PathBuf,
    /// File with the plan for the members of an elastic attempt.
    pub members: PathBuf,
    /// Address of the agent's server on the loopback device, such as `http://127.0.0.1:7071`.
    pub url: String,
}

impl Launch {
    /// `job.attempt`, or `job.attempt.member` in an elastic attempt: names the attempt on its node.
    #[must_use]
    pub fn id(&self) -> String {
        let Self { program, attempt, member, .. } = self;
        match member {
            None => format!("{}.{attempt}", program.name),
            Some(member) => format!("{}.{attempt}.{}", program.name, member.number),
        }
    }

    /// The environment of the job: all of it but `PATH` and its like.
    #[must_use]
    pub fn environment(&self, around: &Surroundings) -> BTreeMap<String, String> {
        let mut env = self.program.env.clone();
        // What the protocol sets replaces variables of the same names that the user set.
        let mut set = |key: &str, value: String| {
            env.insert(key.to_owned(), value);
        };
        let (gang, job) = (&self.gang, &self.program.name);

        set("SCHED_PROTOCOL", VERSION.to_string());
        set("SCHED_JOB_ID", job.to_string());
        set("SCHED_ATTEMPT", self.attempt.to_string());
        set(FENCE, self.fence.as_str().to_owned());
        set(NODE, around.node.to_string());
        set("SCHED_CHECKPOINT_DIR", text(&around.checkpoint_dir));
        set("SCHED_SOCKET", text(&around.socket));
        set("SCHED_URL", around.url.clone());
        set("SCHED_GRACE_S", self.program.grace_s.to_string());

        if let Some(member) = &self.member {
            set("SCHED_MEMBER", member.number.to_string());
            set("SCHED_MEMBERS", text(&around.members));
        }

        set("NODE_RANK", gang.rank.to_string());
        set("NNODES", gang.nodes.to_string());
        set("NPROC_PER_NODE", self.grants.len().to_string());
        set("FIRST_RANK", gang.first.to_string());
        set("WORLD_SIZE", gang.world.to_string());
        set("MASTER_ADDR", gang.master_addr.clone());
        set("MASTER_PORT", gang.master_port.to_string());
        // Every attempt has a rendezvous of its own: a process that is late for the last one must
        // not join this one.
        set("TORCHELASTIC_RUN_ID", self.id());
        set("TORCHELASTIC_RESTART_COUNT", self.attempt.to_string());

        set("ADAPTDL_JOB_ID", format!("goodput/{job}"));
        set("ADAPTDL_CHECKPOINT_PATH", text(&around.checkpoint_dir));
        set("ADAPTDL_SHARE_PATH", text(&around.checkpoint_dir));
        set("ADAPTDL_MASTER_ADDR", gang.master_addr.clone());
        set("ADAPTDL_MASTER_PORT", gang.master_port.to_string());
        set("ADAPTDL_REPLICA_RANK", gang.first.to_string());
        set("ADAPTDL_NUM_NODES", gang.nodes.to_string());
        set("ADAPTDL_NUM_REPLICAS", gang.world.to_string());
        set("ADAPTDL_NUM_RESTARTS", self.attempt.to_string());
        set("ADAPTDL_SUPERVISOR_URL", format!("{}/adaptdl/{}", around.url, self.fence.supervisor_key()));
        set("ADAPTDL_SCHED_VERSION", "0.2.11".to_owned());

        let uuids: Vec<&str> = self.grants.iter().map(|grant| grant.uuid.as_str()).collect();
        set("CUDA_VISIBLE_DEVICES", uuids.join(","));
        for (key, value) in limits(&self.grants) {
            set(key, value);
        }
        env
    }
}

/// Variables that keep a job to its part. UUIDs, not indices, as NVIDIA's manual of MPS advises:
/// indices count from 0 within `CUDA_VISIBLE_DEVICES`.
fn limits(grants: &[AcceleratorGrant]) -> Vec<(&'static str, String)> {
    let Some(grant) = grants.first() else { return Vec::new() };
    match grant.isolation {
        GrantIsolation::Mps => {
            // One percentage holds for all accelerators of a process; memory has a limit on each.
            let percent = ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", grant.compute_percent.to_string());
            let each =
                grants.iter().zip(0..).filter_map(|(grant, at): (_, u32)| Some(format!("{at}={}M", grant.memory_mib?)));
            let each: Vec<String> = each.collect();
            let limit = (!each.is_empty()).then(|| ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", each.join(",")));
            [percent].into_iter().chain(limit).collect()
        }
        GrantIsolation::Hami if grants.len() == 1 => {
            let percent = ("CUDA_DEVICE_SM_LIMIT", grant.compute_percent.to_string());
            let limit = grant.memory_mib.map(|mib| ("CUDA_DEVICE_MEMORY_LIMIT", format!("{mib}m")));
            [percent].into_iter().chain(limit).collect()
        }
        GrantIsolation::Exclusive | GrantIsolation::Mig | GrantIsolation::Hami => Vec::new(),
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::MembersPlan;

    fn launch(grants: Vec<AcceleratorGrant>) -> Launch {
        let mut program = Program::new(JobName::new("resnet").unwrap(), vec!["train".to_owned()]);
        program.env = [("LR", "0.1"), ("WORLD_SIZE", "99")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let master_addr = "10.0.0.1".to_owned();
        let gang =
            GangPlan { rank: 1, nodes: 2, world: 4, first: 2, master_addr, master_port: 47_003, peers: Vec::new() };
        let limits = NodeLimits::default();
        Launch { program, attempt: 3, fence: Fence::from_text("f"), grants, gang, limits, member: None }
    }

    fn around() -> Surroundings {
        Surroundings {
            node: JobName::new("n2").unwrap(),
            checkpoint_dir: "/ckpt/resnet".into(),
            socket: "/run/agent.sock".into(),
            members: "/run/a.3/members.json".into(),
            url: "http://127.0.0.1:7071".to_owned(),
        }
    }

    #[test]
    fn every_variable_of_the_contract() {
        let env =
            launch(vec![AcceleratorGrant::whole("GPU-a"), AcceleratorGrant::whole("GPU-b")]).environment(&around());
        let fence = Fence::from_text("f");
        let supervisor = format!("http://127.0.0.1:7071/adaptdl/{}", fence.supervisor_key());
        let expected = [
            ("SCHED_PROTOCOL", "1"),
            ("SCHED_JOB_ID", "resnet"),
            ("SCHED_ATTEMPT", "3"),
            ("SCHED_FENCE", fence.as_str()),
            ("SCHED_NODE", "n2"),
            ("SCHED_CHECKPOINT_DIR", "/ckpt/resnet"),
            ("SCHED_SOCKET", "/run/agent.sock"),
            ("SCHED_URL", "http://127.0.0.1:7071"),
            ("SCHED_GRACE_S", "60"),
            ("NODE_RANK", "1"),
            ("NNODES", "2"),
            ("NPROC_PER_NODE", "2"),
            ("FIRST_RANK", "2"),
            ("WORLD_SIZE", "4"),
            ("MASTER_ADDR", "10.0.0.1"),
            ("MASTER_PORT", "47003"),
            ("TORCHELASTIC_RUN_ID", "resnet.3"),
            ("TORCHELASTIC_RESTART_COUNT", "3"),
            ("ADAPTDL_JOB_ID", "goodput/resnet"),
            ("ADAPTDL_CHECKPOINT_PATH", "/ckpt/resnet"),
            ("ADAPTDL_SHARE_PATH", "/ckpt/resnet"),
            ("ADAPTDL_MASTER_ADDR", "10.0.0.1"),
            ("ADAPTDL_MASTER_PORT", "47003"),
            ("ADAPTDL_REPLICA_RANK", "2"),
            ("ADAPTDL_NUM_NODES", "2"),
            ("ADAPTDL_NUM_REPLICAS", "4"),
            ("ADAPTDL_NUM_RESTARTS", "3"),
            ("ADAPTDL_SUPERVISOR_URL", supervisor.as_str()),
            ("ADAPTDL_SCHED_VERSION", "0.2.11"),
            ("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b"),
            ("LR", "0.1"),
        ];
        let expected: BTreeMap<String, String> =
            expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        assert_eq!(env, expected, "and the contract wins over what the user sets");
    }

    #[test]
    fn a_member_of_an_elastic_attempt_is_told_its_number_and_where_the_plan_is() {
        let plan = MembersPlan { version: 1, key: Fence::from_text("k"), founder: 0, members: Vec::new() };
        let member = Some(MemberLaunch { number: 7, plan });
        let launch = Launch { member, ..launch(vec![AcceleratorGrant::whole("GPU-a")]) };
        let env = launch.environment(&around());
        let said = ["SCHED_MEMBER", "SCHED_MEMBERS"].map(|key| env[key].as_str());
        assert_eq!((launch.id().as_str(), said), ("resnet.3.7", ["7", "/run/a.3/members.json"]));
    }

    #[test]
    fn parts_of_accelerators_have_limits_and_whole_ones_have_none() {
        let part = |isolation| AcceleratorGrant {
            uuid: "GPU-a".to_owned(),
            compute_percent: 30,
            memory_mib: Some(10_240),
            isolation,
        };
        let of = |isolation| launch(vec![part(isolation)]).environment(&around());
        let mps = of(GrantIsolation::Mps);
        assert_eq!(mps["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"], "30");
        assert_eq!(mps["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"], "0=10240M");
        let two = launch(vec![part(GrantIsolation::Mps), part(GrantIsolation::Mps)]).environment(&around());
        assert_eq!(two["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"], "30");
        assert_eq!(two["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"], "0=10240M,1=10240M");
        let hami = of(GrantIsolation::Hami);
        assert_eq!(
            (hami["CUDA_DEVICE_SM_LIMIT"].as_str(), hami["CUDA_DEVICE_MEMORY_LIMIT"].as_str()),
            ("30", "10240m")
        );
        for isolation in [GrantIsolation::Exclusive, GrantIsolation::Mig] {
            assert!(of(isolation).keys().all(|key| !key.starts_with("CUDA_") || key == "CUDA_VISIBLE_DEVICES"));
        }
    }
}
