//! What reports teach about a job: how fast it is on how many accelerators, and how large its batches may be.
//!
//! This is what lets goodput policies place jobs that nobody has ever profiled (Pollux, OSDI'20, section 4.1: the agent fits the throughput model to what it
//! has measured, and starts out optimistic about what it has not).

use std::collections::BTreeMap;

use goodput_env::model::{GradientStats, Sample, ThroughputParams, fit};
use serde::{Deserialize, Serialize};

use super::report::Report;

/// Weight of a new measurement in a mean, once there are a few.
const NEWEST: f64 = 0.1;

/// Measurements of one job on one type of accelerator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    samples: Vec<Mean>,
    stats: Option<GradientStats>,
    max_replicas: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Mean {
    sample: Sample,
    count: u32,
}

impl Learned {
    /// Takes in a report of an attempt on so many nodes and accelerators. `false`: it tells nothing about speed.
    pub fn take(&mut self, report: &Report, nodes: u32, replicas: u32) -> bool {
        if let (Some(sqr), Some(var)) = (report.grad_sqr, report.grad_var) {
            self.stats = Some(GradientStats { sqr, var });
        }
        let passes = report.accumulation.unwrap_or(0) + 1;
        let shared = |batch: u32| batch.div_ceil(replicas.max(1) * passes);
        let atomic = report.atomic_batch.or(report.batch_size.map(shared));
        let (Some(step), Some(atomic)) = (report.step_time_s.filter(|step| *step > 0.0), atomic) else { return false };
        if nodes == 0 || replicas < nodes || atomic == 0 {
            return false;
        }
        let sync_secs = report.sync_time_s.unwrap_or(0.0).min(step);
        let step_secs = (step - sync_secs) / f64::from(passes) + sync_secs;
        self.max_replicas = self.max_replicas.max(replicas);
        let same = |mean: &&mut Mean| {
            (mean.sample.nodes, mean.sample.replicas, mean.sample.atomic) == (nodes, replicas, atomic)
        };
        match self.samples.iter_mut().find(same) {
            None => {
                let sample = Sample { nodes, replicas, atomic, step_secs, sync_secs };
                self.samples.push(Mean { sample, count: 1 });
            }
            Some(mean) => {
                mean.count = mean.count.saturating_add(1);
                let weight = (1.0 / f64::from(mean.count)).max(NEWEST);
                mean.sample.step_secs += weight * (step_secs - mean.sample.step_secs);
                mean.sample.sync_secs += weight * (sync_secs - mean.sample.sync_secs);
            }
        }
        true
    }

    /// The throughput model that fits best; `None`: nothing is known.
    #[must_use]
    pub fn throughput(&self) -> Option<ThroughputParams> {
        let samples: Vec<Sample> = self.samples.iter().map(|mean| mean.sample).collect();
        (!samples.is_empty()).then(|| fit(&samples))
    }

    /// The newest gradient statistics.
    #[must_use]
    pub fn stats(&self) -> Option<GradientStats> {
        self.stats
    }

    /// Most accelerators it has run on: more than twice as many are beyond what is known (Pollux, section 4.1).
    #[must_use]
    pub fn max_replicas(&self) -> u32 {
        self.max_replicas
    }

    /// What was measured, by (nodes, replicas, atomic batch size): mean seconds of a step.
    #[must_use]
    pub fn measured(&self) -> BTreeMap<(u32, u32, u32), f64> {
        let key = |sample: &Sample| (sample.nodes, sample.replicas, sample.atomic);
        self.samples.iter().map(|mean| (key(&mean.sample), mean.sample.step_secs)).collect()
    }
}

#[cfg(test)]
mod tests {
    use goodput_env::model::BatchConfig;

    use super::*;
    use crate::bench_job::BenchJob;
    use crate::job::Fence;

    fn report(truth: &ThroughputParams, nodes: u32, replicas: u32, atomic: u32, accumulation: u32) -> Report {
        let step = truth.iter_time(nodes, replicas, BatchConfig { atomic, accumulation });
        let sync = truth.optim_time(nodes, replicas, atomic) - truth.grad_time(atomic);
        Report {
            atomic_batch: Some(atomic),
            accumulation: Some(accumulation),
            step_time_s: Some(step),
            sync_time_s: Some(sync),
            grad_sqr: Some(2.0),
            grad_var: Some(6.0),
            ..Report::new(Fence::from_text("f"), 0, 1)
        }
    }

    #[test]
    fn the_speed_of_a_job_never_seen_before_is_learned_from_its_reports() {
        let truth = BenchJob::default().throughput;
        let mut learned = Learned::default();
        assert_eq!(learned.throughput(), None);
        for (nodes, replicas, atomic, accumulation) in
            [(1, 1, 128, 0), (1, 1, 64, 1), (1, 2, 64, 0), (1, 4, 32, 0), (2, 4, 64, 0), (2, 8, 32, 2)]
        {
            assert!(learned.take(&report(&truth, nodes, replicas, atomic, accumulation), nodes, replicas));
        }
        let fitted = learned.throughput().unwrap();
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
        for k in 0..200 {
            let factor = if k % 2 == 0 { 1.2 } else { 0.8 };
            let noisy = Report { step_time_s: exact.step_time_s.map(|step| step * factor), ..exact.clone() };
            assert!(learned.take(&noisy, 1, 1));
        }
        let mean = learned.measured()[&(1, 1, 128)] / exact.step_time_s.unwrap();
        assert!((mean - 1.0).abs() < 0.05, "{mean}");
        let silent = Report::new(Fence::from_text("f"), 0, 1);
        assert!(!learned.take(&silent, 1, 1));
        assert!(!learned.take(&exact, 2, 1), "fewer accelerators than nodes");
    }
}
