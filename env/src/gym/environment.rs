//! Cluster environment: reset, step, and the simulator behind them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::gym::action::Action;
use crate::gym::expected_peak::ExpectedPeak;
use crate::gym::layout::Layout;
use crate::gym::observation::{Encoder, layout};
use crate::gym::reward::{Discount, Reward};
use crate::gym::round::Round;
use crate::gym::timeline::Timeline;
use crate::gym::warm_up::WarmUp;
use crate::plan::Plan;
use crate::scenario::Scenario;
use crate::sim::{SimError, Simulator, Status};
use crate::view::ClusterView;

/// Buffers of the caller for an observation and its action mask.
#[derive(Debug)]
pub struct ObservationMut<'a> {
    /// Flat features, [`Layout::obs_dim`] numbers.
    pub features: &'a mut [f32],
    /// Action mask, [`Layout::actions`] numbers: 1 where the action is allowed; never all zero.
    pub mask: &'a mut [u8],
}

/// Observation with its action mask.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Flat features, [`Layout::obs_dim`] numbers.
    pub features: Vec<f32>,
    /// Action mask: 1 where the action is allowed.
    pub mask: Vec<u8>,
}

impl Observation {
    /// Observation and mask of zeros.
    pub fn zeros(layout: &Layout) -> Self {
        Self { features: vec![0.0; layout.obs_dim()], mask: vec![0; layout.actions()] }
    }

    /// Mutable buffers for the next observation.
    pub fn as_mut(&mut self) -> ObservationMut<'_> {
        ObservationMut { features: &mut self.features, mask: &mut self.mask }
    }
}

/// Result of a step, beside the observation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Reward for the time that passed.
    pub reward: f64,
    /// Simulated time that passed, seconds; zero inside a round. Discount by this time, never per
    /// decision.
    pub elapsed_secs: f64,
    /// Whether the episode ended by itself, because all jobs are complete.
    pub terminated: bool,
    /// Whether the episode was truncated: bootstrap with the value of the final observation.
    pub truncated: bool,
}

/// Options of the start of an episode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResetOptions {
    /// Simulated time after which episodes are truncated, overriding the scenario's horizon.
    pub horizon: Option<crate::time::SimTime>,
}

/// Error of an environment that cannot continue.
#[derive(Debug, Error)]
pub enum EnvError {
    /// The action does not exist, or the mask forbids it.
    #[error("action {action} is not allowed here")]
    Forbidden {
        /// Number of the action.
        action: usize,
    },
    /// A call of `step` before or after an episode.
    #[error("no episode is under way: call reset first")]
    NotReset,
    /// The workload cannot be run.
    #[error(transparent)]
    Simulation(#[from] SimError),
}

/// Environment in the sense of Gymnasium, with action masks, SMDP time and buffers of the caller.
pub trait Environment: Send {
    /// Layout of observations and actions.
    fn layout(&self) -> Layout;

    /// Starts an episode. With a seed the random stream is created anew; without a seed it
    /// continues.
    ///
    /// # Errors
    /// [`EnvError`] where the workload cannot be run.
    fn reset(&mut self, seed: Option<u64>, options: &ResetOptions, out: ObservationMut<'_>) -> Result<(), EnvError>;

    /// Whether an action may be taken now: what the mask says of it. No action may be taken outside
    /// an episode.
    fn allows(&self, action: usize) -> bool;

    /// Takes one action.
    ///
    /// # Errors
    /// [`EnvError::Forbidden`] for an action that the mask forbids, [`EnvError::NotReset`] outside
    /// an episode.
    fn step(&mut self, action: usize, out: ObservationMut<'_>) -> Result<Step, EnvError>;

    /// Mean job completion time of the episode that just ended, seconds, where the environment has
    /// jobs.
    fn jct_mean_secs(&self) -> Option<f64> {
        None
    }
}

/// Function that creates the scenario of an episode from its seed.
pub type ScenarioSource = Arc<dyn Fn(u64) -> Arc<Scenario> + Send + Sync>;

/// Options of [`ClusterEnv`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvOptions {
    /// Number of job slots in an observation.
    pub slots: usize,
    /// Number of service slots in an observation; further services keep their replicas.
    #[serde(default)]
    pub services: usize,
    /// Whether servers of the inference pool can be lent and reclaimed.
    #[serde(default)]
    pub pools: bool,
    /// Whether observations describe the tenant of each job: its priority, its accelerators and its
    /// quota.
    #[serde(default)]
    pub tenants: bool,
    /// Number of accelerator types that are distinguished, with an action for each that starts a
    /// job on it or moves the job there; 0 distinguishes none.
    #[serde(default)]
    pub types: usize,
    /// Reward that the environment returns.
    pub reward: Reward,
}

impl EnvOptions {
    /// Layout of observations and actions.
    pub const fn layout(&self) -> Layout {
        let mut layout = layout(self.slots).with_services(self.services).by_type(self.types);
        if self.pools {
            layout = layout.with_pools();
        }
        if self.tenants {
            layout = layout.with_tenants();
        }
        layout
    }
}

impl Default for EnvOptions {
    fn default() -> Self {
        Self { slots: 64, services: 0, pools: false, tenants: false, types: 0, reward: Reward::default() }
    }
}

/// The cluster as an environment. An action changes one job's allocation or ends the round;
/// decisions at which nothing but waiting is possible are taken by the environment itself. Cloning
/// it is a snapshot.
///
/// # Example
/// An episode in which every action is the first one that the mask allows:
///
/// ```
/// use std::sync::Arc;
///
/// use goodput_env::cluster::Cluster;
/// use goodput_env::gym::{ClusterEnv, EnvOptions, Environment, Observation, ResetOptions};
/// use goodput_env::job::{JobRequest, JobSpec, Work, Workload};
/// use goodput_env::scenario::{Scenario, SimOptions};
/// use goodput_env::time::SimTime;
///
/// let request = JobRequest { name: "bert".into(), gpus: 4, ..JobRequest::default() };
/// let work = Work::Fixed { duration: SimTime::from_secs(600) };
/// let workload = Arc::new(Workload::new(Vec::new(), vec![JobSpec { request, work }]));
/// let cluster = Arc::new(Cluster::parse("2x4")?);
/// let source = move |seed| Arc::new(Scenario::new(cluster.clone(), workload.clone(), SimOptions::standard(), seed));
///
/// let mut env = ClusterEnv::new(Arc::new(source), EnvOptions::default());
/// let mut observation = Observation::zeros(&env.layout());
/// env.reset(Some(0), &ResetOptions::default(), observation.as_mut())?;
/// loop {
///     let action = observation.mask.iter().position(|&allowed| allowed == 1).ok_or("no action is allowed")?;
///     let step = env.step(action, observation.as_mut())?;
///     if step.terminated || step.truncated {
///         break;
///     }
/// }
/// // At the requested size and without a restart, the job takes 600 s.
/// assert!(env.jct_mean_secs() >= Some(600.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ClusterEnv {
    source: ScenarioSource,
    warm_up: Option<WarmUp>,
    discount: Option<Discount>,
    options: EnvOptions,
    layout: Layout,
    seed: u64,
    simulator: Option<Simulator>,
    round: Round,
    encoder: Encoder,
    plan: Plan,
    status: Status,
    timeline: Option<Timeline>,
}

impl ClusterEnv {
    /// Creates an environment over the scenarios of `source`.
    pub fn new(source: ScenarioSource, options: EnvOptions) -> Self {
        let layout = options.layout();
        Self {
            source,
            warm_up: None,
            discount: None,
            options,
            layout,
            seed: 0,
            simulator: None,
            round: Round::default(),
            encoder: Encoder::new(layout),
            plan: Plan::keep(),
            status: Status::Complete,
            timeline: None,
        }
    }

    /// Replaces the load forecast of services, which is the load of the day before by default.
    #[must_use]
    pub fn with_expected_peak(mut self, expected: ExpectedPeak) -> Self {
        self.encoder = self.encoder.with_expected_peak(expected);
        self
    }

    /// Adds a warm-up to the episodes.
    #[must_use]
    pub fn with_warm_up(mut self, warm_up: Option<WarmUp>) -> Self {
        self.warm_up = warm_up;
        self
    }

    /// Discounts the reward within each step to the moment of its action. The reward is taken to
    /// flow evenly between two decision points of the simulator.
    ///
    /// Without a discount, a reward is a plain integral over the time of its step. The weight of
    /// the steps that follow is the learner's affair in both cases: it is
    /// [`Discount::after`]`(elapsed_secs)`.
    #[must_use]
    pub fn with_discount(mut self, discount: Option<Discount>) -> Self {
        self.discount = discount;
        self
    }

    /// Notes from the next episode on which job holds which node, for pictures. A step then costs work for every job.
    #[must_use]
    pub fn with_timeline(mut self) -> Self {
        self.timeline = Some(Timeline::default());
        self
    }

    /// Stays of the current episode, where they are noted.
    pub fn timeline(&self) -> Option<&Timeline> {
        self.timeline.as_ref()
    }

    /// Simulator of the current episode.
    pub fn simulator(&self) -> Option<&Simulator> {
        self.simulator.as_ref()
    }

    /// View of the cluster that a policy would get now.
    pub fn view(&self) -> Option<ClusterView<'_>> {
        self.simulator.as_ref().map(Simulator::view)
    }

    /// Current round: the jobs in their slots, and their working allocation.
    pub fn round(&self) -> &Round {
        &self.round
    }

    fn write(&self, out: ObservationMut<'_>) {
        out.features.copy_from_slice(self.encoder.observation());
        self.round.mask(&self.layout, out.mask);
    }

    /// Advances the simulation to the next decision with a choice. Returns the discounted reward on
    /// the way, 0 without a discount.
    fn next_decision(&mut self) -> Result<f64, EnvError> {
        let simulator = self.simulator.as_mut().ok_or(EnvError::NotReset)?;
        let reward = &self.options.reward;
        let start = simulator.now();
        let (mut from, mut discounted) = ((start, reward.integrals(simulator)), 0.0);
        loop {
            self.status = simulator.run_until_decision()?;
            if let Some(timeline) = &mut self.timeline {
                timeline.note(simulator);
            }
            if let Some(discount) = self.discount {
                let to = (simulator.now(), reward.integrals(simulator));
                let weight =
                    discount.after((from.0 - start).as_secs_f64()) * discount.mean_over((to.0 - from.0).as_secs_f64());
                discounted += weight * reward.between(from.1, to.1);
                from = to;
            }
            let view = simulator.view();
            self.round.begin(&view, &self.layout);
            if self.status != Status::Decision || self.round.has_choice() {
                self.encoder.begin(&view, &self.round);
                // No action but the end of the round is possible, so an empty plan ends the round
                // here.
                return Ok(discounted);
            }
            self.plan.clear();
            simulator.apply(&self.plan)?;
        }
    }
}

impl Environment for ClusterEnv {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn reset(&mut self, seed: Option<u64>, options: &ResetOptions, out: ObservationMut<'_>) -> Result<(), EnvError> {
        self.seed = seed.unwrap_or_else(|| self.seed.wrapping_add(1));
        let mut scenario = (self.source)(self.seed);
        if options.horizon.is_some() {
            // Other episodes may share the scenario, so the horizon is set on a copy.
            let mut cut = Scenario::clone(&scenario);
            cut.options.horizon = options.horizon;
            scenario = Arc::new(cut);
        }
        self.simulator = Some(match &self.warm_up {
            Some(warm_up) => warm_up.begin(&scenario, self.seed)?,
            None => Simulator::new(scenario),
        });
        // Slots and facts of the previous simulation must not be reused.
        self.round.reset();
        self.encoder.reset();
        self.timeline = self.timeline.take().map(|_| Timeline::default());
        self.next_decision()?;
        self.write(out);
        Ok(())
    }

    fn allows(&self, action: usize) -> bool {
        let known = Action::decode(action, &self.layout).filter(|_| self.status == Status::Decision);
        known.is_some_and(|action| self.round.allows_action(action))
    }

    fn step(&mut self, action: usize, out: ObservationMut<'_>) -> Result<Step, EnvError> {
        let simulator = self.simulator.as_mut().ok_or(EnvError::NotReset)?;
        if self.status != Status::Decision {
            return Err(EnvError::NotReset);
        }
        let forbidden = EnvError::Forbidden { action };
        // The integrals are read before the action, because the end of the round moves the clock.
        let before = (simulator.now(), self.options.reward.integrals(simulator));
        let mut discounted = 0.0;
        match Action::decode(action, &self.layout).ok_or(EnvError::Forbidden { action })? {
            Action::Change { slot, verb } => {
                if !self.round.change(slot, verb) {
                    return Err(forbidden);
                }
                self.encoder.update(&simulator.view(), &self.round, slot);
            }
            Action::Scale { service, verb } => {
                if !self.round.scale(&simulator.view(), service, verb) {
                    return Err(forbidden);
                }
                self.encoder.update_shared(&simulator.view(), &self.round);
            }
            Action::Loan(verb) => {
                if !self.round.loan(&simulator.view(), verb) {
                    return Err(forbidden);
                }
                self.encoder.update_shared(&simulator.view(), &self.round);
            }
            Action::Wait => {
                if !self.round.may_end() {
                    return Err(forbidden);
                }
                self.round.plan(&simulator.view(), &mut self.plan);
                simulator.apply(&self.plan)?;
                if let Some(timeline) = &mut self.timeline {
                    timeline.note(simulator);
                }
                discounted = self.next_decision()?;
            }
        }
        self.write(out);
        let simulator = self.simulator.as_ref().ok_or(EnvError::NotReset)?;
        let reward = &self.options.reward;
        Ok(Step {
            reward: match self.discount {
                Some(_) => discounted,
                None => reward.between(before.1, reward.integrals(simulator)),
            },
            elapsed_secs: (simulator.now() - before.0).as_secs_f64(),
            terminated: self.status == Status::Complete,
            truncated: self.status == Status::Truncated,
        })
    }

    fn jct_mean_secs(&self) -> Option<f64> {
        let simulator = self.simulator.as_ref()?;
        let arrived = simulator.records().iter().filter(|record| record.submit <= simulator.now()).count();
        (arrived > 0).then(|| simulator.job_millis() as f64 / 1000.0 / arrived as f64)
    }
}
