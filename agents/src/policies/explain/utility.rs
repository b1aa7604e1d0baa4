//! Exact contributions: the logarithm of a job's worth for an accelerator is a sum.

use goodput_env::job::JobId;
use goodput_env::view::ClusterView;

use super::{Contribution, Explanation};
use crate::policies::utility::features::{FEATURES, weight};
use crate::policies::utility::{JobValue, Observer};

/// Job values and weights of a learned utility at a decision.
#[derive(Clone, Debug)]
pub struct UtilityReasons {
    /// In order of id.
    worths: Vec<JobValue>,
    weights: Vec<f64>,
    /// Mean over the jobs that are scored: features, and logarithm of the speed of an accelerator.
    usual: ([f64; FEATURES.len()], f64),
}

impl UtilityReasons {
    /// Reasons at the decision point that `observer` observed last, which `view` shows.
    pub fn of(observer: &Observer, view: &ClusterView<'_>) -> Self {
        let worths = observer.worths(view).0;
        let scored = || worths.iter().filter_map(|worth| Some((worth.features, worth.log_speed_per_gpu?)));
        let count = scored().count().max(1) as f64;
        let features = std::array::from_fn(|at| scored().map(|(features, _)| features[at]).sum::<f64>() / count);
        let speed = scored().map(|(_, speed)| speed).sum::<f64>() / count;
        Self { worths, weights: observer.weights().to_vec(), usual: (features, speed) }
    }

    /// Active jobs in order of id with their scores; `None` for those that are left alone.
    pub fn scores(&self) -> impl Iterator<Item = (JobId, Option<f64>)> {
        self.worths.iter().map(|worth| (worth.job, worth.score))
    }

    /// Value of `job`; `None` where the job is not active.
    pub fn value(&self, job: JobId) -> Option<&JobValue> {
        let at = self.worths.binary_search_by_key(&job, |worth| worth.job).ok()?;
        Some(&self.worths[at])
    }

    /// The score of `job` taken apart; `None` where the job has none.
    pub fn explain(&self, job: JobId) -> Option<Explanation> {
        let worth = self.value(job)?;
        let (score, speed) = (worth.score?, worth.log_speed_per_gpu?);
        let (usual, usual_speed) = self.usual;
        let log_weight = |features: &[f64]| weight(&self.weights, features).ln();
        let mut contributions: Vec<Contribution> = FEATURES
            .iter()
            .enumerate()
            .map(|(at, feature)| {
                let mut without = worth.features;
                without[at] = usual[at];
                Contribution {
                    feature: (*feature).into(),
                    value: worth.features[at],
                    usual: usual[at],
                    contribution: self.weights[at] * (worth.features[at] - usual[at]),
                    occlusion: log_weight(&worth.features) - log_weight(&without),
                }
            })
            .collect();
        contributions.push(Contribution {
            feature: "log_speed_per_gpu".into(),
            value: speed,
            usual: usual_speed,
            contribution: speed - usual_speed,
            occlusion: speed - usual_speed,
        });
        let usual_score = log_weight(&usual) + usual_speed;
        Some(Explanation { of: "logarithm of its worth for an accelerator".into(), score, usual_score, contributions })
    }
}
