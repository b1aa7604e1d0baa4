//! Allocation in two phases (Aryl, arXiv:2202.07896, section 5): first as many jobs as possible get
//! their base demand, then elastic jobs get what is left where it cuts most remaining time.

use goodput_env::job::JobId;

use crate::allocation::knapsack::{GainLadder, Item, Knapsack, concave};

/// Demand of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArylDemand {
    /// Identifier of the job.
    pub job: JobId,
    /// Base demand: fewest accelerators of an elastic job, all accelerators of an inelastic one.
    pub base: u32,
    /// Most accelerators that the job could use.
    pub most: u32,
    /// Estimated seconds left on the base demand; infinite where unknown.
    pub secs: f64,
    /// Whether the job runs. A running job keeps its base demand: only a return of lent servers
    /// preempts.
    pub running: bool,
}

/// Both phases, with their buffers.
#[derive(Clone, Debug, Default)]
pub struct ArylPhases {
    order: Vec<usize>,
    gains: Vec<f64>,
    knapsack: Knapsack,
}

impl ArylPhases {
    /// Accelerators for each of `demands`, which are in order of submission, out of `capacity`.
    /// `secs(index, gpus)` are the seconds left on `gpus` accelerators, more than the base demand.
    /// Where they are `None` the job stays at its base demand.
    pub fn allocate(
        &mut self,
        demands: &[ArylDemand],
        capacity: u32,
        secs: impl Fn(usize, u32) -> Option<f64>,
    ) -> Vec<u32> {
        let mut granted = vec![0; demands.len()];
        let mut left = capacity;
        let keeps = |demand: &ArylDemand| demand.running;
        for (granted, demand) in granted.iter_mut().zip(demands).filter(|(_, demand)| keeps(demand)) {
            *granted = demand.base;
            left = left.saturating_sub(demand.base);
        }
        self.order.clear();
        self.order.extend((0..demands.len()).filter(|&at| !keeps(&demands[at])));
        // The shortest first; equal ones in order of submission.
        self.order.sort_by(|&one, &other| demands[one].secs.total_cmp(&demands[other].secs));
        for &at in &self.order {
            if demands[at].base <= left {
                granted[at] = demands[at].base;
                left -= demands[at].base;
            }
        }
        if left > 0 {
            self.grow(demands, left, secs, &mut granted);
        }
        granted
    }

    /// Second phase: a multiple-choice knapsack over the seconds that each number of further
    /// accelerators saves.
    fn grow(
        &mut self,
        demands: &[ArylDemand],
        left: u32,
        secs: impl Fn(usize, u32) -> Option<f64>,
        granted: &mut [u32],
    ) {
        self.gains.clear();
        let mut ends = Vec::new();
        let elastic: Vec<usize> =
            (0..demands.len()).filter(|&at| granted[at] > 0 && demands[at].most > demands[at].base).collect();
        for &at in &elastic {
            let ArylDemand { base, most, secs: mut now, .. } = demands[at];
            for gpus in base + 1..=most.min(base.saturating_add(left)) {
                let Some(then) = secs(at, gpus).filter(|then| then.is_finite() && now.is_finite()) else { break };
                self.gains.push(now - then);
                now = then;
            }
            ends.push(self.gains.len());
        }
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let ladders: Vec<GainLadder<'_>> =
            starts.zip(&ends).map(|(start, &end)| GainLadder { unit: 1, gains: &self.gains[start..end] }).collect();
        // Where every gain is at most the one before it, the greedy choice is optimal.
        if let Some(steps) = concave(&ladders, left) {
            elastic.iter().zip(steps).for_each(|(&at, steps)| granted[at] += steps);
            return;
        }
        self.knapsack.clear();
        for ladder in &ladders {
            let mut value = 0.0;
            self.knapsack.group(ladder.gains.iter().zip(1..).map(|(gain, weight)| {
                value += gain;
                Item { weight, value }
            }));
        }
        let chosen = self.knapsack.solve(left);
        elastic.iter().zip(chosen).for_each(|(&at, chosen)| granted[at] += chosen.map_or(0, |index| index as u32 + 1));
    }
}
