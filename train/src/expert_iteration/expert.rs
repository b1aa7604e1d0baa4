//! The expert: exact rollouts of single changes of a policy.

use std::sync::Arc;

use goodput_agents::bundle::{Model, PolicyBundle, Provenance};
use goodput_agents::policies::utility::{Experience, Lever, Nudge, Situation, Theta, Utility, UtilityPolicy};
use goodput_configs::experiment::{Experiment, ExpertAgent, ExpertTarget};
use goodput_configs::scenario::Setup;
use goodput_env::gym::EnvError;
use goodput_env::policy::Policy;
use goodput_env::scenario::Scenario;
use goodput_env::seed::{Stream, keyed};
use goodput_env::sim::{SimError, Simulator, Status};
use goodput_env::time::SimTime;
use rand::RngExt;
use rayon::prelude::*;

use super::mean;
use crate::cost;
use crate::episodes::Episodes;
use crate::error::TrainError;
use crate::evolution::{EXPERIENCE, past};
use crate::export::{bundle, decoder};

/// The expert of an experiment, with the training episodes that it plays.
pub struct Expert<'a> {
    agent: &'a ExpertAgent,
    seed: u64,
    training: Episodes,
    experience: Experience,
}

/// What was found of one job at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// Quantity that was moved.
    pub lever: Lever,
    /// Features of the job at that moment.
    pub features: Vec<f64>,
    /// Target of the fit, for each unit by which the quantity is moved up: the cost that is saved, or the move of the
    /// best change.
    pub target: f64,
    /// Cost of the episode that the better direction saves.
    pub saves: f64,
}

impl<'a> Expert<'a> {
    /// The expert that `experiment` describes by `agent`.
    ///
    /// # Errors
    /// [`TrainError`] where the workload cannot be used.
    pub fn new(experiment: &'a Experiment, agent: &'a ExpertAgent) -> Result<Self, TrainError> {
        let training = Episodes::new(experiment)?;
        let experience = match agent.experience {
            true => past(&training.range(experiment.seed, 0, EXPERIENCE)),
            false => Experience::default(),
        };
        Ok(Self { agent, seed: experiment.seed, training, experience })
    }

    /// The experiment under the first of its loads.
    pub fn setup(&self) -> &Setup {
        self.training.setup()
    }

    /// The utility with these parameters.
    fn utility(&self, theta: &Theta) -> Utility {
        let (siblings, experience) = (self.agent.siblings, self.experience.clone());
        Utility { theta: theta.clone(), experience, siblings, efficiency: true }
    }

    /// Bundle of the utility with these parameters.
    pub fn bundle(&self, theta: &Theta, provenance: Provenance) -> PolicyBundle {
        bundle(Model::Utility(self.utility(theta)), self.setup(), provenance)
    }

    fn policy(&self, theta: &Theta) -> UtilityPolicy {
        let decoder = decoder(self.setup());
        UtilityPolicy::new(&self.utility(theta), decoder.batching, decoder.information)
    }

    /// Number of training episodes of a round.
    fn per_round(&self) -> u64 {
        self.agent.episodes + self.agent.trials
    }

    /// Labels of a round for the policy with these parameters, in order of episode, moment and job.
    ///
    /// # Errors
    /// [`TrainError`] where a run fails.
    pub fn labels(&self, theta: &Theta, round: u64) -> Result<Vec<Label>, TrainError> {
        let episodes = self.training.range(self.seed, round * self.per_round(), self.agent.episodes);
        let labels = episodes.par_iter().map(|episode| self.labels_of(theta, episode));
        let all = labels.collect::<Vec<Result<Vec<Label>, SimError>>>();
        let all = all.into_iter().collect::<Result<Vec<_>, _>>().map_err(EnvError::from)?;
        Ok(all.into_iter().flatten().collect())
    }

    /// Mean cost of the policy with these parameters on the trials of a round.
    ///
    /// # Errors
    /// [`TrainError`] where a run fails.
    pub fn cost(&self, theta: &Theta, round: u64) -> Result<f64, TrainError> {
        let first = round * self.per_round() + self.agent.episodes;
        let episodes = self.training.range(self.seed, first, self.agent.trials);
        let cost =
            |episode: &Arc<Scenario>| self.played_out(Simulator::new(episode.clone()), self.policy(theta), episode);
        let costs: Vec<Result<f64, SimError>> = episodes.par_iter().map(cost).collect();
        let costs = costs.into_iter().collect::<Result<Vec<f64>, _>>().map_err(EnvError::from)?;
        Ok(mean(costs.into_iter()))
    }

    /// Cost of a run from where it stands.
    fn played_out(&self, run: Simulator, mut policy: UtilityPolicy, scenario: &Arc<Scenario>) -> Result<f64, SimError> {
        Ok(cost::of_run(scenario, &run.run(&mut policy)?, self.agent.tail))
    }

    /// Labels of one episode. The policy plays the episode, and at moments drawn at random each change is played to the
    /// end of the episode on a copy of the cluster and of the policy. Everything that is not decided is equal in these
    /// runs: arrivals, work and errors of estimates.
    fn labels_of(&self, theta: &Theta, scenario: &Arc<Scenario>) -> Result<Vec<Label>, SimError> {
        let mut random = keyed(scenario.seed, Stream::Exploration, 0);
        let last = scenario.workload.jobs.iter().map(|job| job.request.submit).max().unwrap_or(SimTime::ZERO);
        let mut moments: Vec<SimTime> = (0..self.agent.moments)
            .map(|_| SimTime::from_secs_f64(last.as_secs_f64() * random.random::<f64>()))
            .collect();
        moments.sort_unstable_by(|one, other| other.cmp(one));
        let mut policy = self.policy(theta);
        let unchanged = self.played_out(Simulator::new(scenario.clone()), policy.clone(), scenario)?;
        let mut run = Simulator::new(scenario.clone());
        let mut labels = Vec::new();
        while !moments.is_empty() && run.run_until_decision()? == Status::Decision {
            let before = policy.clone();
            let plan = policy.decide(&run.view());
            if moments.pop_if(|moment| *moment <= run.now()).is_some() {
                let mut situations = policy.situations(&run.view());
                let mut found = Vec::new();
                for _ in 0..self.agent.jobs.min(situations.len()) {
                    let chosen = (random.random::<f64>() * situations.len() as f64) as usize % situations.len();
                    found.extend(self.of_job(&run, &before, &situations.swap_remove(chosen), unchanged, scenario)?);
                }
                self.settle(&mut found);
                labels.extend(found);
            }
            run.apply(&plan)?;
            run.wake_at(policy.wake_at());
        }
        Ok(labels)
    }

    /// Labels of one job at a decision point, by lever.
    fn of_job(
        &self,
        run: &Simulator,
        policy: &UtilityPolicy,
        situation: &Situation,
        unchanged: f64,
        scenario: &Arc<Scenario>,
    ) -> Result<Vec<Label>, SimError> {
        let until = run.now() + SimTime::from_secs_f64(self.agent.span_secs);
        let mut labels = Vec::new();
        for lever in Lever::ALL {
            let Some(features) = situation.features(lever) else { continue };
            let saved = |by: f64| -> Result<f64, SimError> {
                let nudge = Nudge { job: situation.job, lever, by, until };
                let (mut run, mut policy) = (run.clone(), policy.clone().nudged(Some(nudge)));
                let plan = policy.decide(&run.view());
                run.apply(&plan)?;
                run.wake_at(policy.wake_at());
                Ok(unchanged - self.played_out(run, policy, scenario)?)
            };
            // One job of many is changed: as a share of one job the saving does not depend on their number.
            let jobs = scenario.workload.jobs.len() as f64;
            let nudge = self.agent.nudge;
            let (up, down) = (saved(nudge)?, saved(-nudge)?);
            let target = jobs * (up - down) / (2.0 * nudge);
            labels.push(Label { lever, features: features.to_vec(), target, saves: up.max(down) });
        }
        Ok(labels)
    }

    /// Makes targets of the savings at one moment.
    fn settle(&self, labels: &mut [Label]) {
        if self.agent.target == ExpertTarget::Advantage {
            return;
        }
        let most = labels.iter().map(|label| label.saves).fold(0.0, f64::max);
        for label in labels {
            let chosen = most > 0.0 && label.saves >= most;
            label.target = if chosen { self.agent.nudge * label.target.signum() } else { 0.0 };
        }
    }
}
