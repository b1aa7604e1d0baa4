//! Work of completed jobs in earlier runs: the log that every cluster has of its past, shipped with
//! a policy.
//!
//! A policy without it knows nothing of a model until its first job completes, which for the
//! longest is when most of the run is over. It holds what could be seen when jobs completed, by the
//! name of the model they trained, and nothing of jobs to come; a model it does not know is met as
//! without experience.

use std::collections::BTreeMap;

/// Quantiles kept of each model.
const QUANTILES: usize = 15;

/// Work of completed jobs by model, in quantiles, ascending.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Experience {
    models: BTreeMap<String, Vec<f32>>,
}

impl Experience {
    /// Of jobs by model and work.
    pub fn of<'a>(jobs: impl IntoIterator<Item = (&'a str, f64)>) -> Self {
        let mut all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (model, work) in jobs {
            all.entry(model).or_default().push(work);
        }
        let quantiles = |mut works: Vec<f64>| {
            works.sort_by(f64::total_cmp);
            let kept = works.len().min(QUANTILES);
            // These are midpoints of equal parts, so that each quantile stands for as many jobs.
            (0..kept).map(|at| works[(2 * at + 1) * works.len() / (2 * kept)] as f32).collect()
        };
        Self { models: all.into_iter().map(|(model, works)| (model.to_owned(), quantiles(works))).collect() }
    }

    /// Experience as a bundle stores it.
    pub fn stored(models: impl IntoIterator<Item = (String, Vec<f32>)>) -> Self {
        Self { models: models.into_iter().collect() }
    }

    /// Models with their quantiles.
    pub fn models(&self) -> impl Iterator<Item = (&str, &[f32])> {
        self.models.iter().map(|(model, works)| (model.as_str(), works.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_in_the_middle_of_their_shares() {
        let jobs = (0..150).rev().map(|work| ("many", f64::from(work))).chain([("few", 3.0), ("few", 1.0)]);
        let experience = Experience::of(jobs);
        let all: Vec<(&str, &[f32])> = experience.models().collect();
        assert_eq!(all[0], ("few", &[1.0, 3.0][..]));
        let expected: Vec<f32> = (0..15_u8).map(|at| f32::from(10 * at + 5)).collect();
        assert_eq!(all[1], ("many", &expected[..]));
        let again = Experience::stored(experience.models().map(|(model, works)| (model.to_owned(), works.to_vec())));
        assert_eq!(again, experience);
    }
}
