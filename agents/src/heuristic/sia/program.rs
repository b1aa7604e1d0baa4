//! Choice of a configuration for each job: a 0-1 program with one row a job and one row a type of
//! accelerator.
//!
//! Minimise `sum cost x + lambda (jobs - sum x)` subject to at most one configuration a job and the
//! accelerators of each type (Sia, equation 3). A configuration that costs `lambda` or more is
//! never better than none and is left out; so is one that costs as much as another of its job and
//! type with fewer accelerators. Neither changes the optimum.

use goodput_env::cluster::TypeId;

use super::reduction;
use super::search::OpenProgram;
use crate::allocation::knapsack::{Hull, Offer};

/// Cost of leaving a job without accelerators, as published (`lambda_n` of the artifact).
pub const WITHOUT: f64 = 1.1;

/// Part of what is saved that sums may be off by rounding.
const ROUNDING: f64 = 1e-12;

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

/// Configurations that a job may have.
#[derive(Clone, Debug)]
pub(super) struct JobColumns {
    /// Columns that can be part of an optimum.
    pub useful: Vec<usize>,
    /// Whether an optimum can leave the job without accelerators.
    pub may_wait: bool,
}

impl JobColumns {
    /// Columns of a job that can be part of an optimum whatever other jobs have.
    fn new(columns: &[SiaColumn], capacity: &[u32], without: f64) -> Self {
        let fits = |column: &SiaColumn| column.cost < without && column.gpus <= capacity[column.kind.index()];
        let beaten = |at: usize, column: &SiaColumn| {
            columns.iter().enumerate().any(|(other_at, other)| {
                let no_worse = other.kind == column.kind && other.gpus <= column.gpus && other.cost <= column.cost;
                let same = other.gpus == column.gpus && other.cost == column.cost;
                no_worse && fits(other) && (!same || other_at < at)
            })
        };
        let candidates = columns.iter().enumerate().filter(|(at, column)| fits(column) && !beaten(*at, column));
        Self { useful: candidates.map(|(at, _)| at).collect(), may_wait: true }
    }
}

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

/// Cost of a choice, jobs without accelerators included.
pub fn total_cost(jobs: &[Vec<SiaColumn>], choice: &[Option<usize>], without: f64) -> f64 {
    jobs.iter().zip(choice).map(|(columns, chosen)| chosen.map_or(without, |at| columns[at].cost)).sum()
}

/// Sum by which a choice is below the cost of leaving all jobs without accelerators.
pub(super) fn saved(jobs: &[Vec<SiaColumn>], choice: &[Option<usize>], without: f64) -> f64 {
    jobs.iter().zip(choice).filter_map(|(columns, chosen)| chosen.map(|at| without - columns[at].cost)).sum()
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
