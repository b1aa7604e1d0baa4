//! Search for the optimum of a program: a table where all choices are of one type of accelerator, and branch and bound
//! where they are of several.

use microlp::{ComparisonOp, OptimizationDirection, Problem, SolveOptions, Variable};

use super::program::{JobColumns, SiaColumn};
use crate::allocation::knapsack::{Item, Knapsack};

/// Branches after which the best choice found so far stands: a bound on time that does not depend
/// on the machine.
const MOST_NODES: u64 = 5_000;
/// Cells of the largest table; each takes 8 bytes.
const MOST_CELLS: u64 = 4_000_000;

/// A program in which the jobs with a single choice have it.
pub(super) struct OpenProgram<'a> {
    jobs: &'a [Vec<SiaColumn>],
    all: &'a [JobColumns],
    without: f64,
    /// Indices of the jobs with several choices.
    open: Vec<usize>,
    /// Accelerators that the other jobs leave, by type.
    left: Vec<u32>,
    /// Columns of the other jobs.
    settled: Vec<Option<usize>>,
}

impl<'a> OpenProgram<'a> {
    /// The program of `jobs` with `all` the columns that they may have; `None` where jobs with a single choice have no
    /// room.
    pub fn new(jobs: &'a [Vec<SiaColumn>], all: &'a [JobColumns], capacity: &[u32], without: f64) -> Option<Self> {
        let mut left = capacity.to_vec();
        let (mut open, mut settled) = (Vec::new(), vec![None; jobs.len()]);
        for (job, columns) in all.iter().enumerate() {
            match (&columns.useful[..], columns.may_wait) {
                ([], _) => {}
                (&[at], false) => {
                    let SiaColumn { kind, gpus, .. } = jobs[job][at];
                    left[kind.index()] = left[kind.index()].checked_sub(gpus)?;
                    settled[job] = Some(at);
                }
                _ => open.push(job),
            }
        }
        Some(Self { jobs, all, without, open, left, settled })
    }

    /// An optimum by dynamic programming; `None` where choices are of several types, or the table would be too large.
    pub fn by_table(&self) -> Option<Vec<Option<usize>>> {
        let mut columns = self.open.iter().flat_map(|&job| self.columns(job));
        let Some((_, first)) = columns.next() else { return Some(self.settled.clone()) };
        let left = self.left[first.kind.index()];
        let cells = (self.open.len() as u64 + 1) * (u64::from(left) + 1);
        if cells > MOST_CELLS || columns.any(|(_, column)| column.kind != first.kind) {
            return None;
        }
        let mut table = Knapsack::default();
        for &job in &self.open {
            let item =
                |(_, column): (usize, SiaColumn)| Item { weight: column.gpus, value: self.without - column.cost };
            table.group(self.columns(job).map(item));
        }
        Some(self.with(table.solve(left).iter().copied()))
    }

    /// An optimum by branch and bound, or a choice within `gap` of it, relative; the best choice after so many branches.
    /// `None` where the solver fails.
    pub fn by_branches(&self, gap: f64) -> Option<Vec<Option<usize>>> {
        let mut problem = Problem::new(OptimizationDirection::Minimize);
        let mut used: Vec<Vec<(Variable, f64)>> = vec![Vec::new(); self.left.len()];
        let mut variables: Vec<Vec<Variable>> = Vec::with_capacity(self.open.len());
        for &job in &self.open {
            // Costs are relative to no accelerators, so that a column which is not chosen counts 0.
            let variable = |(_, column): (usize, SiaColumn)| {
                let variable = problem.add_binary_var(column.cost - self.without);
                used[column.kind.index()].push((variable, f64::from(column.gpus)));
                variable
            };
            let of_job: Vec<Variable> = self.columns(job).map(variable).collect();
            // A single binary variable needs no row that keeps it at 1.
            if of_job.len() > 1 {
                let one: Vec<_> = of_job.iter().map(|&variable| (variable, 1.0)).collect();
                problem.add_constraint(&one[..], ComparisonOp::Le, 1.0);
            }
            variables.push(of_job);
        }
        for (terms, &gpus) in used.iter().zip(&self.left).filter(|(terms, _)| !terms.is_empty()) {
            problem.add_constraint(&terms[..], ComparisonOp::Le, f64::from(gpus));
        }
        let mut options = SolveOptions::default();
        options.mip_gap = gap;
        options.node_limit = Some(MOST_NODES);
        let outcome = problem.solve_with(options).ok()?;
        let solution = outcome.solution()?;
        let chosen = |of_job: &Vec<Variable>| of_job.iter().position(|&one| solution.var_value(one) > 0.5);
        Some(self.with(variables.iter().map(chosen)))
    }

    /// The columns that a job may have, with their numbers among all columns of the job.
    fn columns(&self, job: usize) -> impl Iterator<Item = (usize, SiaColumn)> {
        self.all[job].useful.iter().map(move |&at| (at, self.jobs[job][at]))
    }

    /// The choice of all jobs; `chosen` has the place of the column of each open job among those that it may have.
    fn with(&self, chosen: impl Iterator<Item = Option<usize>>) -> Vec<Option<usize>> {
        let mut choice = self.settled.clone();
        for (&job, chosen) in self.open.iter().zip(chosen) {
            choice[job] = chosen.map(|at| self.all[job].useful[at]);
        }
        choice
    }
}
