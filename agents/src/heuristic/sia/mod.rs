//! Sia (Jayaram Subramanya et al., SOSP'23): goodput-optimised, heterogeneity-aware scheduling.
//!
//! Every minute each job gets one of few configurations, a size on a type of accelerator. The
//! choice minimises the sum of utilities to the power of -0.5 ([`program`]): `reduction` leaves the
//! columns that an optimum can have, and `search` chooses among these. A utility is the job's
//! goodput in a configuration relative to its worst ([`estimate`]), less the cost of a restart.
//! Jobs that are restarting keep what they have. Placement comes last
//! ([`crate::placement::whole_nodes`]). What the public artifact does differently is in
//! [`deviations`].

mod columns;
pub mod configurations;
pub mod deviations;
pub mod estimate;
pub mod program;
mod reduction;
mod search;

use goodput_env::cluster::{NodeId, TypeId};
use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::Batching;
use goodput_env::state::Phase;
use goodput_env::view::{ClusterView, JobView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::heuristic::parameters::Parameterised;
use crate::heuristic::{ListedPolicy, Traits};
use crate::placement::whole_nodes::{Nodes, Wanted};
use configurations::TypeSizes;
use deviations::Deviations;
use program::SiaColumn;

/// Entries in the list of policies.
pub const LISTED: &[ListedPolicy] = &[ListedPolicy {
    name: "sia",
    about: "goodput on every accelerator type, one 0-1 program a round, batch sizes adapted",
    source: "Jayaram Subramanya et al., SOSP 2023",
    traits: Traits { preemptive: true, elastic: true, heterogeneous: true },
    constructor: &Parameterised {
        defaults: SiaParameters::default,
        build: |parameters, _| Box::new(Sia { parameters: *parameters, ..Sia::default() }),
    },
    replica: Some(|_| Box::new(Sia::new(Deviations::ARTIFACT))),
}];

/// Parameters of [`Sia`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SiaParameters {
    /// Fairness power `p`: utilities count to this power. The lower, the more a job that is badly off weighs.
    #[schemars(range(min = -10.0, max = -0.01), extend("x-source" = "SOSP 2023, p of section 3.4"))]
    pub power: f64,
    /// Cost of a job without accelerators, `lambda`; a configuration that costs as much is never chosen. A utility of
    /// 1, the least without a restart, costs 1, so every job that waits is worth an accelerator.
    #[schemars(range(min = 1.001, max = 1e6), extend("x-source" = "SOSP 2023, lambda of section 3.4"))]
    pub lambda: f64,
}

impl Default for SiaParameters {
    fn default() -> Self {
        Self { power: -0.5, lambda: program::WITHOUT }
    }
}

/// Relative weight of being first in line, so that equal jobs are served in order of submission;
/// too small to outweigh utility.
const ORDER: f64 = 1e-6;

/// Sia over a cluster.
#[derive(Clone, Debug, Default)]
pub struct Sia {
    parameters: SiaParameters,
    deviations: Deviations,
    types: Vec<TypeSizes>,
}

impl Sia {
    /// A policy by the paper, but for `deviations`.
    pub fn new(deviations: Deviations) -> Self {
        Self { deviations, ..Self::default() }
    }

    /// Every configuration of a job with its cost: utility, less restarts, to the power of fairness.
    fn columns(&self, job: &JobView<'_>, rank: f64) -> Vec<SiaColumn> {
        let mut columns = estimate::utilities(job, &self.types, self.deviations);
        let (held, kind, factor) = (job.gpus(), job.kind(), self.deviations.restart_factor(job));
        for column in &mut columns {
            let stays = held == 0 || (column.kind == kind && column.gpus == held);
            let utility = if stays { column.cost } else { factor * column.cost };
            column.cost = self.deviations.cost(utility, self.parameters.power, rank);
        }
        columns
    }

    /// Size and type of each job.
    fn choose(&self, view: &ClusterView<'_>, available: &[u32]) -> Vec<SizeOption> {
        let mut capacity = vec![0; self.types.len()];
        for (node, available) in view.cluster().nodes.iter().zip(available) {
            capacity[node.accelerator.index()] += available;
        }
        let mut choices = Vec::with_capacity(view.active());
        let mut rows = Vec::with_capacity(view.active());
        let jobs = view.active().max(1) as f64;
        for (rank, job) in view.jobs().enumerate() {
            let pinned = matches!(job.state.phase, Phase::Starting { .. });
            let (kind, gpus) = (job.kind(), job.gpus());
            choices.push(SizeOption { job: job.id(), kind, gpus, pinned });
            if pinned {
                let left = &mut capacity[kind.index()];
                *left = left.saturating_sub(gpus);
            } else {
                rows.push(self.columns(&job, rank as f64 / jobs));
            }
        }
        let chosen = program::choose(&rows, &capacity, self.parameters.lambda, self.deviations.gap());
        let free = choices.iter_mut().filter(|choice| !choice.pinned);
        for ((choice, columns), chosen) in free.zip(&rows).zip(chosen) {
            let column = chosen.map(|at| columns[at]);
            choice.gpus = column.map_or(0, |column| column.gpus);
            choice.kind = column.map_or(choice.kind, |column| column.kind);
        }
        choices
    }
}

/// Share of its utility that a job of this age, seconds, is credited with where it would have to
/// restart once more, at `secs` each: `max(age - restarts secs, 0) / (age + secs)` (Sia, section
/// 3.4).
pub fn restart_factor(age: f64, restarts: u32, secs: f64) -> f64 {
    if age + secs <= 0.0 { 1.0 } else { (age - f64::from(restarts) * secs).max(0.0) / (age + secs) }
}

/// A job's size and type from now on.
#[derive(Clone, Copy, Debug)]
struct SizeOption {
    job: JobId,
    kind: TypeId,
    gpus: u32,
    pinned: bool,
}

impl Policy for Sia {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.types = configurations::sizes(view.cluster());
        let available = available(view);
        let choices = self.choose(view, &available);
        let mut plan = Plan::keep();
        for kind in TypeId::first(self.types.len()) {
            let here: Vec<&SizeOption> =
                choices.iter().filter(|choice| choice.kind == kind && choice.gpus > 0).collect();
            let wanted: Vec<Wanted> = here.iter().map(|choice| wanted(view, choice)).collect();
            let cluster = view.cluster();
            let of_type = (0..cluster.nodes.len()).filter(|&id| cluster.nodes[id].accelerator == kind);
            let size = self.types[kind.index()].per_node;
            let nodes = Nodes::new(of_type.map(|id| (NodeId::at(id), available[id])), size);
            let places = self.deviations.place(nodes, &wanted);
            here.iter().zip(places).for_each(|(choice, place)| set(&mut plan, view, choice.job, place));
        }
        for choice in choices.iter().filter(|choice| choice.gpus == 0) {
            set(&mut plan, view, choice.job, Placement::none());
        }
        plan
    }

    fn batching(&self) -> Batching {
        Batching::Agent
    }
}

/// Accelerators by node that are free or held by active jobs; what completed jobs have yet to give
/// back is neither.
fn available(view: &ClusterView<'_>) -> Vec<u32> {
    let mut available = view.free().to_vec();
    for job in view.jobs() {
        for slice in job.state.frees() {
            available[slice.node.index()] += slice.gpus;
        }
    }
    available
}

fn wanted(view: &ClusterView<'_>, choice: &SizeOption) -> Wanted {
    let held = view.job(choice.job).filter(|job| job.kind() == choice.kind && job.gpus() == choice.gpus);
    // A part of a card is no whole one to stay on.
    let held = held.filter(|job| job.state.placement.share().is_none());
    let held = held.map_or_else(Placement::none, |job| job.state.placement.clone());
    Wanted { gpus: choice.gpus, held, pinned: choice.pinned }
}

fn set(plan: &mut Plan, view: &ClusterView<'_>, job: JobId, place: Placement) {
    if view.job(job).is_some_and(|known| known.state.placement != place) {
        plan.set(job, place);
    }
}
