//! Exact contributions: the logarithm of a job's worth for an accelerator is a sum.

use goodput_env::job::JobId;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::view::ClusterView;

use super::{Contribution, Decision, Explanation, Reasons};
use crate::policies::rounds::Decoder;
use crate::policies::utility::features::{FEATURES, weight};
use crate::policies::utility::{JobValue, Observer, Utility, UtilityPolicy};

/// A learned utility with an observer beside it.
#[derive(Clone, Debug)]
pub(super) struct Utilities {
    pub policy: UtilityPolicy,
    observer: Observer,
}

/// Job values and weights at a decision.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    worths: Vec<JobValue>,
    weights: Vec<f64>,
}

impl Utilities {
    pub fn new(utility: &Utility, decoder: Decoder) -> Self {
        let policy = UtilityPolicy::new(utility, decoder.batching, decoder.information);
        Self { policy, observer: Observer::new(utility) }
    }

    pub fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.observer.observe(view);
        self.policy.decide(view)
    }

    pub fn explain(&mut self, view: &ClusterView<'_>) -> Decision {
        let plan = self.decide(view);
        // Worths are of the decision just made, because `decide` shows it to the observer first.
        let (worths, _) = self.observer.worths(view);
        let scores = worths.iter().map(|worth| (worth.job, worth.score)).collect();
        let weights = self.observer.weights().to_vec();
        Decision { plan, scores, reasons: Reasons::Utilities(Seen { worths, weights }) }
    }
}

impl Seen {
    pub fn explain(&self, job: JobId) -> Option<Explanation> {
        let worth = self.worths.iter().find(|worth| worth.job == job)?;
        let (score, speed) = (worth.score?, worth.log_speed_per_gpu?);
        let scored = || self.worths.iter().filter_map(|worth| Some((worth.features, worth.log_speed_per_gpu?)));
        let count = scored().count().max(1) as f64;
        let usual: [f64; FEATURES.len()] =
            std::array::from_fn(|at| scored().map(|(features, _)| features[at]).sum::<f64>() / count);
        let usual_speed = scored().map(|(_, speed)| speed).sum::<f64>() / count;
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
