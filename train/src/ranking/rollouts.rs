//! Rollouts of the same arrivals, and the advantage of every round of them.

use std::sync::Arc;

use goodput_agents::policies::ranking::{RankingNet, Sampled, Transition};
use goodput_agents::policies::rounds::Decoder;
use goodput_agents::policies::utility::{Utility, UtilityPolicy};
use goodput_env::gym::EnvError;
use goodput_env::scenario::Scenario;
use goodput_env::seed::{Stream, keyed};
use goodput_env::sim::Simulator;
use rayon::prelude::*;

use crate::returns::{CostToGo, advantage};
use crate::validate::mean_jct_secs;

/// How rollouts are played.
#[derive(Clone, Copy, Debug)]
pub struct Rollouts<'a> {
    /// The utility that scores begin with.
    pub utility: &'a Utility,
    /// How the policy is to be run.
    pub decoder: Decoder,
    /// Of each arrival sequence so many, at least 2.
    pub each: usize,
    /// Scores are divided by it before they are drawn from.
    pub temperature: f64,
    /// Rate of discounting, per second.
    pub beta: f64,
    /// Master seed; with the number of the update it names the random streams.
    pub seed: u64,
}

/// What an update learns from.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    /// Rounds in which there was something to choose.
    pub rounds: Vec<Transition>,
    /// Of each of them, of mean square 1 over the rollouts of a sequence: long and short sequences count alike.
    pub advantages: Vec<f64>,
    /// Mean completion time over rollouts, seconds.
    pub jct_secs: f64,
}

struct Played {
    rounds: Vec<Transition>,
    cost: CostToGo,
    jct_secs: f64,
}

impl Rollouts<'_> {
    /// Plays `scenarios` under draws from `net` for update number `iteration`. The result does not depend on the number of threads.
    ///
    /// # Errors
    /// [`EnvError`] where a run fails.
    pub fn play(&self, net: &RankingNet, scenarios: &[Arc<Scenario>], iteration: u64) -> Result<Rounds, EnvError> {
        let one = |rollout: usize| self.rollout(net, &scenarios[rollout / self.each], iteration, rollout as u64);
        let played = (0..scenarios.len() * self.each).into_par_iter().map(one).collect::<Result<Vec<_>, EnvError>>()?;
        let jct_secs = played.iter().map(|played| played.jct_secs).sum::<f64>() / played.len().max(1) as f64;
        let mut all = Rounds { jct_secs, ..Rounds::default() };
        let mut played = played.into_iter();
        for _ in scenarios {
            let (rounds, costs): (Vec<_>, Vec<_>) =
                played.by_ref().take(self.each).map(|played| (played.rounds, played.cost)).unzip();
            all.advantages.extend(advantages(&rounds, &costs));
            all.rounds.extend(rounds.into_iter().flatten());
        }
        Ok(all)
    }

    fn rollout(
        &self,
        net: &RankingNet,
        scenario: &Arc<Scenario>,
        iteration: u64,
        rollout: u64,
    ) -> Result<Played, EnvError> {
        let random = keyed(self.seed, Stream::Exploration, iteration.wrapping_mul(65_537).wrapping_add(rollout));
        let sampled = Sampled::new(net, self.temperature, random);
        let Decoder { batching, information, .. } = self.decoder;
        let mut policy = UtilityPolicy::dividing(self.utility, batching, information, sampled);
        let outcome = Simulator::new(scenario.clone()).run(&mut policy)?;
        let rounds = policy.into_division().into_transitions();
        Ok(Played { rounds, cost: CostToGo::new(&outcome, self.beta), jct_secs: mean_jct_secs(&outcome) })
    }
}

/// By rollout and round, for rollouts of one arrival sequence.
fn advantages(rounds: &[Vec<Transition>], costs: &[CostToGo]) -> Vec<f64> {
    let of_rollout = |(own, rounds): (usize, &Vec<Transition>)| -> Vec<f64> {
        rounds.iter().map(|round| advantage(costs, own, round.at.as_secs_f64())).collect()
    };
    let mut all: Vec<f64> = rounds.iter().enumerate().flat_map(of_rollout).collect();
    let square = all.iter().map(|advantage| advantage * advantage).sum::<f64>() / all.len().max(1) as f64;
    let scale = square.sqrt() + 1e-8;
    all.iter_mut().for_each(|advantage| *advantage /= scale);
    all
}
