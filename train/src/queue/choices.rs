//! Experience of an order that explores: its choices, and how much better each was than those of other runs.

use std::sync::Arc;

use goodput_agents::learning::ppo::PpoBatch;
use goodput_agents::policies::queue::{GLOBALS, JOB_FEATURES, QueueChoice, layout};
use goodput_env::time::SimTime;

/// Part of the cost of a run that falls due at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueStep {
    /// Time from which no choice changes this part.
    pub at: SimTime,
    /// Size of the part, for example the bounded slowdown of a job that starts at that time.
    pub cost: f64,
}

/// Costs from a time on.
struct CostToGo {
    times: Vec<SimTime>,
    /// By step: its cost and all later ones.
    sums: Vec<f64>,
}

impl CostToGo {
    fn of(steps: &[QueueStep]) -> Self {
        let mut sums: Vec<f64> = steps.iter().map(|step| step.cost).collect();
        for index in (1..sums.len()).rev() {
            sums[index - 1] += sums[index];
        }
        Self { times: steps.iter().map(|step| step.at).collect(), sums }
    }

    fn from(&self, at: SimTime) -> f64 {
        let first = self.times.partition_point(|time| *time < at);
        self.sums.get(first).copied().unwrap_or(0.0)
    }
}

/// Advantage of each choice of the runs of one workload, run by run. `choices` has the times of the choices of each
/// run, and `steps` its costs.
///
/// It is the mean cost of the other runs from the time of the choice on, less that of its own run, relative to the
/// mean cost of a whole run: so crowded workloads count no more than others.
pub fn advantages(choices: &[Vec<SimTime>], steps: &[Vec<QueueStep>]) -> Vec<Vec<f64>> {
    let costs: Vec<CostToGo> = steps.iter().map(|steps| CostToGo::of(steps)).collect();
    let whole = costs.iter().map(|cost| cost.sums.first().copied().unwrap_or(0.0)).sum::<f64>() / costs.len() as f64;
    let advantage = |run: usize, at: SimTime| {
        let own = costs[run].from(at);
        let all: f64 = costs.iter().map(|cost| cost.from(at)).sum();
        ((all - own) / (costs.len() as f64 - 1.0) - own) / whole.max(1e-9)
    };
    let of_run = |(run, times): (usize, &Vec<SimTime>)| times.iter().map(|at| advantage(run, *at)).collect();
    choices.iter().enumerate().map(of_run).collect()
}

/// Rows of choices, as the learner takes them.
#[derive(Clone, Debug, Default)]
pub struct QueueExperience {
    observations: Vec<f32>,
    masks: Vec<u8>,
    actions: Vec<u32>,
    log_probs: Vec<f32>,
    advantages: Vec<f32>,
    /// Zeros: the baseline is that of the runs, and no critic learns.
    values: Vec<f32>,
}

impl QueueExperience {
    /// Number of choices.
    pub fn rows(&self) -> usize {
        self.actions.len()
    }

    /// Adds a choice with its advantage; `false` where its queue is longer than `slots`.
    pub fn push(&mut self, choice: &QueueChoice, advantage: f64, slots: usize) -> bool {
        let jobs = choice.scores.len();
        if jobs > slots {
            return false;
        }
        let features: &Arc<Vec<f32>> = &choice.features;
        let (queue, globals) = features.split_at(jobs * JOB_FEATURES.len());
        self.observations.extend_from_slice(queue);
        self.observations.resize(self.observations.len() + (slots - jobs) * JOB_FEATURES.len(), 0.0);
        self.observations.extend_from_slice(&globals[..GLOBALS.len()]);
        let first = self.masks.len();
        self.masks.resize(first + layout(slots).actions(), 0);
        self.masks[first..first + jobs].fill(1);
        choice.before.iter().for_each(|place| self.masks[first + place] = 0);
        self.actions.push(choice.chosen as u32);
        self.log_probs.push(choice.log_probability());
        self.advantages.push(advantage as f32);
        self.values.push(0.0);
        true
    }

    /// The rows as a batch.
    pub fn batch(&self) -> PpoBatch<'_> {
        PpoBatch {
            observations: &self.observations,
            masks: &self.masks,
            actions: &self.actions,
            log_probs: &self.log_probs,
            values: &self.values,
            advantages: &self.advantages,
            returns: &self.values,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: i64) -> SimTime {
        SimTime::from_secs(secs)
    }

    #[test]
    fn an_advantage_is_what_the_other_runs_cost_more_from_then_on() {
        let steps = |costs: [(i64, f64); 2]| costs.map(|(at, cost)| QueueStep { at: secs(at), cost }).to_vec();
        let runs = [steps([(0, 1.0), (10, 5.0)]), steps([(0, 1.0), (12, 3.0)]), steps([(4, 2.0), (10, 6.0)])];
        let found = advantages(&[vec![secs(0), secs(11)], vec![secs(10)], vec![]], &runs);
        // Whole runs cost 6, 4 and 8, with a mean of 6.
        assert_eq!(found[0], vec![(6.0 - 6.0) / 6.0, (1.5 - 0.0) / 6.0]);
        assert_eq!(found[1], vec![(5.5 - 3.0) / 6.0]);
        assert!(found[2].is_empty());
    }
}
