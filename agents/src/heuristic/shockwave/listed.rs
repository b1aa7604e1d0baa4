//! Entry of Shockwave in the list of policies.

use super::planner::{Shockwave, ShockwaveConfig};
use crate::heuristic::gavel::{Gavel, GavelConfig, GavelForm, GavelObjective, GavelRounds, TypeSpeeds};
use crate::heuristic::parameters::Parameterised;
use crate::heuristic::{ListedPolicy, Traits};

/// Entry in the list of policies.
pub const LISTED: &[ListedPolicy] = &[ListedPolicy {
    name: "shockwave",
    about: "a market over future rounds: progress of all jobs, fair finish times and the makespan, with forecasts of \
            batch sizes that change",
    source: "Zheng et al., NSDI 2023; uw-mad-dash/shockwave",
    traits: Traits { preemptive: true, elastic: false, heterogeneous: false },
    constructor: &Parameterised {
        defaults: ShockwaveConfig::default,
        build: |config, seed| Box::new(Shockwave::in_rounds(config.clone(), GavelForm::Published, seed)),
    },
    replica: None,
}];

impl Shockwave {
    /// The planner in Gavel's mechanism of rounds.
    pub fn in_rounds(config: ShockwaveConfig, form: GavelForm, seed: u64) -> Gavel {
        let rounds = GavelRounds { round_secs: config.round_secs, ..GavelRounds::default() };
        let objective = GavelObjective::Shockwave(Box::new(Self::new(config)));
        Gavel::new(GavelConfig { form, rounds, ..GavelConfig::published(objective, TypeSpeeds::Hidden, seed) })
    }
}
