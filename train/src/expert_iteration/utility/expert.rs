//! The expert: exact rollouts of changes of a policy.

use std::sync::Arc;

use goodput_agents::bundle::{Model, PolicyBundle, Provenance};
use goodput_agents::policies::utility::{Experience, Lever, Theta, Utility, UtilityPolicy};
use goodput_configs::experiment::{Experiment, ExpertAgent};
use goodput_configs::scenario::Setup;
use goodput_env::policy::Policy;
use goodput_env::scenario::Scenario;
use goodput_env::seed::{Stream, keyed};
use goodput_env::sim::{SimError, Simulator, Status};
use goodput_env::time::SimTime;

use super::super::episodes::{mean_costs, moments, of_each};
use super::change::ClaimChange;
use crate::cost;
use crate::episodes::Episodes;
use crate::error::TrainError;
use crate::evolution::{EXPERIENCE, past};
use crate::export::{bundle, decoder};

/// The expert of an experiment, with the training episodes that it plays.
pub struct ExpertEpisodes<'a> {
    experiment: &'a Experiment,
    agent: &'a ExpertAgent,
    training: Episodes,
    experience: Experience,
}

/// Features of a change at a moment, and the advantage that it was found to have.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeLabel {
    /// Features of the change.
    pub features: [f64; Lever::FEATURES],
    /// Cost that is saved for each unit by which claims are moved.
    pub target: f64,
    /// Half of the difference between the costs of the episode with the change and with its opposite.
    pub saves: f64,
}

impl<'a> ExpertEpisodes<'a> {
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
        Ok(Self { experiment, agent, training, experience })
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
        bundle(Model::Utility(self.utility(theta)), self.experiment, self.setup(), provenance)
    }

    fn policy(&self, theta: &Theta) -> UtilityPolicy {
        let decoder = decoder(self.setup());
        UtilityPolicy::new(&self.utility(theta), decoder.batching, decoder.information)
    }

    /// Number of training episodes of a round.
    pub fn per_round(&self) -> u64 {
        self.agent.episodes + self.agent.trials
    }

    /// Labels of a round for the policy with these parameters, in order of episode and moment.
    ///
    /// # Errors
    /// [`TrainError`] where a run fails.
    pub fn labels(&self, theta: &Theta, round: u64) -> Result<Vec<ChangeLabel>, TrainError> {
        let episodes = self.training.range(self.experiment.seed, round * self.per_round(), self.agent.episodes);
        let by_episode = of_each(&episodes, |episode| self.labels_of(theta, episode))?;
        Ok(by_episode.into_iter().flatten().collect())
    }

    /// Episodes on which the steps of a round are tried.
    pub fn trials(&self, round: u64) -> Vec<Arc<Scenario>> {
        let first = round * self.per_round() + self.agent.episodes;
        self.training.range(self.experiment.seed, first, self.agent.trials)
    }

    /// Mean cost of each of the policies with these parameters on `trials`.
    ///
    /// # Errors
    /// [`TrainError`] where a run fails.
    pub fn costs(&self, candidates: &[Theta], trials: &[Arc<Scenario>]) -> Result<Vec<f64>, TrainError> {
        mean_costs(candidates, trials, self.agent.tail, |candidate, _| self.policy(candidate))
    }

    /// Cost of a run from where it stands.
    fn played_out(&self, run: Simulator, mut policy: UtilityPolicy, scenario: &Arc<Scenario>) -> Result<f64, SimError> {
        Ok(cost::of_run(scenario, &run.run(&mut policy)?, self.agent.tail))
    }

    /// Labels of one episode. The policy plays the episode, and at moments drawn at random a change and its opposite
    /// are played to the end of the episode on copies of the cluster and of the policy. Everything that is not decided
    /// is equal in these runs: arrivals, work and errors of estimates.
    fn labels_of(&self, theta: &Theta, scenario: &Arc<Scenario>) -> Result<Vec<ChangeLabel>, SimError> {
        let mut random = keyed(scenario.seed, Stream::Exploration, 0);
        let mut moments = moments(scenario, self.agent.moments, &mut random);
        let mut policy = self.policy(theta);
        let mut run = Simulator::new(scenario.clone());
        let mut labels = Vec::new();
        while !moments.is_empty() && run.run_until_decision()? == Status::Decision {
            let before = moments.pop_if(|moment| *moment <= run.now()).map(|_| policy.clone());
            let plan = policy.decide(&run.view());
            if let Some(before) = before {
                let change = ClaimChange::drawn(policy.situations(&run.view()), self.agent.jobs, &mut random);
                labels.extend(change.map(|change| self.label(&run, &before, &change, scenario)).transpose()?);
            }
            run.apply(&plan)?;
            run.wake_at(policy.wake_at());
        }
        Ok(labels)
    }

    /// Label of a change at a decision point.
    fn label(
        &self,
        run: &Simulator,
        policy: &UtilityPolicy,
        change: &ClaimChange,
        scenario: &Arc<Scenario>,
    ) -> Result<ChangeLabel, SimError> {
        let until = run.now() + SimTime::from_secs_f64(self.agent.span_secs);
        let cost = |by: f64| -> Result<f64, SimError> {
            let (mut run, mut policy) = (run.clone(), policy.clone().nudged(change.times(by, until)));
            let plan = policy.decide(&run.view());
            run.apply(&plan)?;
            run.wake_at(policy.wake_at());
            self.played_out(run, policy, scenario)
        };
        let (nudge, jobs) = (self.agent.nudge, scenario.workload.jobs.len() as f64);
        let half = (cost(-nudge)? - cost(nudge)?) / 2.0;
        // Some jobs of many are changed: as a share of one job the saving does not depend on their number.
        let target = change.averaged(jobs * half / nudge);
        Ok(ChangeLabel { features: change.features, target, saves: half.abs() })
    }
}
