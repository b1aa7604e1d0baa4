//! Export gate: no policy is exported that is worse than its teacher, or than the best heuristic.

use goodput_agents::bundle::PolicyBundle;

use crate::error::TrainError;
use crate::validate::{Score, Validation, quick_heuristics};
use goodput_configs::experiment::{Experiment, GateRivals};
use goodput_eval::entries;

/// Mean completion times of a policy and of its best rival on validation seeds, seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct GateVerdict {
    /// Name of the best rival.
    pub rival: String,
    /// Result of the rival.
    pub rival_jct_secs: f64,
    /// Result of the policy.
    pub learned_jct_secs: f64,
    /// Allowed excess over the rival's mean completion time, percent.
    pub allowed_percent: f64,
    /// Late requests of the worst service beyond those that may be late, relative to these.
    pub late_excess: f64,
}

impl GateVerdict {
    /// Whether the policy is as good as the rival, but for the allowed excess, and services keep
    /// their objectives or what they had under the teacher.
    pub fn passes(&self) -> bool {
        self.late_excess <= 0.0 && self.learned_jct_secs <= self.rival_jct_secs * (1.0 + self.allowed_percent / 100.0)
    }
}

/// Compares `bundle` with the best rival on validation seeds; `None` where the experiment has no teacher. A heuristic
/// under which services are late more often than their objectives and the teacher allow is no rival.
///
/// # Errors
/// [`TrainError`] where a run fails.
pub fn judge(experiment: &Experiment, bundle: &PolicyBundle) -> Result<Option<GateVerdict>, TrainError> {
    let Some(teacher) = experiment.agent.as_ref().and_then(|agent| agent.teacher()) else { return Ok(None) };
    let (mut experiment, mut heuristics) = (experiment.clone(), Vec::new());
    if experiment.train.gate == GateRivals::Heuristics {
        experiment.environment.shared_profiles = experiment.environment.batching.is_measured();
        heuristics = quick_heuristics(&experiment).filter(|name| *name != teacher).cloned().collect();
    }
    let setup = experiment.setup()?;
    let validation = Validation::without_heuristics(&experiment, &setup)?;
    let score = |name: &str| -> Result<Score, TrainError> {
        validation.score_of(entries::heuristic(&experiment, name, &setup)?)
    };
    let taught = score(teacher)?;
    let (mut rival, mut rival_jct_secs) = (teacher.to_owned(), taught.jct_secs);
    for name in heuristics {
        let scored = score(&name)?;
        if scored.jct_secs < rival_jct_secs && scored.served.excess(&taught.served) <= 0.0 {
            (rival, rival_jct_secs) = (name, scored.jct_secs);
        }
    }
    let learned = validation.score_whole(bundle)?;
    Ok(Some(GateVerdict {
        rival,
        rival_jct_secs,
        learned_jct_secs: learned.jct_secs,
        late_excess: learned.served.excess(&taught.served),
        allowed_percent: experiment.train.gate_percent,
    }))
}
