//! Speed of a job by its reports: how fast it is on how many accelerators, and how large its
//! batches may be.
//!
//! This is how goodput policies place jobs that were never profiled (Pollux, OSDI'21, section 4.1:
//! the agent fits the throughput model to what it has measured, and starts out optimistic about
//! what it has not).

use std::collections::BTreeMap;

use goodput_env::model::{GradientStats, Sample, ThroughputParams, fit};
use serde::{Deserialize, Serialize};

use super::report::JobReport;

/// Weight of a new measurement in a mean, once there are a few.
const NEWEST: f64 = 0.1;

/// A mean that has moved by more than this part of it is worth a new model.
const MOVED: f64 = 0.05;

/// Configurations kept for each type of accelerator; those heard of longest ago go first, so that
/// no job makes fits slow.
const MOST: usize = 64;

/// Speed that one report tells of its job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpeedMeasurement {
    /// Time of a step, and the placement on which the step was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
    /// Samples of a step over all replicas and passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u32>,
    /// Gradient statistics, where the job reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<GradientStats>,
}

impl SpeedMeasurement {
    /// Of a report of an attempt on so many nodes and accelerators; `None`: it tells nothing about
    /// speed.
    #[must_use]
    pub fn of(report: &JobReport, nodes: u32, replicas: u32) -> Option<Self> {
        let stats = report.grad_sqr.zip(report.grad_var).map(|(sqr, var)| GradientStats { sqr, var });
        let passes = report.accumulation.unwrap_or(0).saturating_add(1);
        let shared = |batch: u32| batch.div_ceil(replicas.max(1).saturating_mul(passes));
        let atomic = report.atomic_batch.or(report.batch_size.map(shared)).filter(|atomic| *atomic > 0);
        let total = |atomic: u32| atomic.saturating_mul(passes).saturating_mul(replicas);
        let batch = report.batch_size.or(atomic.map(total)).filter(|batch| *batch > 0);
        let step = report.step_time_s.filter(|step| *step > 0.0);
        let sample = step.zip(atomic).filter(|_| nodes > 0 && replicas >= nodes).map(|(step, atomic)| {
            let sync_secs = report.sync_time_s.unwrap_or(0.0).min(step);
            // The model's step is one pass with its synchronisation, a report's step is all passes.
            let step_secs = (step - sync_secs) / f64::from(passes) + sync_secs;
            Sample { nodes, replicas, atomic, step_secs, sync_secs }
        });
        (sample.is_some() || stats.is_some()).then_some(Self { sample, batch, stats })
    }
}

/// Measurements of one job, from all its reports.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// By name of the type of accelerator.
    types: BTreeMap<String, Vec<RunningMean>>,
    stats: Option<GradientStats>,
    /// Gradient noise when it was last worth a new model.
    noise: f64,
    batch: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct RunningMean {
    sample: Sample,
    count: u32,
    /// Step time at the last measurement that was worth a new fit.
    told: f64,
}

impl Learned {
    /// Takes in what a report tells of a type of accelerator. `true`: a model fitted before is out
    /// of date.
    pub fn take(&mut self, accelerator: &str, measured: &SpeedMeasurement) -> bool {
        let mut changed = measured.batch.is_some_and(|batch| self.batch != Some(batch));
        self.batch = measured.batch.or(self.batch);
        if let Some(stats) = measured.stats {
            let noise = stats.var / stats.sqr.max(f64::MIN_POSITIVE);
            if self.stats.is_none() || has_moved(noise, self.noise) {
                (self.noise, changed) = (noise, true);
            }
            self.stats = Some(stats);
        }
        let Some(new) = measured.sample else { return changed };
        let means = match self.types.get_mut(accelerator) {
            Some(means) => means,
            None => self.types.entry(accelerator.to_owned()).or_default(),
        };
        let same = |mean: &RunningMean| {
            (mean.sample.nodes, mean.sample.replicas, mean.sample.atomic) == (new.nodes, new.replicas, new.atomic)
        };
        let Some(at) = means.iter().position(same) else {
            means.drain(..means.len().saturating_sub(MOST - 1));
            means.push(RunningMean { sample: new, count: 1, told: new.step_secs });
            return true;
        };
        let mut mean = means.remove(at);
        mean.count = mean.count.saturating_add(1);
        // At first this is the plain mean, later one in which old measurements fade.
        let weight = (1.0 / f64::from(mean.count)).max(NEWEST);
        mean.sample.step_secs += weight * (new.step_secs - mean.sample.step_secs);
        mean.sample.sync_secs += weight * (new.sync_secs - mean.sample.sync_secs);
        let moved = has_moved(mean.sample.step_secs, mean.told);
        if moved {
            mean.told = mean.sample.step_secs;
        }
        means.push(mean);
        changed || moved
    }

    /// Mean measurements by type of accelerator.
    pub fn types(&self) -> impl Iterator<Item = (&str, Vec<Sample>)> {
        let samples = |means: &Vec<RunningMean>| {
            let mut samples: Vec<Sample> = means.iter().map(|mean| mean.sample).collect();
            // The order does not depend on which report came last, so that the fit does not either.
            samples.sort_by_key(|sample| (sample.nodes, sample.replicas, sample.atomic));
            samples
        };
        self.types.iter().map(move |(accelerator, means)| (accelerator.as_str(), samples(means)))
    }

    /// The throughput model that fits best on a type of accelerator; `None`: nothing is known.
    #[must_use]
    pub fn throughput(&self, accelerator: &str) -> Option<ThroughputParams> {
        self.types().find(|(known, _)| *known == accelerator).map(|(_, samples)| fit(&samples))
    }

    /// The newest gradient statistics.
    #[must_use]
    pub fn stats(&self) -> Option<GradientStats> {
        self.stats
    }

    /// The newest total batch size, samples.
    #[must_use]
    pub fn batch(&self) -> Option<u32> {
        self.batch
    }

    /// Whether the job has reported nothing of its speed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// Most accelerators it has run on: more than twice as many are beyond what is known (Pollux,
    /// section 4.1).
    #[must_use]
    pub fn max_replicas(&self) -> u32 {
        self.types.values().flatten().map(|mean| mean.sample.replicas).max().unwrap_or(0)
    }
}

fn has_moved(value: f64, told: f64) -> bool {
    (value - told).abs() > MOVED * told
}

#[cfg(test)]
mod tests {
    use goodput_env::model::BatchConfig;

    use super::*;
    use crate::bench_job::BenchJob;
    use crate::job::Fence;

    fn report(truth: &ThroughputParams, nodes: u32, replicas: u32, atomic: u32, accumulation: u32) -> JobReport {
        let step = truth.iter_time(nodes, replicas, BatchConfig { atomic, accumulation });
        let sync = truth.optim_time(nodes, replicas, atomic) - truth.grad_time(atomic);
        JobReport {
            atomic_batch: Some(atomic),
            accumulation: Some(accumulation),
            step_time_s: Some(step),
            sync_time_s: Some(sync),
            grad_sqr: Some(2.0),
            grad_var: Some(6.0),
            ..JobReport::new(Fence::from_text("f"), 0, 1)
        }
    }

    #[test]
    fn the_speed_of_a_job_never_seen_before_is_learned_from_its_reports() {
        let truth = BenchJob::default().throughput;
        let mut learned = Learned::default();
        assert_eq!(learned.throughput("a100"), None);
        for (nodes, replicas, atomic, accumulation) in
            [(1, 1, 128, 0), (1, 1, 64, 1), (1, 2, 64, 0), (1, 4, 32, 0), (2, 4, 64, 0), (2, 8, 32, 2)]
        {
            let report = report(&truth, nodes, replicas, atomic, accumulation);
            let measured = SpeedMeasurement::of(&report, nodes, replicas).unwrap();
            assert_eq!(measured.batch, Some(replicas * atomic * (accumulation + 1)));
            assert!(learned.take("a100", &measured), "a new configuration");
            assert!(!learned.take("a100", &measured), "nothing new");
        }
        let fitted = learned.throughput("a100").unwrap();
        assert_eq!(learned.throughput("v100"), None);
        for (nodes, replicas, atomic) in [(1, 3, 96), (1, 6, 128), (2, 6, 48), (2, 12, 64)] {
            let batch = BatchConfig { atomic, accumulation: 0 };
            let off = fitted.throughput(nodes, replicas, batch) / truth.throughput(nodes, replicas, batch) - 1.0;
            assert!(off.abs() < 0.05, "{nodes} nodes, {replicas} replicas, {atomic} samples: {off:+.3}");
        }
        assert_eq!((learned.max_replicas(), learned.stats()), (8, Some(GradientStats { sqr: 2.0, var: 6.0 })));
    }

    #[test]
    fn noise_averages_out_and_what_is_missing_teaches_nothing() {
        let truth = BenchJob::default().throughput;
        let mut learned = Learned::default();
        let exact = report(&truth, 1, 1, 128, 0);
        let mut fits = 0;
        for k in 0..200 {
            let factor = if k % 2 == 0 { 1.2 } else { 0.8 };
            let noisy = JobReport { step_time_s: exact.step_time_s.map(|step| step * factor), ..exact.clone() };
            fits += u32::from(learned.take("a100", &SpeedMeasurement::of(&noisy, 1, 1).unwrap()));
        }
        let mean = learned.types().next().unwrap().1[0].step_secs / exact.step_time_s.unwrap();
        assert!((mean - 1.0).abs() < 0.05, "{mean}");
        assert!(fits < 30, "{fits} fits for 200 reports of one configuration");
        let silent = JobReport::new(Fence::from_text("f"), 0, 1);
        assert_eq!(SpeedMeasurement::of(&silent, 1, 1), None);
        let only_stats = SpeedMeasurement::of(&exact, 2, 1).unwrap();
        assert_eq!(only_stats.sample, None, "fewer accelerators than nodes");
    }

    #[test]
    fn no_job_makes_fits_slow_or_the_journal_large() {
        let truth = BenchJob::default().throughput;
        let mut learned = Learned::default();
        for atomic in 1..500 {
            learned.take("a100", &SpeedMeasurement::of(&report(&truth, 1, 1, atomic, 0), 1, 1).unwrap());
        }
        let (_, samples) = learned.types().next().unwrap();
        assert_eq!((samples.len(), samples[0].atomic), (MOST, 500 - MOST as u32), "the newest are kept");
        let again: Learned = serde_json::from_str(&serde_json::to_string(&learned).unwrap()).unwrap();
        assert_eq!(again, learned);
    }
}
