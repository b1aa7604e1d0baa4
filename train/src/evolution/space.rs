//! Search space: the parameters of a utility that a search moves.

use goodput_agents::policies::utility::Theta;
use goodput_configs::experiment::{EvolutionAgent, Experiment, started};

/// Search space: the parameters to which the experiment gives a meaning and that the configuration
/// does not freeze.
pub(super) struct Space {
    /// Parameters at the start of the search; frozen parameters keep these values.
    start: Theta,
    /// Places of those that are free.
    free: Vec<usize>,
}

impl Space {
    pub fn of(experiment: &Experiment, agent: &EvolutionAgent) -> Self {
        let start = started(&Theta::sia().with(experiment.groups()), &agent.start);
        let frozen = |name: &str| agent.freeze.iter().any(|frozen| frozen == name);
        let free = start.names().enumerate().filter(|(_, name)| !frozen(name)).map(|(at, _)| at).collect();
        Self { start, free }
    }

    /// Starting point of the search and the initial step size in each direction.
    pub fn begin(&self) -> (Vec<f64>, Vec<f64>) {
        let (values, scales) = (self.start.values(), self.start.scales());
        self.free.iter().map(|&at| (values[at], scales[at])).unzip()
    }

    /// The parameters that the free ones make; what is stored is what is tried.
    pub fn theta(&self, free: &[f64]) -> Theta {
        let mut values = self.start.values();
        self.free.iter().zip(free).for_each(|(&at, &value)| values[at] = value);
        let stored: Vec<f64> = values.into_iter().map(|value| f64::from(value as f32)).collect();
        self.start.clone().of_values(&stored).unwrap_or_else(|| self.start.clone())
    }
}
