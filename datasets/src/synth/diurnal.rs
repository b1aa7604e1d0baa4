//! Arrival process richer than a folded day: users submit by day, less at weekends, and in bursts.
//!
//! Arrivals are a Poisson process with a rate of `jobs_per_hour` times a daily curve, a weekly
//! curve and a burst factor, each of mean 1 over time, so the setting is the long-run rate whatever
//! the shape. Bursts are a two-state Markov chain (calm, burst). Sizes are heavy-tailed through the
//! mix: an undisturbed run takes between half a minute and hours, depending on the application. The
//! defaults are rounded from the Philly trace (shares by GPU time; the busiest hour has 2.1 times
//! the mean; Saturdays and Sundays 0.62).

use std::collections::BTreeMap;

use goodput_env::job::WHOLE;
use goodput_env::time::SimTime;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pollux::JOBS_BY_SIZE;
use super::{CardPart, Choices, JobDraw, JobTask, Lengths, Sizes, SynthError, check, check_jobs, cumulative, pick};
use crate::catalog::Catalog;

const HOURS_PER_DAY: f64 = 24.0;
const HOURS_PER_WEEK: f64 = 168.0;
const MINUTES_PER_HOUR: f64 = 60.0;

/// Settings of the diurnal generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "snake_case", deny_unknown_fields)]
pub struct DiurnalSynth {
    /// Number of jobs.
    pub jobs: u32,
    /// Mean rate of arrivals over a week: the load.
    pub jobs_per_hour: f64,
    /// Swing of the rate over a day, 0 (constant) to 1 (no arrivals at the quietest moment).
    pub daily_swing: f64,
    /// Hour of the day with most arrivals, 0 to 24.
    pub peak_hour: f64,
    /// Rate on Saturdays and Sundays relative to other days.
    pub weekend: f64,
    /// Hour of the week at which the workload starts, Monday 00:00 being 0; without it, drawn by
    /// the seed.
    pub start_hour: Option<f64>,
    /// Rate in a burst relative to calm; 1 for no bursts.
    pub burst_factor: f64,
    /// Mean length of a burst, minutes.
    pub burst_minutes: f64,
    /// Share of time in a burst, 0 to less than 1.
    pub burst_share: f64,
    /// Share of each application by name; need not sum to 1.
    pub mix: BTreeMap<String, f64>,
    /// Sizes and batch sizes that jobs ask for.
    pub sizes: Sizes,
    /// Standard deviation of the logarithm of a job's work relative to its application's; 0: every
    /// job of an application does the same.
    pub work_spread: f64,
    /// Jobs of which only a duration is known, instead of the mix of applications.
    pub lengths: Option<Lengths>,
    /// Number of tenants; tenant `k` submits in proportion to `1 / (k + 1)^tenant_skew`.
    pub tenants: u32,
    /// Inequality of the numbers of jobs of tenants: 0 for equal numbers; with 3, the first of two tenants submits
    /// eight jobs for each of the second.
    #[serde(skip_serializing_if = "is_one")]
    pub tenant_skew: f64,
}

impl Default for DiurnalSynth {
    fn default() -> Self {
        let mix = [
            ("cifar10", 0.373),
            ("ncf", 0.373),
            ("deepspeech2", 0.093),
            ("bert", 0.093),
            ("yolov3", 0.048),
            ("imagenet", 0.02),
        ];
        Self {
            jobs: 160,
            jobs_per_hour: 20.0,
            daily_swing: 0.6,
            peak_hour: 14.0,
            weekend: 0.6,
            start_hour: None,
            burst_factor: 5.0,
            burst_minutes: 20.0,
            burst_share: 0.1,
            mix: mix.map(|(name, share)| (name.to_owned(), share)).into(),
            sizes: Sizes::Tuned,
            work_spread: 0.0,
            lengths: None,
            tenants: 1,
            tenant_skew: 1.0,
        }
    }
}

fn is_one(value: &f64) -> bool {
    *value == 1.0
}

/// The settings, checked and normalised.
#[derive(Clone, Debug)]
pub(super) struct Process {
    settings: DiurnalSynth,
    /// Rates relative to the mean: weekday and weekend, calm and burst.
    days: [f64; 2],
    states: [f64; 2],
    /// Mean hours in calm and burst.
    stays: [f64; 2],
    /// Cumulative shares of `choices`.
    mix: Vec<f64>,
    choices: Vec<Choices>,
    /// Cumulative shares of tenants.
    shares: Vec<f64>,
}

impl DiurnalSynth {
    pub(super) fn process(&self, catalog: &Catalog) -> Result<Process, SynthError> {
        check_jobs(self.jobs)?;
        check("jobs_per_hour", self.jobs_per_hour, 0.001..=1e6, "0.001 to 1000000")?;
        check("daily_swing", self.daily_swing, 0.0..=1.0, "0 to 1")?;
        check("peak_hour", self.peak_hour, 0.0..=HOURS_PER_DAY, "0 to 24")?;
        check("weekend", self.weekend, 0.0..=10.0, "0 to 10")?;
        check("start_hour", self.start_hour.unwrap_or(0.0), 0.0..=HOURS_PER_WEEK, "0 to 168")?;
        check("burst_factor", self.burst_factor, 1.0..=1000.0, "1 to 1000")?;
        check("burst_minutes", self.burst_minutes, 0.01..=1e6, "0.01 to 1000000")?;
        check("burst_share", self.burst_share, 0.0..=0.99, "0 to 0.99")?;
        check("work_spread", self.work_spread, 0.0..=3.0, "0 to 3")?;
        check("tenants", f64::from(self.tenants), 1.0..=1000.0, "1 to 1000")?;
        check("tenant_skew", self.tenant_skew, 0.0..=10.0, "0 to 10")?;
        self.lengths.as_ref().map_or(Ok(()), Lengths::check)?;
        for share in self.mix.values() {
            check("mix", *share, 0.0..=1e9, "shares of at least 0")?;
        }
        check(
            "mix",
            self.mix.values().fold(0.0, |sum, share| sum + share),
            f64::MIN_POSITIVE..=f64::MAX,
            "at least one application with a share above 0",
        )?;
        let mut choices = Vec::new();
        for name in self.mix.keys() {
            choices.push(Choices::new(catalog, name, self.sizes, sizes_of(name))?);
        }
        // Both factors have mean 1 over time, so that `jobs_per_hour` stays the long-run rate.
        let weekday = 7.0 / (5.0 + 2.0 * self.weekend);
        let calm = 1.0 / (1.0 - self.burst_share + self.burst_share * self.burst_factor);
        let burst_hours = self.burst_minutes / MINUTES_PER_HOUR;
        let calm_hours = if self.burst_share > 0.0 {
            burst_hours * (1.0 - self.burst_share) / self.burst_share
        } else {
            f64::INFINITY
        };
        Ok(Process {
            days: [weekday, weekday * self.weekend],
            states: [calm, calm * self.burst_factor],
            stays: [calm_hours, burst_hours],
            mix: cumulative(self.mix.values().copied()),
            choices,
            shares: cumulative((0..self.tenants).map(|tenant| f64::from(tenant + 1).powf(-self.tenant_skew))),
            settings: self.clone(),
        })
    }
}

impl Process {
    pub(super) fn work_spread(&self) -> f64 {
        self.settings.work_spread
    }

    /// Whether jobs train applications. If not, only their duration is known.
    pub(super) fn trains(&self) -> bool {
        self.settings.lengths.is_none()
    }

    /// Applications with a share of the mix.
    pub(super) fn mixed(&self) -> Vec<u16> {
        let shares = self.choices.iter().zip(self.settings.mix.values());
        shares.filter(|(_, share)| **share > 0.0).map(|(choice, _)| choice.index).collect()
    }

    pub(super) fn parts(&self) -> &[CardPart] {
        self.settings.lengths.as_ref().map_or(&[], |lengths| &lengths.parts)
    }

    pub(super) fn tenants(&self) -> u32 {
        self.settings.tenants
    }

    /// Arrivals by thinning: candidates at the highest rate of the present state, each kept with
    /// the share the rate then has of it.
    pub(super) fn draw(&self, rng: &mut ChaCha8Rng) -> Vec<JobDraw> {
        let settings = &self.settings;
        let start = settings.start_hour.unwrap_or_else(|| rng.random::<f64>() * HOURS_PER_WEEK);
        let highest = settings.jobs_per_hour * (1.0 + settings.daily_swing) * self.days[0].max(self.days[1]);
        let exponential = |rng: &mut ChaCha8Rng| -> f64 { Exp1.sample(rng) };

        let mut state = usize::from(rng.random::<f64>() < settings.burst_share);
        let mut change = exponential(rng) * self.stays[state];
        let mut now = 0.0;
        let mut draws = Vec::with_capacity(settings.jobs as usize);
        while draws.len() < settings.jobs as usize {
            let bound = highest * self.states[state];
            let next = now + exponential(rng) / bound;
            if next > change {
                // Memoryless: the draw that went beyond the change is simply made again at the new
                // rate.
                now = change;
                state = 1 - state;
                change = now + exponential(rng) * self.stays[state];
                continue;
            }
            now = next;
            let rate = settings.jobs_per_hour * self.shape(start + now) * self.states[state];
            // Thinning: the candidate process has the highest rate, so the kept points have the
            // present one.
            if rng.random::<f64>() * bound < rate {
                draws.push(self.job(rng, now));
            }
        }
        draws
    }

    /// Rate relative to the mean at an hour of the week, bursts aside.
    fn shape(&self, hour: f64) -> f64 {
        let hour = hour.rem_euclid(HOURS_PER_WEEK);
        let day = self.days[usize::from(hour >= 5.0 * HOURS_PER_DAY)];
        let after_peak = (hour - self.settings.peak_hour).rem_euclid(HOURS_PER_DAY) / HOURS_PER_DAY;
        day * (1.0 + self.settings.daily_swing * wave(after_peak))
    }

    fn job(&self, rng: &mut ChaCha8Rng, hour: f64) -> JobDraw {
        let task = match &self.settings.lengths {
            Some(lengths) => JobTask::Timed(lengths.draw(rng)),
            None => {
                let choices = &self.choices[pick(rng, &self.mix)];
                let (gpus, batch_size) = choices.draw(rng);
                JobTask::Application { index: choices.index, gpus, batch_size, work_milli: WHOLE }
            }
        };
        let tenant = pick(rng, &self.shares) as u32;
        JobDraw { submit: SimTime::from_secs_f64(hour * 3600.0), tenant, task }
    }
}

/// A cosine made of parabolas: 1 at 0 and at 1, -1 in the middle, of mean 0.
pub(super) fn wave(x: f64) -> f64 {
    let x = (x + 0.25).fract();
    if x < 0.5 { 16.0 * x * (0.5 - x) } else { -16.0 * (x - 0.5) * (1.0 - x) }
}

/// Sizes asked for by jobs like this application's in the Philly trace; the mean of all for others.
fn sizes_of(name: &str) -> &'static [(u32, u32)] {
    let class = match name {
        "deepspeech2" | "bert" => 1,
        "yolov3" => 2,
        "imagenet" => 3,
        _ => 0,
    };
    JOBS_BY_SIZE[class]
}
