//! Effect of the defects and conventions of Gavel's public simulator: each policy by the paper's
//! rule beside its replica, on one trace and one cluster.
//!
//! "Theirs" is the replica here, not a published figure. Whatever draws random numbers is a mean
//! over seeds.

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::gavel::MEDIUM_TEST;
use super::{ReproduceError, ReproducedFigure, Reproduction};

/// Reproduction of each policy of Gavel beside its replica.
pub const TABLE: Reproduction = Reproduction {
    name: "gavel-deviations",
    about: "Gavel's policies by the paper's rule (ours) and as its simulator behaves (theirs), medium_test, means of 10 seeds",
    source: "Narayanan et al., OSDI 2020; stanford-futuredata/gavel, commit c4fa400",
    files: &["data/gavel/medium_test.trace", "data/gavel/simulation_throughputs.json"],
    run,
};

const SEEDS: u64 = 10;

fn run(data: &Path) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let jobs = Arc::new(MEDIUM_TEST.workload(data)?);
    let figures = MEDIUM_TEST.policies.par_iter().map(|&(_, replica)| {
        let rule = replica.trim_end_matches("@replica");
        let measure = |policy: &str| -> Result<[f64; 2], ReproduceError> {
            let mut sums = [0.0; 2];
            for seed in 0..SEEDS {
                let outcome = MEDIUM_TEST.simulate(policy, &jobs, seed)?;
                let times = || outcome.jobs.iter().filter_map(|job| job.jct()).map(|jct| jct.as_secs_f64());
                sums[0] += times().sum::<f64>() / outcome.jobs.len() as f64;
                sums[1] += times().fold(0.0, f64::max);
            }
            Ok(sums.map(|sum| sum / SEEDS as f64))
        };
        let (ours, theirs) = (measure(rule)?, measure(replica)?);
        let metrics = ["jct_mean_secs", "makespan_secs"].into_iter().enumerate();
        Ok(metrics.map(move |(at, metric)| ReproducedFigure {
            case: rule.into(),
            metric,
            theirs: Some(theirs[at]),
            ours: ours[at],
        }))
    });
    let figures: Result<Vec<_>, ReproduceError> = figures.collect();
    Ok(figures?.into_iter().flatten().collect())
}
