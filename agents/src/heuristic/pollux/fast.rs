//! The project's own search for Pollux's objective: exact in counts, greedy in nodes.
//!
//! Without nodes the objective is a sum of terms, each of one job's replicas, so the best counts
//! are a multiple-choice knapsack that dynamic programming solves. Nodes make the problem hard, but
//! they rarely bind: a job of several nodes gets whole ones, and a job that finds no good place may
//! clear one. A descent that re-places one job at a time then uses up what is left. The state in
//! which no job has moved is improved likewise, and the better of the two wins.
//!
//! Deterministic. O(jobs x accelerators x sizes) at worst, and far less with many jobs ([`super::counts`]).

use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::Batching;
use goodput_env::view::ClusterView;

use super::counts::ReplicaCounts;
use super::draft::StateDraft;
use super::lanes::{Lanes, NodeSpan};
use super::objective::{ObjectiveParameters, PolluxProblem, StateValue};

/// Rounds of descent; the descent has usually settled after two.
const SWEEPS: u32 = 6;
/// Number of worst-off jobs that may grow at the expense of others.
const WORST_OFF: usize = 16;
/// Least relative decrease of a sum of terms that counts as progress.
const PROGRESS: f64 = 1e-9;

/// Pollux with this search. A job that gains nothing from an accelerator does not get it.
#[derive(Clone, Debug, Default)]
pub struct PolluxFast {
    problem: PolluxProblem,
    search: Fast,
}

impl PolluxFast {
    /// A policy with the given objective.
    pub fn new(objective: ObjectiveParameters) -> Self {
        Self { problem: PolluxProblem::new(objective), search: Fast::default() }
    }
}

impl Policy for PolluxFast {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.problem.load(view);
        let (state, _) = self.search.search(&mut self.problem);
        super::plan(&self.problem, state)
    }

    fn batching(&self) -> Batching {
        Batching::Agent
    }
}

/// Search of the best state, with its buffers.
#[derive(Clone, Debug, Default)]
pub struct Fast {
    draft: StateDraft,
    rival: StateDraft,
    backup: StateDraft,
    counts: ReplicaCounts,
    order: Vec<usize>,
    evicted: Vec<usize>,
    rows: Vec<Lanes>,
    held: Vec<u32>,
}

impl Fast {
    /// Best state found and its value.
    pub fn search(&mut self, problem: &mut PolluxProblem) -> (&[Lanes], StateValue) {
        self.draft.start(problem);
        self.rival.clone_from(&self.draft);
        self.choose_counts(problem);
        self.place_counts(problem);
        self.descend(problem);
        std::mem::swap(&mut self.draft, &mut self.rival);
        self.descend(problem);
        // On a tie no job moves.
        if self.rival.terms() < self.draft.terms() {
            std::mem::swap(&mut self.draft, &mut self.rival);
        }
        let value = problem.value(&self.draft.rows);
        (&self.draft.rows, value)
    }

    /// Offers each job its numbers of replicas up to all accelerators, and chooses among them.
    fn choose_counts(&mut self, problem: &mut PolluxProblem) {
        let (total, node) = (problem.total_gpus(), problem.largest_node());
        self.counts.clear();
        for job in 0..problem.jobs.len() {
            let held = problem.jobs[job].held.gpus();
            let sizes = std::iter::once(0).chain(problem.sizes(job)).take_while(|&replicas| replicas <= total);
            // Sixteen bits hold the place of an option, so a job of more sizes is offered the first of them.
            for replicas in sizes.take(usize::from(u16::MAX)) {
                // A job that keeps its count is assumed to keep its nodes, and so not to restart.
                let [term, _] = if replicas == held {
                    problem.kept(job)
                } else {
                    problem.moved(job, NodeSpan::packed(replicas, node), replicas)
                };
                self.counts.offer(replicas, term);
            }
            self.counts.end_job();
        }
        self.counts.solve(total);
    }

    /// Places the chosen counts: a job that keeps its count keeps its nodes; the others are placed,
    /// largest first.
    fn place_counts(&mut self, problem: &mut PolluxProblem) {
        let (counts, node) = (self.counts.chosen(), problem.largest_node());
        self.order.clear();
        self.order.extend((0..counts.len()).filter(|&job| counts[job] != problem.held(job)));
        self.order.sort_by_key(|&job| std::cmp::Reverse(counts[job]));
        for &job in &self.order {
            self.draft.remove(problem, job);
        }
        for at in 0..self.order.len() {
            let job = self.order[at];
            let count = self.counts.chosen()[job];
            self.draft.place(problem, job, count);
            // The placement is worse than the knapsack assumed: too few replicas, or more than one
            // node.
            if self.draft.term[job] > problem.moved(job, NodeSpan::packed(count, node), count)[0] {
                self.clear_for(problem, job, count);
            }
        }
    }

    /// Gives a job the nodes it needs, and moves the jobs that hold them, if the sum of terms
    /// falls.
    fn clear_for(&mut self, problem: &mut PolluxProblem, job: usize, count: u32) {
        self.backup.clone_from(&self.draft);
        self.draft.remove(problem, job);
        self.evicted.clear();
        while !self.draft.fits(problem, count)
            && let Some(node) = self.draft.easiest_to_clear(problem)
        {
            for other in 0..problem.jobs.len() {
                if self.draft.held[other] > 0 && self.draft.row(problem, other)[node / 16][node % 16] > 0 {
                    self.draft.remove(problem, other);
                    self.evicted.push(other);
                }
            }
        }
        self.draft.place(problem, job, count);
        for &other in &self.evicted {
            self.draft.place(problem, other, self.backup.held[other]);
        }
        // Evicted jobs may have lost more than this job gained.
        if self.draft.terms() >= self.backup.terms() {
            std::mem::swap(&mut self.draft, &mut self.backup);
        }
    }

    /// Places each job anew, the worst off first, and lets jobs exchange accelerators, as long as
    /// the sum of terms falls.
    fn descend(&mut self, problem: &mut PolluxProblem) {
        for _ in 0..SWEEPS {
            let mut improved = false;
            self.order.clear();
            self.order.extend(0..problem.jobs.len());
            let term = &self.draft.term;
            self.order.sort_by(|&a, &b| term[b].total_cmp(&term[a]));
            for at in 0..self.order.len() {
                improved |= self.replace(problem, &[(self.order[at], u32::MAX)]);
            }
            if !improved && !self.exchange(problem) {
                break;
            }
        }
    }

    /// Lets each of the worst-off jobs grow by a size at the expense of another job. Returns
    /// whether anything changed.
    fn exchange(&mut self, problem: &mut PolluxProblem) -> bool {
        let mut improved = false;
        for at in 0..self.order.len().min(WORST_OFF) {
            let taker = self.order[at];
            for giver in (0..problem.jobs.len()).filter(|&giver| giver != taker) {
                if self.draft.held[giver] == 0 {
                    continue;
                }
                let has = self.draft.held[taker];
                if let Some(wanted) = problem.sizes(taker).find(|&replicas| replicas > has) {
                    improved |= self.replace(problem, &[(taker, wanted), (giver, u32::MAX)]);
                }
            }
        }
        improved
    }

    /// Places jobs anew, in this order and with at most so many replicas each, if the sum of their
    /// terms falls.
    fn replace(&mut self, problem: &mut PolluxProblem, jobs: &[(usize, u32)]) -> bool {
        let draft = &mut self.draft;
        // Jobs without accelerators change nothing where none is free.
        if jobs.iter().all(|&(job, _)| draft.held[job] == 0) && draft.room() == (0, 0) {
            return false;
        }
        let terms = |draft: &StateDraft| jobs.iter().map(|&(job, _)| draft.term[job]).sum::<f64>();
        let before = terms(draft);
        self.rows.clear();
        self.held.clear();
        for &(job, _) in jobs {
            self.held.push(draft.held[job]);
            if draft.held[job] > 0 {
                self.rows.extend_from_slice(draft.row(problem, job));
            }
            draft.remove(problem, job);
        }
        for &(job, most) in jobs {
            draft.place(problem, job, most);
        }
        // Terms of other jobs do not change, so comparing these few is enough.
        if terms(draft) < before * (1.0 - PROGRESS) {
            return true;
        }
        for &(job, _) in jobs {
            draft.remove(problem, job);
        }
        let held = jobs.iter().zip(&self.held).filter(|&(_, &held)| held > 0);
        for ((&(job, _), _), row) in held.zip(self.rows.chunks_exact(problem.width)) {
            draft.put(problem, job, row);
        }
        false
    }
}
