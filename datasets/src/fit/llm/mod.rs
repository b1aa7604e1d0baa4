//! Fit of language models to measured times: `goodput data fit-llm FILE`.
//!
//! - [`stages`]: the times of the two stages as sums of physical costs.
//! - [`effects`]: the efficiencies of the costs, shared among configurations.
//! - [`posynomial`]: the fit.
//! - [`calibrate`]: costs of a step from one run of a server.
//! - [`check`]: errors on configurations that the fit has not seen.

pub mod calibrate;
pub mod check;
mod effects;
mod posynomial;
mod stages;

use std::collections::BTreeMap;

use goodput_env::model::serving::llm::StepCosts;

use self::effects::Effects;
use self::posynomial::{MeasuredRow, PowerTerm, predict};
use self::stages::Physics;
use super::round;
use crate::import::silicon::{DividedRow, SiliconRow};
use crate::llm::{Configuration, LoadShape, ReplicaCatalog, ReplicaEntry};

/// Logarithmic error of a time of a token beyond which a row counts as an outlier.
const TPOT_SCALE: f64 = 0.06;
/// Logarithmic error for the time to the first token, of which measurements scatter more.
const TTFT_SCALE: f64 = 0.1;

/// Citation of the measurements behind the shipped replicas.
pub const SILICON_SOURCE: &str = "fitted to silicon_sample.csv of ai-dynamo/aiconfigurator (Apache-2.0): measured TTFT \
                                  and TPOT of aggregated serving, published 2026";

/// Predicted times, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// Time to the first token.
    pub ttft_ms: f64,
    /// Time of a further token.
    pub tpot_ms: f64,
}

/// A fitted model of both stages.
#[derive(Clone, Debug)]
pub struct TwoStages {
    tpot: FittedStage,
    ttft: FittedStage,
}

#[derive(Clone, Debug)]
struct FittedStage {
    effects: Effects,
    fitted: Vec<f64>,
}

impl FittedStage {
    fn fit(rows: &[&SiliconRow], costs: impl Fn(&SiliconRow) -> Option<(Vec<stages::Cost>, f64)>, scale: f64) -> Self {
        let mut effects = Effects::default();
        let observation = |row: &&SiliconRow| {
            let (costs, measured) = costs(row)?;
            Some(MeasuredRow { terms: stages::terms(costs, &mut effects, row), measured })
        };
        let observations: Vec<MeasuredRow> = rows.iter().filter_map(observation).collect();
        let fitted = posynomial::fit(&observations, effects.priors(), scale);
        Self { effects, fitted }
    }

    fn terms(&self, costs: Vec<stages::Cost>, row: &SiliconRow) -> Vec<PowerTerm> {
        stages::known(costs, &self.effects, row)
    }
}

impl TwoStages {
    /// Fits both stages. Rows of models and systems that the catalog does not have are passed over.
    pub fn fit(rows: &[&SiliconRow]) -> Self {
        let costs = |row: &SiliconRow| Some((stages::tpot(row, Physics::of(&row.configuration)?), row.tpot_ms));
        let tpot = FittedStage::fit(rows, costs, TPOT_SCALE);
        let costs = |row: &SiliconRow| {
            let physics = Physics::of(&row.configuration)?;
            let each = predict(&tpot.terms(stages::tpot(row, physics), row), &tpot.fitted);
            Some((stages::ttft(row, physics, each), row.ttft_ms))
        };
        let ttft = FittedStage::fit(rows, costs, TTFT_SCALE);
        Self { tpot, ttft }
    }

    /// Times of a row; `None` where the catalog does not have its model or system.
    pub fn predict(&self, row: &SiliconRow) -> Option<Predicted> {
        let physics = Physics::of(&row.configuration)?;
        let tpot_ms = predict(&self.tpot.terms(stages::tpot(row, physics), row), &self.tpot.fitted);
        let ttft_ms = predict(&self.ttft.terms(stages::ttft(row, physics, tpot_ms), row), &self.ttft.fitted);
        Some(Predicted { ttft_ms, tpot_ms })
    }

    /// Times of replicas that divide prefill and decode; `None` where the catalog does not have their model or system.
    ///
    /// A further token is that of a replica that computes no prompts. The first token is that of a request alone on a
    /// prefill replica. Where the requests come back faster than the prefill replicas compute, it is what the
    /// throughput of the latter leaves (asymptotic bounds of closed networks: Denning and Buzen, ACM Computing Surveys
    /// 1978). The transfer of keys and values counts in neither.
    pub fn predict_divided(&self, row: &DividedRow) -> Option<Predicted> {
        let DividedRow { prefill, prefill_replicas, decode_replicas, decode } = row;
        let sum = |stage: &FittedStage, costs: Vec<stages::Cost>, names: &[&str], of: &SiliconRow| {
            let named = costs.into_iter().filter(|(name, ..)| names.contains(name)).collect();
            predict(&stage.terms(named, of), &stage.fitted)
        };
        let costs = stages::tpot(decode, Physics::of(&decode.configuration)?);
        let tpot_ms = sum(&self.tpot, costs, &["fixed", "weights", "sequence", "context"], decode);
        let alone = LoadShape { concurrency: 1, ..decode.shape };
        let alone = SiliconRow { configuration: prefill.clone(), shape: alone, ..decode.clone() };
        let costs = || Some(stages::ttft(&alone, Physics::of(prefill)?, tpot_ms));
        let first = sum(&self.ttft, costs()?, &["first"], &alone);
        let prompt = sum(&self.ttft, costs()?, &["first prompt", "first pair"], &alone);
        let copies = [decode.shape.concurrency, decode.configuration.data, *decode_replicas];
        let requests: f64 = copies.map(f64::from).iter().product();
        let elsewhere = f64::from(decode.shape.output.saturating_sub(1)) * tpot_ms;
        let full = requests * prompt / f64::from(*prefill_replicas) - elsewhere;
        Some(Predicted { ttft_ms: (first + prompt).max(full), tpot_ms })
    }

    /// Costs of a step of the configuration and version of a row.
    ///
    /// Sequences and contexts are fitted as those of one copy of the attention, and the copies work at the same time.
    /// The costs are those of the whole replica, over the sequences of all copies.
    fn step(&self, row: &SiliconRow, physics: Physics<'_>) -> StepCosts {
        let efficiency = |cost: &str| {
            let known = self.tpot.effects.known(cost, row);
            known.into_iter().map(|(at, x)| x * self.tpot.fitted[at]).sum::<f64>().exp()
        };
        let weights = efficiency("weights");
        let share = physics.expert_share();
        let copies = f64::from(row.configuration.data);
        let digits = |value: f64| round(value, 4);
        StepCosts {
            fixed_ms: digits(efficiency("fixed") * physics.layers() + weights * physics.shared_weights()),
            experts_ms: if share < 1.0 { digits(weights * physics.expert_weights()) } else { 0.0 },
            expert_share: if share < 1.0 { digits(share) } else { 0.0 },
            sequence_ms: digits(efficiency("sequence") * physics.layers() / copies),
            context_ms: digits(efficiency("context") * physics.context() / copies),
            prompt_ms: digits(efficiency("prompt") * physics.prompt()),
            pair_ms: digits(efficiency("pair") * physics.pair()),
        }
    }

    /// A replica for each configuration of the rows, by the version with the most rows. `source` cites the rows.
    pub fn replicas(&self, rows: &[SiliconRow], source: String) -> ReplicaCatalog {
        let mut by: BTreeMap<&Configuration, BTreeMap<&str, Vec<&SiliconRow>>> = BTreeMap::new();
        for row in rows {
            by.entry(&row.configuration).or_default().entry(&row.version).or_default().push(row);
        }
        let entry = |(configuration, versions): (&Configuration, BTreeMap<&str, Vec<&SiliconRow>>)| {
            let physics = Physics::of(configuration)?;
            let most = versions.values().max_by_key(|rows| rows.len())?.first()?;
            let copies = f64::from(configuration.data);
            Some(ReplicaEntry {
                name: configuration.to_string(),
                rows: versions.values().map(Vec::len).sum::<usize>() as u32,
                // Keys and values are taken as 16-bit numbers, in the memory of all copies of the attention.
                kv_tokens: round(physics.kv_tokens() / 2.0 * copies, 3) as u64,
                configuration: configuration.clone(),
                step: self.step(most, physics),
            })
        };
        ReplicaCatalog {
            sources: BTreeMap::from([("silicon".to_owned(), source)]),
            replicas: by.into_iter().filter_map(entry).collect(),
        }
    }
}
