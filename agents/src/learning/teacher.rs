//! Any policy as a teacher: its plan for a round becomes the action to take in each state of that
//! round, the learner's own states included (DAgger, Ross et al. 2011). In a simulator, asking the
//! teacher is free.

use goodput_env::cluster::TypeId;
use goodput_env::gym::{Action, ClusterEnv, EnvError, Environment, Layout, Round, Slot, Verb};
use goodput_env::policy::Policy;
use goodput_env::view::ClusterView;

/// A policy that labels states.
pub struct Teacher {
    policy: Box<dyn Policy>,
    /// Accelerators each slot of the current round should end up with, and their type.
    targets: Vec<(u32, TypeId)>,
    /// Slots in the order in which growth is shown: as the policy listed them, so that the order
    /// carries its priorities.
    order: Vec<u32>,
    begun: bool,
}

impl Teacher {
    /// A teacher that does as `policy` does.
    pub fn new(policy: Box<dyn Policy>) -> Self {
        Self { policy, targets: Vec::new(), order: Vec::new(), begun: false }
    }

    /// Action to take in `env` as it stands. The policy is asked for a plan once a round, so the teacher is asked
    /// before every action of an episode, whether or not its answer is played.
    ///
    /// # Errors
    /// [`EnvError::NotReset`] where no episode is under way.
    pub fn advise(&mut self, env: &ClusterEnv) -> Result<usize, EnvError> {
        if !self.begun || env.round().actions() == 0 {
            self.begin(&env.view().ok_or(EnvError::NotReset)?, env.round());
            self.begun = true;
        }
        Ok(self.action(env.round(), &env.layout()))
    }

    /// Asks the policy for its plan at the beginning of a round. Sizes off a job's ladder are
    /// rounded down.
    pub fn begin(&mut self, view: &ClusterView<'_>, round: &Round) {
        let plan = self.policy.decide(view);
        self.targets.clear();
        self.targets.extend(round.slots().iter().map(|slot| (slot.held, slot.accelerator)));
        self.order.clear();
        for change in &plan.changes {
            if let Ok(at) = round.slots().binary_search_by_key(&change.job, |slot| slot.job) {
                let nodes = &view.cluster().nodes;
                let kind = change.placement.slices().first().map(|slice| nodes[slice.node.index()].accelerator);
                let slot = &round.slots()[at];
                self.targets[at] = (slot.ladder.snap(change.placement.gpus()), kind.unwrap_or(slot.accelerator));
                self.order.push(at as u32);
            }
        }
    }

    /// Next action of the policy in the round as it stands: first it takes away, then it gives,
    /// then it waits. Where accelerator types are told apart it moves jobs before it lets others
    /// grow.
    pub fn action(&self, round: &Round, layout: &Layout) -> usize {
        let change = |slot: usize, verb: Verb| Action::Change { slot, verb }.encode(layout);
        let excess = |at: usize| round.slots()[at].working > self.targets[at].0;
        for at in (0..round.slots().len()).filter(|&at| excess(at)) {
            let verb = if self.targets[at].0 == 0 { Verb::Preempt } else { Verb::Shrink };
            if round.allows(at, verb) {
                return change(at, verb);
            }
        }
        let listed = || self.order.iter().map(|&at| at as usize);
        let place = |at: usize| Verb::Place(self.targets[at].1);
        let elsewhere = |at: usize| {
            let slot = &round.slots()[at];
            let wanted = self.targets[at].0 > 0 && (slot.working == 0 || slot.accelerator != self.targets[at].1);
            wanted && round.allows(at, place(at))
        };
        if let Some(slot) = listed().find(|&at| elsewhere(at)) {
            return change(slot, place(slot));
        }
        // Not on a type that it is to leave: it would be moved with more than was meant for it
        // there.
        let there = |slot: &Slot, kind: TypeId| layout.types == 0 || slot.working == 0 || slot.accelerator == kind;
        let lacking = |at: usize| {
            let (slot, (size, kind)) = (&round.slots()[at], self.targets[at]);
            slot.working < size && there(slot, kind) && round.allows(at, Verb::Grow)
        };
        if let Some(slot) = listed().find(|&at| lacking(at)) {
            return change(slot, Verb::Grow);
        }
        if round.may_end() {
            return layout.wait();
        }
        // The environment does not let a cluster stand still; the first job that can start is then
        // as good as any.
        let starts = || TypeId::first(layout.types).map(Verb::Place).chain([Verb::Grow]);
        let start =
            (0..round.slots().len()).find_map(|slot| Some((slot, starts().find(|&verb| round.allows(slot, verb))?)));
        start.map_or(layout.wait(), |(slot, verb)| change(slot, verb))
    }
}
