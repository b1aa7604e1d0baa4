//! Choice of a configuration for each job: a 0-1 program with one row a job and one row a type of
//! accelerator.
//!
//! Minimise `sum cost x + lambda (jobs - sum x)` subject to at most one configuration a job and the
//! accelerators of each type (Sia, equation 3). A configuration that costs `lambda` or more is
//! never better than none and is left out; so is one that costs as much as another of its job and
//! type with fewer accelerators. Neither changes the optimum.

use super::columns::{JobColumns, saved};
pub use super::columns::{SiaColumn, total_cost};
use super::reduction;
use super::search::OpenProgram;
use crate::allocation::knapsack::{Hull, Offer};

/// Cost of leaving a job without accelerators, as published (`lambda_n` of the artifact).
pub const WITHOUT: f64 = 1.1;

/// Part of what is saved that sums may be off by rounding.
const ROUNDING: f64 = 1e-12;

/// Column chosen for each of `jobs`, by index; `None`: no accelerators. `capacity` is by
/// accelerator type, `without` the cost of a job without accelerators, `gap` the relative distance from the optimum
/// at which branch and bound over all columns may stop. At 0 the columns that no optimum has are left out first.
pub fn choose(jobs: &[Vec<SiaColumn>], capacity: &[u32], without: f64, gap: f64) -> Vec<Option<usize>> {
    let mut candidates: Vec<JobColumns> =
        jobs.iter().map(|columns| JobColumns::new(columns, capacity, without)).collect();
    let (known, prices) = along_hulls(jobs, &candidates, capacity, without);
    let exact = gap == 0.0;
    // A search that may stop short of the optimum stops elsewhere with fewer columns.
    if exact {
        candidates = reduction::remaining(jobs, &candidates, capacity, without, &prices, &known);
    }
    let least = saved(jobs, &known, without) * (1.0 - gap.max(ROUNDING));
    let program = OpenProgram::new(jobs, &candidates, capacity, without);
    let found = program.and_then(|open| exact.then(|| open.by_table()).flatten().or_else(|| open.by_branches(gap)));
    found
        // The solver works within tolerances; a choice beyond the capacity must not leave here.
        .filter(|found| is_feasible(jobs, found, capacity))
        // A search that ends at its limit may have found less.
        .filter(|found| saved(jobs, found, without) >= least)
        .unwrap_or(known)
}

/// Choice along the hulls of what columns save, close to the optimum, and prices by type of accelerator at which jobs
/// that choose for themselves take about what there is.
fn along_hulls(
    jobs: &[Vec<SiaColumn>],
    candidates: &[JobColumns],
    capacity: &[u32],
    without: f64,
) -> (Vec<Option<usize>>, Vec<f64>) {
    let by_size = |(columns, of_job): (&Vec<SiaColumn>, &JobColumns)| {
        let mut useful = of_job.useful.clone();
        useful.sort_by_key(|&at| columns[at].gpus);
        useful
    };
    let groups: Vec<Vec<usize>> = jobs.iter().zip(candidates).map(by_size).collect();
    let mut hull = Hull::default();
    for (columns, group) in jobs.iter().zip(&groups) {
        let offer = |&at: &usize| {
            let SiaColumn { kind, gpus, cost } = columns[at];
            Offer { kind, weight: gpus, value: without - cost }
        };
        hull.group(group.iter().map(offer));
    }
    let chosen = hull.solve(capacity).iter().zip(&groups);
    let choice = chosen.map(|(at, group)| at.map(|at| group[at as usize])).collect();
    (choice, hull.prices().to_vec())
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
