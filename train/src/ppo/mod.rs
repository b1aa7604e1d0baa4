//! Proximal policy optimisation: collect, update, now and then validate and checkpoint.

mod arrivals;

use std::sync::Arc;

use goodput_agents::bundle::{Model, PolicyBundle};
use goodput_agents::learning::adam::AdamConfig;
use goodput_agents::learning::gae::{GaeConfig, TraceDecay};
use goodput_agents::learning::learner::Learner;
use goodput_agents::learning::ppo::{PpoConfig, PpoRates, PpoStats};
use goodput_agents::nets::fused::Fused;
use goodput_agents::nets::weights::Weights;
use goodput_configs::scenario::Setup;
use goodput_env::gym::{ClusterEnv, Environment};
use goodput_env::seed::{Stream, keyed};

pub use arrivals::ArrivalRuns;

use crate::checkpoint::{BEST, LEARNER, REFERENCE, State, latest, save};
use crate::episodes::{Episodes, warm_up};
use crate::error::TrainError;
use crate::export::bundle;
use crate::rollout::{Collect, ExperienceBuffer, Rollout};
use crate::run_dir::RunDir;
use crate::scaling::ReturnScale;
use crate::training_run::TrainingRun;
use crate::updates::{self, Updates};
use crate::{Hooks, Trained, warm_start};
use goodput_configs::experiment::{Experiment, InputBaseline, PpoAgent};

/// Trains from the latest checkpoint, or from the beginning.
///
/// # Errors
/// [`TrainError`].
pub fn train(
    experiment: &Experiment,
    agent: &PpoAgent,
    dir: &RunDir,
    hooks: &Hooks<'_>,
) -> Result<Trained, TrainError> {
    let setup = experiment.setup()?;
    let mut ppo = PpoLoop::new(experiment, agent, dir, hooks, &setup)?;
    if ppo.run.state.updates == 0 && !ppo.warm_start()? {
        return Ok(Trained::Stopped);
    }
    let updates = experiment.train.decisions.div_ceil(ppo.rollout.rows() as u64);
    Ok(match updates::run(&mut ppo, updates, experiment, hooks)? {
        true => Trained::Complete(Box::new(ppo.bundle(&ppo.best))),
        false => Trained::Stopped,
    })
}

/// Learner of proximal policy optimisation with its environments.
struct PpoLoop<'a> {
    run: TrainingRun<'a>,
    agent: &'a PpoAgent,
    rollout: Rollout<ClusterEnv>,
    /// Source of the experience where the baseline goes by the arrivals.
    runs: Option<ArrivalRuns<ClusterEnv>>,
    experience: ExperienceBuffer,
    learner: Learner,
    /// The imitated policy, where the learner is to stay close to it or is compared with it.
    reference: Option<Weights>,
    best: Weights,
}

impl<'a> PpoLoop<'a> {
    fn new(
        experiment: &'a Experiment,
        agent: &'a PpoAgent,
        dir: &'a RunDir,
        hooks: &'a Hooks<'a>,
        setup: &'a Setup,
    ) -> Result<Self, TrainError> {
        let config_sha256 = dir.config_sha256()?;
        let source = Arc::new(Episodes::new(experiment)?.of_environments(experiment.seed, agent.envs));
        let options = experiment.gym();
        let env = ClusterEnv::new(source, options)
            .with_expected_peak(experiment.expected_peak(setup))
            .with_warm_up(warm_up(experiment, setup)?);
        let mut rollout = Rollout::new(&env, agent.envs, agent.steps_per_env, experiment.seed)?;
        let runs = agent.input_baseline.map(|InputBaseline { runs, .. }| {
            ArrivalRuns::new(env.clone(), agent.envs / runs, runs, experiment.seed, agent.beta())
        });
        let threads = rayon::current_num_threads();
        let checkpoint = latest(dir, &config_sha256)?;
        let (learner, reference, best, state) = match checkpoint {
            Some((state, folder)) => {
                let read = |name: &str| -> Result<Learner, TrainError> {
                    Ok(Learner::from_bytes(&dir.read(&format!("{folder}/{name}"))?)?)
                };
                let reference = match dir.path(&format!("{folder}/{REFERENCE}")).exists() {
                    true => Some(read(REFERENCE)?.weights().clone()),
                    false => None,
                };
                rollout.restore(&state.cursors)?;
                (read(LEARNER)?, reference, read(BEST)?.weights().clone(), state)
            }
            None => {
                let learner = Learner::new(&agent.net, env.layout(), AdamConfig::default(), experiment.seed);
                let state = State {
                    config_sha256,
                    updates: 0,
                    decisions: 0,
                    scale: ReturnScale::new(agent.envs),
                    cursors: Vec::new(),
                    best_jct_secs: None,
                    latest_jct_secs: None,
                };
                let best = learner.weights().clone();
                (learner, None, best, state)
            }
        };
        Ok(Self {
            run: TrainingRun::new(experiment, dir, hooks, setup, state)?,
            experience: rollout.experience(),
            learner: learner.with_threads(threads),
            agent,
            rollout,
            runs,
            reference,
            best,
        })
    }

    fn gae(&self) -> GaeConfig {
        let trace = self.agent.trace_secs.map_or(TraceDecay::Decision, |seconds| TraceDecay::Time { seconds });
        GaeConfig { beta: self.agent.beta(), lambda: self.agent.gae_lambda, trace }
    }

    /// Imitates the teacher, if there is one. `false`: stopped.
    fn warm_start(&mut self) -> Result<bool, TrainError> {
        let Some(plan) = &self.agent.warm_start else { return Ok(true) };
        let (gae, seed) = (self.gae(), self.run.experiment.seed);
        let Self { learner, rollout, experience, run, .. } = self;
        let student = warm_start::ImitationStudent { learner, rollout, experience, scale: &mut run.state.scale };
        if !warm_start::imitate(plan, gae, seed, student, run.dir, run.hooks)? {
            return Ok(false);
        }
        // The moments of imitation's gradients say nothing about those of the surrogate.
        self.learner.reset_optimiser();
        let compared = self.agent.input_baseline.is_some_and(|baseline| baseline.reference);
        self.reference = (plan.kl_penalty > 0.0 || compared).then(|| self.learner.weights().clone());
        // The imitated policy is the one to beat, so it is validated before the first update.
        self.validate()?;
        Ok(true)
    }
}

impl Updates for PpoLoop<'_> {
    type Figures = PpoStats;

    fn updates(&self) -> u64 {
        self.run.state.updates
    }

    fn is_complete(&self, updates: u64) -> bool {
        match &self.runs {
            Some(_) => self.run.state.decisions >= self.run.experiment.train.decisions,
            None => self.run.state.updates >= updates,
        }
    }

    /// One iteration of experience and the update on it.
    fn update(&mut self, updates: u64) -> Result<PpoStats, TrainError> {
        let (agent, seed, gae) = (self.agent, self.run.experiment.seed, self.gae());
        let iteration = self.run.state.updates;
        let weights = self.learner.weights();
        let done = match &self.runs {
            Some(runs) => {
                let compared = agent.input_baseline.is_some_and(|baseline| baseline.reference);
                let reference = self.reference.as_ref().filter(|_| compared);
                runs.collect(weights, reference, iteration, &mut self.experience)?;
                (self.run.state.decisions as f64 / self.run.experiment.train.decisions as f64).min(1.0)
            }
            None => {
                let how = Collect { iteration, seed, gae, teacher_share: 0.0 };
                self.rollout.collect(weights, how, None, &mut self.run.state.scale, &mut self.experience)?;
                iteration as f64 / updates as f64
            }
        };
        // The pull towards the imitated policy ends after a third of the updates.
        let penalty = agent.warm_start.as_ref().map_or(0.0, |plan| plan.kl_penalty * (1.0 - 3.0 * done).max(0.0));
        let critic_only = self.runs.is_none() && self.run.state.decisions < agent.critic_warmup;
        let rates = PpoRates {
            learning_rate: (agent.learning_rate * (1.0 - done)) as f32,
            entropy: (agent.entropy * (1.0 - 0.9 * done)) as f32,
            reference_kl: penalty as f32,
        };
        let config = PpoConfig {
            epochs: agent.epochs,
            minibatch: agent.minibatch,
            clip: agent.clip as f32,
            // Without a critic there is nothing that would learn values.
            value_coefficient: if self.runs.is_some() { 0.0 } else { agent.value_coefficient as f32 },
            max_grad_norm: agent.max_grad_norm as f32,
            target_kl: agent.target_kl as f32,
        };
        let e = &mut self.experience;
        if critic_only {
            // Without advantages the surrogate has no gradient: the policy stays, the critic
            // learns.
            e.advantages.fill(0.0);
        }
        let batch = e.batch();
        let reference = self.reference.as_ref().filter(|_| penalty > 0.0).map(Fused::new);
        // Smaller numbers of an iteration name the streams of its environments.
        let mut shuffle = keyed(seed, Stream::Exploration, iteration.wrapping_mul(65_537).wrapping_add(65_536));
        // The bonus for entropy would move the policy although it has no advantages to follow.
        let rates = if critic_only { PpoRates { entropy: 0.0, ..rates } } else { rates };
        let stats = self
            .learner
            .ppo(&config, rates, &batch, reference.as_ref(), &mut shuffle)
            .map_err(|source| TrainError::Diverged { update: iteration, source })?;
        self.run.state.updates += 1;
        self.run.state.decisions += self.experience.actions.len() as u64;
        Ok(stats)
    }

    fn validate(&mut self) -> Result<(), TrainError> {
        let jct = self.run.validation.score(&self.bundle(self.learner.weights()))?;
        if self.run.note_validation(jct) {
            self.best = self.learner.weights().clone();
        }
        Ok(())
    }

    fn report(&mut self, stats: PpoStats) -> Result<(), TrainError> {
        let episodes = &self.experience.episode_jct_secs;
        let mean_jct = episodes.iter().sum::<f64>() / episodes.len() as f64;
        let [validation, heuristic] = self.run.validation_figures();
        let mut figures = vec![
            ("rollout/jct_mean_secs", mean_jct),
            ("rollout/episodes", episodes.len() as f64),
            validation,
            heuristic,
            ("train/policy_gradient_loss", stats.policy_loss),
            ("train/value_loss", stats.value_loss),
            ("train/entropy", stats.entropy),
            ("train/approx_kl", stats.approx_kl),
            ("train/clip_fraction", stats.clipfrac),
            ("train/explained_variance", stats.explained_variance),
            ("train/grad_norm", stats.grad_norm),
            ("train/reference_kl", stats.reference_kl),
            ("train/n_updates", self.run.state.updates as f64),
        ];
        if self.runs.is_some() {
            let of_critic = ["train/value_loss", "train/explained_variance"];
            figures.retain(|(name, _)| !of_critic.contains(name));
        }
        self.run.record(&figures)
    }

    fn checkpoint(&mut self) -> Result<(), TrainError> {
        self.run.state.cursors = self.rollout.cursors();
        let weights_file = |weights: &Weights| Learner::from_weights(weights.clone(), AdamConfig::default()).to_bytes();
        let mut files = vec![(LEARNER, self.learner.to_bytes()), (BEST, weights_file(&self.best))];
        files.extend(self.reference.as_ref().map(|weights| (REFERENCE, weights_file(weights))));
        save(self.run.dir, &self.run.state, &files)?;
        Ok(())
    }
}

impl PpoLoop<'_> {
    fn bundle(&self, weights: &Weights) -> PolicyBundle {
        bundle(Model::Net(weights.clone()), self.run.experiment, self.run.setup, self.run.provenance())
    }
}
