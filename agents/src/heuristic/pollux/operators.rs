//! Mutation and repair of the genetic search, which take nine tenths of its time.
//!
//! A row of a usual cluster is one register. The functions are therefore compiled twice: for a
//! width of one, where loops over the chunks of a row vanish, and for any width.

use rand::Rng;

use super::draws::{Skips, below};
use super::lanes::{
    self, Lanes, NodeSpan, add, and, is_distributed, nonzero, ones, set_lanes, smaller, span, sub, sum,
};
use super::objective::{PolluxProblem, StateValue};

/// Probability, in 2^-16, of resetting a row, of thinning a row, and of zeroing an element of a
/// thinned row.
const TENTH: u32 = 6554;
/// Most nodes of one job.
const MOST_NODES: usize = 16;

/// Operators of the search, with their buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct Operators {
    skips: Skips,
    used: Vec<Lanes>,
    sharers: Vec<Lanes>,
    /// 0xff for nodes with free accelerators, and the numbers of these nodes.
    open: Vec<u128>,
    open_nodes: Vec<u16>,
    /// 0xff for nodes that a distributed job has.
    taken: Vec<u128>,
    left: Vec<Lanes>,
    active: Vec<u128>,
    shuffled: Vec<u16>,
}

impl Operators {
    /// Prepares for a number of jobs.
    pub fn prepare(&mut self, jobs: u32) {
        self.skips = Skips::new(jobs);
    }

    /// Resets rows to the present ones, zeroes elements of rows, then gives out free accelerators
    /// at random.
    pub fn mutate(&mut self, problem: &PolluxProblem, cells: &mut [Lanes], rng: &mut impl Rng) {
        match problem.width {
            1 => self.mutate_rows(problem, 1, cells, rng),
            width => self.mutate_rows(problem, width, cells, rng),
        }
    }

    #[inline(always)]
    fn mutate_rows(&mut self, problem: &PolluxProblem, width: usize, cells: &mut [Lanes], rng: &mut impl Rng) {
        fill(&mut self.used, width, [0; 16]);
        fill(&mut self.sharers, width, [0; 16]);
        for (row, current) in cells.chunks_exact_mut(width).zip(problem.current.chunks_exact(width)) {
            // One draw serves both decisions: its halves are independent.
            let draws = rng.next_u32();
            if (draws & 0xffff) < TENTH {
                row.copy_from_slice(current);
            }
            if (draws >> 16) < TENTH {
                for replicas in row.iter_mut().flatten().filter(|replicas| **replicas > 0) {
                    *replicas = if below(rng, 1 << 16) < TENTH { 0 } else { *replicas };
                }
            }
            for ((row, used), sharers) in row.iter().zip(&mut self.used).zip(&mut self.sharers) {
                (*used, *sharers) = (add(*used, *row), add(*sharers, ones(*row)));
            }
        }
        self.open.clear();
        self.open_nodes.clear();
        for (chunk, (used, capacity)) in self.used.iter().zip(&problem.capacity).enumerate() {
            let mask = smaller(*used, *capacity);
            self.open.push(mask);
            self.open_nodes.extend(set_lanes(mask).map(|lane| (chunk * 16 + lane) as u16));
        }
        if !self.open_nodes.is_empty() {
            self.grow(problem, width, cells, rng);
        }
    }

    /// Picks elements on open nodes. A job which is on the node already is picked with 1 - (1 -
    /// 1/jobs)(1 - 1/sharers), any other with 1/jobs. A picked element becomes anything from its
    /// present value to the whole node.
    #[inline(always)]
    fn grow(&mut self, problem: &PolluxProblem, width: usize, cells: &mut [Lanes], rng: &mut impl Rng) {
        let jobs = problem.jobs.len();
        for row in cells.chunks_exact_mut(width) {
            for (chunk, row) in row.iter_mut().enumerate() {
                for lane in set_lanes(nonzero(*row) & self.open[chunk]) {
                    let sharers = u32::from(self.sharers[chunk][lane]);
                    // A job alone on its node is picked with certainty, so nothing is drawn.
                    if sharers == 1 || below(rng, sharers) == 0 || below(rng, jobs as u32) == 0 {
                        row[lane] += below(rng, u32::from(problem.capacity[chunk][lane] - row[lane]) + 1) as u8;
                    }
                }
            }
        }
        // Most elements are zero: gaps between picked ones are drawn instead of one number an
        // element.
        let mut job = self.skips.next(rng);
        for &node in &self.open_nodes {
            let (chunk, lane) = (usize::from(node) / 16, usize::from(node) % 16);
            while job < jobs {
                let replicas = &mut cells[job * width + chunk][lane];
                // Elements that are not zero had their chance above.
                if *replicas == 0 {
                    *replicas = below(rng, u32::from(problem.capacity[chunk][lane]) + 1) as u8;
                }
                job += 1 + self.skips.next(rng);
            }
            // What is left of the gap goes on at the next node, as if all elements stood in one
            // line.
            job -= jobs;
        }
    }

    /// Makes a state obey every rule, job by job in order: nodes that an earlier distributed job
    /// has (where these are to `avoid` each other), the job's maximum, 16 nodes, the accelerators
    /// that earlier jobs leave of each node, the job's minimum. Returns its value and a hash.
    pub fn repair(
        &mut self,
        problem: &mut PolluxProblem,
        cells: &mut [Lanes],
        avoid: bool,
        rng: &mut impl Rng,
    ) -> (StateValue, u64) {
        match problem.width {
            1 => self.repair_rows(problem, 1, cells, avoid, rng),
            width => self.repair_rows(problem, width, cells, avoid, rng),
        }
    }

    #[inline(always)]
    fn repair_rows(
        &mut self,
        problem: &mut PolluxProblem,
        width: usize,
        cells: &mut [Lanes],
        avoid: bool,
        rng: &mut impl Rng,
    ) -> (StateValue, u64) {
        fill(&mut self.taken, width, 0);
        fill(&mut self.active, width, 0);
        self.left.clone_from(&problem.capacity);
        let mut sums = [0.0; 2];
        let mut hash = 0u64;
        for (job, row) in cells.chunks_exact_mut(width).enumerate() {
            let [term, speedup] = if lanes::is_empty(row) {
                // A stopped job counts alike whether or not it held accelerators.
                problem.stopped(job)
            } else {
                let (span, replicas) = self.repair_row(problem, job, row, avoid, rng);
                for (chunk, lanes) in row.iter().enumerate() {
                    hash = hash.wrapping_add(lanes::hash(*lanes, job * width + chunk));
                }
                match lanes::same(row, problem.row(job)) {
                    true => problem.kept(job),
                    false => problem.moved(job, span, replicas),
                }
            };
            sums = [sums[0] + term, sums[1] + speedup];
        }
        let active = problem.active(self.active.iter().copied());
        (problem.total(sums, active), hash)
    }

    /// Repairs one row. Returns its nodes and its number of replicas.
    #[inline(always)]
    fn repair_row(
        &mut self,
        problem: &PolluxProblem,
        job: usize,
        row: &mut [Lanes],
        avoid: bool,
        rng: &mut impl Rng,
    ) -> (NodeSpan, u32) {
        if avoid && is_distributed(row) {
            for (lanes, taken) in row.iter_mut().zip(&mut self.taken) {
                let mask = nonzero(*lanes);
                *lanes = and(*lanes, !*taken);
                *taken |= mask;
            }
        }
        let (min, max) = problem.bounds(job);
        if sum(row) > max || (problem.nodes > MOST_NODES && lanes::nodes(row) as usize > MOST_NODES) {
            trim(row, max, &mut self.shuffled, rng);
        }
        for (lanes, left) in row.iter_mut().zip(&self.left) {
            *lanes = lanes::min(*lanes, *left);
        }
        let mut replicas = sum(row);
        if replicas < min {
            row.fill([0; 16]);
            replicas = 0;
        }
        for ((lanes, left), active) in row.iter().zip(&mut self.left).zip(&mut self.active) {
            *left = sub(*left, *lanes);
            *active |= nonzero(*lanes);
        }
        (span(row), replicas)
    }
}

/// Keeps at most `max` replicas on at most 16 nodes, those of the first nodes in a random order.
fn trim(row: &mut [Lanes], max: u32, shuffled: &mut Vec<u16>, rng: &mut impl Rng) {
    shuffled.clear();
    shuffled.extend((0..row.len() * 16).filter(|&node| row[node / 16][node % 16] > 0).map(|node| node as u16));
    let mut left = max;
    for at in 0..shuffled.len() {
        let other = at + below(rng, (shuffled.len() - at) as u32) as usize;
        shuffled.swap(at, other);
        let node = usize::from(shuffled[at]);
        let replicas = &mut row[node / 16][node % 16];
        *replicas = if at < MOST_NODES { u32::from(*replicas).min(left) as u8 } else { 0 };
        left -= u32::from(*replicas);
    }
}

fn fill<T: Copy>(buffer: &mut Vec<T>, len: usize, value: T) {
    buffer.clear();
    buffer.resize(len, value);
}
