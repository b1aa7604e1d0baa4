//! Jobs of which only a duration is known, as production traces have them: heavy-tailed, some of
//! them elastic.
//!
//! Durations are log-normal, the usual fit to traces of training jobs. Elastic jobs scale linearly,
//! as the simulations of Aryl and Lyra assume (arXiv:2202.07896; EuroSys'23). Their trace is
//! private: the default widths and durations are ours, chosen so that the mean job takes about
//! sixteen accelerator hours and most jobs take minutes on one or two.

use goodput_env::job::Elasticity;
use goodput_env::placement::ShareRequest;
use goodput_env::time::SimTime;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SynthError, check, cumulative, pick};

/// Settings of jobs with a known duration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "snake_case", deny_unknown_fields)]
pub struct Lengths {
    /// Median duration on the requested accelerators, seconds.
    pub median_secs: f64,
    /// Standard deviation of the logarithm of the duration.
    pub sigma: f64,
    /// No job is longer, seconds.
    pub longest_secs: f64,
    /// Accelerators asked for and how often; shares need not sum to 1.
    pub widths: Vec<(u32, f64)>,
    /// Parts of one accelerator that jobs ask for, and how often beside `widths`. Such jobs are rigid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<CardPart>,
    /// Share of jobs that are elastic.
    pub elastic_share: f64,
    /// Greatest size of an elastic job, in multiples of the size that it asks for.
    pub elastic_range: u32,
}

impl Default for Lengths {
    fn default() -> Self {
        Self {
            median_secs: 1800.0,
            sigma: 1.95,
            longest_secs: 3.0 * 86_400.0,
            widths: vec![(1, 0.45), (2, 0.15), (4, 0.15), (8, 0.15), (16, 0.07), (32, 0.03)],
            parts: Vec::new(),
            elastic_share: 0.2,
            elastic_range: 2,
        }
    }
}

/// Part of one accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CardPart {
    /// Percent of the accelerator's compute.
    pub compute_percent: u32,
    /// Device memory, MiB.
    pub memory_mib: u32,
    /// Frequency of the part relative to the other parts and widths.
    pub weight: f64,
}

/// Duration and sizes of one job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    pub duration: SimTime,
    pub gpus: u32,
    pub elasticity: Elasticity,
    pub share: Option<ShareRequest>,
}

impl Lengths {
    pub(super) fn check(&self) -> Result<(), SynthError> {
        check("lengths.median_secs", self.median_secs, 1.0..=1e8, "1 to 100000000")?;
        check("lengths.sigma", self.sigma, 0.0..=5.0, "0 to 5")?;
        check("lengths.longest_secs", self.longest_secs, 1.0..=1e9, "1 to 1000000000")?;
        check("lengths.elastic_share", self.elastic_share, 0.0..=1.0, "0 to 1")?;
        check("lengths.elastic_range", f64::from(self.elastic_range), 1.0..=1024.0, "1 to 1024")?;
        let total: f64 = self.weights().sum();
        check("lengths.widths", total, f64::MIN_POSITIVE..=1e9, "at least one width with a share above 0")?;
        for part in &self.parts {
            check("lengths.parts.compute_percent", f64::from(part.compute_percent), 1.0..=100.0, "1 to 100")?;
            check("lengths.parts.weight", part.weight, 0.0..=1e9, "at least 0")?;
        }
        for &(gpus, share) in &self.widths {
            check("lengths.widths", f64::from(gpus), 1.0..=65_536.0, "1 to 65536 accelerators")?;
            check("lengths.widths", share, 0.0..=1e9, "shares of at least 0")?;
        }
        Ok(())
    }

    /// How often each width and then each part is asked for.
    fn weights(&self) -> impl Iterator<Item = f64> {
        self.widths.iter().map(|width| width.1).chain(self.parts.iter().map(|part| part.weight))
    }

    pub(super) fn draw(&self, rng: &mut ChaCha8Rng) -> Length {
        let normal: f64 = StandardNormal.sample(rng);
        let secs = (self.median_secs * (self.sigma * normal).exp()).clamp(1.0, self.longest_secs.max(1.0));
        let chosen = pick(rng, &cumulative(self.weights()));
        let gpus = self.widths.get(chosen).map_or(1, |width| width.0);
        let part = chosen.checked_sub(self.widths.len()).and_then(|at| self.parts.get(at));
        let elastic = rng.random::<f64>() < self.elastic_share && self.elastic_range > 1 && part.is_none();
        let elasticity = match elastic {
            true => Elasticity::Elastic { min: gpus, max: gpus.saturating_mul(self.elastic_range) },
            false => Elasticity::Rigid,
        };
        let share =
            part.map(|part| ShareRequest { compute_percent: part.compute_percent, memory_mib: part.memory_mib });
        Length { duration: SimTime::from_secs_f64(secs), gpus, elasticity, share }
    }
}
