//! The policy in training: drawn, and remembered.

use goodput_env::time::SimTime;
use rand_chacha::ChaCha8Rng;

use super::forward::Scorer;
use super::observation::{Observation, Observer};
use super::weights::RankingNet;
use crate::policies::decoder::plackett_luce::Sequence;
use crate::policies::utility::{Division, Valued};

/// A round that was drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    /// When.
    pub at: SimTime,
    /// What the net saw.
    pub observation: Observation,
    /// The pairs taken.
    pub sequence: Sequence,
    /// Logarithm of its probability.
    pub log_prob: f64,
}

/// Divides by a sequence drawn by its probability, and remembers every round in which there was something to choose. For clusters of one
/// accelerator type.
#[derive(Clone, Debug)]
pub struct Sampled {
    observer: Observer,
    scorer: Scorer,
    temperature: f64,
    random: ChaCha8Rng,
    now: SimTime,
    chosen: Vec<Option<u32>>,
    transitions: Vec<Transition>,
}

impl Sampled {
    /// By the scores of `net` over `temperature`.
    pub fn new(net: &RankingNet, temperature: f64, random: ChaCha8Rng) -> Self {
        Self {
            observer: Observer::default(),
            scorer: Scorer::new(net),
            temperature,
            random,
            now: SimTime::ZERO,
            chosen: Vec::new(),
            transitions: Vec::new(),
        }
    }

    /// What was drawn, in order of time.
    pub fn into_transitions(self) -> Vec<Transition> {
        self.transitions
    }
}

impl Division for Sampled {
    fn begin(&mut self, now: SimTime, pressure: f64) {
        self.now = now;
        self.observer.begin(pressure);
    }

    fn job(&mut self, job: Option<&Valued<'_>>) {
        self.observer.job(job);
    }

    fn divide(&mut self, capacity: &[u32]) -> &[Option<u32>] {
        let Self { observer, scorer, temperature, random, now, chosen, transitions } = self;
        let pairs = match observer.finish(capacity.iter().sum()) {
            None => observer.largest(),
            Some(observation) => {
                let scored = observation.scored(scorer.residuals(observation), *temperature);
                let choice = observation.choice(&scored);
                let sequence = choice.sample(random);
                let log_prob = choice.log_prob(&sequence);
                transitions.push(Transition { at: *now, observation: observation.clone(), sequence, log_prob });
                observer.last(transitions.last().iter().flat_map(|drawn| &drawn.sequence))
            }
        };
        observer.chosen(&pairs, chosen);
        chosen
    }
}
