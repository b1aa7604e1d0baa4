//! Any policy as a teacher: its plan for a round becomes the action to take in each state of that round, the learner's own
//! states included (DAgger, Ross et al. 2011). In a simulator, asking the teacher is free.

use goodput_env::gym::{Action, Layout, Round, Verb};
use goodput_env::policy::Policy;
use goodput_env::view::ClusterView;

/// A policy that labels states.
pub struct Teacher {
    policy: Box<dyn Policy>,
    /// Accelerators each slot of the current round should end up with.
    targets: Vec<u32>,
    /// Slots in the order in which growth is shown: as the policy listed them, so that the order carries its priorities.
    order: Vec<u32>,
}

impl Teacher {
    /// A teacher that does as `policy` does.
    pub fn new(policy: Box<dyn Policy>) -> Self {
        Self { policy, targets: Vec::new(), order: Vec::new() }
    }

    /// Asks the policy for its plan at the beginning of a round. Sizes off a job's ladder are rounded down.
    pub fn begin(&mut self, view: &ClusterView<'_>, round: &Round) {
        let plan = self.policy.decide(view);
        self.targets.clear();
        self.targets.extend(round.slots().iter().map(|slot| slot.held));
        self.order.clear();
        for change in &plan.changes {
            if let Ok(at) = round.slots().binary_search_by_key(&change.job, |slot| slot.job) {
                self.targets[at] = round.slots()[at].ladder.snap(change.placement.gpus());
                self.order.push(at as u32);
            }
        }
    }

    /// What the policy would do next in the round as it stands: first it takes away, then it gives, then it waits.
    pub fn action(&self, round: &Round, layout: &Layout) -> usize {
        let excess = |at: usize| round.slots()[at].working > self.targets[at];
        for at in (0..round.slots().len()).filter(|&at| excess(at)) {
            let verb = if self.targets[at] == 0 { Verb::Preempt } else { Verb::Shrink };
            if round.allows(at, verb) {
                return Action::Change { slot: at, verb }.encode(layout);
            }
        }
        let lacking = |at: usize| round.slots()[at].working < self.targets[at] && round.allows(at, Verb::Grow);
        let listed = self.order.iter().map(|&at| at as usize).find(|&at| lacking(at));
        if let Some(slot) = listed {
            return Action::Change { slot, verb: Verb::Grow }.encode(layout);
        }
        if round.may_end() {
            return layout.wait();
        }
        // The environment does not let a cluster stand still; the first job that can start is then as good as any.
        let start = (0..round.slots().len()).find(|&slot| round.allows(slot, Verb::Grow));
        start.map_or(layout.wait(), |slot| Action::Change { slot, verb: Verb::Grow }.encode(layout))
    }
}
