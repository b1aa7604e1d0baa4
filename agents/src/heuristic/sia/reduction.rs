//! Columns that an optimum of the program can have, by prices of accelerators.
//!
//! A column has a surplus: what it saves over leaving its job without accelerators, less the price of
//! its accelerators. At any prices, the largest surplus of every job, or 0, and the price of all
//! accelerators add up to no less than an optimum saves (Lagrangian relaxation; Fisher, Management
//! Science 1981). So a column is in no optimum where its surplus is below the largest of its job by
//! more than lies between that bound and a choice that is known (Kellerer, Pferschy, Pisinger,
//! *Knapsack Problems*, chapter 11). Few columns remain on a large cluster of one type, because the
//! bound is close where many jobs compete. [`crate::heuristic::pollux`] bounds its options so too.

use super::columns::{JobColumns, SiaColumn, saved};

/// Part of the bound that sums may be off by rounding.
const ROUNDING: f64 = 1e-11;

/// Of the columns that are `candidates`, those that can be in a choice which saves as much as `known`. `prices` and
/// `capacity` are by type of accelerator.
pub(super) fn remaining(
    jobs: &[Vec<SiaColumn>],
    candidates: &[JobColumns],
    capacity: &[u32],
    without: f64,
    prices: &[f64],
    known: &[Option<usize>],
) -> Vec<JobColumns> {
    let surplus = |column: &SiaColumn| without - column.cost - prices[column.kind.index()] * f64::from(column.gpus);
    let largest = |(columns, of_job): (&Vec<SiaColumn>, &JobColumns)| {
        of_job.useful.iter().map(|&at| surplus(&columns[at])).fold(0.0, f64::max)
    };
    let largest: Vec<f64> = jobs.iter().zip(candidates).map(largest).collect();
    let stock: f64 = prices.iter().zip(capacity).map(|(price, &gpus)| price * f64::from(gpus)).sum();
    let bound = largest.iter().sum::<f64>() + stock;
    let most = (bound - saved(jobs, known, without)).max(0.0) + ROUNDING * bound;
    let remains = |((columns, of_job), &largest): ((&Vec<SiaColumn>, &JobColumns), &f64)| JobColumns {
        may_wait: largest <= most,
        useful: of_job.useful.iter().copied().filter(|&at| largest - surplus(&columns[at]) <= most).collect(),
    };
    jobs.iter().zip(candidates).zip(&largest).map(remains).collect()
}

#[cfg(test)]
mod tests {
    use goodput_env::cluster::TypeId;

    use super::*;

    fn column(gpus: u32, cost: f64) -> SiaColumn {
        SiaColumn { kind: TypeId(0), gpus, cost }
    }

    fn all(jobs: &[Vec<SiaColumn>]) -> Vec<JobColumns> {
        jobs.iter().map(|columns| JobColumns { useful: (0..columns.len()).collect(), may_wait: true }).collect()
    }

    #[test]
    fn columns_that_no_optimum_has_are_left_out() {
        // A second accelerator saves 0.1, and the second job's only column saves 0.5: two jobs of one each are best.
        let jobs = [vec![column(1, 0.5), column(2, 0.4)], vec![column(1, 0.6)]];
        let known = [Some(0), Some(0)];
        let left = remaining(&jobs, &all(&jobs), &[2], 1.1, &[0.3], &known);
        assert_eq!(left[0].useful, [0]);
        assert_eq!(left[1].useful, [0]);
        assert!(!left[0].may_wait && !left[1].may_wait);
    }

    #[test]
    fn a_loose_bound_leaves_every_column() {
        let jobs = [vec![column(1, 0.5), column(2, 0.4)], vec![column(1, 0.6)]];
        let left = remaining(&jobs, &all(&jobs), &[2], 1.1, &[5.0], &[None, None]);
        assert_eq!(left[0].useful, [0, 1]);
        assert!(left.iter().all(|of_job| of_job.may_wait));
    }
}
