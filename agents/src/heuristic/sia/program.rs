//! Choice of a configuration for each job: a 0-1 program with one row a job and one row a type of
//! accelerator.
//!
//! Minimise `sum cost x + lambda (jobs - sum x)` subject to at most one configuration a job and the
//! accelerators of each type (Sia, equation 3). A configuration that costs `lambda` or more is
//! never better than none and is left out; so is one that costs as much as another of its job and
//! type with fewer accelerators. Neither changes the optimum.

use goodput_env::cluster::TypeId;
use microlp::{ComparisonOp, OptimizationDirection, Problem, SolveOptions};

/// Cost of leaving a job without accelerators, as published (`lambda_n` of the artifact).
pub const WITHOUT: f64 = 1.1;
/// Branches after which the best choice found so far stands: a bound on time that does not depend
/// on the machine.
const MOST_NODES: u64 = 5_000;

/// Configuration of one job, a column of the program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiaColumn {
    /// Index of the accelerator type.
    pub kind: TypeId,
    /// Number of accelerators of the type.
    pub gpus: u32,
    /// Cost in the objective: a utility to the power of fairness.
    pub cost: f64,
}

/// Column chosen for each of `jobs`, by index; `None`: no accelerators. `capacity` is by
/// accelerator type, `without` the cost of a job without accelerators, `gap` the relative distance from the optimum
/// at which the search may stop.
pub fn choose(jobs: &[Vec<SiaColumn>], capacity: &[u32], without: f64, gap: f64) -> Vec<Option<usize>> {
    let useful: Vec<Vec<usize>> = jobs.iter().map(|columns| useful(columns, capacity, without)).collect();
    let greedy = greedy(jobs, &useful, capacity, without);
    solve(jobs, &useful, capacity, without, gap)
        // A search that ends at its limit may have found less than the greedy choice has.
        .filter(|found| total_cost(jobs, found, without) <= total_cost(jobs, &greedy, without))
        .unwrap_or(greedy)
}

/// Cost of a choice, jobs without accelerators included.
pub fn total_cost(jobs: &[Vec<SiaColumn>], choice: &[Option<usize>], without: f64) -> f64 {
    jobs.iter().zip(choice).map(|(columns, chosen)| chosen.map_or(without, |at| columns[at].cost)).sum()
}

/// Columns of a job that can be part of an optimum.
fn useful(columns: &[SiaColumn], capacity: &[u32], without: f64) -> Vec<usize> {
    let fits = |column: &SiaColumn| column.cost < without && column.gpus <= capacity[column.kind.index()];
    let beaten = |at: usize, column: &SiaColumn| {
        columns.iter().enumerate().any(|(other_at, other)| {
            let no_worse = other.kind == column.kind && other.gpus <= column.gpus && other.cost <= column.cost;
            let same = other.gpus == column.gpus && other.cost == column.cost;
            no_worse && fits(other) && (!same || other_at < at)
        })
    };
    let candidates = columns.iter().enumerate().filter(|(at, column)| fits(column) && !beaten(*at, column));
    candidates.map(|(at, _)| at).collect()
}

fn solve(
    jobs: &[Vec<SiaColumn>],
    useful: &[Vec<usize>],
    capacity: &[u32],
    without: f64,
    gap: f64,
) -> Option<Vec<Option<usize>>> {
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let mut used: Vec<Vec<(microlp::Variable, f64)>> = vec![Vec::new(); capacity.len()];
    let mut variables = Vec::with_capacity(jobs.len());
    for (columns, useful) in jobs.iter().zip(useful) {
        // Costs are relative to no accelerators, so that a column which is not chosen counts 0.
        let of_job: Vec<_> = useful.iter().map(|&at| problem.add_binary_var(columns[at].cost - without)).collect();
        for (&at, &variable) in useful.iter().zip(&of_job) {
            used[columns[at].kind.index()].push((variable, f64::from(columns[at].gpus)));
        }
        // A single binary variable needs no row that keeps it at 1.
        if of_job.len() > 1 {
            let one: Vec<_> = of_job.iter().map(|&variable| (variable, 1.0)).collect();
            problem.add_constraint(&one[..], ComparisonOp::Le, 1.0);
        }
        variables.push(of_job);
    }
    for (terms, &gpus) in used.iter().zip(capacity).filter(|(terms, _)| !terms.is_empty()) {
        problem.add_constraint(&terms[..], ComparisonOp::Le, f64::from(gpus));
    }
    let mut options = SolveOptions::default();
    options.mip_gap = gap;
    options.node_limit = Some(MOST_NODES);
    let outcome = problem.solve_with(options).ok()?;
    let solution = outcome.solution()?;
    let chosen = |useful: &[usize], of_job: &[microlp::Variable]| {
        let at = of_job.iter().position(|&variable| solution.var_value(variable) > 0.5)?;
        Some(useful[at])
    };
    let choice: Vec<_> = useful.iter().zip(&variables).map(|(useful, of_job)| chosen(useful, of_job)).collect();
    // The solver works within tolerances; a choice beyond the capacity must not leave here.
    is_feasible(jobs, &choice, capacity).then_some(choice)
}

/// Greedy choice, the result if the solver fails: repeatedly the cheapest configuration per
/// accelerator saved, in order of jobs on ties.
fn greedy(jobs: &[Vec<SiaColumn>], useful: &[Vec<usize>], capacity: &[u32], without: f64) -> Vec<Option<usize>> {
    let mut left = capacity.to_vec();
    let mut order: Vec<(f64, usize, usize)> = Vec::new();
    for (job, (columns, useful)) in jobs.iter().zip(useful).enumerate() {
        order.extend(useful.iter().map(|&at| ((columns[at].cost - without) / f64::from(columns[at].gpus), job, at)));
    }
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut choice = vec![None; jobs.len()];
    for (_, job, at) in order {
        let column = jobs[job][at];
        let left = &mut left[column.kind.index()];
        if choice[job].is_none() && column.gpus <= *left {
            *left -= column.gpus;
            choice[job] = Some(at);
        }
    }
    choice
}

fn is_feasible(jobs: &[Vec<SiaColumn>], choice: &[Option<usize>], capacity: &[u32]) -> bool {
    let mut left = capacity.to_vec();
    jobs.iter().zip(choice).all(|(columns, chosen)| {
        let Some(column) = chosen.map(|at| columns[at]) else { return true };
        let left = &mut left[column.kind.index()];
        let fits = column.gpus <= *left;
        *left = left.saturating_sub(column.gpus);
        fits
    })
}
