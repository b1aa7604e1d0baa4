//! Parameters of the lookahead.

use goodput_env::time::SimTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::heuristic::parameters::secs;

/// Published policy that is a candidate beside the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum RivalPolicy {
    /// Pollux, by local search.
    PolluxFast,
    /// Sia, by its integer program.
    Sia,
    /// AFS with lengths that are told.
    AfsL,
    /// AFS without lengths.
    AfsP,
    /// Shortest remaining time first.
    Srtf,
    /// Least attained service first.
    Las,
    /// Optimus, by marginal gain.
    Optimus,
}

impl RivalPolicy {
    /// Name of the policy in the list of policies.
    pub fn name(self) -> &'static str {
        match self {
            Self::PolluxFast => "pollux-fast",
            Self::Sia => "sia",
            Self::AfsL => "afs-l",
            Self::AfsP => "afs-p",
            Self::Srtf => "srtf",
            Self::Las => "las",
            Self::Optimus => "optimus",
        }
    }
}

/// Parameters of [`Lookahead`](super::Lookahead).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LookaheadParameters {
    /// Policies that are candidates beside the base, where the information level of the run is enough for them.
    #[schemars(extend("x-source" = "a choice of this repository: strong published policies of elastic training"))]
    pub rivals: Vec<RivalPolicy>,
    /// Whether a candidate is also to leave all running jobs as they are until the next look, and to start jobs only.
    #[schemars(extend("x-source" = "a choice of this repository"))]
    pub hold: bool,
    /// Most futures that a candidate is played on in one look.
    #[schemars(range(min = 2, max = 256))]
    #[schemars(extend("x-source" = "a choice of this repository, on validation seeds"))]
    pub futures: u32,
    /// Length of a future. What is left at its end costs what it would take on a fair share of the accelerators.
    #[serde(rename = "horizon_secs", with = "secs")]
    #[schemars(with = "f64", range(min = 60.0, max = 1e7))]
    #[schemars(extend("x-unit" = "s", "x-source" = "a choice of this repository, on validation seeds"))]
    pub horizon: SimTime,
    /// Time between two looks. Between looks, the policy that won the last one goes on being played.
    #[serde(rename = "every_secs", with = "secs")]
    #[schemars(with = "f64", range(min = 1.0, max = 1e7))]
    #[schemars(extend("x-unit" = "s", "x-source" = "a choice of this repository, on validation seeds"))]
    pub every: SimTime,
    /// Shortest scheduling round in a future. Longer rounds make a future cheaper.
    #[serde(rename = "round_secs", with = "secs")]
    #[schemars(with = "f64", range(min = 1.0, max = 1e6))]
    #[schemars(extend("x-unit" = "s", "x-source" = "a choice of this repository, on validation seeds"))]
    pub round: SimTime,
    /// Most events and decisions that one look simulates. Time is not counted, so that a run gives equal results on
    /// every machine.
    #[schemars(range(min = 100, max = 1e9))]
    #[schemars(extend("x-unit" = "events and decisions", "x-source" = "a choice of this repository"))]
    pub budget: u64,
    /// Level of the one-sided paired t-test by which a candidate has to be better than the policy that is played. The
    /// candidates of a look share it (Bonferroni).
    #[schemars(range(min = 0.0, max = 0.5))]
    #[schemars(extend("x-source" = "Student 1908; a usual level"))]
    pub level: f64,
    /// Number that the draws of futures depend on beside the seed of the run.
    #[schemars(range(min = 0, max = 1e9))]
    #[schemars(extend("x-source" = "a choice of this repository"))]
    pub seed: u64,
}

impl Default for LookaheadParameters {
    fn default() -> Self {
        Self {
            rivals: vec![RivalPolicy::PolluxFast, RivalPolicy::Sia, RivalPolicy::AfsL, RivalPolicy::Srtf],
            hold: true,
            futures: 12,
            horizon: SimTime::from_secs(7200),
            every: SimTime::from_secs(1800),
            round: SimTime::from_secs(300),
            budget: 20_000,
            level: 0.05,
            seed: 0,
        }
    }
}
