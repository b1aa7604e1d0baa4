//! The expert: exact rollouts of changes that are held back or carried out.

use std::sync::Arc;

use goodput_agents::bundle::{Model, PolicyBundle, Provenance};
use goodput_agents::futures::secs_of_jobs;
use goodput_agents::learning::advantages::ChangeSample;
use goodput_agents::policies::hold::{HoldOrders, HoldPolicy, LearnedHold};
use goodput_configs::experiment::{Experiment, HoldAgent};
use goodput_configs::scenario::Setup;
use goodput_env::policy::Policy;
use goodput_env::scenario::Scenario;
use goodput_env::seed::{Stream, keyed};
use goodput_env::sim::{SimError, Simulator, Status};
use goodput_env::time::SimTime;
use rand::{Rng, RngExt};

use super::super::episodes::{mean_costs, moments, of_each};
use crate::episodes::Episodes;
use crate::error::TrainError;
use crate::export::{bundle, decoder};

/// The training episodes of an experiment, in which changes are held back.
pub struct HoldEpisodes<'a> {
    experiment: &'a Experiment,
    agent: &'a HoldAgent,
    training: Episodes,
}

/// Label of one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct MomentLabel {
    /// The changes that were tried, and what they saved.
    pub sample: ChangeSample,
    /// Half of the difference between the time of all jobs with these choices and with the opposite ones, seconds.
    pub saves_secs: f64,
}

impl<'a> HoldEpisodes<'a> {
    /// The episodes that `experiment` describes for `agent`.
    ///
    /// # Errors
    /// [`TrainError`] where the workload cannot be used.
    pub fn new(experiment: &'a Experiment, agent: &'a HoldAgent) -> Result<Self, TrainError> {
        crate::entries::published(&agent.teacher)?;
        Ok(Self { experiment, agent, training: Episodes::new(experiment)? })
    }

    /// The experiment under the first of its loads.
    pub fn setup(&self) -> &Setup {
        self.training.setup()
    }

    /// Bundle of a choice.
    pub fn bundle(&self, learned: &LearnedHold, provenance: Provenance) -> PolicyBundle {
        bundle(Model::Hold(learned.clone()), self.experiment, self.setup(), provenance)
    }

    fn policy(&self, learned: &LearnedHold, scenario: &Scenario) -> HoldPolicy {
        let decoder = decoder(self.setup());
        let policy = HoldPolicy::new(learned, decoder.batching, decoder.information, scenario.seed);
        policy.expect("the name of the teacher was checked")
    }

    /// Number of training episodes of a round.
    pub fn per_round(&self) -> u64 {
        self.agent.episodes + self.agent.trials
    }

    /// Labels of a round for a choice, by episode and in order of the moments.
    ///
    /// # Errors
    /// [`TrainError`] where a run fails.
    pub fn labels(&self, learned: &LearnedHold, round: u64) -> Result<Vec<Vec<MomentLabel>>, TrainError> {
        let episodes = self.training.range(self.experiment.seed, round * self.per_round(), self.agent.episodes);
        of_each(&episodes, |episode| self.labels_of(learned, episode))
    }

    /// Episodes on which the thresholds of a round are compared.
    pub fn trials(&self, round: u64) -> Vec<Arc<Scenario>> {
        let first = round * self.per_round() + self.agent.episodes;
        self.training.range(self.experiment.seed, first, self.agent.trials)
    }

    /// Mean cost of each choice on `trials`.
    ///
    /// # Errors
    /// [`TrainError`] where a run fails.
    pub fn costs(&self, candidates: &[LearnedHold], trials: &[Arc<Scenario>]) -> Result<Vec<f64>, TrainError> {
        mean_costs(candidates, trials, self.agent.tail, |candidate, trial| self.policy(candidate, trial))
    }

    /// Labels of one episode. The policy plays the episode. At the first decision after each of the moments that are
    /// drawn, if there is something to hold back, choices and their opposites are played to their horizon on copies of
    /// the cluster.
    fn labels_of(&self, learned: &LearnedHold, scenario: &Arc<Scenario>) -> Result<Vec<MomentLabel>, SimError> {
        let mut random = keyed(scenario.seed, Stream::Exploration, 0);
        let mut moments = moments(scenario, self.agent.moments, &mut random);
        let mut policy = self.policy(learned, scenario);
        let mut run = Simulator::new(scenario.clone());
        let mut labels = Vec::new();
        while !moments.is_empty() && run.run_until_decision()? == Status::Decision {
            let plan = policy.decide(&run.view());
            let due = moments.last().is_some_and(|moment| *moment <= run.now());
            if due && !policy.moment().jobs.is_empty() {
                moments.pop();
                labels.extend(self.label(&run, learned, &mut random, scenario)?);
            }
            run.apply(&plan)?;
            run.wake_at(policy.wake_at());
        }
        Ok(labels)
    }

    /// Label of a decision point; `None` where a teacher without memory of the run has nothing to hold back there.
    fn label(
        &self,
        run: &Simulator,
        learned: &LearnedHold,
        random: &mut impl Rng,
        scenario: &Arc<Scenario>,
    ) -> Result<Option<MomentLabel>, SimError> {
        // The copies begin with a new teacher, so the changes are those of a new one too.
        let mut seen = self.policy(learned, scenario);
        seen.decide(&run.view());
        let moment = seen.moment();
        let mut places: Vec<usize> = (0..moment.jobs.len()).collect();
        let mut signs = vec![0.0; places.len()];
        for _ in 0..self.agent.changes.min(places.len()) {
            let chosen = (random.random::<f64>() * places.len() as f64) as usize % places.len();
            signs[places.swap_remove(chosen)] = if random.random::<bool>() { 1.0 } else { -1.0 };
        }
        let tried = signs.iter().filter(|sign| **sign != 0.0).count();
        if tried == 0 {
            return Ok(None);
        }
        let until = run.now() + SimTime::from_secs_f64(self.agent.span_secs);
        let end = run.now() + SimTime::from_secs_f64(self.agent.horizon_secs);
        let secs = |of: f32| -> Result<f64, SimError> {
            let each = moment.jobs.iter().zip(&signs).filter(|(_, sign)| **sign != 0.0);
            let by_job = each.map(|(job, sign)| (*job, sign * of > 0.0)).collect();
            let mut policy = self.policy(learned, scenario).ordered(HoldOrders { by_job, until });
            let mut run = run.clone();
            while run.now() < end {
                let plan = policy.decide(&run.view());
                run.apply(&plan)?;
                // Both copies are to end at one moment.
                run.wake_at(Some(policy.wake_at().map_or(end, |wake| wake.min(end))));
                if run.run_until_decision()? != Status::Decision {
                    break;
                }
            }
            Ok(secs_of_jobs(&run, self.agent.horizon_secs))
        };
        let half = (secs(-1.0)? - secs(1.0)?) / 2.0;
        let target = half / (tried as f64).sqrt();
        let sample = ChangeSample { features: moment.features.clone(), signs, target: target as f32, weight: 1.0 };
        Ok(Some(MomentLabel { sample, saves_secs: half.abs() }))
    }
}
