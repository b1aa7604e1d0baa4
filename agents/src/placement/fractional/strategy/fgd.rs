//! Fragmentation gradient descent (Weng et al., ATC'23): each request goes where it adds least to
//! what typical requests cannot use.

use rand_chacha::ChaCha8Rng;

use super::Strategy;
use crate::placement::fractional::{Fragmentation, MILLI, Node, Request};

/// Resolution at which growths of fragmentation are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gradient {
    /// As in the artifact: 100 times the logistic function of the accelerators saved, rounded down.
    /// Growths closer than about 40 thousandths of an accelerator are ties.
    #[default]
    Percent,
    /// Exactly, as the paper's algorithm says.
    Exact,
}

/// Strategy of least fragmentation gradient.
#[derive(Clone, Debug)]
pub struct Fgd {
    fragmentation: Fragmentation,
    gradient: Gradient,
    /// Least saving, in thousandths times weight, for each percentage from 1 to 99: the logistic
    /// function turned around, so that scores compare whole numbers.
    steps: [i32; 99],
}

impl Fgd {
    /// For a workload of these typical requests.
    pub fn new(fragmentation: Fragmentation, gradient: Gradient) -> Self {
        let weight = f64::from(fragmentation.weight());
        let step = |percent: usize| {
            let odds = percent as f64 / (100 - percent) as f64;
            // Whole numbers reach the exact step where they reach the next whole number above it.
            (odds.ln() * f64::from(MILLI) * weight).ceil() as i32
        };
        Self { gradient, steps: std::array::from_fn(|at| step(at + 1)), fragmentation }
    }

    /// Score of saving so much fragmentation, in thousandths times weight.
    fn value(&self, saved: i32) -> i32 {
        match self.gradient {
            Gradient::Percent => self.steps.partition_point(|&step| step <= saved) as i32,
            Gradient::Exact => saved,
        }
    }

    /// Score of giving a share of accelerator `at`.
    fn sharing(&self, node: &Node, before: i32, request: &Request, at: u16) -> i32 {
        let left = |(index, &milli): (usize, &u16)| {
            if index == usize::from(at) { milli - request.milli as u16 } else { milli }
        };
        let idle = node.idle.iter().enumerate().map(left);
        self.value(before - self.fragmentation.measure(node.kind, node.cpu_milli - request.cpu_milli, idle))
    }
}

impl Strategy for Fgd {
    fn potential(&self, node: &Node) -> i32 {
        self.fragmentation.of(node)
    }

    fn score(&self, node: &Node, potential: i32, request: &Request) -> i32 {
        if request.shares() {
            // Accelerators with equally much idle are alike.
            let alike = |at: u16| node.idle[..usize::from(at)].contains(&node.idle[usize::from(at)]);
            let distinct = node.sharable(request).filter(|&at| !alike(at));
            // One above the least keeps this apart from the score of a node that does not fit.
            return distinct.map(|at| self.sharing(node, potential, request, at)).max().unwrap_or(i32::MIN + 1);
        }
        let mut left = request.accelerators;
        let idle = node.idle.iter().map(|&milli| {
            let taken = left > 0 && u32::from(milli) == MILLI;
            left -= u32::from(taken);
            if taken { 0 } else { milli }
        });
        self.value(potential - self.fragmentation.measure(node.kind, node.cpu_milli - request.cpu_milli, idle))
    }

    /// The accelerator with the best score, the lowest on ties.
    fn share(&self, node: &Node, potential: i32, request: &Request, _rng: &mut ChaCha8Rng) -> Option<u16> {
        node.sharable(request).min_by_key(|&at| std::cmp::Reverse(self.sharing(node, potential, request, at)))
    }
}
