//! Partial allocation auction of Themis (section 5.1, after Cole, Gkatzelis and Goel, 2013).
//! Accelerators are divided so that the product of the agents' valuations is largest; each agent
//! then keeps only a fraction of its won accelerators, and loses the rest as hidden payment.
//!
//! With logarithms the product is a sum, and the division a multiple-choice knapsack. A dynamic
//! program over accelerators solves it exactly in agents x accelerators x largest bid, and its
//! tables from the left and from the right give every "without agent i" in one more pass. Above
//! [`EXACT_STEPS`] such steps the division is greedy instead, by the largest gain of the logarithm
//! per accelerator, looking ahead over plateaus. The greedy search, continued with what agent i
//! had, gives the others' valuations without it. The tests compare both.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Most steps of the exact division in one decision, a few milliseconds.
pub const EXACT_STEPS: usize = 4_000_000;

/// Accelerators that an agent wins in the auction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AuctionWin {
    /// Accelerators in the division of the largest product.
    pub gpus: u32,
    /// Fraction of its won accelerators that the agent keeps, in (0, 1]; the rest is the hidden
    /// payment. The product of the other agents' valuations with this agent present, divided by the
    /// product without it (Themis, section 5.1).
    pub kept_fraction: f64,
}

impl AuctionWin {
    /// Whole accelerators that the agent keeps.
    pub fn kept(&self) -> u32 {
        // A product that is a whole number but for rounding counts as that number.
        (f64::from(self.gpus) * self.kept_fraction + 1e-9).floor() as u32
    }
}

/// Divides up to `gpus` accelerators. `values[i][n]` is the valuation of agent `i` for `n` more
/// accelerators, at least 0 and not decreasing in `n`; the product is above 0 for some division.
pub fn partial_allocation(gpus: u32, values: &[Vec<f64>]) -> Vec<AuctionWin> {
    let largest = values.iter().map(Vec::len).max().unwrap_or(0);
    let steps = values.len().saturating_mul(gpus as usize).saturating_mul(largest);
    if steps <= EXACT_STEPS { exact(gpus, values) } else { greedy(gpus, values) }
}

/// Division of the largest product; of equal ones the one that gives fewer accelerators to later
/// agents.
pub fn exact(gpus: u32, values: &[Vec<f64>]) -> Vec<AuctionWin> {
    let logs: Vec<Vec<f64>> = values.iter().map(|bid| bid.iter().map(|value| value.ln()).collect()).collect();
    let room = gpus as usize + 1;
    // before[i][g]: best sum of the first i agents on at most g accelerators; after[i][g]: of the
    // agents from i on.
    let mut before = vec![vec![0.0; room]];
    for bid in &logs {
        let next = extend(&before[before.len() - 1], bid);
        before.push(next);
    }
    let mut after = vec![vec![0.0; room]];
    for bid in logs.iter().rev() {
        let next = extend(&after[after.len() - 1], bid);
        after.push(next);
    }
    after.reverse();

    let mut wins = vec![0; logs.len()];
    let mut left = gpus as usize;
    for at in (0..logs.len()).rev() {
        let best = before[at + 1][left];
        let sizes = 0..logs[at].len().min(left + 1);
        // Sums are recomputed as `extend` did, so equality is exact, and the first size found is
        // the smallest.
        wins[at] = sizes.into_iter().find(|&n| before[at][left - n] + logs[at][n] == best).unwrap_or(0);
        left -= wins[at];
    }
    let of_others =
        |at: usize| -> f64 { (0..logs.len()).filter(|&other| other != at).map(|other| logs[other][wins[other]]).sum() };
    let without = |at: usize| -> f64 {
        // The others divide all accelerators: some among those before, the rest among those after.
        (0..room).map(|g| before[at][g] + after[at + 1][room - 1 - g]).fold(f64::NEG_INFINITY, f64::max)
    };
    (0..logs.len())
        .map(|at| AuctionWin { gpus: wins[at] as u32, kept_fraction: (of_others(at) - without(at)).exp().min(1.0) })
        .collect()
}

fn extend(best: &[f64], bid: &[f64]) -> Vec<f64> {
    let on = |g: usize| {
        let sizes = bid.iter().take(g + 1).enumerate();
        sizes.map(|(n, log)| best[g - n] + log).fold(f64::NEG_INFINITY, f64::max)
    };
    (0..best.len()).map(on).collect()
}

/// Division by the largest gain per accelerator; ties go to the earlier agent.
pub fn greedy(gpus: u32, values: &[Vec<f64>]) -> Vec<AuctionWin> {
    let logs: Vec<Vec<f64>> = values.iter().map(|bid| bid.iter().map(|value| value.ln()).collect()).collect();
    // An agent with valuation 0 without accelerators first gets the fewest with a valuation above
    // 0.
    let least = |bid: &Vec<f64>| bid.iter().position(|log| log.is_finite()).unwrap_or(0);
    let mut wins: Vec<usize> = logs.iter().map(least).collect();
    let mut left = (gpus as usize).saturating_sub(wins.iter().sum());
    let mut steps: BinaryHeap<AuctionStep> =
        (0..logs.len()).filter_map(|at| AuctionStep::next(at, wins[at], &logs[at], left)).collect();
    climb(&logs, &mut wins, &mut left, &mut steps, None);

    let fraction = |at: usize, wins: &mut Vec<usize>, steps: &mut BinaryHeap<AuctionStep>| {
        // The others go on with what is left and what this agent has; then everything is put back.
        let mut room = left + wins[at];
        // Undoing the steps is cheaper than a division from scratch for each agent.
        let heap = steps.clone();
        let taken = climb(&logs, wins, &mut room, steps, Some(at));
        let gain: f64 = taken.iter().map(|step| step.gain * step.size as f64).sum();
        for step in taken.into_iter().rev() {
            wins[step.at] -= step.size;
        }
        *steps = heap;
        // What the others would gain without this agent is what the agent pays for.
        (-gain).exp().min(1.0)
    };
    // Steps that no longer fitted are looked at again, with the room that an agent's win would
    // leave.
    let widest = left + wins.iter().copied().max().unwrap_or(0);
    let mut steps: BinaryHeap<AuctionStep> =
        (0..logs.len()).filter_map(|at| AuctionStep::next(at, wins[at], &logs[at], widest)).collect();
    (0..logs.len())
        .map(|at| {
            let kept_fraction = fraction(at, &mut wins, &mut steps);
            AuctionWin { gpus: wins[at] as u32, kept_fraction }
        })
        .collect()
}

/// Takes steps while they fit, all but those of agent `except`; returns the steps taken.
fn climb(
    logs: &[Vec<f64>],
    wins: &mut [usize],
    left: &mut usize,
    steps: &mut BinaryHeap<AuctionStep>,
    except: Option<usize>,
) -> Vec<AuctionStep> {
    let mut taken = Vec::new();
    while *left > 0
        && let Some(step) = steps.pop()
    {
        if Some(step.at) == except {
            continue;
        }
        let stale = step.size > *left;
        if !stale {
            wins[step.at] += step.size;
            *left -= step.size;
            taken.push(step);
        }
        steps.extend(AuctionStep::next(step.at, wins[step.at], &logs[step.at], *left));
    }
    taken
}

/// Next step of an agent.
#[derive(Clone, Copy, Debug, PartialEq)]
struct AuctionStep {
    /// Gain of the logarithm per accelerator.
    gain: f64,
    at: usize,
    size: usize,
}

impl AuctionStep {
    /// Step of the largest gain per accelerator from `now` that takes at most `most`; the smallest
    /// of equal ones.
    fn next(at: usize, now: usize, logs: &[f64], most: usize) -> Option<Self> {
        let sizes = 1..=most.min((logs.len() - 1).saturating_sub(now));
        let steps = sizes.map(|size| Self { gain: (logs[now + size] - logs[now]) / size as f64, at, size });
        steps.filter(|step| step.gain > 0.0).reduce(|best, step| if step.gain > best.gain { step } else { best })
    }
}

impl Eq for AuctionStep {}

impl PartialOrd for AuctionStep {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for AuctionStep {
    fn cmp(&self, other: &Self) -> Ordering {
        self.gain.total_cmp(&other.gain).then(other.at.cmp(&self.at)).then(other.size.cmp(&self.size))
    }
}
