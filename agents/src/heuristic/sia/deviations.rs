//! Departures of the public artifact from the paper, each apart, so that the effect of each can be
//! measured.

/// Departures from the paper. The default has none: the published rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deviations {
    /// Before its first run a job has equal goodput on every type, instead of its throughput on one
    /// accelerator of the type.
    pub blind_start: bool,
    /// Estimates take the batch size asked for as the largest allowed one; the running job uses
    /// larger ones.
    pub capped_batch: bool,
    /// A type without a model borrows that of the first type with one, not of the type with most
    /// replicas measured. Their speeds are compared by the largest batch over the longest step on
    /// one accelerator, not the step of that batch.
    pub first_model: bool,
    /// Restarts are assumed to cost what a table of the artifact's says, and nothing for a job
    /// younger than that.
    pub own_restart_costs: bool,
    /// Costs are rounded to two decimals, and the search stops within 0.01 % of the optimum.
    pub rounded: bool,
    /// Every round places all jobs anew, which the artifact's simulator does not charge for.
    pub repacked: bool,
}

impl Deviations {
    /// All departures: the behaviour of the artifact.
    pub const ARTIFACT: Self = Self {
        blind_start: true,
        capped_batch: true,
        first_model: true,
        own_restart_costs: true,
        rounded: true,
        repacked: true,
    };

    /// Each departure alone, by name.
    pub fn each() -> [(&'static str, Self); 6] {
        let none = Self::default();
        [
            ("blind-start", Self { blind_start: true, ..none }),
            ("capped-batch", Self { capped_batch: true, ..none }),
            ("first-model", Self { first_model: true, ..none }),
            ("own-restart-costs", Self { own_restart_costs: true, ..none }),
            ("rounded", Self { rounded: true, ..none }),
            ("repacked", Self { repacked: true, ..none }),
        ]
    }
}
