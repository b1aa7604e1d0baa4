//! Differences of two orders on the jobs of windows that overlap.
//!
//! Windows are not independent of each other, so intervals do not take them for that: they resample blocks of
//! consecutive jobs (block bootstrap; Künsch, Annals of Statistics 1989), each with its part of every window.

use std::collections::BTreeMap;

use ndarray::Array2;

use super::judgement::Slowdowns;
use crate::stats::{Bootstrap, Estimate, Resample, holm};

/// Consecutive jobs that are resampled together.
const BLOCK: usize = 256;
/// Resamples of an interval.
const RESAMPLES: usize = 10_000;

/// One order less a heuristic, by trace and rule.
#[derive(Clone, Debug)]
pub struct OrderDifference {
    /// Name of the heuristic.
    pub heuristic: String,
    /// Mean on the ten windows of the artifact less that of the heuristic; interval of 95 %.
    pub published: Estimate,
    /// As `published`, on the windows of the last third.
    pub held_out: Estimate,
    /// Held-out windows on which the order has less than the heuristic.
    pub better: usize,
    /// Chance of a held-out difference that is as far from 0, if there were none; two-sided.
    pub p: f64,
    /// `p` by Holm's correction for all heuristics; `None` where there is one comparison.
    pub p_holm: Option<f64>,
}

/// Slowdowns of an order on the two sets of windows that orders are compared on.
#[derive(Clone, Copy, Debug)]
pub(super) struct ComparedOrder<'a> {
    pub published: &'a Slowdowns,
    pub held_out: &'a Slowdowns,
}

impl OrderDifference {
    pub(super) fn of(ours: ComparedOrder<'_>, heuristic: &str, theirs: ComparedOrder<'_>) -> Self {
        let published = JobBlocks::of(ours.published, theirs.published);
        let held_out = JobBlocks::of(ours.held_out, theirs.held_out);
        let pairs = ours.held_out.means().into_iter().zip(theirs.held_out.means());
        Self {
            heuristic: heuristic.into(),
            published: published.difference(),
            held_out: held_out.difference(),
            better: pairs.filter(|(ours, theirs)| ours < theirs).count(),
            p: held_out.p_value(),
            p_holm: None,
        }
    }

    /// Corrects the p-values of several differences of one order.
    pub(super) fn correct(differences: &mut [Self]) {
        let corrected = holm(&differences.iter().map(|difference| difference.p).collect::<Vec<_>>());
        differences.iter_mut().zip(corrected).for_each(|(difference, p)| difference.p_holm = Some(p));
    }
}

/// Sums of differences and numbers of jobs by block; a job counts once for each window that holds it.
struct JobBlocks {
    sums: Array2<f64>,
    jobs: Array2<f64>,
    bootstrap: Bootstrap,
}

impl JobBlocks {
    fn of(ours: &Slowdowns, theirs: &Slowdowns) -> Self {
        let mut blocks: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for ((first, ours), theirs) in ours.firsts.iter().zip(&ours.windows).zip(&theirs.windows) {
            for (index, (our, their)) in ours.iter().zip(theirs).enumerate() {
                let (sum, jobs) = blocks.entry((first + index) / BLOCK).or_default();
                *sum += our - their;
                *jobs += 1.0;
            }
        }
        let column = |part: fn(&(f64, f64)) -> f64| {
            Array2::from_shape_vec((blocks.len(), 1), blocks.values().map(part).collect()).unwrap_or_default()
        };
        let bootstrap = Bootstrap::of_seeds(blocks.len(), RESAMPLES, 0.95, 1);
        Self { sums: column(|(sum, _)| *sum), jobs: column(|(_, jobs)| *jobs), bootstrap }
    }

    fn mean(&self, resample: Resample<'_>) -> f64 {
        resample.of(self.sums.view()).sum() / resample.of(self.jobs.view()).sum()
    }

    fn difference(&self) -> Estimate {
        self.bootstrap.estimate(self.sums.sum() / self.jobs.sum(), |resample| self.mean(resample))
    }

    fn p_value(&self) -> f64 {
        self.bootstrap.p_value(|resample| self.mean(resample))
    }
}
