//! Default preemption (`default_preemption.go`): where a pod fits nowhere, jobs of lower priority
//! make room for it.
//!
//! For a pod alone every node is tried: all of lower priority leave, and come back from the most
//! important down as long as the pod still fits. The chosen node is the one with the least
//! important victims, by the most important victim of each node, then by the sum of victims'
//! priorities, then by their number, then the node with the victims that started last. A gang needs room on
//! many nodes at once: the least important, newest jobs of one type go until it has it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use goodput_env::cluster::{NodeId, TypeId};
use goodput_env::job::JobId;
use goodput_env::time::SimTime;

use crate::placement::framework::{Plugin, Pod, Remedy, Resident, Snapshot};

/// The plugin. A victim loses all its accelerators, wherever they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Preemption;

impl Plugin for Preemption {
    fn post_filter(&mut self, snapshot: &Snapshot, pod: &Pod, resolvable: &[NodeId]) -> Remedy {
        let victims = match pod.members {
            0 | 1 => on_one_node(snapshot, pod, resolvable),
            // Only the first pod of a gang asks, because its victims make room for the whole gang.
            _ if pod.id.index == 0 => on_one_type(snapshot, pod, resolvable),
            _ => None,
        };
        victims.map_or(Remedy::None, Remedy::Evict)
    }
}

/// Criteria between nodes, and the victims there.
type Choice = (i32, i64, usize, Reverse<SimTime>, NodeId, Vec<JobId>);

fn on_one_node(snapshot: &Snapshot, pod: &Pod, resolvable: &[NodeId]) -> Option<Vec<JobId>> {
    let choice = |&id: &NodeId| -> Option<Choice> {
        let node = snapshot.node(id);
        let mut lower: Vec<&Resident> = node.residents.iter().filter(|of| of.priority < pod.priority).collect();
        let mut left = node.free + lower.iter().map(|of| of.gpus).sum::<u32>();
        if left < pod.gpus {
            return None;
        }
        lower.sort_by_key(|of| (Reverse(of.priority), of.since, of.job));
        lower.retain(|of| {
            let spared = left - of.gpus >= pod.gpus;
            left -= if spared { of.gpus } else { 0 };
            !spared
        });
        let most = lower.iter().map(|of| of.priority).max()?;
        let sum = lower.iter().map(|of| i64::from(of.priority)).sum();
        let earliest = lower.iter().map(|of| of.since).min()?;
        Some((most, sum, lower.len(), Reverse(earliest), id, lower.iter().map(|of| of.job).collect()))
    };
    resolvable.iter().filter_map(choice).min().map(|choice| choice.5)
}

fn on_one_type(snapshot: &Snapshot, pod: &Pod, resolvable: &[NodeId]) -> Option<Vec<JobId>> {
    let needed = pod.members * pod.gpus;
    let of_type = |kind: TypeId| -> Option<(i32, TypeId, Vec<JobId>)> {
        // Jobs leave in the order of these keys: the least important first, of those the newest.
        let mut lower: BTreeMap<(i32, Reverse<SimTime>, JobId), u32> = BTreeMap::new();
        for node in snapshot.nodes.iter().filter(|node| node.kind == kind) {
            for of in node.residents.iter().filter(|of| of.priority < pod.priority) {
                *lower.entry((of.priority, Reverse(of.since), of.job)).or_default() += of.gpus;
            }
        }
        let mut left = snapshot.free_of(kind);
        let mut victims = Vec::new();
        for (key, gpus) in lower {
            if left >= needed {
                break;
            }
            left += gpus;
            victims.push((key, gpus));
        }
        if left < needed || victims.is_empty() {
            return None;
        }
        // Below, the last victim is never spared, because without it there was not enough.
        let most = victims.last().map(|(key, _)| key.0)?;
        // From the most important down, victims that turn out not to be needed are spared.
        for at in (0..victims.len()).rev() {
            if left - victims[at].1 >= needed {
                left -= victims.remove(at).1;
            }
        }
        Some((most, kind, victims.into_iter().map(|(key, _)| key.2).collect()))
    };
    let mut kinds: Vec<TypeId> = resolvable.iter().map(|&node| snapshot.node(node).kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.into_iter().filter_map(of_type).min().map(|(_, _, victims)| victims)
}
