//! The published search: NSGA-II with operators of its own (Pollux artifact, `pollux.py`; pymoo 0.4.2).
//!
//! Population, crossover, mutation, repair and their probabilities are the artifact's; what differs is how random numbers are
//! consumed (only where an outcome depends on them) and that nothing is allocated. A child costs about a microsecond instead of
//! two hundred.

use goodput_env::job::JobId;
use rand::Rng;

use super::lanes::{self, Lanes, add, and, is_distributed, nonzero, ones, set_lanes, smaller, sub, sum};
use super::nsga2::Survival;
use super::objective::{Problem, Worth};

/// Probability, in 2^-16, of resetting a row, of thinning a row, and of zeroing an element of a thinned row.
const TENTH: u32 = 6554;
/// Probability of crossover, in 2^-32.
const CROSSOVER: u32 = (u32::MAX as f64 * 0.9) as u32;
/// Attempts to replace duplicates by new children in one generation.
const REFILLS: u32 = 100;
/// Attempts in a row without a new child after which a generation is complete as it is. The artifact goes on to the last refill,
/// which for a job or two, with all states known, takes a second and finds nothing.
const VAIN_REFILLS: u32 = 3;
/// Nodes of one job at most.
const MOST_NODES: usize = 16;

/// How the last front becomes the next first population.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WarmStart {
    /// The k-th surviving job of the old order hands its row to the k-th surviving job of the new order. That is what the artifact
    /// does, by mistake: orders follow attained service, so rows change hands between jobs.
    #[default]
    ByPosition,
    /// Each job keeps its row.
    ByJob,
}

/// Settings of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneticConfig {
    /// Survivors, and children, of each generation.
    pub population: u16,
    /// Generations, the first population included.
    pub generations: u32,
    /// At most one distributed job on a node.
    pub avoid_interference: bool,
    /// How the last result is used.
    pub warm_start: WarmStart,
}

impl Default for GeneticConfig {
    /// The artifact's settings.
    fn default() -> Self {
        Self { population: 100, generations: 100, avoid_interference: true, warm_start: WarmStart::ByPosition }
    }
}

/// The search, with its memory of the last front.
#[derive(Clone, Debug)]
pub struct Genetic {
    config: GeneticConfig,
    /// States of all slots, two populations of them.
    cells: Vec<Lanes>,
    worths: Vec<Worth>,
    hashes: Vec<u64>,
    alive: Vec<u16>,
    spare: Vec<u16>,
    survival: Survival,
    seen: Seen,
    deck: Deck,
    skips: Skips,
    scratch: Scratch,
    /// First front of the last search, and whose rows they are.
    front: Vec<Lanes>,
    front_jobs: Vec<JobId>,
    front_width: usize,
}

#[derive(Clone, Debug, Default)]
struct Scratch {
    used: Vec<Lanes>,
    sharers: Vec<Lanes>,
    /// 0xff for nodes with something free.
    open: Vec<u128>,
    open_nodes: Vec<u16>,
    /// 0xff for nodes that have a distributed job.
    taken: Vec<u128>,
    left: Vec<Lanes>,
    active: Vec<u128>,
    shuffled: Vec<u16>,
}

impl Genetic {
    /// A search without memory.
    pub fn new(config: GeneticConfig) -> Self {
        Self {
            config,
            cells: Vec::new(),
            worths: Vec::new(),
            hashes: Vec::new(),
            alive: Vec::new(),
            spare: Vec::new(),
            survival: Survival::default(),
            seen: Seen::default(),
            deck: Deck::default(),
            skips: Skips::new(1),
            scratch: Scratch::default(),
            front: Vec::new(),
            front_jobs: Vec::new(),
            front_width: 0,
        }
    }

    /// The state of best fitness found, the first of those on ties, and its worth.
    pub fn search(&mut self, problem: &mut Problem, rng: &mut impl Rng) -> (&[Lanes], Worth) {
        let mut first = self.begin(problem, rng);
        for _ in 1..self.config.generations {
            if !self.breed(problem, rng) {
                break;
            }
            first = self.survival.select(&self.worths, &mut self.alive, self.config.population.into(), &mut self.spare, rng);
        }
        self.remember(problem, first);
        let fitter = |best: u16, next: u16| {
            let fitness = |slot: u16| self.worths[slot as usize].fitness;
            if fitness(next) > fitness(best) { next } else { best }
        };
        let best = self.alive[..first].iter().copied().reduce(fitter).unwrap_or(self.alive[0]);
        (self.state(best, problem), self.worths[best as usize])
    }

    fn state(&self, slot: u16, problem: &Problem) -> &[Lanes] {
        let len = problem.current.len();
        &self.cells[slot as usize * len..(slot as usize + 1) * len]
    }

    /// First population: the last front, or the state as it is. Returns the size of the first front.
    fn begin(&mut self, problem: &mut Problem, rng: &mut impl Rng) -> usize {
        let (slots, len) = (2 * self.config.population, problem.current.len());
        self.cells.clear();
        self.cells.resize(usize::from(slots) * len, [0; 16]);
        self.worths.resize(slots.into(), Worth::default());
        self.hashes.resize(slots.into(), 0);
        self.alive.clear();
        self.spare.clear();
        self.spare.extend((0..slots).rev());
        self.seen.clear(slots);
        self.skips = Skips::new(problem.jobs.len() as u32);
        let source = self.source_rows(problem);
        let states = match source {
            None => 1,
            Some(_) => self.front.len() / (self.front_jobs.len() * self.front_width),
        };
        for state in 0..states {
            let Some(slot) = self.spare.pop() else { break };
            let cells = &mut self.cells[slot as usize * len..(slot as usize + 1) * len];
            match &source {
                None => cells.copy_from_slice(&problem.current),
                Some(rows) => {
                    let width = problem.width;
                    let old = &self.front[state * self.front_jobs.len() * width..];
                    for (row, from) in cells.chunks_exact_mut(width).zip(rows) {
                        if let Some(from) = from {
                            row.copy_from_slice(&old[from * width..(from + 1) * width]);
                        }
                    }
                }
            }
            self.settle(problem, slot, rng);
        }
        self.survival.select(&self.worths, &mut self.alive, slots.into(), &mut self.spare, rng)
    }

    /// Which row of the old front each job starts from; `None` without a front that fits.
    fn source_rows(&self, problem: &Problem) -> Option<Vec<Option<usize>>> {
        if self.front_jobs.is_empty() || self.front_width != problem.width {
            return None;
        }
        let old_row = |job: JobId| self.front_jobs.iter().position(|&old| old == job);
        let mut rows: Vec<Option<usize>> = problem.jobs.iter().map(|job| old_row(job.job)).collect();
        if self.config.warm_start == WarmStart::ByPosition {
            let mut old: Vec<usize> = rows.iter().flatten().copied().collect();
            old.sort_unstable();
            for (row, from) in rows.iter_mut().flatten().zip(old) {
                *row = from;
            }
        }
        Some(rows)
    }

    fn remember(&mut self, problem: &Problem, first: usize) {
        let len = problem.current.len();
        self.front.clear();
        for &slot in &self.alive[..first] {
            self.front.extend_from_slice(&self.cells[slot as usize * len..(slot as usize + 1) * len]);
        }
        self.front_jobs.clear();
        self.front_jobs.extend(problem.jobs.iter().map(|job| job.job));
        self.front_width = problem.width;
    }

    /// Adds a population's worth of new children. Returns whether there is any.
    fn breed(&mut self, problem: &mut Problem, rng: &mut impl Rng) -> bool {
        let parents = self.alive.len();
        let wanted = parents + usize::from(self.config.population);
        self.seen.clear(2 * self.config.population);
        for &slot in &self.alive {
            self.seen.insert(self.hashes[slot as usize], slot);
        }
        let (mut refills, mut vain) = (0, 0);
        while self.alive.len() < wanted && refills <= REFILLS && vain < VAIN_REFILLS {
            let before = self.alive.len();
            self.deck.restart();
            for _ in 0..(wanted - self.alive.len()).div_ceil(2) {
                let (a, b) = (self.parent(parents, rng), self.parent(parents, rng));
                let cut = match rng.next_u32() < CROSSOVER {
                    true => below(rng, problem.jobs.len() as u32) as usize * problem.width,
                    false => 0,
                };
                for (head, tail) in [(b, a), (a, b)] {
                    if self.alive.len() == wanted {
                        break;
                    }
                    let Some(slot) = self.spare.pop() else { break };
                    self.cross(problem.current.len(), head, tail, cut, slot);
                    self.mutate(problem, slot, rng);
                    self.settle(problem, slot, rng);
                }
            }
            refills += 1;
            vain = if self.alive.len() > before { 0 } else { vain + 1 };
        }
        self.alive.len() > parents
    }

    /// The winner of a tournament between the next two of the deck.
    fn parent(&mut self, parents: usize, rng: &mut impl Rng) -> u16 {
        let mut draw = || self.alive[usize::from(self.deck.draw(parents as u16, rng))];
        let (a, b) = (draw(), draw());
        let first_wins = self.survival.better(&self.worths, a, b).unwrap_or_else(|| rng.next_u32() & 1 == 0);
        if first_wins { a } else { b }
    }

    /// Writes the child with the lanes of `head` before `cut` and those of `tail` from there on.
    fn cross(&mut self, len: usize, head: u16, tail: u16, cut: usize, child: u16) {
        let at = |slot: u16| slot as usize * len;
        self.cells.copy_within(at(head)..at(head) + cut, at(child));
        self.cells.copy_within(at(tail) + cut..at(tail) + len, at(child) + cut);
    }

    /// Resets rows, zeroes elements, then fills free accelerators at random.
    fn mutate(&mut self, problem: &Problem, slot: u16, rng: &mut impl Rng) {
        match problem.width {
            1 => self.mutate_rows(problem, 1, slot, rng),
            width => self.mutate_rows(problem, width, slot, rng),
        }
    }

    /// Inlined for the usual width, so that a row is a register and not a loop.
    #[inline(always)]
    fn mutate_rows(&mut self, problem: &Problem, width: usize, slot: u16, rng: &mut impl Rng) {
        let len = problem.current.len();
        let cells = &mut self.cells[slot as usize * len..(slot as usize + 1) * len];
        let Scratch { used, sharers, open, open_nodes, .. } = &mut self.scratch;
        fill(used, width, [0; 16]);
        fill(sharers, width, [0; 16]);
        for (row, current) in cells.chunks_exact_mut(width).zip(problem.current.chunks_exact(width)) {
            let draws = rng.next_u32();
            if (draws & 0xffff) < TENTH {
                row.copy_from_slice(current);
            }
            if (draws >> 16) < TENTH {
                for replicas in row.iter_mut().flatten().filter(|replicas| **replicas > 0) {
                    *replicas = if below(rng, 1 << 16) < TENTH { 0 } else { *replicas };
                }
            }
            for ((row, used), sharers) in row.iter().zip(used.iter_mut()).zip(sharers.iter_mut()) {
                (*used, *sharers) = (add(*used, *row), add(*sharers, ones(*row)));
            }
        }
        open.clear();
        open_nodes.clear();
        for (chunk, (used, capacity)) in used.iter().zip(&problem.capacity).enumerate() {
            let mask = smaller(*used, *capacity);
            open.push(mask);
            open_nodes.extend(set_lanes(mask).map(|lane| (chunk * 16 + lane) as u16));
        }
        if open_nodes.is_empty() {
            return;
        }
        let jobs = problem.jobs.len() as u32;
        // An element of a job that is on the node already is picked with 1 - (1 - 1/jobs)(1 - 1/sharers), any other with 1/jobs.
        for row in cells.chunks_exact_mut(width) {
            for (chunk, row) in row.iter_mut().enumerate() {
                let inside = nonzero(*row) & open[chunk];
                for lane in set_lanes(inside) {
                    let sharers = u32::from(sharers[chunk][lane]);
                    if sharers == 1 || below(rng, sharers) == 0 || below(rng, jobs) == 0 {
                        row[lane] += below(rng, u32::from(problem.capacity[chunk][lane] - row[lane]) + 1) as u8;
                    }
                }
            }
        }
        let mut job = self.skips.next(rng);
        for &node in open_nodes.iter() {
            let (chunk, lane) = (usize::from(node) / 16, usize::from(node) % 16);
            while job < jobs as usize {
                let replicas = &mut cells[job * width + chunk][lane];
                if *replicas == 0 {
                    *replicas = below(rng, u32::from(problem.capacity[chunk][lane]) + 1) as u8;
                }
                job += 1 + self.skips.next(rng);
            }
            job -= jobs as usize;
        }
    }

    /// Repairs the child in `slot` and, unless it is there already, adds it to the living with its worth.
    fn settle(&mut self, problem: &mut Problem, slot: u16, rng: &mut impl Rng) {
        let (width, len) = (problem.width, problem.current.len());
        let cells = &mut self.cells[slot as usize * len..(slot as usize + 1) * len];
        let avoid = self.config.avoid_interference;
        let (worth, hash) = match width {
            1 => self.scratch.repair(problem, 1, cells, avoid, rng),
            _ => self.scratch.repair(problem, width, cells, avoid, rng),
        };
        debug_assert!(cells.chunks_exact(width).zip(&problem.jobs).all(|(row, job)| sum(row) <= job.max));
        let (all, hashes) = (&self.cells, &self.hashes);
        let same = |other: u16| {
            let of = |slot: u16| &all[slot as usize * len..(slot as usize + 1) * len];
            hashes[other as usize] == hash && of(other) == of(slot)
        };
        if self.seen.contains(hash, same) {
            self.spare.push(slot);
            return;
        }
        self.worths[slot as usize] = worth;
        self.hashes[slot as usize] = hash;
        self.seen.insert(hash, slot);
        self.alive.push(slot);
    }
}

impl Scratch {
    /// Makes a state obey every rule, job by job in order: nodes that an earlier distributed job has, the job's maximum, 16 nodes, what
    /// earlier jobs leave of each node, the job's minimum. Returns its worth and its hash.
    /// Inlined for the usual width.
    #[inline(always)]
    fn repair(
        &mut self,
        problem: &mut Problem,
        width: usize,
        cells: &mut [Lanes],
        avoid: bool,
        rng: &mut impl Rng,
    ) -> (Worth, u64) {
        fill(&mut self.taken, width, 0);
        fill(&mut self.active, width, 0);
        self.left.clone_from(&problem.capacity);
        let mut sums = [0.0; 2];
        let mut hash = 0u64;
        for (job, row) in cells.chunks_exact_mut(width).enumerate() {
            let [term, speedup] = if lanes::is_empty(row) {
                problem.moved(job, false, 0)
            } else {
                let (distributed, replicas) = self.repair_row(problem, job, row, avoid, rng);
                for (chunk, lanes) in row.iter().enumerate() {
                    hash = hash.wrapping_add(lanes::hash(*lanes, job * width + chunk));
                }
                match lanes::same(row, problem.row(job)) {
                    true => problem.kept(job),
                    false => problem.moved(job, distributed, replicas),
                }
            };
            sums = [sums[0] + term, sums[1] + speedup];
        }
        let active = problem.active(self.active.iter().copied());
        (problem.total(sums, active), hash)
    }

    /// Repairs one row; returns whether it is distributed, and its replicas.
    #[inline(always)]
    fn repair_row(
        &mut self,
        problem: &Problem,
        job: usize,
        row: &mut [Lanes],
        avoid: bool,
        rng: &mut impl Rng,
    ) -> (bool, u32) {
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
        (is_distributed(row), replicas)
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

/// Uniform in `0..bound`, by multiplication; off by less than `bound / 2^32`.
#[inline]
fn below(rng: &mut impl Rng, bound: u32) -> u32 {
    ((u64::from(rng.next_u32()) * u64::from(bound)) >> 32) as u32
}

/// Gaps between successes of independent trials with probability 1/`jobs`.
#[derive(Clone, Debug)]
struct Skips {
    per_log: f64,
}

impl Skips {
    fn new(jobs: u32) -> Self {
        Self { per_log: 1.0 / (1.0 - 1.0 / f64::from(jobs)).ln() }
    }

    /// Failures before the next success.
    #[inline]
    fn next(&self, rng: &mut impl Rng) -> usize {
        // In (0, 1], so that the logarithm is finite; a certain success has `per_log` of -0 and never fails.
        let uniform = (f64::from(rng.next_u32()) + 1.0) / (f64::from(u32::MAX) + 1.0);
        (uniform.ln() * self.per_log) as usize
    }
}

/// Deals the population in random order, again and again, so that everyone takes part in the same number of tournaments.
#[derive(Clone, Debug, Default)]
struct Deck {
    cards: Vec<u16>,
    dealt: usize,
}

impl Deck {
    /// Shuffles before the next draw.
    fn restart(&mut self) {
        self.dealt = self.cards.len();
    }

    fn draw(&mut self, count: u16, rng: &mut impl Rng) -> u16 {
        if self.dealt >= self.cards.len() || self.cards.len() != usize::from(count) {
            self.cards.clear();
            self.cards.extend(0..count);
            self.dealt = 0;
        }
        let other = self.dealt + below(rng, (self.cards.len() - self.dealt) as u32) as usize;
        self.cards.swap(self.dealt, other);
        self.dealt += 1;
        self.cards[self.dealt - 1]
    }
}

/// Slots by hash: open addressing, cleared every generation.
#[derive(Clone, Debug, Default)]
struct Seen(Vec<u16>);

impl Seen {
    const EMPTY: u16 = u16::MAX;

    fn clear(&mut self, slots: u16) {
        let len = (usize::from(slots) * 4).next_power_of_two();
        self.0.clear();
        self.0.resize(len, Self::EMPTY);
    }

    fn insert(&mut self, hash: u64, slot: u16) {
        let at = self.probe(hash, |other| other == Self::EMPTY);
        self.0[at] = slot;
    }

    fn contains(&self, hash: u64, same: impl Fn(u16) -> bool) -> bool {
        let at = self.probe(hash, |other| other == Self::EMPTY || same(other));
        self.0[at] != Self::EMPTY
    }

    fn probe(&self, hash: u64, stop: impl Fn(u16) -> bool) -> usize {
        let mask = self.0.len() - 1;
        let mut at = (hash >> 20) as usize & mask;
        while !stop(self.0[at]) {
            at = (at + 1) & mask;
        }
        at
    }
}
