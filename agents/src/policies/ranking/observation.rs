//! What the net sees of a round, and the pairs that it ranks.

use goodput_env::gym::Layout;
use sha2::{Digest, Sha256};

use crate::allocation::knapsack::{Offer, extend};
use crate::policies::decoder::plackett_luce::{Choice, Pair};
use crate::policies::utility::features::COMMON;
use crate::policies::utility::{Theta, Valued};

/// Features of a job beside those of the utility.
const MORE: [&str; 2] = ["log_after_restart", "log_held"];
/// Features of a pair.
const OF_PAIR: [&str; 8] = [
    "log_gpus",
    "log_speedup",
    "log_speedup_per_gpu",
    "log_step",
    "first_step",
    "as_held",
    "above_held",
    "log_slope_over_margin",
];
/// Features of the round.
const OF_ROUND: [&str; 3] = ["pressure", "log_demand", "log_jobs"];

/// Features of a job.
pub const JOB_FEATURES: usize = COMMON + MORE.len();
/// Features of a pair.
pub const PAIR_FEATURES: usize = OF_PAIR.len();
/// Features of the round.
pub const GLOBALS: usize = OF_ROUND.len();
/// Logarithms and ratios are divided by this, and cut at three of it, so that the net's inputs are of order one.
const SCALE: f64 = 4.0;

/// SHA-256, in hexadecimal, of all that gives meaning to a ranking's numbers.
pub fn schema_hash() -> String {
    let names = [&MORE[..], &OF_PAIR, &OF_ROUND].concat().join(",");
    let text = format!("ranking 1;{};{names}", Theta::sia().schema_hash());
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A round as the net sees it. Groups are the jobs that can be given something.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// `[jobs, JOB_FEATURES]`.
    pub jobs: Vec<f32>,
    /// By job, sizes ascending, with their base scores.
    pub pairs: Vec<Pair>,
    /// `[pairs, PAIR_FEATURES]`.
    pub sizes: Vec<f32>,
    /// Of the round.
    pub globals: [f32; GLOBALS],
    /// Accelerators to divide.
    pub capacity: u32,
}

impl Observation {
    /// Number of jobs.
    pub fn groups(&self) -> usize {
        self.jobs.len() / JOB_FEATURES
    }

    /// The jobs as a gym's layout calls them: slots without actions.
    pub(super) const fn layout() -> Layout {
        Layout {
            slots: 0,
            slot_features: JOB_FEATURES,
            globals: GLOBALS,
            verbs: 0,
            services: 0,
            pools: false,
            types: 0,
        }
    }

    /// The pairs with scores in place of their base scores: base and residual, over `temperature`.
    pub fn scored(&self, residuals: &[f32], temperature: f64) -> Vec<Pair> {
        let score = |(pair, &residual): (&Pair, &f32)| Pair {
            score: (pair.score + f64::from(residual)) / temperature,
            ..*pair
        };
        self.pairs.iter().zip(residuals).map(score).collect()
    }

    /// A choice among `pairs`, which are this round's under other scores.
    pub fn choice<'a>(&self, pairs: &'a [Pair]) -> Choice<'a> {
        Choice { pairs, groups: self.groups(), capacity: self.capacity }
    }
}

/// Makes observations, job by job.
#[derive(Clone, Debug, Default)]
pub(super) struct Observer {
    observation: Observation,
    pressure: f64,
    /// By pair: the index of its offer.
    pub offers: Vec<u32>,
    /// By job shown: its group.
    groups: Vec<Option<u32>>,
    /// Hull of the job at hand: accelerators, value, offer.
    upper: Vec<(f64, f64, u32)>,
}

impl Observer {
    pub fn begin(&mut self, pressure: f64) {
        let Observation { jobs, pairs, sizes, .. } = &mut self.observation;
        jobs.clear();
        pairs.clear();
        sizes.clear();
        self.offers.clear();
        self.groups.clear();
        self.pressure = pressure;
    }

    pub fn job(&mut self, job: Option<&Valued<'_>>) {
        self.upper.clear();
        self.upper.push((0.0, 0.0, 0));
        for (offer, at) in job.iter().flat_map(|job| job.offers).zip(0..) {
            extend(&mut self.upper, (f64::from(offer.weight), offer.value, at));
        }
        let Some(job) = job.filter(|_| self.upper.len() > 1) else {
            self.groups.push(None);
            return;
        };
        let group = self.observation.groups() as u32;
        self.groups.push(Some(group));
        let held = job.held.1;
        let more = [job.after_restart.max(1e-3).ln(), f64::from(held).ln_1p()];
        self.observation.jobs.extend(job.features[..COMMON].iter().chain(&more).map(|&feature| scaled(feature)));
        let flag = |on: bool| f64::from(u8::from(on));
        for step in self.upper.windows(2) {
            let (gpus, gain) = (step[1].0, step[1].1 - step[0].1);
            let Offer { kind, weight, .. } = job.offers[step[1].2 as usize];
            let speedup = (job.speedup)(kind, weight).max(1e-3).ln();
            let width = gpus - step[0].0;
            let features = [
                gpus.ln(),
                speedup,
                speedup - gpus.ln(),
                width.ln(),
                SCALE * flag(step[0].0 == 0.0),
                SCALE * flag(weight == held),
                SCALE * flag(held > 0 && weight > held),
            ];
            self.observation.sizes.extend(features.map(scaled));
            // Known when all jobs are.
            self.observation.sizes.push(0.0);
            let score = (gain / width).max(f64::MIN_POSITIVE).ln();
            self.observation.pairs.push(Pair { group, weight, score });
            self.offers.push(step[1].2);
        }
    }

    /// The round that was shown, of so many accelerators; `None` where everything fits and nothing is to be chosen.
    pub fn finish(&mut self, capacity: u32) -> Option<&Observation> {
        self.observation.capacity = capacity;
        let margin = self.observation.choice(&self.observation.pairs).margin()?;
        let Observation { pairs, sizes, .. } = &mut self.observation;
        for (pair, features) in pairs.iter().zip(sizes.chunks_exact_mut(PAIR_FEATURES)) {
            // At the margin is where it matters: not cut by the scale of the others.
            features[PAIR_FEATURES - 1] = (pair.score - margin).clamp(-3.0, 3.0) as f32;
        }
        let last_of_job =
            pairs.iter().enumerate().filter(|(at, pair)| pairs.get(at + 1).is_none_or(|next| next.group != pair.group));
        let demand: f64 = last_of_job.map(|(_, pair)| f64::from(pair.weight)).sum();
        let groups = self.observation.groups() as f64;
        self.observation.globals =
            [self.pressure, (demand / f64::from(capacity.max(1))).max(1e-3).ln(), groups.max(1.0).ln()].map(scaled);
        Some(&self.observation)
    }

    /// By job shown the index of its offer, given the pair that each group has in the end.
    pub fn chosen(&self, of_groups: &[Option<u32>], into: &mut Vec<Option<u32>>) {
        into.clear();
        let offer = |pair: u32| self.offers[pair as usize];
        into.extend(self.groups.iter().map(|group| group.and_then(|group| of_groups[group as usize]).map(offer)));
    }

    /// By group its largest pair.
    pub fn largest(&self) -> Vec<Option<u32>> {
        self.last(&(0..self.observation.pairs.len() as u32).collect::<Vec<_>>())
    }

    /// By group its last pair among `sequence`.
    pub fn last<'a>(&self, sequence: impl IntoIterator<Item = &'a u32>) -> Vec<Option<u32>> {
        let mut last = vec![None; self.observation.groups()];
        for &at in sequence {
            last[self.observation.pairs[at as usize].group as usize] = Some(at);
        }
        last
    }
}

fn scaled(feature: f64) -> f32 {
    (feature / SCALE).clamp(-3.0, 3.0) as f32
}
