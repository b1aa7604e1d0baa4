//! The policy at work: greedy, in one of two decodings.

use goodput_env::time::SimTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::forward::Scorer;
use super::observation::{Observation, Observer};
use super::weights::RankingNet;
use crate::allocation::knapsack::{Hull, Item};
use crate::policies::utility::{Division, Utility, Valued};

/// Scores beyond it are cut before they become values: no job is beyond comparison.
const LARGEST: f64 = 100.0;

/// How scores become a division.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Decoding {
    /// Down the scores, whatever fits: what training draws from, without the draw.
    PlackettLuce,
    /// The largest sum of values, scores being the logarithms of their slopes.
    Knapsack,
}

impl Decoding {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::PlackettLuce, Self::Knapsack];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PlackettLuce => "plackett-luce",
            Self::Knapsack => "knapsack",
        }
    }
}

/// What was learned.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// The utility that scores begin with.
    pub utility: Utility,
    /// What is added to them.
    pub net: RankingNet,
    /// How they become a division.
    pub decoding: Decoding,
}

/// Divides by a ranking; on clusters of several accelerator types by the utility alone.
#[derive(Clone, Debug)]
pub struct Ranked {
    observer: Observer,
    scorer: Scorer,
    decoding: Decoding,
    hull: Hull,
    chosen: Vec<Option<u32>>,
}

impl Ranked {
    /// By the scores of `ranking`.
    pub fn new(ranking: &Ranking) -> Self {
        Self {
            observer: Observer::default(),
            scorer: Scorer::new(&ranking.net),
            decoding: ranking.decoding,
            hull: Hull::default(),
            chosen: Vec::new(),
        }
    }

    fn knapsack(hull: &mut Hull, observation: &Observation, residuals: &[f32]) -> Vec<Option<u32>> {
        hull.clear();
        let pairs = || observation.pairs.iter().zip(residuals).zip(0_u32..);
        let mut firsts = Vec::with_capacity(observation.groups());
        let mut all = pairs().peekable();
        for group in 0..observation.groups() as u32 {
            let (mut weight, mut value) = (0, 0.0);
            firsts.push(all.peek().map_or(0, |(_, at)| *at));
            let items = std::iter::from_fn(|| all.next_if(|((pair, _), _)| pair.group == group)).map(
                |((pair, residual), _)| {
                    let score = (pair.score + f64::from(*residual)).clamp(-LARGEST, LARGEST);
                    value += score.exp() * f64::from(pair.weight - weight);
                    weight = pair.weight;
                    Item { weight, value }
                },
            );
            hull.group(items);
        }
        let chosen = hull.solve(&[observation.capacity]);
        chosen.iter().zip(firsts).map(|(item, first)| item.map(|item| first + item)).collect()
    }
}

impl Division for Ranked {
    fn begin(&mut self, _now: SimTime, pressure: f64) {
        self.observer.begin(pressure);
        self.hull.clear();
    }

    fn job(&mut self, job: Option<&Valued<'_>>) {
        self.observer.job(job);
        Division::job(&mut self.hull, job);
    }

    fn divide(&mut self, capacity: &[u32]) -> &[Option<u32>] {
        let Self { observer, scorer, decoding, hull, chosen } = self;
        let [capacity] = *capacity else { return hull.solve(capacity) };
        let pairs = match observer.finish(capacity) {
            None => observer.largest(),
            Some(observation) => {
                let residuals = scorer.residuals(observation);
                match decoding {
                    Decoding::PlackettLuce => {
                        let scored = observation.scored(residuals, 1.0);
                        let sequence = observation.choice(&scored).greedy();
                        observer.last(&sequence)
                    }
                    Decoding::Knapsack => Self::knapsack(hull, observation, residuals),
                }
            }
        };
        self.observer.chosen(&pairs, chosen);
        chosen
    }
}
