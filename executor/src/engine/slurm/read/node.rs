//! Node as `sinfo --json` or `scontrol show nodes --json` tells it.

use serde_json::Value;

use super::job::RawJob;
use super::lists::gres;
use super::{number, text, words};
use crate::engine::{NodeHealth, NodeSeen};

/// A node as Slurm tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawNode {
    /// Partitions that the node is in.
    pub partitions: Vec<String>,
    /// Name of the node.
    pub name: String,
    accelerator: String,
    pub(super) gpus: u32,
    pub(super) used: u32,
    /// Cores that jobs may have, and threads of each.
    cores: (u32, u32),
    /// Memory that jobs may have, MiB.
    memory_mib: u64,
    pub(super) health: NodeHealth,
    /// Whether no job is on it.
    idle: bool,
    /// Whether its slurmd has reported since slurmctld started.
    heard: bool,
    note: String,
}

impl RawNode {
    /// Whether slurmctld waits for it to say what runs there.
    pub fn awaits_report(&self) -> bool {
        self.health == NodeHealth::Suspect && !self.heard
    }

    /// Whether slurmctld counts more accelerators of an idle node as used than jobs hold there;
    /// suspended ones hold theirs on nodes that are called idle.
    pub fn leaks(&self, jobs: &[RawJob]) -> bool {
        let held = jobs.iter().flat_map(|job| &job.held).filter(|on| on.node == self.name).map(|on| on.gpus).sum();
        self.idle && self.used > held
    }

    /// Whether the node has accelerators.
    pub fn has_accelerators(&self) -> bool {
        self.gpus > 0
    }

    /// Processors for each accelerator, in whole cores; `None` where there is less than one core for each.
    pub fn cpus_per_gpu(&self) -> Option<u32> {
        let (cores, threads) = self.cores;
        cores.checked_div(self.gpus).map(|cores| cores * threads).filter(|&cpus| cpus > 0)
    }

    /// Memory for each accelerator, MiB; `None` where there is less than 1 MiB for each.
    pub fn memory_per_gpu_mib(&self) -> Option<u64> {
        self.memory_mib.checked_div(self.gpus.into()).filter(|&mib| mib > 0)
    }

    /// Treats the node as drained: no job that is placed there would start.
    pub fn set_aside(&mut self) {
        self.health = NodeHealth::Drained;
        self.note =
            format!("slurmctld counts {} accelerators as used though no job is here; start it again", self.used);
    }

    /// In the terms of the seam. What running jobs hold is not free, whatever the node says, and
    /// what the jobs of others hold is not in service for the daemon.
    pub fn seen(&self, jobs: &[RawJob], managed: impl Fn(&RawJob) -> bool) -> NodeSeen {
        let (mut held, mut gone) = (0, 0);
        for job in jobs.iter().filter(|job| job.holds()) {
            let here: u32 = job.held.iter().filter(|on| on.node == self.name).map(|on| on.gpus).sum();
            held += here;
            gone += if managed(job) { 0 } else { here };
        }
        let gpus = self.gpus.saturating_sub(gone);
        let mut note = self.note.clone();
        if gone > 0 && note.is_empty() {
            note = format!("{gone} of {} accelerators are held by jobs that were not given to the daemon", self.gpus);
        }
        NodeSeen {
            name: self.name.clone(),
            accelerator: self.accelerator.clone(),
            gpus,
            free: self.gpus.saturating_sub(self.used.max(held)).min(gpus),
            health: self.health,
            note,
            ..NodeSeen::default()
        }
    }
}

impl From<&Value> for RawNode {
    fn from(json: &Value) -> Self {
        node(json)
    }
}

fn node(json: &Value) -> RawNode {
    let (accelerator, gpus) = gres(&text(&json["gres"]));
    let states = words(&json["state"]);
    let state = states.first().map(|state| state.to_lowercase()).unwrap_or_default();
    let flags = [words(&json["state_flags"]), states].concat();
    let flagged = |flag: &str| flags.iter().any(|known| known == flag);
    // The worst state comes first, because a node may have several flags.
    let health = match () {
        () if state.contains("down") || flagged("FAIL") || flagged("POWERED_DOWN") => NodeHealth::Down,
        () if flagged("NOT_RESPONDING") => NodeHealth::Suspect,
        () if flagged("DRAIN") || flagged("MAINTENANCE") || state.contains("drain") => NodeHealth::Drained,
        () if state.contains("unknown") => NodeHealth::Suspect,
        () => NodeHealth::Up,
    };
    let count = |name: &str| u32::try_from(number(&json[name])).unwrap_or(0);
    let threads = count("threads").max(1);
    // Newer releases say what is left beside processors that the node keeps for itself.
    let cpus = [count("effective_cpus"), count("cpus")].into_iter().find(|&cpus| cpus > 0).unwrap_or(0);
    let partitions = json["partitions"].as_array().into_iter().flatten().filter_map(Value::as_str).map(Into::into);
    RawNode {
        partitions: partitions.collect(),
        name: text(&json["name"]),
        accelerator: if accelerator.is_empty() { "gpu".into() } else { accelerator },
        gpus,
        used: gres(&text(&json["gres_used"])).1,
        cores: (cpus / threads, threads),
        memory_mib: u64::from(count("real_memory").saturating_sub(count("specialized_memory"))),
        health,
        idle: state == "idle" && health == NodeHealth::Up && !flagged("COMPLETING"),
        heard: number(&json["slurmd_start_time"]) > 0,
        note: text(&json["reason"]),
    }
}

/// Key of the name of a node in the order of names, so that n10 comes after n9.
pub fn natural(name: &str) -> (String, u64, String) {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (stem, number) = name.split_at(name.len() - digits);
    // The name itself tells n1 from n01.
    (stem.into(), number.parse().unwrap_or(0), name.into())
}
