//! Hardware in service, and the faults and repairs that come next.
//!
//! Hardware events have a queue of their own: a run without faults has none, and what breaks does
//! not depend on what jobs do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::HardwareRecord;
use crate::cluster::NodeId;
use crate::model::FaultModel;
use crate::model::fault::Seen;
use crate::scenario::Scenario;
use crate::time::SimTime;

/// Faults and repairs, in the order in which they happen at one millisecond: repairs first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hardware {
    SchedulerBack,
    AcceleratorBack,
    NodeBack,
    NetworkBack,
    /// The fault with this number in the script.
    Scripted(u32),
    /// The node's fault with this number.
    Random(u32),
}

/// By node: what is broken. All of it grows and shrinks by one, because faults may overlap.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    /// Accelerators that are not repaired.
    pub broken: Vec<u32>,
    /// Reasons why its network is bad.
    pub slow: Vec<u32>,
    queue: BinaryHeap<Reverse<(SimTime, Hardware, NodeId)>>,
    /// Repairs in the queue that bring accelerators back.
    pub repairs: u32,
    /// Nothing is decided before.
    pub scheduler_back: SimTime,
    pub record: HardwareRecord,
    /// Accelerators out of service.
    pub out: u32,
}

impl Health {
    /// Everything whole, and the first faults on their way.
    pub fn new(model: &FaultModel, scenario: &Scenario) -> Self {
        let nodes = scenario.cluster.nodes.len();
        let mut health = Self {
            broken: vec![0; nodes],
            slow: vec![0; nodes],
            queue: BinaryHeap::with_capacity(2 * nodes + model.script.len()),
            repairs: 0,
            scheduler_back: SimTime::ZERO,
            record: HardwareRecord::default(),
            out: 0,
        };
        for (index, fault) in model.script.iter().enumerate() {
            health.push(SimTime::from_secs_f64(fault.at_secs), Hardware::Scripted(index as u32), fault.node);
        }
        for (node, machine) in scenario.cluster.nodes.iter().enumerate().filter(|(_, machine)| machine.gpus > 0) {
            if let Some(first) = model.strike(scenario.seed, NodeId::at(node), 0, machine.gpus) {
                health.push(first.gap, Hardware::Random(0), NodeId::at(node));
            }
        }
        health
    }

    /// Queues `what`; never where it is never.
    pub fn push(&mut self, at: SimTime, what: Hardware, node: NodeId) {
        if at < SimTime::NEVER {
            self.repairs += u32::from(matches!(what, Hardware::AcceleratorBack | Hardware::NodeBack));
            self.queue.push(Reverse((at, what, node)));
        }
    }

    /// Moment of the next fault or repair.
    pub fn next(&self) -> SimTime {
        self.queue.peek().map_or(SimTime::NEVER, |Reverse((at, ..))| *at)
    }

    pub fn pop(&mut self) -> Option<(Hardware, NodeId)> {
        let Reverse((_, what, node)) = self.queue.pop()?;
        self.repairs -= u32::from(matches!(what, Hardware::AcceleratorBack | Hardware::NodeBack));
        Some((what, node))
    }

    /// A node is given back and takes its faults with it.
    pub fn forget(&mut self, node: NodeId) {
        let repairs = |what: &Hardware| matches!(what, Hardware::AcceleratorBack | Hardware::NodeBack);
        let of_node = |what: &Hardware, at: NodeId| at == node && (repairs(what) || *what == Hardware::NetworkBack);
        let gone = self.queue.iter().filter(|Reverse((_, what, at))| *at == node && repairs(what)).count();
        self.queue.retain(|Reverse((_, what, at))| !of_node(what, *at));
        self.repairs -= gone as u32;
        (self.broken[node.index()], self.slow[node.index()]) = (0, 0);
    }

    /// Faults so far that stop jobs.
    pub fn seen(&self) -> Seen {
        Seen { accelerators: self.record.accelerators, nodes: self.record.nodes }
    }
}
