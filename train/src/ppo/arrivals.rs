//! Experience with a baseline for the arrivals: several runs play one episode, and an action is compared with what the
//! other runs cost from that time on.
//!
//! How long queues are depends on the arrivals more than on any action. A critic has not seen the arrivals that are
//! still to come, so the noise of the arrivals stays in the advantages. The other runs meet equal arrivals,
//! and their cost does not depend on the action, so the gradient stays unbiased (Mao et al. 2019, "Variance reduction
//! for reinforcement learning in input-driven environments", section 4).

use goodput_agents::nets::fused::Fused;
use goodput_agents::nets::weights::Weights;
use goodput_configs::seeds::training_seed;
use goodput_env::gym::{EnvError, Environment, Observation, ResetOptions};
use goodput_env::seed::{Stream, keyed};
use rayon::prelude::*;

use crate::returns::{CostToGo, advantage};
use crate::rollout::{ExperienceBuffer, uniform};

/// Runs of whole episodes, several on the arrivals of each.
pub struct ArrivalRuns<E> {
    env: E,
    /// Episodes of an iteration.
    episodes: usize,
    /// Runs of each episode.
    runs: usize,
    seed: u64,
    /// Rate of discounting, per second.
    beta: f64,
}

/// Rows and cost of one run.
struct EpisodeRun {
    rows: ExperienceBuffer,
    /// Seconds after the beginning at which each action was taken.
    secs: Vec<f64>,
    cost: CostToGo,
}

impl<E: Environment + Clone + Sync> ArrivalRuns<E> {
    /// `episodes` an iteration with `runs` runs of each, drawn from `seed`.
    pub fn new(env: E, episodes: usize, runs: usize, seed: u64, beta: f64) -> Self {
        Self { env, episodes, runs, seed, beta }
    }

    /// Plays the episodes of `iteration` by `weights`, and by `reference` once each where there is one: the cost of
    /// that run is one of the others that an action is compared with. Advantages are relative to the mean cost of the
    /// runs of an episode, so crowded episodes count no more than others.
    ///
    /// # Errors
    /// [`EnvError`] where an episode cannot be played.
    pub fn collect(
        &self,
        weights: &Weights,
        reference: Option<&Weights>,
        iteration: u64,
        into: &mut ExperienceBuffer,
    ) -> Result<(), EnvError> {
        let (net, reference) = (Fused::new(weights), reference.map(Fused::new));
        let each = self.runs + usize::from(reference.is_some());
        let play = |cell: usize| {
            let (episode, run) = (cell / each, cell % each);
            let number = iteration * self.episodes as u64 + episode as u64;
            match &reference {
                Some(reference) if run == self.runs => self.play(number, None, reference),
                _ => self.play(number, Some(number * self.runs as u64 + run as u64), &net),
            }
        };
        let runs = (0..self.episodes * each).into_par_iter().map(play).collect::<Result<Vec<_>, EnvError>>()?;
        *into = ExperienceBuffer::default();
        for runs in runs.chunks(each) {
            let costs: Vec<&CostToGo> = runs.iter().map(|run| &run.cost).collect();
            let whole = costs.iter().map(|cost| cost.at(0.0)).sum::<f64>().abs() / costs.len() as f64;
            for (own, run) in runs[..self.runs].iter().enumerate() {
                into.advantages
                    .extend(run.secs.iter().map(|secs| (advantage(&costs, own, *secs) / whole.max(1e-9)) as f32));
                into.append(&run.rows);
            }
        }
        // No critic learns.
        into.values.resize(into.actions.len(), 0.0);
        into.returns.resize(into.actions.len(), 0.0);
        Ok(())
    }

    /// Episode `number`: by actions drawn from the stream `explores`, or by the best ones.
    fn play(&self, number: u64, explores: Option<u64>, net: &Fused) -> Result<EpisodeRun, EnvError> {
        let (mut env, mut scratch) = (self.env.clone(), net.scratch());
        let mut seen = Observation::zeros(&env.layout());
        env.reset(Some(training_seed(self.seed, 0).wrapping_add(number)), &ResetOptions::default(), seen.as_mut())?;
        let mut random = explores.map(|stream| keyed(self.seed, Stream::Exploration, FIRST_STREAM | stream));
        let (mut rows, mut secs, mut steps, mut now) = (ExperienceBuffer::default(), Vec::new(), Vec::new(), 0.0);
        loop {
            let action = match &mut random {
                Some(random) => {
                    let sampled = net.sample(&seen.features, &seen.mask, uniform(random), &mut scratch);
                    rows.observations.extend_from_slice(&seen.features);
                    rows.masks.extend_from_slice(&seen.mask);
                    rows.actions.push(sampled.action as u32);
                    rows.log_probs.push(sampled.log_prob);
                    secs.push(now);
                    sampled.action
                }
                None => net.greedy(&seen.features, &seen.mask, &mut scratch),
            };
            let step = env.step(action, seen.as_mut())?;
            steps.push((step.elapsed_secs, -step.reward));
            now += step.elapsed_secs;
            if step.terminated || step.truncated {
                rows.episode_jct_secs.extend(env.jct_mean_secs());
                return Ok(EpisodeRun { rows, secs, cost: CostToGo::new(steps, self.beta) });
            }
        }
    }
}

/// Streams of runs are numbered from here, so that they are not those of other iterations.
const FIRST_STREAM: u64 = 1 << 48;
