//! Order of a queue by learned scores.

use std::sync::{Arc, Mutex, PoisonError};

use goodput_env::seed::{Stream, keyed};
use goodput_env::time::SimTime;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::features::observe;
use super::score::{QueueScore, Scorer};
use crate::heuristic::backfill::{OrderedJob, QueueMoment, QueueOrder};

/// Choice of the next job of a queue, as a learner remembers it.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueChoice {
    /// Time of the choice.
    pub at: SimTime,
    /// Features of the queue, job by job, and then those of the cluster.
    pub features: Arc<Vec<f32>>,
    /// Scores of the jobs.
    pub scores: Arc<Vec<f32>>,
    /// Places in the queue of the jobs that had their turn before at this moment.
    pub before: Vec<usize>,
    /// Place in the queue of the job that was chosen.
    pub chosen: usize,
}

impl QueueChoice {
    /// Logarithm of the probability of the choice under the scores: a softmax over the jobs that were left.
    pub fn log_probability(&self) -> f32 {
        let left = self.scores.iter().enumerate().filter(|(place, _)| !self.before.contains(place));
        let scores: Vec<f32> = left.map(|(_, score)| *score).collect();
        let greatest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f32 = scores.iter().map(|score| (score - greatest).exp()).sum();
        self.scores[self.chosen] - greatest - sum.ln()
    }
}

/// Choices of a policy that explores, in order of time. The policy and the learner share it.
#[derive(Clone, Debug, Default)]
pub struct ChoiceLog(Arc<Mutex<Vec<QueueChoice>>>);

impl ChoiceLog {
    /// The choices so far, which are taken out of the log.
    pub fn take(&self) -> Vec<QueueChoice> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn extend(&self, choices: impl Iterator<Item = QueueChoice>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(choices);
    }
}

/// Order by learned scores.
pub struct LearnedOrder {
    scorer: Scorer,
    features: Vec<f32>,
    exploration: Option<Exploration>,
}

/// Draws of a policy that learns.
///
/// A score plus a draw of the Gumbel distribution is greatest with the probability of the softmax of the scores, and so
/// is the next one among those that are left (Yellott, Journal of Mathematical Psychology 1977).
struct Exploration {
    random: ChaCha8Rng,
    log: ChoiceLog,
    last: Option<LastOrder>,
}

/// Order that the queue was given last.
struct LastOrder {
    at: SimTime,
    features: Arc<Vec<f32>>,
    scores: Arc<Vec<f32>>,
    /// Places of the jobs in the queue, first job first.
    places: Vec<usize>,
}

impl LearnedOrder {
    /// Order in which the greatest score comes first.
    pub fn greedy(score: &QueueScore) -> Self {
        Self { scorer: Scorer::new(score), features: Vec::new(), exploration: None }
    }

    /// Order that is drawn from the softmax of the scores with the numbers of `seed`, and logged.
    pub fn exploring(score: &QueueScore, seed: u64, log: ChoiceLog) -> Self {
        let random = keyed(seed, Stream::Exploration, 0);
        Self { exploration: Some(Exploration { random, log, last: None }), ..Self::greedy(score) }
    }
}

impl QueueOrder for LearnedOrder {
    fn numbers(&mut self, moment: &QueueMoment<'_>, jobs: &[OrderedJob<'_>]) -> Vec<f64> {
        observe(moment, jobs, &mut self.features);
        let scores = self.scorer.scores(&self.features, jobs.len());
        let Some(exploration) = &mut self.exploration else {
            return scores.iter().map(|score| -f64::from(*score)).collect();
        };
        let mut gumbel = || {
            let uniform: f64 = exploration.random.random();
            -(-uniform.max(f64::MIN_POSITIVE).ln()).ln()
        };
        let numbers: Vec<f64> = scores.iter().map(|score| -(f64::from(*score) + gumbel())).collect();
        let mut places: Vec<usize> = (0..jobs.len()).collect();
        places.sort_by(|a, b| numbers[*a].total_cmp(&numbers[*b]));
        let (features, scores) = (Arc::new(self.features.clone()), Arc::new(scores));
        exploration.last = Some(LastOrder { at: moment.now, features, scores, places });
        numbers
    }

    fn needs_run_times(&self) -> bool {
        true
    }

    fn took_turns(&mut self, jobs: usize) {
        let Some(exploration) = &mut self.exploration else { return };
        let Some(last) = exploration.last.take() else { return };
        let choices = last.places.len().saturating_sub(1);
        let choice = |turn: usize| QueueChoice {
            at: last.at,
            features: last.features.clone(),
            scores: last.scores.clone(),
            before: last.places[..turn].to_vec(),
            chosen: last.places[turn],
        };
        // The last job that is left is no choice.
        exploration.log.extend((0..jobs.min(choices)).map(choice));
    }
}
