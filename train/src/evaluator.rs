//! Evaluator: what the candidates of a search cost on episodes. It is the part of a search that takes the time, and a
//! pure map, so that it can be shared by any number of cores and machines.
//!
//! Costs come back in the order of candidates and episodes, and are added up in this order. So the bits of a search do
//! not depend on the evaluator.

use rayon::prelude::*;

use crate::constraint::ServedRequests;
use crate::error::TrainError;
use crate::evolution::{EpisodeCost, Generation, Objective};

/// Evaluator of the generations of a search.
pub trait Evaluator {
    /// Cost of each run of a generation, in the order of [`GenerationRound`](crate::evolution::GenerationRound).
    ///
    /// # Errors
    /// [`TrainError`] where a run fails; of several failed runs of this machine the first in order.
    fn costs(&self, generation: &Generation) -> Result<Vec<EpisodeCost>, TrainError>;
}

/// Evaluator on the cores of this machine: rayon's current threads.
#[derive(Clone, Copy)]
pub struct ThreadEvaluator<'a>(pub &'a Objective<'a>);

impl Evaluator for ThreadEvaluator<'_> {
    fn costs(&self, generation: &Generation) -> Result<Vec<EpisodeCost>, TrainError> {
        let round = self.0.round(generation);
        // All runs end before errors are looked at, so that the first error is the first in order.
        let all: Vec<Result<EpisodeCost, TrainError>> =
            (0..round.runs()).into_par_iter().map(|run| round.cost(run)).collect();
        all.into_iter().collect()
    }
}

/// Cost of each candidate: its mean cost over the `episodes` episodes less the teacher's, and the requests that it is
/// late with beyond what it may be. `costs` has the runs of the teacher, and then those of the candidates.
pub fn against_teacher(costs: &[EpisodeCost], episodes: usize) -> Vec<(f64, f64)> {
    // Runs are in order of player, so each chunk holds the runs of one player.
    let (taught, tried) = costs.split_at(episodes);
    let allowed = ServedRequests::sum(taught.iter().map(|run| &run.served));
    let of_candidate = |runs: &[EpisodeCost]| {
        let cost = runs.iter().zip(taught).map(|(run, taught)| run.cost - taught.cost).sum::<f64>() / runs.len() as f64;
        (cost, ServedRequests::sum(runs.iter().map(|run| &run.served)).excess(&allowed))
    };
    tried.chunks(episodes).map(of_candidate).collect()
}
