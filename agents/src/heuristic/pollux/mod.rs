//! Pollux (Qiao et al., OSDI'21): accelerators and batch sizes chosen together, to maximise goodput
//! over all jobs.
//!
//! Every job reports a model of its goodput, fitted to its measurements. The scheduler moves
//! accelerators between jobs to raise a power mean of their speedups over a fair share of the
//! cluster, less the cost of restarts ([`objective`]). There are two searches for this objective:
//! the published genetic algorithm ([`genetic`]) and the project's own ([`fast`]).

mod counts;
mod draft;
mod draws;
mod entitlement;
pub mod fast;
pub mod genetic;
mod lanes;
mod nsga2;
pub mod objective;
mod operators;
mod reduction;

use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::Batching;
use goodput_env::seed::{Stream, rng};
use goodput_env::view::ClusterView;
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::heuristic::parameters::Parameterised;
use crate::heuristic::{ListedPolicy, Traits};
use fast::PolluxFast;
use genetic::{Genetic, GeneticConfig};
use objective::{Lanes, ObjectiveParameters, PolluxProblem};

/// Entries in the list of policies.
pub const LISTED: &[ListedPolicy] = &[
    ListedPolicy {
        name: "pollux",
        about: "goodput relative to a fair share, batch sizes adapted; the published genetic search",
        source: "Qiao et al., OSDI 2021",
        traits: Traits { preemptive: true, elastic: true, heterogeneous: false },
        constructor: &Parameterised {
            defaults: PolluxParameters::default,
            build: |parameters, seed| Box::new(parameters.policy(true, seed)),
        },
        replica: None,
    },
    ListedPolicy {
        name: "pollux-noavoid",
        about: "pollux without keeping distributed jobs on different nodes",
        source: "Qiao et al., OSDI 2021, section 5.3.2",
        traits: Traits { preemptive: true, elastic: true, heterogeneous: false },
        constructor: &Parameterised {
            defaults: PolluxParameters::default,
            build: |parameters, seed| Box::new(parameters.policy(false, seed)),
        },
        replica: None,
    },
    ListedPolicy {
        name: "pollux-fast",
        about: "the objective of pollux, searched by dynamic programming over counts",
        source: "this project; objective of Qiao et al., OSDI 2021",
        traits: Traits { preemptive: true, elastic: true, heterogeneous: false },
        constructor: &Parameterised {
            defaults: ObjectiveParameters::default,
            build: |parameters, _| Box::new(PolluxFast::new(*parameters)),
        },
        replica: None,
    },
];

/// Parameters of [`Pollux`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolluxParameters {
    /// Fairness power `p` of the mean of speedups. The lower, the more one starving job weighs against fast ones.
    #[schemars(range(min = -10.0, max = -0.01), extend("x-source" = "OSDI 2021, p of equation 14; -1 as in its evaluation"))]
    pub power: f64,
    /// Time that a restart costs in the objective, whatever a restart costs in the run.
    #[schemars(range(min = 0.0, max = 1e7))]
    #[schemars(extend("x-unit" = "s", "x-source" = "OSDI 2021; pollux.py of its artifact"))]
    pub restart_secs: f64,
    /// Equality of tenants in the objective, from 0 (every job counts alike, as published) to 1 (tenants of equal
    /// weight get equal parts of the cluster, however many jobs they have).
    #[schemars(range(min = 0.0, max = 1.0))]
    #[schemars(extend("x-source" = "this project; a weighted form of OSDI 2021, equations 14 and 15"))]
    pub tenant_fairness: f64,
    /// Survivors, and children, of each generation.
    #[schemars(range(min = 2, max = 10000))]
    #[schemars(extend("x-unit" = "states", "x-source" = "OSDI 2021; pollux.py of its artifact"))]
    pub population: u16,
    /// Generations, the first population included.
    #[schemars(range(min = 1, max = 100000))]
    #[schemars(extend("x-unit" = "generations", "x-source" = "OSDI 2021; pollux.py of its artifact"))]
    pub generations: u32,
}

impl Default for PolluxParameters {
    fn default() -> Self {
        let ObjectiveParameters { power, restart_secs, tenant_fairness } = ObjectiveParameters::default();
        let GeneticConfig { population, generations, .. } = GeneticConfig::default();
        Self { power, restart_secs, tenant_fairness, population, generations }
    }
}

impl PolluxParameters {
    fn policy(self, avoid_interference: bool, seed: u64) -> Pollux {
        let Self { power, restart_secs, tenant_fairness, population, generations } = self;
        let search = GeneticConfig { population, generations, avoid_interference, ..GeneticConfig::default() };
        Pollux::new(search, seed).aiming(ObjectiveParameters { power, restart_secs, tenant_fairness })
    }
}

/// Pollux with the published search. All its randomness comes from the seed.
#[derive(Clone, Debug)]
pub struct Pollux {
    problem: PolluxProblem,
    search: Genetic,
    rng: ChaCha8Rng,
}

impl Pollux {
    /// A policy with the given settings of the search.
    pub fn new(config: GeneticConfig, seed: u64) -> Self {
        Self { problem: PolluxProblem::default(), search: Genetic::new(config), rng: rng(seed, Stream::Policy) }
    }

    /// Policy with another objective of the search.
    #[must_use]
    pub fn aiming(self, objective: ObjectiveParameters) -> Self {
        Self { problem: PolluxProblem::new(objective), ..self }
    }
}

impl Policy for Pollux {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.problem.load(view);
        if view.active() == 0 {
            return Plan::keep();
        }
        let (state, _) = self.search.search(&mut self.problem, &mut self.rng);
        plan(&self.problem, state)
    }

    fn batching(&self) -> Batching {
        Batching::Agent
    }
}

/// Changes that lead from the present state to `state`.
fn plan(problem: &PolluxProblem, state: &[Lanes]) -> Plan {
    let rows = state.chunks_exact(problem.width).zip(problem.current.chunks_exact(problem.width));
    let mut plan = Plan::keep();
    for (job, (row, _)) in problem.jobs.iter().zip(rows).filter(|(_, (row, current))| row != current) {
        let placement: Placement = problem.placement(row);
        plan.set(job.job, placement);
    }
    plan
}
