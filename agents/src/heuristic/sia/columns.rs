//! Columns of Sia's program: the configurations that a job may have, and the cost of a choice among them.

use goodput_env::cluster::TypeId;

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
    pub fn new(columns: &[SiaColumn], capacity: &[u32], without: f64) -> Self {
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

/// Cost of a choice, jobs without accelerators included.
pub fn total_cost(jobs: &[Vec<SiaColumn>], choice: &[Option<usize>], without: f64) -> f64 {
    jobs.iter().zip(choice).map(|(columns, chosen)| chosen.map_or(without, |at| columns[at].cost)).sum()
}

/// Sum by which a choice is below the cost of leaving all jobs without accelerators.
pub(super) fn saved(jobs: &[Vec<SiaColumn>], choice: &[Option<usize>], without: f64) -> f64 {
    jobs.iter().zip(choice).filter_map(|(columns, chosen)| chosen.map(|at| without - columns[at].cost)).sum()
}
