//! Evaluator: what candidates of a search cost on episodes. It is the part of a search that takes the time, and a pure
//! map, so that it can be shared by any number of cores.
//!
//! Costs come back in the order of candidates and episodes, and are added up in this order. So the bits of a search do
//! not depend on the evaluator.

use std::sync::Arc;

use goodput_agents::bundle::PolicyBundle;
use goodput_agents::compose::loaning::{Sharing, complete};
use goodput_env::gym::{EnvError, ExpectedPeak};
use goodput_env::policy::Policy;
use goodput_env::scenario::{Scenario, SimOptions};
use goodput_env::sim::Simulator;
use goodput_eval::entries::EntryError;
use goodput_eval::run::PolicyEntry;
use rayon::prelude::*;

use crate::constraint::ServedRequests;
use crate::cost;
use crate::error::TrainError;

/// Cost of one policy on one episode.
#[derive(Clone, Debug)]
pub struct EpisodeCost {
    /// Logarithm of the mean completion time, and of the tail as far as it counts.
    pub cost: f64,
    /// Requests of services, and how many met their objectives.
    pub served: ServedRequests,
}

/// Player of an episode.
#[derive(Clone, Copy, Debug)]
pub enum Contestant<'a> {
    /// The heuristic that candidates are measured against.
    Teacher,
    /// A candidate of the search.
    Candidate(&'a PolicyBundle),
}

/// Evaluator of the candidates of a search.
pub trait Evaluator {
    /// Cost of each pair, in their order.
    ///
    /// # Errors
    /// [`TrainError`] where a run fails; of several failed runs the first in order.
    fn costs(&self, pairs: &[(Contestant<'_>, &Arc<Scenario>)]) -> Result<Vec<EpisodeCost>, TrainError>;
}

/// Evaluator on the cores of this machine: rayon's current threads.
#[derive(Clone, Copy, Debug)]
pub struct ThreadEvaluator<'a> {
    /// Weight of the tail in the cost.
    pub tail: f64,
    /// Terms on which policies share the cluster with services.
    pub sharing: &'a Arc<Sharing>,
    /// Teacher that plays the episode.
    pub teacher: &'a PolicyEntry,
}

impl ThreadEvaluator<'_> {
    fn cost(&self, player: Contestant<'_>, scenario: &Arc<Scenario>) -> Result<EpisodeCost, TrainError> {
        match player {
            Contestant::Candidate(bundle) => {
                let policy = bundle.policy_sharing(ExpectedPeak::default(), self.sharing);
                self.run(scenario, policy.map_err(EntryError::Decoder)?)
            }
            Contestant::Teacher => {
                let policy = (self.teacher.make)(scenario.seed);
                let Some(information) = self.teacher.information else { return self.run(scenario, policy) };
                let options = SimOptions { information, ..scenario.options.clone() };
                self.run(&Arc::new(Scenario { options, ..(**scenario).clone() }), policy)
            }
        }
    }

    fn run(&self, scenario: &Arc<Scenario>, policy: Box<dyn Policy>) -> Result<EpisodeCost, TrainError> {
        let mut policy = complete(policy, scenario, self.sharing);
        let outcome = Simulator::new(scenario.clone()).run(&mut *policy).map_err(EnvError::from)?;
        let (cost, served) = (cost::of_run(scenario, &outcome, self.tail), ServedRequests::of(scenario, &outcome));
        Ok(EpisodeCost { cost, served })
    }
}

impl Evaluator for ThreadEvaluator<'_> {
    fn costs(&self, pairs: &[(Contestant<'_>, &Arc<Scenario>)]) -> Result<Vec<EpisodeCost>, TrainError> {
        // All runs end before errors are looked at, so that the first error is the first in order.
        let all: Vec<Result<EpisodeCost, TrainError>> =
            pairs.par_iter().map(|(player, scenario)| self.cost(*player, scenario)).collect();
        all.into_iter().collect()
    }
}

/// Cost of each candidate: its mean cost over the episodes less the teacher's, and the requests that it is late with
/// beyond what it may be.
///
/// # Errors
/// [`TrainError`] where a run fails.
pub fn against_teacher(
    evaluator: &impl Evaluator,
    episodes: &[Arc<Scenario>],
    candidates: &[PolicyBundle],
) -> Result<Vec<(f64, f64)>, TrainError> {
    let players = std::iter::once(Contestant::Teacher).chain(candidates.iter().map(Contestant::Candidate));
    let pairs: Vec<_> = players.flat_map(|player| episodes.iter().map(move |scenario| (player, scenario))).collect();
    let all = evaluator.costs(&pairs)?;
    // Pairs are in order of player, so each chunk holds the runs of one player.
    let (taught, tried) = all.split_at(episodes.len());
    let allowed = ServedRequests::sum(taught.iter().map(|run| &run.served));
    let of_candidate = |runs: &[EpisodeCost]| {
        let cost = runs.iter().zip(taught).map(|(run, taught)| run.cost - taught.cost).sum::<f64>() / runs.len() as f64;
        (cost, ServedRequests::sum(runs.iter().map(|run| &run.served)).excess(&allowed))
    };
    Ok(tried.chunks(episodes.len()).map(of_candidate).collect())
}
