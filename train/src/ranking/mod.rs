//! Policy gradients over rankings of (job, size) pairs, for elastic rounds.
//!
//! An update plays a few arrival sequences, each of them several times. What a rollout costs from a decision on is held against what the others of
//! the same arrivals cost from that moment on: jobs that arrive later cost them all alike, and cancel (the input-dependent baseline of Mao
//! et al., arXiv:1807.02264, with the number of jobs in the system as cost as in Decima, SIGCOMM'19). No critic is needed.

pub mod rollouts;

use goodput_agents::bundle::{Model, PolicyBundle, Provenance};
use goodput_agents::policies::ranking::learner::{RankingConfig, RankingLearner, RankingStats};
use goodput_agents::policies::ranking::{Decoding, Ranking, RankingNet};
use goodput_agents::policies::rounds::Decoder;
use goodput_agents::policies::utility::{Experience, Theta, Utility};
use goodput_env::seed::{Stream, keyed};

use self::rollouts::{Rollouts, Rounds};
use crate::checkpoint::{BEST, LEARNER, State, latest, save};
use crate::episodes::Episodes;
use crate::error::TrainError;
use crate::evolution::{EXPERIENCE, past};
use crate::recorder::Recorder;
use crate::run_dir::RunDir;
use crate::scaling::ReturnScale;
use crate::updates::{self, Updates};
use crate::validate::{Validation, bundle};
use crate::{Hooks, Progress, Trained};
use goodput_configs::experiment::{Experiment, RankingAgent, started};

/// Trains from the latest checkpoint, or from the start. The best policy on validation seeds under either decoding is what is returned; beside it, the
/// same net under each of them is written to `DECODING/policy.bundle`.
///
/// # Errors
/// [`TrainError`].
pub fn train(
    experiment: &Experiment,
    agent: &RankingAgent,
    dir: &RunDir,
    hooks: &Hooks<'_>,
) -> Result<Trained, TrainError> {
    let mut run = Run::new(experiment, agent, dir, hooks)?;
    if !updates::run(&mut run, agent.updates, experiment, hooks)? {
        return Ok(Trained::Stopped);
    }
    for decoding in Decoding::ALL {
        let bundle = run.bundle(&run.best.net, decoding);
        dir.write(&format!("{}/policy.bundle", decoding.name()), &bundle.to_bytes())?;
    }
    Ok(Trained::Complete(Box::new(run.bundle(&run.best.net, run.best.decoding))))
}

struct Run<'a> {
    agent: &'a RankingAgent,
    experiment: &'a Experiment,
    dir: &'a RunDir,
    hooks: &'a Hooks<'a>,
    /// One for each load.
    training: Episodes,
    utility: Utility,
    validation: Validation,
    learner: RankingLearner,
    best: Best,
    state: State,
    /// Mean completion times of the latest update's rollouts and, where it was validated, under each decoding.
    rollout_jct_secs: f64,
    validated: Option<[f64; 2]>,
    recorder: Recorder,
}

/// The best policy so far.
struct Best {
    net: RankingNet,
    decoding: Decoding,
}

impl<'a> Run<'a> {
    fn new(
        experiment: &'a Experiment,
        agent: &'a RankingAgent,
        dir: &'a RunDir,
        hooks: &'a Hooks<'a>,
    ) -> Result<Self, TrainError> {
        let training = Episodes::new(experiment)?;
        let config_sha256 = dir.config_sha256()?;
        let (learner, best, state) = match latest(dir, &config_sha256)? {
            Some((state, folder)) => {
                let bytes = dir.read(&format!("{folder}/{BEST}"))?;
                let best = PolicyBundle::from_bytes(&bytes, &dir.path(&format!("{folder}/{BEST}")))?;
                let learner = RankingLearner::from_bytes(&dir.read(&format!("{folder}/{LEARNER}"))?)?;
                let best = match best.model {
                    Model::Ranking(ranking) => Best { net: ranking.net, decoding: ranking.decoding },
                    _ => Best { net: learner.net().clone(), decoding: Decoding::PlackettLuce },
                };
                (learner, best, state)
            }
            None => {
                let net = RankingNet::new(&agent.net, experiment.seed);
                let state = State {
                    config_sha256,
                    updates: 0,
                    decisions: 0,
                    scale: ReturnScale::new(0),
                    cursors: Vec::new(),
                    best_jct_secs: None,
                    latest_jct_secs: None,
                };
                let best = Best { net: net.clone(), decoding: Decoding::PlackettLuce };
                (RankingLearner::new(net), best, state)
            }
        };
        let experience = match agent.experience {
            true => past(&training.range(experiment.seed, 0, EXPERIENCE)),
            false => Experience::default(),
        };
        // What is stored is what is tried.
        let started = started(&Theta::sia(), &agent.start).values();
        let numbers: Vec<f64> = started.into_iter().map(|number| f64::from(number as f32)).collect();
        let theta = Theta::new(&numbers).expect("the configuration was checked");
        let mut run = Self {
            validation: Validation::new(experiment, training.setup())?,
            recorder: Recorder::new(dir, "progress", state.decisions)?,
            learner: learner.with_threads(rayon::current_num_threads()),
            utility: Utility { theta, experience, siblings: agent.siblings, efficiency: true },
            agent,
            experiment,
            dir,
            hooks,
            training,
            best,
            state,
            rollout_jct_secs: f64::NAN,
            validated: None,
        };
        if run.state.updates == 0 {
            // The start competes: what is not better than it is not what is returned.
            run.validate()?;
            run.report(RankingStats::default())?;
        }
        Ok(run)
    }

    fn bundle(&self, net: &RankingNet, decoding: Decoding) -> PolicyBundle {
        let provenance = Provenance {
            argv: self.hooks.argv.clone(),
            seed: self.experiment.seed,
            steps: self.state.decisions,
            config_sha256: self.state.config_sha256.clone(),
        };
        let ranking = Ranking { utility: self.utility.clone(), net: net.clone(), decoding };
        bundle(Model::Ranking(Box::new(ranking)), self.training.setup(), provenance)
    }
}

impl Updates for Run<'_> {
    type Figures = RankingStats;

    fn updates(&self) -> u64 {
        self.state.updates
    }

    fn update(&mut self, updates: u64) -> Result<RankingStats, TrainError> {
        let (agent, iteration) = (self.agent, self.state.updates);
        let options = self.training.setup().options();
        let rollouts = Rollouts {
            utility: &self.utility,
            decoder: Decoder::new(options.batching, options.information),
            each: agent.rollouts,
            temperature: agent.temperature,
            beta: agent.half_life_secs.map_or(0.0, |secs| std::f64::consts::LN_2 / secs),
            seed: self.experiment.seed,
        };
        let scenarios = self.training.range(self.experiment.seed, iteration * agent.episodes, agent.episodes);
        let Rounds { rounds, advantages, jct_secs } = rollouts.play(self.learner.net(), &scenarios, iteration)?;
        self.rollout_jct_secs = jct_secs;
        let done = iteration as f64 / updates as f64;
        let config = RankingConfig {
            temperature: agent.temperature,
            epochs: agent.epochs,
            minibatch: agent.minibatch,
            clip: agent.clip,
            max_grad_norm: agent.max_grad_norm as f32,
            target_kl: agent.target_kl,
            learning_rate: (agent.learning_rate * (1.0 - done)) as f32,
            entropy: agent.entropy * (1.0 - 0.9 * done),
            reference_kl: agent.kl_penalty * (1.0 - 3.0 * done).max(0.0),
        };
        let key = iteration.wrapping_mul(65_537).wrapping_add(65_536);
        let mut shuffle = keyed(self.experiment.seed, Stream::Exploration, key);
        let stats = self
            .learner
            .update(&config, &rounds, &advantages, &mut shuffle)
            .map_err(|source| TrainError::Diverged { update: iteration, source })?;
        self.state.updates += 1;
        self.state.decisions += rounds.len() as u64;
        Ok(stats)
    }

    fn validate(&mut self) -> Result<(), TrainError> {
        let mut validated = [f64::NAN; 2];
        for (jct, decoding) in validated.iter_mut().zip(Decoding::ALL) {
            *jct = self.validation.score(&self.bundle(self.learner.net(), decoding))?;
            if self.state.best_jct_secs.is_none_or(|best| *jct < best) {
                self.state.best_jct_secs = Some(*jct);
                self.best = Best { net: self.learner.net().clone(), decoding };
            }
        }
        self.state.latest_jct_secs = Some(validated[0].min(validated[1]));
        self.validated = Some(validated);
        Ok(())
    }

    fn report(&mut self, stats: RankingStats) -> Result<(), TrainError> {
        let heuristic = self.validation.best_heuristic_jct_secs;
        let [walked, packed] = self.validated.take().unwrap_or([f64::NAN; 2]);
        let figures = vec![
            ("rollout/mean_jct_secs", self.rollout_jct_secs),
            ("eval/plackett_luce_jct_secs", walked),
            ("eval/knapsack_jct_secs", packed),
            ("eval/best_jct_secs", self.state.best_jct_secs.unwrap_or(f64::NAN)),
            ("eval/best_heuristic_jct_secs", heuristic),
            ("train/policy_gradient_loss", stats.policy_loss),
            ("train/entropy", stats.entropy),
            ("train/approx_kl", stats.approx_kl),
            ("train/clip_fraction", stats.clipfrac),
            ("train/grad_norm", stats.grad_norm),
            ("train/reference_kl", stats.reference_kl),
            ("train/minibatches", stats.minibatches as f64),
            ("train/n_updates", self.state.updates as f64),
        ];
        self.recorder.record(self.state.decisions, &figures)?;
        (self.hooks.progress)(Progress {
            phase: "train",
            decisions: self.state.updates,
            budget: self.agent.updates,
            validation_jct_secs: self.state.latest_jct_secs,
            best_heuristic_jct_secs: heuristic.is_finite().then_some(heuristic),
        });
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<(), TrainError> {
        let best = self.bundle(&self.best.net, self.best.decoding).to_bytes();
        save(self.dir, &self.state, &[(LEARNER, self.learner.to_bytes()), (BEST, best)])?;
        Ok(())
    }
}
