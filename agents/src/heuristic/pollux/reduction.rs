//! Options of a multiple-choice knapsack that no optimum takes.
//!
//! A price on each accelerator bounds the least sum of terms from below (Lagrangian relaxation; Kellerer et al.,
//! Knapsack Problems, chapter 11.2). A greedy choice along the jobs' convex hulls bounds it from above, and its last
//! step is the best price (Sinha and Zoltners 1979). An option that is dearer than its job's cheapest one by more than
//! the distance of the two bounds is in no optimum. With thousands of jobs the bounds nearly meet, and most jobs keep
//! one option.

use super::counts::ReplicaOption;

/// Part of the sum of terms that stays between the bounds, so that no error of rounding drops an option.
const SLACK: f64 = 1e-9;

/// Step of a job to a larger number of replicas on its convex hull.
#[derive(Clone, Copy, Debug)]
struct PricedStep {
    /// Decrease of the term by accelerator.
    gain: f64,
    replicas: u32,
    decrease: f64,
}

/// The reduction with its buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct Reduction {
    steps: Vec<PricedStep>,
    hull: Vec<ReplicaOption>,
}

impl Reduction {
    /// Drops options that no choice of the least sum within `total` accelerators takes. Every job keeps one at least.
    pub fn apply(&mut self, options: &mut Vec<ReplicaOption>, ends: &mut [usize], total: u32) {
        let Some((price, most)) = self.price(options, ends, total) else { return };
        let priced = |&(replicas, term): &ReplicaOption| term + price * f64::from(replicas);
        let mut start = 0;
        let (mut least, mut size) = (-price * f64::from(total), 0.0);
        for &end in &*ends {
            least += options[start..end].iter().map(priced).fold(f64::INFINITY, f64::min);
            size += options[start].1.abs();
            start = end;
        }
        let gap = most - least + SLACK * size;
        let (mut start, mut kept) = (0, 0);
        for end in ends {
            let cheapest = options[start..*end].iter().map(priced).fold(f64::INFINITY, f64::min);
            for at in start..*end {
                if priced(&options[at]) <= cheapest + gap {
                    options[kept] = options[at];
                    kept += 1;
                }
            }
            (start, *end) = (*end, kept);
        }
        options.truncate(kept);
    }

    /// Price of an accelerator and a sum of terms that fits; `None` where a term is not finite.
    fn price(&mut self, options: &[ReplicaOption], ends: &[usize], total: u32) -> Option<(f64, f64)> {
        self.steps.clear();
        let (mut start, mut sum) = (0, 0.0);
        for &end in ends {
            sum += options[start].1;
            self.add_steps(&options[start..end]);
            start = end;
        }
        if !sum.is_finite() || self.steps.iter().any(|step| !step.gain.is_finite()) {
            return None;
        }
        // Steps of one job are in order of falling gain, and the sort keeps that order among equals.
        self.steps.sort_by(|one, other| other.gain.total_cmp(&one.gain));
        let (mut left, mut price) = (total, 0.0);
        for step in &self.steps {
            if step.replicas > left {
                price = step.gain;
                break;
            }
            left -= step.replicas;
            sum -= step.decrease;
        }
        Some((price, sum))
    }

    /// Steps along the lower convex hull of a job's terms.
    fn add_steps(&mut self, options: &[ReplicaOption]) {
        self.hull.clear();
        for &option in options {
            while let [.., one, two] = self.hull[..]
                && gain(one, two) <= gain(two, option)
            {
                self.hull.pop();
            }
            self.hull.push(option);
        }
        self.steps.extend(self.hull.windows(2).map(|pair| PricedStep {
            gain: gain(pair[0], pair[1]),
            replicas: pair[1].0 - pair[0].0,
            decrease: pair[0].1 - pair[1].1,
        }));
    }
}

/// Decrease of the term by accelerator, from one option to a larger one.
fn gain(one: ReplicaOption, other: ReplicaOption) -> f64 {
    (one.1 - other.1) / f64::from(other.0 - one.0)
}
