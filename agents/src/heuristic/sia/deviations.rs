//! Departures of the public artifact from the paper, each apart, so that the effect of each can be
//! measured.

use goodput_env::cluster::TypeId;
use goodput_env::model::{GoodputModel, SwitchCost};
use goodput_env::placement::Placement;
use goodput_env::view::JobView;

use super::{ORDER, restart_factor};
use crate::placement::whole_nodes::{Nodes, Wanted};

/// Relative distance from the optimum at which the artifact's solver stops.
const GAP: f64 = 1e-4;
/// Largest cost in the artifact's program.
const CLIP: f64 = 3000.0;

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

    /// Cost of a configuration: its utility to `power`. The artifact computes in single
    /// precision and rounds to two decimals, so that many configurations cost the same.
    pub(super) fn cost(self, utility: f64, power: f64, rank: f64) -> f64 {
        if !self.rounded {
            return utility.powf(power) * (1.0 + ORDER * rank);
        }
        let cost = f64::from((utility as f32).powf(power as f32));
        // Python rounds halves to even.
        ((cost * 100.0).round_ties_even() / 100.0).min(CLIP)
    }

    /// Relative distance from the optimum at which the solver may stop.
    pub(super) fn gap(self) -> f64 {
        if self.rounded { GAP } else { 0.0 }
    }

    /// Fraction of the job's utility that a restart leaves.
    pub(super) fn restart_factor(self, job: &JobView<'_>) -> f64 {
        let age = job.age().as_secs_f64();
        if !self.own_restart_costs {
            return restart_factor(age, job.state.restarts, job.restart_secs());
        }
        let name = job.application().map_or("", |app| app.name.as_str());
        let secs = SwitchCost::SiaSimulatedPolicy.cost_millis(name, 1, 1) as f64 / 1e3;
        if age < secs { 1.0 } else { restart_factor(age, job.state.restarts, secs) }
    }

    /// Placements of `wanted` on the nodes of one type.
    pub(super) fn place(self, nodes: Nodes, wanted: &[Wanted]) -> Vec<Placement> {
        if self.repacked { nodes.ring(wanted) } else { nodes.stay(wanted) }
    }

    /// Goodput on a type before the first run, given the throughput of one accelerator.
    pub(super) fn first_goodput(self, throughput: f64) -> f64 {
        if self.blind_start { 1.0 } else { throughput }
    }

    /// `model` as the optimiser sees it, for a job that asked for a batch size of `batch`.
    pub(super) fn capped(self, mut model: GoodputModel, batch: Option<u32>) -> GoodputModel {
        if let Some(batch) = batch.filter(|_| self.capped_batch) {
            model.limits.max = batch.clamp(model.limits.init, model.limits.max);
        }
        model
    }

    /// Whether a later type's model stands in for types without one, rather than the best so far,
    /// given the most replicas measured on either.
    pub(super) fn stands_in(self, later: u32, best: u32) -> bool {
        !self.first_model && later > best
    }

    /// Speed of one accelerator of `kind`, for the ratio between types.
    pub(super) fn single_speed(self, job: &JobView<'_>, kind: TypeId) -> Option<f64> {
        if self.first_model { job.largest_over_slowest(kind) } else { job.single_throughput(kind) }
    }
}
