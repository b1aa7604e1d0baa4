//! Sia's program without what the policy knows of it: every column, by branch and bound.

use goodput_agents::heuristic::sia::program::SiaColumn;
use microlp::{ComparisonOp, OptimizationDirection, Problem, SolutionStatus, SolveOptions, Variable};

/// Least cost of any choice; `None` where the solver did not prove one.
pub fn least_cost(jobs: &[Vec<SiaColumn>], capacity: &[u32], without: f64) -> Option<f64> {
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let mut used: Vec<Vec<(Variable, f64)>> = vec![Vec::new(); capacity.len()];
    for columns in jobs {
        let variable = |column: &SiaColumn| {
            let variable = problem.add_binary_var(column.cost - without);
            used[column.kind.index()].push((variable, f64::from(column.gpus)));
            (variable, 1.0)
        };
        let of_job: Vec<(Variable, f64)> = columns.iter().map(variable).collect();
        problem.add_constraint(&of_job[..], ComparisonOp::Le, 1.0);
    }
    for (terms, &gpus) in used.iter().zip(capacity) {
        problem.add_constraint(&terms[..], ComparisonOp::Le, f64::from(gpus));
    }
    let mut options = SolveOptions::default();
    options.node_limit = Some(2_000);
    let outcome = problem.solve_with(options).ok()?;
    let solution = outcome.solution().filter(|solution| solution.status() == SolutionStatus::Optimal)?;
    Some(without * jobs.len() as f64 + solution.objective())
}
