//! Columns that no optimum of the program has, found by prices of accelerators.
//!
//! A column has a surplus: what it saves, less the price of its accelerators. At any prices the largest
//! surplus of every job, and the price of all accelerators, add up to no less than an optimum saves
//! (Lagrangian relaxation; Fisher, Management Science 1981). So a column is in no optimum where its
//! surplus is below the largest of its job by more than lies between that bound and a choice that is
//! known (Kellerer, Pferschy, Pisinger, *Knapsack Problems*, chapter 11). Few columns are left on a
//! large cluster, because the bound is close where many jobs compete.

use super::program::{JobColumns, SiaColumn};

/// Times that the price of each type is found anew. With one type the first price is the best one.
const SWEEPS: usize = 3;
/// Halvings of the range of a price.
const HALVINGS: u32 = 50;
/// Part of what is saved that sums may be off by rounding.
const ROUNDING: f64 = 1e-9;

/// Columns that may be chosen, job by job.
pub(super) struct Reduction {
    columns: Vec<PricedColumn>,
    /// End of each job's columns.
    ends: Vec<usize>,
    prices: Vec<f64>,
}

/// Column in terms of what it saves over leaving the job without accelerators.
#[derive(Clone, Copy)]
struct PricedColumn {
    saved: f64,
    gpus: f64,
    kind: usize,
    /// Number among all columns of its job.
    at: usize,
}

impl Reduction {
    /// The program of `jobs` with `all` their useful columns, and prices at which jobs that choose for themselves take
    /// about what there is.
    pub fn new(jobs: &[Vec<SiaColumn>], all: &[JobColumns], capacity: &[u32], without: f64) -> Self {
        let mut found =
            Self { columns: Vec::new(), ends: Vec::with_capacity(jobs.len()), prices: vec![0.0; capacity.len()] };
        for (columns, of_job) in jobs.iter().zip(all) {
            found.columns.extend(of_job.useful.iter().map(|&at| {
                let SiaColumn { kind, gpus, cost } = columns[at];
                PricedColumn { saved: without - cost, gpus: f64::from(gpus), kind: kind.index(), at }
            }));
            found.ends.push(found.columns.len());
        }
        let sweeps = if capacity.len() == 1 { 1 } else { SWEEPS };
        for _ in 0..sweeps {
            for (kind, &gpus) in capacity.iter().enumerate() {
                found.price(kind, f64::from(gpus));
            }
        }
        found
    }

    /// Columns that each job may have in a choice that saves at least `known`.
    pub fn left(&self, capacity: &[u32], known: f64) -> Vec<JobColumns> {
        let best: Vec<f64> = self.jobs().map(|columns| self.best(columns).0).collect();
        let stock = self.prices.iter().zip(capacity).map(|(price, &gpus)| price * f64::from(gpus));
        let bound = best.iter().sum::<f64>() + stock.sum::<f64>();
        let slack = (bound - known).max(0.0) + ROUNDING * bound.abs();
        let left = |(columns, &best): (&[PricedColumn], &f64)| {
            let may = |column: &&PricedColumn| best - self.surplus(column) <= slack;
            JobColumns { may_wait: best <= slack, useful: columns.iter().filter(may).map(|column| column.at).collect() }
        };
        self.jobs().zip(&best).map(left).collect()
    }

    /// Sets the price of type `kind` so that what jobs want of it just fits, the other prices as they are.
    fn price(&mut self, kind: usize, capacity: f64) {
        self.prices[kind] = 0.0;
        if self.wanted(kind) <= capacity {
            return;
        }
        let dearest = self.columns.iter().map(|column| column.saved / column.gpus).fold(0.0, f64::max);
        let (mut low, mut high) = (0.0, dearest);
        for _ in 0..HALVINGS {
            self.prices[kind] = f64::midpoint(low, high);
            if self.wanted(kind) <= capacity {
                high = self.prices[kind];
            } else {
                low = self.prices[kind];
            }
        }
        self.prices[kind] = high;
    }

    /// Accelerators of type `kind` that jobs want at the prices.
    fn wanted(&self, kind: usize) -> f64 {
        let taken = self.jobs().filter_map(|columns| self.best(columns).1);
        taken.filter(|column| column.kind == kind).map(|column| column.gpus).sum()
    }

    /// Best column of a job at the prices, and what it is worth; none is worth nothing.
    fn best<'a>(&self, columns: &'a [PricedColumn]) -> (f64, Option<&'a PricedColumn>) {
        columns.iter().fold((0.0, None), |best, column| {
            let surplus = self.surplus(column);
            if surplus > best.0 { (surplus, Some(column)) } else { best }
        })
    }

    fn surplus(&self, column: &PricedColumn) -> f64 {
        column.saved - self.prices[column.kind] * column.gpus
    }

    fn jobs(&self) -> impl Iterator<Item = &[PricedColumn]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.columns[start..end])
    }
}
