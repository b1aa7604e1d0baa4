//! Pollux (Qiao et al., OSDI'21): accelerators and batch sizes chosen together, to maximise goodput
//! over all jobs.
//!
//! Every job reports a model of its goodput, fitted to its measurements. The scheduler moves
//! accelerators between jobs to raise a power mean of their speedups over a fair share of the
//! cluster, less the cost of restarts ([`objective`]). There are two searches for this objective:
//! the published genetic algorithm ([`genetic`]) and the project's own ([`fast`]).

mod draft;
mod draws;
pub mod fast;
pub mod genetic;
mod lanes;
mod nsga2;
pub mod objective;
mod operators;

use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::Batching;
use goodput_env::seed::{Stream, rng};
use goodput_env::view::ClusterView;
use rand_chacha::ChaCha8Rng;

use crate::heuristic::{ListedPolicy, Traits};
use fast::PolluxFast;
use genetic::{Genetic, GeneticConfig};
use objective::{Lanes, PolluxProblem};

/// Entries in the list of policies.
pub const LISTED: &[ListedPolicy] = &[
    ListedPolicy {
        name: "pollux",
        about: "goodput relative to a fair share, batch sizes adapted; the published genetic search",
        source: "Qiao et al., OSDI 2021",
        traits: Traits { preemptive: true, elastic: true, heterogeneous: false },
        build: |seed| Box::new(Pollux::new(GeneticConfig::default(), seed)),
        replica: None,
    },
    ListedPolicy {
        name: "pollux-noavoid",
        about: "pollux without keeping distributed jobs on different nodes",
        source: "Qiao et al., OSDI 2021, section 5.3.2",
        traits: Traits { preemptive: true, elastic: true, heterogeneous: false },
        build: |seed| {
            Box::new(Pollux::new(GeneticConfig { avoid_interference: false, ..GeneticConfig::default() }, seed))
        },
        replica: None,
    },
    ListedPolicy {
        name: "pollux-fast",
        about: "the objective of pollux, searched by dynamic programming over counts",
        source: "this project; objective of Qiao et al., OSDI 2021",
        traits: Traits { preemptive: true, elastic: true, heterogeneous: false },
        build: |_| Box::new(PolluxFast::default()),
        replica: None,
    },
];

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
