//! Search for the optimum of a program: a table where the choices that are open are of one type of accelerator, and
//! branch and bound where they are of several.

use microlp::{ComparisonOp, OptimizationDirection, Problem, SolveOptions, Variable};

use super::columns::{JobColumns, SiaColumn};
use crate::allocation::knapsack::{Item, Knapsack};

/// Branches after which the best choice found so far stands: a bound on time that does not depend
/// on the machine.
const MOST_NODES: u64 = 5_000;
/// Cells of the largest table; each takes 8 bytes.
const MOST_CELLS: u64 = 4_000_000;

/// A program in which the jobs with one possible choice are settled.
pub(super) struct OpenProgram<'a> {
    jobs: &'a [Vec<SiaColumn>],
    candidates: &'a [JobColumns],
    without: f64,
    /// Indices of the jobs with several choices.
    open: Vec<usize>,
    /// Accelerators that settled jobs leave, by type.
    free: Vec<u32>,
    /// Columns of the settled jobs; `None` for open ones.
    settled: Vec<Option<usize>>,
}

impl<'a> OpenProgram<'a> {
    /// The program of `jobs` with `candidates` as the columns that they may have; `None` where settled jobs
    /// have no room.
    pub fn new(
        jobs: &'a [Vec<SiaColumn>],
        candidates: &'a [JobColumns],
        capacity: &[u32],
        without: f64,
    ) -> Option<Self> {
        let mut free = capacity.to_vec();
        let (mut open, mut settled) = (Vec::new(), vec![None; jobs.len()]);
        for (job, of_job) in candidates.iter().enumerate() {
            match (&of_job.useful[..], of_job.may_wait) {
                ([], _) => {}
                (&[at], false) => {
                    let SiaColumn { kind, gpus, .. } = jobs[job][at];
                    free[kind.index()] = free[kind.index()].checked_sub(gpus)?;
                    settled[job] = Some(at);
                }
                _ => open.push(job),
            }
        }
        Some(Self { jobs, candidates, without, open, free, settled })
    }

    /// An optimum by dynamic programming; `None` where choices are of several types, or the table would be too large.
    pub fn by_table(&self) -> Option<Vec<Option<usize>>> {
        let mut columns = self.open.iter().flat_map(|&job| self.columns(job));
        let Some(first) = columns.next() else { return Some(self.settled.clone()) };
        if columns.any(|column| column.kind != first.kind) {
            return None;
        }
        let largest = |&job: &usize| self.columns(job).map(|column| u64::from(column.gpus)).max().unwrap_or(0);
        let free = self.free[first.kind.index()];
        let width = u64::from(free).min(self.open.iter().map(largest).sum());
        if (self.open.len() as u64 + 1) * (width + 1) > MOST_CELLS {
            return None;
        }
        let mut table = Knapsack::default();
        // The table favours the last group where sums are equal, and the program the first job.
        for &job in self.open.iter().rev() {
            table
                .group(self.columns(job).map(|column| Item { weight: column.gpus, value: self.without - column.cost }));
        }
        Some(self.complete(table.solve(free).iter().rev().copied()))
    }

    /// An optimum by branch and bound, or a choice within `gap` of it, relative; after so many branches the
    /// best choice found. `None` where the solver fails.
    pub fn by_branches(&self, gap: f64) -> Option<Vec<Option<usize>>> {
        let mut problem = Problem::new(OptimizationDirection::Minimize);
        let mut used: Vec<Vec<(Variable, f64)>> = vec![Vec::new(); self.free.len()];
        let mut variables: Vec<Vec<Variable>> = Vec::with_capacity(self.open.len());
        for &job in &self.open {
            // Costs are relative to no accelerators, so that a column which is not chosen counts 0.
            let variable = |column: SiaColumn| {
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
        for (terms, &gpus) in used.iter().zip(&self.free).filter(|(terms, _)| !terms.is_empty()) {
            problem.add_constraint(&terms[..], ComparisonOp::Le, f64::from(gpus));
        }
        let mut options = SolveOptions::default();
        options.mip_gap = gap;
        options.node_limit = Some(MOST_NODES);
        let outcome = problem.solve_with(options).ok()?;
        let solution = outcome.solution()?;
        let chosen = |of_job: &Vec<Variable>| of_job.iter().position(|&one| solution.var_value(one) > 0.5);
        Some(self.complete(variables.iter().map(chosen)))
    }

    /// The columns that a job may have.
    fn columns(&self, job: usize) -> impl Iterator<Item = SiaColumn> {
        self.candidates[job].useful.iter().map(move |&at| self.jobs[job][at])
    }

    /// The choice of all jobs; `chosen` has the place of each open job's column among those that the job may have.
    fn complete(&self, chosen: impl Iterator<Item = Option<usize>>) -> Vec<Option<usize>> {
        let mut choice = self.settled.clone();
        for (&job, chosen) in self.open.iter().zip(chosen) {
            choice[job] = chosen.map(|at| self.candidates[job].useful[at]);
        }
        choice
    }
}

#[cfg(test)]
mod tests {
    use goodput_env::cluster::TypeId;

    use super::*;

    fn column(kind: u16, gpus: u32, cost: f64) -> SiaColumn {
        SiaColumn { kind: TypeId(kind), gpus, cost }
    }

    fn solve(jobs: &[Vec<SiaColumn>], capacity: &[u32], may_wait: bool) -> Option<Vec<Option<usize>>> {
        let of_job = |columns: &Vec<SiaColumn>| JobColumns { useful: (0..columns.len()).collect(), may_wait };
        let candidates: Vec<JobColumns> = jobs.iter().map(of_job).collect();
        OpenProgram::new(jobs, &candidates, capacity, 1.1)?.by_table()
    }

    #[test]
    fn equal_sums_go_to_the_first_job() {
        let jobs = vec![vec![column(0, 1, 0.5)]; 3];
        assert_eq!(solve(&jobs, &[2], true), Some(vec![Some(0), Some(0), None]));
    }

    #[test]
    fn settled_jobs_take_their_accelerators_first() {
        let jobs = [vec![column(0, 3, 1.0)], vec![column(0, 1, 0.9), column(0, 2, 0.2)]];
        assert_eq!(solve(&jobs, &[4], false), Some(vec![Some(0), Some(0)]));
        assert_eq!(solve(&jobs, &[2], false), None, "the settled job has no room");
    }

    #[test]
    fn a_table_is_for_one_type_and_of_limited_size() {
        assert_eq!(solve(&[vec![column(0, 1, 0.5), column(1, 1, 0.4)]], &[1, 1], true), None);
        let jobs = vec![vec![column(0, 4_000, 0.5)]; 2_000];
        assert_eq!(solve(&jobs, &[4_000_000], true), None);
        assert!(solve(&jobs, &[4_000], true).is_none(), "2,001 rows of 4,001 cells");
        assert!(solve(&jobs[..100], &[4_000], true).is_some());
    }
}
