//! What the public artifact does differently from the paper, each apart, so that what it changes
//! can be measured.

/// Departures from the paper. None of them: the published rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deviations {
    /// Before its first run a job is worth the same on every type, instead of its throughput on one
    /// accelerator of it.
    pub blind_start: bool,
    /// Estimates take the batch size asked for as the largest allowed one; the running job uses
    /// larger ones.
    pub capped_batch: bool,
    /// A type without a model borrows that of the first type with one, not of the type with most
    /// replicas measured, and their speeds are compared by the largest batch over the longest step
    /// on one accelerator, not the step of that batch.
    pub first_model: bool,
    /// Restarts are assumed to cost what a table of its own says, and nothing for a job younger
    /// than that.
    pub own_restart_costs: bool,
    /// Costs are rounded to two decimals, and the search stops within 0.01 % of the optimum.
    pub rounded: bool,
    /// Every round places all jobs anew; its simulator does not charge for that.
    pub repacked: bool,
}

impl Deviations {
    /// All of them: how the artifact behaves.
    pub const ARTIFACT: Self = Self {
        blind_start: true,
        capped_batch: true,
        first_model: true,
        own_restart_costs: true,
        rounded: true,
        repacked: true,
    };

    /// Each alone, by name.
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
