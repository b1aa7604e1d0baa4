//! The life of an inference instance: RUN while it starts and answers, PROTECT while it waits for
//! the next request, FREE when its accelerator may be taken (DeepBoot, ATS-I, figure 8; the
//! artifact calls FREE `SLEEP`).
//!
//! The accelerator of a FREE instance is free in the cluster's books: a job or an instance that
//! takes the accelerator ends it. Until then a request for its model finds it warm. The book is
//! kept by node and by model, so that an event costs work only for the instance it is about.

use crate::cluster::NodeId;
use crate::request::{InstanceId, RequestId};
use crate::time::SimTime;

/// State of an instance in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceState {
    /// Starts, if it is new, and answers a request.
    Run {
        /// Request that the instance answers.
        request: RequestId,
        /// Moment at which the answer is complete.
        until: SimTime,
    },
    /// Waits for a request, and its accelerator is not taken.
    Protect {
        /// Last moment of the protection, which is included.
        until: SimTime,
    },
    /// Waits for a request until a job or another instance takes its accelerator.
    Free {
        /// Moment at which the instance became free.
        since: SimTime,
    },
}

/// An instance of a model on one accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Index of the model into the workload's served models.
    pub model: u16,
    /// Node that the instance is on.
    pub node: NodeId,
    /// State in its life.
    pub state: InstanceState,
    /// Requests in a row that found it protected.
    pub hits: u32,
    /// Since when it is in this state.
    pub(crate) since: SimTime,
}

impl Instance {
    /// Whether the instance can answer a request now.
    pub fn is_idle(&self) -> bool {
        !matches!(self.state, InstanceState::Run { .. })
    }

    /// Whether its accelerator may be taken.
    pub fn is_free(&self) -> bool {
        matches!(self.state, InstanceState::Free { .. })
    }
}

/// End of the state of an instance. It is void once the instance has changed its state before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InstanceEnd {
    pub at: SimTime,
    pub id: InstanceId,
    /// Number of the instance's state.
    pub generation: u32,
}

/// Instances of a cluster by node and by model.
#[derive(Clone, Debug, Default)]
pub struct InstanceTable {
    slots: Vec<Option<Instance>>,
    /// Changes of each slot so far; what was queued under another number is void.
    generations: Vec<u32>,
    spare: Vec<InstanceId>,
    of_model: Vec<Vec<InstanceId>>,
    on_node: Vec<Vec<InstanceId>>,
    sleeping: Vec<u32>,
    running: u32,
    protected: u32,
    live: u32,
}

impl InstanceTable {
    pub(crate) fn new(models: usize, nodes: usize) -> Self {
        let nodes = if models == 0 { 0 } else { nodes };
        Self {
            of_model: vec![Vec::new(); models],
            on_node: vec![Vec::new(); nodes],
            sleeping: vec![0; nodes],
            ..Self::default()
        }
    }

    /// Instance with this id, if it lives.
    pub fn get(&self, id: InstanceId) -> Option<&Instance> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    /// Living instances, in order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (InstanceId, &Instance)> {
        let numbered = self.slots.iter().enumerate();
        numbered.filter_map(|(at, slot)| Some((InstanceId(at as u32), slot.as_ref()?)))
    }

    /// Instances of a model, in order of their ids.
    pub fn of_model(&self, model: u16) -> impl Iterator<Item = (InstanceId, &Instance)> {
        let ids = self.of_model.get(model as usize).map_or(&[][..], Vec::as_slice);
        ids.iter().filter_map(|&id| Some((id, self.get(id)?)))
    }

    /// Accelerators of `node` that free instances are on.
    pub fn sleeping_on(&self, node: NodeId) -> u32 {
        self.sleeping.get(node.index()).copied().unwrap_or(0)
    }

    /// Instances that answer requests.
    pub fn running(&self) -> u32 {
        self.running
    }

    /// Instances that are protected.
    pub fn protected(&self) -> u32 {
        self.protected
    }

    /// Instances that could answer a request now.
    pub fn idle(&self) -> u32 {
        self.live - self.running
    }

    /// Whether the instance is still in the state that `end` is the end of.
    pub(crate) fn is_current(&self, end: &InstanceEnd) -> bool {
        self.generations[end.id.0 as usize] == end.generation
    }

    /// A new instance that runs. Returns the end of its state.
    pub(crate) fn start(
        &mut self,
        model: u16,
        node: NodeId,
        state: InstanceState,
        now: SimTime,
    ) -> Option<InstanceEnd> {
        let id = self.spare.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.generations.push(0);
            InstanceId(self.slots.len() as u32 - 1)
        });
        self.slots[id.0 as usize] = Some(Instance { model, node, state, hits: 0, since: now });
        for list in [&mut self.of_model[model as usize], &mut self.on_node[node.index()]] {
            let at = list.partition_point(|&other| other < id);
            list.insert(at, id);
        }
        self.live += 1;
        self.count(state, node, 1);
        self.end_of(id, state)
    }

    /// Ends an instance.
    pub(crate) fn remove(&mut self, id: InstanceId) {
        let Some(instance) = self.slots[id.0 as usize].take() else { return };
        self.of_model[instance.model as usize].retain(|&other| other != id);
        self.on_node[instance.node.index()].retain(|&other| other != id);
        self.generations[id.0 as usize] += 1;
        self.live -= 1;
        self.count(instance.state, instance.node, -1);
        self.spare.push(id);
    }

    /// Changes the state of an instance. Returns the end of the new state; `None` where nothing
    /// ends it by itself.
    pub(crate) fn set(&mut self, id: InstanceId, state: InstanceState, hits: u32, now: SimTime) -> Option<InstanceEnd> {
        let instance = self.slots[id.0 as usize].as_mut()?;
        let (before, node) = (instance.state, instance.node);
        *instance = Instance { state, hits, since: now, ..*instance };
        self.count(before, node, -1);
        self.count(state, node, 1);
        self.end_of(id, state)
    }

    /// The free instance on `node` that has been so longest, the lowest id of those.
    pub(crate) fn longest_free(&self, node: NodeId) -> Option<InstanceId> {
        let free = self.on_node.get(node.index())?.iter().filter_map(|&id| match self.get(id)?.state {
            InstanceState::Free { since } => Some((since, id)),
            InstanceState::Run { .. } | InstanceState::Protect { .. } => None,
        });
        free.min().map(|(_, id)| id)
    }

    /// Instances on `node` that run or are protected, in order of their ids.
    pub(crate) fn busy_on(&self, node: NodeId) -> impl Iterator<Item = InstanceId> + '_ {
        let on_node = self.on_node.get(node.index()).map_or(&[][..], Vec::as_slice);
        let free = |id: &InstanceId| self.get(*id).is_none_or(|one| matches!(one.state, InstanceState::Free { .. }));
        on_node.iter().copied().filter(move |id| !free(id))
    }

    /// Whether a request is being answered on `node`.
    pub fn answers_on(&self, node: NodeId) -> bool {
        let runs = |id: InstanceId| self.get(id).is_some_and(|one| matches!(one.state, InstanceState::Run { .. }));
        self.busy_on(node).any(runs)
    }

    fn end_of(&mut self, id: InstanceId, state: InstanceState) -> Option<InstanceEnd> {
        let generation = &mut self.generations[id.0 as usize];
        // Ends that were queued for earlier states are void from now on.
        *generation += 1;
        let generation = *generation;
        let at = match state {
            InstanceState::Run { until, .. } => until,
            // The last moment belongs to the protection.
            InstanceState::Protect { until } => until.saturating_add(SimTime::from_millis(1)),
            InstanceState::Free { .. } => return None,
        };
        Some(InstanceEnd { at, id, generation })
    }

    fn count(&mut self, state: InstanceState, node: NodeId, by: i32) {
        let count = match state {
            InstanceState::Run { .. } => &mut self.running,
            InstanceState::Protect { .. } => &mut self.protected,
            InstanceState::Free { .. } => &mut self.sleeping[node.index()],
        };
        *count = count.wrapping_add_signed(by);
    }
}
