//! A fleet that takes a cold start to grow, played step by step.
//!
//! At the beginning of a step the rule knows the load of the steps before. It says for which load capacity should be
//! held. What is missing is ordered and serves a cold start later; what is too much is given back at once, accelerators
//! that are still starting first, as Kubernetes does. An accelerator is paid for from its order on. A step is attained
//! when the accelerators that serve are enough for its load, for the share of the step for which they do.
//!
//! What is given back is lent to training for a lease, as far as it is a part of the fleet. An order takes accelerators
//! that are on no lease first, and then recalls the oldest leases. A recall costs the training the work since its last
//! checkpoint.

use std::collections::VecDeque;
use std::ops::Range;

use super::ServiceLoad;

/// Time from the order of an accelerator to its service.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColdStart {
    /// Number of steps that pass in full.
    pub steps: usize,
    /// Rest, as a share of a step, below 1.
    pub part: f64,
}

impl ColdStart {
    /// Cold start of `secs`, in steps of `step_secs`.
    pub fn new(secs: f64, step_secs: f64) -> Self {
        let steps = (secs / step_secs).max(0.0);
        Self { steps: steps.floor() as usize, part: steps.fract() }
    }

    /// Length in steps.
    pub fn in_steps(self) -> f64 {
        self.steps as f64 + self.part
    }

    /// Steps of which some part passes before an order of now serves, the present one included.
    pub fn reach(self) -> usize {
        self.in_steps().ceil() as usize + 1
    }
}

/// Terms on which accelerators that are given back are lent to training.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LoanTerms {
    /// Steps of a lease.
    pub lease: usize,
    /// Accelerator time that a recall within the lease costs, in steps.
    pub recall: f64,
}

impl LoanTerms {
    /// Leases of `lease_secs`, at least one step where it is above 0, and recalls that cost `recall_secs` of an
    /// accelerator each, in steps of `step_secs`.
    pub fn new(lease_secs: f64, recall_secs: f64, step_secs: f64) -> Self {
        Self { lease: (lease_secs / step_secs).max(0.0).ceil() as usize, recall: (recall_secs / step_secs).max(0.0) }
    }

    /// Whether a recall ever costs anything.
    pub fn has_cost(self) -> bool {
        self.lease > 0 && self.recall > 0.0
    }
}

/// Damping between the load that a rule asks capacity for and the number of accelerators.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Damping {
    /// Relative change below which the present number is kept.
    pub tolerance: f64,
    /// Steps for which the largest number asked for is held before the number falls.
    pub hold: usize,
}

/// Course of a fleet over the steps of a part.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Played {
    /// Accelerators paid for, by step, with the time that recalls of the step cost.
    pub held: Vec<f64>,
    /// Share of each measured step that was not attained.
    pub missed: Vec<f64>,
}

impl Played {
    /// Mean number of accelerators.
    pub fn accelerators(&self) -> f64 {
        mean(&self.held)
    }

    /// Share of the measured steps that was attained.
    pub fn attained(&self) -> f64 {
        1.0 - mean(&self.missed)
    }
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Accelerators that serve, that start, and that are lent.
#[derive(Debug, Clone)]
pub struct Fleet {
    cold: ColdStart,
    serving: u32,
    /// Accelerators that begin to serve in this step, in the next one, and so on.
    starting: Vec<u32>,
    /// All accelerators that can be lent.
    all: u32,
    /// Accelerators on a lease by the step in which it began, oldest first; as many steps as a lease has.
    leases: VecDeque<u32>,
}

impl Fleet {
    /// Fleet in which `serving` accelerators serve, and nothing is on a lease.
    pub fn new(cold: ColdStart, serving: u32) -> Self {
        Self { cold, serving, starting: vec![0; cold.steps + 1], all: 0, leases: VecDeque::new() }
    }

    /// The fleet as a part of `all` accelerators, of which those that are given back are lent for `lease` steps.
    #[must_use]
    pub fn lending(self, all: u32, lease: usize) -> Self {
        Self { all, leases: VecDeque::from(vec![0; lease]), ..self }
    }

    /// Accelerators that are paid for.
    pub fn committed(&self) -> u32 {
        self.serving + self.starting.iter().sum::<u32>()
    }

    /// Orders or gives back until `target` accelerators are paid for; returns the number of leases that are recalled.
    pub fn scale(&mut self, target: u32) -> u32 {
        let committed = self.committed();
        let ordered = target.saturating_sub(committed);
        let recalled = self.recall(ordered, committed);
        self.starting[self.cold.steps] += ordered;
        let mut surplus = committed.saturating_sub(target);
        // What was ordered beyond the fleet goes back to where it came from.
        let lent = surplus.min(self.all.saturating_sub(target + self.leased()));
        if let Some(newest) = self.leases.back_mut() {
            *newest += lent;
        }
        for starting in self.starting.iter_mut().rev() {
            let cancelled = surplus.min(*starting);
            *starting -= cancelled;
            surplus -= cancelled;
        }
        self.serving -= surplus;
        recalled
    }

    /// Accelerators that are on a lease.
    fn leased(&self) -> u32 {
        self.leases.iter().sum()
    }

    /// Ends as many leases as the order of `ordered` accelerators needs beyond those that are on none.
    fn recall(&mut self, ordered: u32, committed: u32) -> u32 {
        if ordered == 0 {
            return 0;
        }
        let leased = self.leased();
        let free = self.all.saturating_sub(committed + leased);
        let recalled = ordered.saturating_sub(free).min(leased);
        let mut left = recalled;
        for lease in &mut self.leases {
            let ended = left.min(*lease);
            *lease -= ended;
            left -= ended;
        }
        recalled
    }

    /// Passes a step that needs `need` accelerators; returns the share of it that was not attained.
    pub fn pass(&mut self, need: u32) -> f64 {
        let before = self.serving;
        self.serving += self.starting.remove(0);
        self.starting.push(0);
        if self.leases.pop_front().is_some() {
            self.leases.push_back(0);
        }
        match () {
            () if before >= need => 0.0,
            () if self.serving >= need => self.cold.part,
            () => 1.0,
        }
    }

    /// Plays the steps `part` of a service, given at each of them the load to hold capacity for.
    pub fn play(
        service: &ServiceLoad,
        part: Range<usize>,
        cold: ColdStart,
        loans: LoanTerms,
        asked: &[f64],
        scaling: Damping,
    ) -> Played {
        let last = part.start.checked_sub(1).map_or(0.0, |last| service.seen[last]);
        let mut fleet = Self::new(cold, service.accelerators(last)).lending(service.fleet, loans.lease);
        // Numbers that may be the largest of the steps held, by step, in descending order.
        let mut held: VecDeque<(usize, u32)> = VecDeque::new();
        let mut played = Played::default();
        for (step, &asked) in part.zip(asked) {
            let committed = fleet.committed();
            let exact = asked / service.load_per_accelerator;
            let near = (exact / f64::from(committed.max(1)) - 1.0).abs() <= scaling.tolerance;
            let wanted = if near && scaling.tolerance > 0.0 { committed } else { service.accelerators(asked) };
            while held.back().is_some_and(|(_, number)| *number <= wanted) {
                held.pop_back();
            }
            held.push_back((step, wanted));
            while held.front().is_some_and(|(at, _)| at + scaling.hold < step) {
                held.pop_front();
            }
            let recalled = fleet.scale(held.front().map_or(wanted, |(_, number)| *number));
            played.held.push(f64::from(fleet.committed()) + f64::from(recalled) * loans.recall);
            let need = service.need(step);
            let missed = fleet.pass(need.unwrap_or(0));
            if need.is_some() {
                played.missed.push(missed);
            }
        }
        played
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_serves_a_cold_start_later_and_is_paid_from_the_beginning() {
        let mut fleet = Fleet::new(ColdStart::new(900.0, 600.0), 1);
        fleet.scale(3);
        assert_eq!(fleet.committed(), 3);
        assert_eq!([fleet.pass(3), fleet.pass(3), fleet.pass(3)], [1.0, 0.5, 0.0], "one step and a half");
        fleet.scale(5);
        fleet.scale(4);
        assert_eq!(fleet.starting, [0, 1], "what starts is given back first");
        fleet.scale(2);
        assert_eq!((fleet.committed(), fleet.pass(2)), (2, 0.0));
    }

    #[test]
    fn an_order_recalls_leases_only_where_nothing_else_is_free() {
        let mut fleet = Fleet::new(ColdStart::new(0.0, 600.0), 8).lending(10, 2);
        assert_eq!(fleet.scale(5), 0, "three are lent, and two were free before");
        fleet.pass(5);
        assert_eq!(fleet.scale(8), 1, "two are free");
        assert_eq!(fleet.scale(6), 0);
        fleet.pass(6);
        fleet.pass(6);
        assert_eq!(fleet.scale(10), 0, "the leases are over");
        assert_eq!(fleet.scale(9), 0);
        assert_eq!(fleet.scale(14), 1, "beyond all accelerators there is no lease");
        assert_eq!(fleet.scale(9), 0, "of five that are given back one is of the fleet");
        assert_eq!(fleet.scale(14), 1);
    }
}
