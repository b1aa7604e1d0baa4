//! Published search: NSGA-II with operators of its own (Pollux artifact, `pollux.py`; pymoo 0.4.2).
//!
//! Population, crossover, mutation, repair and their probabilities are the artifact's. Three things
//! differ: random numbers are consumed only where an outcome depends on them, no child allocates
//! memory, and a generation gives up earlier on finding new children.

use goodput_env::job::JobId;
use rand::Rng;

use super::draws::{Deck, SeenStates, below};
use super::lanes::Lanes;
use super::nsga2::FrontSelection;
use super::objective::{PolluxProblem, StateValue};
use super::operators::Operators;

/// Probability of crossover, in 2^-32.
const CROSSOVER: u32 = (u32::MAX as f64 * 0.9) as u32;
/// Attempts to replace duplicates by new children in one generation.
const REFILLS: u32 = 100;
/// Attempts in a row without a new child after which a generation is complete. The artifact goes on
/// to the last refill, which takes a second and finds nothing where one or two jobs leave no
/// unknown state.
const VAIN_REFILLS: u32 = 3;

/// Reuse of the last front in the next first population.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrontReuse {
    /// The k-th surviving job of the old order hands its row to the k-th surviving job of the new
    /// order. The artifact does this by mistake: orders follow attained service, so rows change
    /// hands between jobs.
    #[default]
    ByPosition,
    /// Each job keeps its row.
    ByJob,
}

/// Settings of the genetic search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneticConfig {
    /// Survivors, and children, of each generation.
    pub population: u16,
    /// Generations, the first population included.
    pub generations: u32,
    /// At most one distributed job on a node.
    pub avoid_interference: bool,
    /// Reuse of the last front.
    pub warm_start: FrontReuse,
}

impl Default for GeneticConfig {
    /// The artifact's settings.
    fn default() -> Self {
        Self { population: 100, generations: 100, avoid_interference: true, warm_start: FrontReuse::ByPosition }
    }
}

/// Genetic search, with the front of the last search.
#[derive(Clone, Debug)]
pub struct Genetic {
    config: GeneticConfig,
    /// States of all slots, two populations of them.
    cells: Vec<Lanes>,
    values: Vec<StateValue>,
    hashes: Vec<u64>,
    alive: Vec<u16>,
    spare: Vec<u16>,
    survival: FrontSelection,
    seen: SeenStates,
    deck: Deck,
    operators: Operators,
    /// First front of the last search.
    front: Vec<Lanes>,
    front_jobs: Vec<JobId>,
    front_width: usize,
}

impl Genetic {
    /// A search without memory.
    pub fn new(config: GeneticConfig) -> Self {
        Self {
            config,
            cells: Vec::new(),
            values: Vec::new(),
            hashes: Vec::new(),
            alive: Vec::new(),
            spare: Vec::new(),
            survival: FrontSelection::default(),
            seen: SeenStates::default(),
            deck: Deck::default(),
            operators: Operators::default(),
            front: Vec::new(),
            front_jobs: Vec::new(),
            front_width: 0,
        }
    }

    /// State of the best fitness found, the first of those on ties, and its value.
    pub fn search(&mut self, problem: &mut PolluxProblem, rng: &mut impl Rng) -> (&[Lanes], StateValue) {
        let mut first = self.begin(problem, rng);
        for _ in 1..self.config.generations {
            if !self.add_children(problem, rng) {
                break;
            }
            first = self.survival.select(
                &self.values,
                &mut self.alive,
                self.config.population.into(),
                &mut self.spare,
                rng,
            );
        }
        self.remember(problem, first);
        let fitter = |best: u16, next: u16| {
            let fitness = |slot: u16| self.values[slot as usize].fitness;
            if fitness(next) > fitness(best) { next } else { best }
        };
        let best = self.alive[..first].iter().copied().reduce(fitter).unwrap_or(self.alive[0]);
        (&self.cells[range(best, problem)], self.values[best as usize])
    }

    /// Builds the first population from the last front, or from the present state. Returns the size
    /// of the first front.
    fn begin(&mut self, problem: &mut PolluxProblem, rng: &mut impl Rng) -> usize {
        let (slots, len) = (2 * self.config.population, problem.current.len());
        self.cells.clear();
        self.cells.resize(usize::from(slots) * len, [0; 16]);
        self.values.resize(slots.into(), StateValue::default());
        self.hashes.resize(slots.into(), 0);
        self.alive.clear();
        self.spare.clear();
        self.spare.extend((0..slots).rev());
        self.seen.clear(slots);
        self.operators.prepare(problem.jobs.len() as u32);
        let source = self.source_rows(problem);
        let states = match source {
            // Without a front the present state is the only start; children spread from there.
            None => 1,
            Some(_) => self.front.len() / (self.front_jobs.len() * self.front_width),
        };
        for state in 0..states {
            let Some(slot) = self.spare.pop() else { break };
            let cells = &mut self.cells[range(slot, problem)];
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
        // All slots fit, so nothing is dropped: this only sorts the states into fronts.
        self.survival.select(&self.values, &mut self.alive, slots.into(), &mut self.spare, rng)
    }

    /// Row of the old front that each job starts from; `None` without a front that fits.
    fn source_rows(&self, problem: &PolluxProblem) -> Option<Vec<Option<usize>>> {
        if self.front_jobs.is_empty() || self.front_width != problem.width {
            return None;
        }
        let old_row = |job: JobId| self.front_jobs.iter().position(|&old| old == job);
        let mut rows: Vec<Option<usize>> = problem.jobs.iter().map(|job| old_row(job.job)).collect();
        // Surviving rows in their old order go to surviving jobs in their new order.
        if self.config.warm_start == FrontReuse::ByPosition {
            let mut old: Vec<usize> = rows.iter().flatten().copied().collect();
            old.sort_unstable();
            for (row, from) in rows.iter_mut().flatten().zip(old) {
                *row = from;
            }
        }
        Some(rows)
    }

    fn remember(&mut self, problem: &PolluxProblem, first: usize) {
        self.front.clear();
        for &slot in &self.alive[..first] {
            self.front.extend_from_slice(&self.cells[range(slot, problem)]);
        }
        self.front_jobs.clear();
        self.front_jobs.extend(problem.jobs.iter().map(|job| job.job));
        self.front_width = problem.width;
    }

    /// Adds a population's worth of new children. Returns whether there is any.
    fn add_children(&mut self, problem: &mut PolluxProblem, rng: &mut impl Rng) -> bool {
        let parents = self.alive.len();
        let wanted = parents + usize::from(self.config.population);
        // Children are compared with the parents and with one another.
        self.seen.clear(2 * self.config.population);
        for &slot in &self.alive {
            self.seen.insert(self.hashes[slot as usize], slot);
        }
        // Repair may turn a child into a state that is known already, so a pass may fall short of what is wanted.
        let (mut refills, mut vain) = (0, 0);
        while self.alive.len() < wanted && refills <= REFILLS && vain < VAIN_REFILLS {
            let before = self.alive.len();
            // A fresh shuffle for each pass, so that all parents compete in it equally often.
            self.deck.restart();
            for _ in 0..(wanted - self.alive.len()).div_ceil(2) {
                let (a, b) = (self.parent(parents, rng), self.parent(parents, rng));
                // One cut between jobs: a row is never split.
                // Without crossover the cut is 0, and each child is a copy of one parent.
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
                    let cells = &mut self.cells[range(slot, problem)];
                    self.operators.mutate(problem, cells, rng);
                    self.settle(problem, slot, rng);
                }
            }
            refills += 1;
            vain = if self.alive.len() > before { 0 } else { vain + 1 };
        }
        self.alive.len() > parents
    }

    /// Winner of a tournament between the next two numbers drawn.
    fn parent(&mut self, parents: usize, rng: &mut impl Rng) -> u16 {
        let mut draw = || self.alive[usize::from(self.deck.draw(parents as u16, rng))];
        let (a, b) = (draw(), draw());
        let first_wins = self.survival.better(&self.values, a, b).unwrap_or_else(|| rng.next_u32() & 1 == 0);
        if first_wins { a } else { b }
    }

    /// Writes the child with the lanes of `head` before `cut` and those of `tail` from there on.
    fn cross(&mut self, len: usize, head: u16, tail: u16, cut: usize, child: u16) {
        let at = |slot: u16| slot as usize * len;
        self.cells.copy_within(at(head)..at(head) + cut, at(child));
        self.cells.copy_within(at(tail) + cut..at(tail) + len, at(child) + cut);
    }

    /// Repairs the state in `slot` and adds it to the population with its value, unless it is there
    /// already.
    fn settle(&mut self, problem: &mut PolluxProblem, slot: u16, rng: &mut impl Rng) {
        let cells = &mut self.cells[range(slot, problem)];
        let (value, hash) = self.operators.repair(problem, cells, self.config.avoid_interference, rng);
        let (cells, hashes) = (&self.cells, &self.hashes);
        let same =
            |other: u16| hashes[other as usize] == hash && cells[range(other, problem)] == cells[range(slot, problem)];
        // The slot goes back at once: two populations of slots are all there are.
        if self.seen.contains(hash, same) {
            self.spare.push(slot);
            return;
        }
        self.values[slot as usize] = value;
        self.hashes[slot as usize] = hash;
        self.seen.insert(hash, slot);
        self.alive.push(slot);
    }
}

/// Range of the cells of a slot.
fn range(slot: u16, problem: &PolluxProblem) -> std::ops::Range<usize> {
    let len = problem.current.len();
    usize::from(slot) * len..(usize::from(slot) + 1) * len
}
