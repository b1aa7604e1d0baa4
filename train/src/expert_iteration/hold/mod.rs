//! Expert iteration of a net that holds back changes of a published policy.
//!
//! - `rollouts`: exact rollouts of changes that are held back or carried out, on copies of the simulator.
//!
//! A round asks the expert what holding back saves under the policy of the round, and fits a net to the labels of all
//! rounds so far. Then it tries thresholds on new episodes, and the best of them is the policy of the next round,
//! unless the policy of the round is better than all of them.

mod rollouts;

use goodput_agents::bundle::{PolicyBundle, Provenance};
use goodput_agents::learning::adam::AdamConfig;
use goodput_agents::learning::advantages::ChangeSample;
use goodput_agents::learning::learner::Learner;
use goodput_agents::nets::slots::SlotScorer;
use goodput_agents::nets::weights::{NetConfig, Weights};
use goodput_agents::policies::hold::{LearnedHold, layout};
use goodput_configs::experiment::{Experiment, HoldAgent};
use goodput_configs::scenario::Setup;
use goodput_env::seed::{Stream, keyed};
use serde::{Deserialize, Serialize};

pub use self::rollouts::{HoldEpisodes, MomentLabel};

use super::episodes::mean;
use super::rounds::{Apprentice, go_through};
use crate::error::TrainError;
use crate::recorder::ProgressFigures;
use crate::run_dir::RunDir;
use crate::{Hooks, Trained};

/// Shares of the changes that the thresholds which are tried hold back, on the moments of the round that the net was
/// fitted to. The scores tell changes apart, and their mean is uncertain, so a threshold goes by their order.
const SHARES: [f64; 11] = [0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98];
/// One of so many episodes is left out of the fit, for the choice of the number of passes.
const LEFT_OUT: usize = 5;
/// Standard deviations beyond which a label counts as no farther: a few changes turn a whole episode around.
const FARTHEST: f32 = 3.0;

/// Iterates from the latest round, or from the beginning.
///
/// # Errors
/// [`TrainError`].
pub fn train(
    experiment: &Experiment,
    agent: &HoldAgent,
    dir: &RunDir,
    hooks: &Hooks<'_>,
) -> Result<Trained, TrainError> {
    let expert = HoldEpisodes::new(experiment, agent)?;
    go_through(&HoldApprentice { agent, seed: experiment.seed, expert }, experiment, dir, hooks)
}

/// The net that learns.
struct HoldApprentice<'a> {
    agent: &'a HoldAgent,
    seed: u64,
    expert: HoldEpisodes<'a>,
}

/// A choice as numbers.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredChoice {
    weights: Vec<f32>,
    /// Absent: nothing is held back.
    threshold: Option<f32>,
}

/// Labels that are fitted, and labels that are left out of the fit.
type Samples = [Vec<ChangeSample>; 2];

/// Figures of a round.
#[derive(Clone, Copy, Debug)]
struct RoundFigures {
    /// Share of the variance of the labels, of those that are left out of the fit, that the net explains.
    explained: f64,
    /// Time of all jobs that choices or their opposites save, seconds, in the mean of the moments.
    saved_secs: f64,
    /// Cost after the round less that before, in the mean of the trials. Costs are logarithms.
    change: f64,
    /// Share of the changes that the threshold holds back; not a number where the policy stays.
    share: f64,
}

impl Apprentice for HoldApprentice<'_> {
    type Policy = StoredChoice;
    type Memory = Samples;
    const FILE: &'static str = "checkpoints/hold.json";

    fn setup(&self) -> &Setup {
        self.expert.setup()
    }

    fn teacher(&self) -> &str {
        &self.agent.teacher
    }

    fn rounds(&self) -> u64 {
        self.agent.rounds
    }

    fn per_round(&self) -> u64 {
        self.expert.per_round()
    }

    fn start(&self) -> Result<(StoredChoice, Samples), TrainError> {
        let weights = Weights::new(&self.net(), layout(1), self.seed).data().to_vec();
        Ok((StoredChoice { weights, threshold: None }, [Vec::new(), Vec::new()]))
    }

    fn owns(&self, policy: &StoredChoice, _: &Samples) -> bool {
        self.weights(policy).is_some()
    }

    fn bundle(&self, policy: &StoredChoice, provenance: Provenance) -> PolicyBundle {
        self.expert.bundle(&self.choice(policy), provenance)
    }

    fn iterate(
        &self,
        round: u64,
        policy: &mut StoredChoice,
        samples: &mut Samples,
    ) -> Result<ProgressFigures, TrainError> {
        Ok(self.iterated(round, policy, samples)?.named())
    }

    fn figures_of_start(&self) -> ProgressFigures {
        RoundFigures { explained: 0.0, saved_secs: 0.0, change: 0.0, share: f64::NAN }.named()
    }
}

impl RoundFigures {
    fn named(self) -> ProgressFigures {
        vec![
            ("expert/saved_by_choices_secs", self.saved_secs),
            ("expert/explained_by_the_net", self.explained),
            ("rollout/log_ratio_to_round_before", self.change),
            ("rollout/share_held_back", self.share),
        ]
    }
}

impl HoldApprentice<'_> {
    fn net(&self) -> NetConfig {
        NetConfig::Set(self.agent.net.clone())
    }

    /// Net of a choice; `None` where the numbers are of another net.
    fn weights(&self, policy: &StoredChoice) -> Option<Weights> {
        Weights::from_data(&self.net(), layout(1), policy.weights.clone()).ok()
    }

    fn choice(&self, policy: &StoredChoice) -> LearnedHold {
        let weights = self.weights(policy).expect("the numbers were checked when they were read");
        let threshold = policy.threshold.unwrap_or(f32::INFINITY);
        LearnedHold { teacher: self.agent.teacher.clone(), weights, threshold }
    }

    /// One round: labels, a fit, and the threshold that costs least on the trials.
    fn iterated(
        &self,
        round: u64,
        policy: &mut StoredChoice,
        samples: &mut Samples,
    ) -> Result<RoundFigures, TrainError> {
        let Self { agent, expert, .. } = self;
        let before = self.choice(policy);
        let by_episode = expert.labels(&before, round)?;
        let saves: Vec<f64> = by_episode.iter().flatten().map(|label| label.saves_secs).collect();
        let fading = agent.fading as f32;
        samples.iter_mut().flatten().for_each(|sample| sample.weight *= fading);
        for (number, labels) in by_episode.into_iter().enumerate() {
            let part = usize::from(number % LEFT_OUT == LEFT_OUT - 1);
            samples[part].extend(labels.into_iter().map(|label| label.sample));
        }
        let mut figures =
            RoundFigures { explained: 0.0, saved_secs: mean(saves.into_iter()), change: 0.0, share: f64::NAN };
        let [fitted, left_out] = standardised(samples);
        if fitted.is_empty() {
            return Ok(figures);
        }
        let seed = self.seed.wrapping_add(round);
        let mut learner = Learner::new(&self.net(), layout(1), AdamConfig::default(), seed);
        let mut random = keyed(seed, Stream::Exploration, round);
        let fit = learner.fit_advantages(&agent.fit, &fitted, &left_out, &mut random);
        let [nothing, error] = fit.map_err(|source| TrainError::Diverged { update: round, source })?;
        figures.explained = if left_out.is_empty() { f64::NAN } else { 1.0 - error / nothing.max(1e-12) };

        // The shares are about the moments of the policy as it is now.
        let latest = fitted.iter().filter(|sample| sample.weight >= 1.0);
        let scores = scores(learner.weights(), latest);
        if scores.is_empty() {
            return Ok(figures);
        }
        let weights = learner.weights().clone();
        let with = |threshold: f32| LearnedHold { teacher: agent.teacher.clone(), weights: weights.clone(), threshold };
        let above = |share: f64| scores[((1.0 - share) * scores.len() as f64) as usize % scores.len()];
        let candidates: Vec<LearnedHold> =
            std::iter::once(before).chain(SHARES.iter().map(|share| with(above(*share)))).collect();
        let costs = expert.costs(&candidates, &expert.trials(round))?;
        let least = (1..costs.len()).fold(0, |best, at| if costs[at] < costs[best] { at } else { best });
        if least > 0 {
            let LearnedHold { weights, threshold, .. } = &candidates[least];
            *policy = StoredChoice { weights: weights.data().to_vec(), threshold: Some(*threshold) };
            figures.share = SHARES[least - 1];
            figures.change = costs[least] - costs[0];
        }
        Ok(figures)
    }
}

/// Samples with targets of root mean square 1, none of which is far out.
fn standardised(samples: &Samples) -> Samples {
    let squares = samples[0].iter().map(|sample| f64::from(sample.target).powi(2)).sum::<f64>();
    let root = (squares / samples[0].len().max(1) as f64).sqrt().max(1e-12) as f32;
    let scaled = |sample: &ChangeSample| {
        let target = (sample.target / root).clamp(-FARTHEST, FARTHEST);
        ChangeSample { target, ..sample.clone() }
    };
    samples.each_ref().map(|part| part.iter().map(scaled).collect())
}

/// Scores of all changes of the samples, the least first.
fn scores<'a>(weights: &Weights, samples: impl Iterator<Item = &'a ChangeSample>) -> Vec<f32> {
    let mut scorer = SlotScorer::new(weights);
    let mut scores: Vec<f32> = samples.flat_map(|sample| scorer.scores(&sample.features).to_vec()).collect();
    scores.sort_unstable_by(f32::total_cmp);
    scores
}
