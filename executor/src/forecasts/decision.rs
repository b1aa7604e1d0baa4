//! Replicas that are decided, with the reason.

use goodput_configs::forecast::ServedLoad;
use serde::{Deserialize, Serialize};

/// Ground on which a decision stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DecisionGround {
    /// No value is known yet, and nothing is decided.
    Starting,
    /// The errors of the forecasts are not known yet: room for the largest load so far.
    Learning,
    /// The last values are known, and the forecast decides.
    Fresh,
    /// A step within reach has no value: the decision does not fall.
    Gap,
    /// The last value is old: the decision does not fall.
    Silent,
}

impl DecisionGround {
    /// Every standing, in the order of declaration.
    pub const ALL: [Self; 5] = [Self::Starting, Self::Learning, Self::Fresh, Self::Gap, Self::Silent];

    /// Name in metrics and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Learning => "learning",
            Self::Fresh => "fresh",
            Self::Gap => "gap",
            Self::Silent => "silent",
        }
    }

    /// Whether a decision may be lower than the one before.
    pub const fn may_fall(self) -> bool {
        matches!(self, Self::Learning | Self::Fresh)
    }
}

/// Replicas that are decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplicaDecision {
    /// Ground of the decision.
    pub standing: DecisionGround,
    /// Replicas to run; `None` before the first value.
    pub replicas: Option<u32>,
    /// Load for which there is to be room, in the unit of the query; `None` before the first value.
    pub room: Option<f64>,
    /// Reason, in a sentence.
    pub reason: String,
}

impl ReplicaDecision {
    /// Before the first value.
    pub fn starting() -> Self {
        let reason = "Prometheus has given no value yet, so nothing is decided".to_owned();
        Self { standing: DecisionGround::Starting, replicas: None, room: None, reason }
    }

    /// Decision for a load of `room`; the last value is `age_millis` old.
    pub fn new(standing: DecisionGround, room: f64, age_millis: i64, config: &ServedLoad) -> Self {
        let ServedLoad { step_secs, violated_share, load_per_replica, min_replicas, max_replicas, .. } = config;
        // `as` saturates at the bounds of the type.
        let replicas = ((room / load_per_replica).ceil() as u32).clamp(*min_replicas, *max_replicas);
        let reach = config.reach_steps();
        let why = match standing {
            DecisionGround::Starting => String::new(),
            DecisionGround::Learning => {
                format!("the errors of the forecasts are not known yet; room for the largest load so far, {room:.4}")
            }
            DecisionGround::Fresh => format!(
                "room for a load of {room:.4} within {reach} steps of {step_secs} s, which at most {} % of the steps shall exceed",
                100.0 * violated_share
            ),
            DecisionGround::Gap => format!(
                "a step of the last {reach} has no value, so the replicas do not fall; room for a load of {room:.4}"
            ),
            DecisionGround::Silent => format!(
                "the last value is {:.0} s old, so the replicas do not fall; room for a load of {room:.4}",
                age_millis as f64 / 1e3
            ),
        };
        let reason =
            format!("{why}: {replicas} replicas of {load_per_replica} each, between {min_replicas} and {max_replicas}");
        Self { standing, replicas: Some(replicas), room: Some(room), reason }
    }
}
