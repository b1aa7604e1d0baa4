//! Forecast of a job's remaining run time under batch sizes that change (Shockwave, section 5).
//!
//! The batch sizes of a job's epochs are draws from a categorical distribution with a Dirichlet prior: all batch sizes
//! that the job may use count equally. Each epoch that has run adds one to its batch size.

use goodput_env::cluster::TypeId;
use goodput_env::job::JobId;
use goodput_env::view::JobView;

/// Epochs of a job for which no epochs are known.
const PARTS: f64 = 100.0;

/// Consecutive epochs of one batch size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpochRun {
    /// Number of epochs.
    pub epochs: u32,
    /// Run time of one of them, seconds.
    pub secs: f64,
}

/// Active job as Shockwave plans with it.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedJob {
    /// Identifier of the job.
    pub id: JobId,
    /// Accelerators of the job.
    pub gpus: u32,
    /// Time of submission, seconds.
    pub submit_secs: f64,
    /// Epochs that are done.
    pub done: u32,
    /// All epochs in their order.
    pub runs: Vec<EpochRun>,
}

impl PlannedJob {
    /// The job of `view` on accelerators of type `kind`, with `left` work to do; `None` where it cannot run there.
    pub fn new(view: &JobView<'_>, kind: TypeId, left: f64) -> Option<Self> {
        let request = view.request();
        let done = view.done_work();
        let total = (done + left).max(f64::MIN_POSITIVE);
        let stages = view.class().map_or(1, goodput_env::job::JobClass::stages);
        let epoch = view.class().and_then(|class| class.steps_per_epoch).unwrap_or(total / PARTS);
        let epochs = (total / epoch).ceil().max(1.0);
        let mut runs = Vec::with_capacity(stages);
        let mut begins = 0.0;
        for stage in 0..stages {
            let rate = match view.class() {
                Some(_) => view.stage_rate(stage, kind)?,
                None => view.rate_on(kind, request.gpus)?,
            };
            let ends = view.class().map_or(f64::INFINITY, |class| class.stage_end(stage));
            let ends = (ends / epoch).round().min(epochs);
            if ends > begins && rate > 0.0 {
                runs.push(EpochRun { epochs: (ends - begins) as u32, secs: epoch / rate });
                begins = ends;
            }
        }
        let done = ((done / epoch) as u32).min(epochs as u32);
        let submit_secs = request.submit.as_secs_f64();
        (!runs.is_empty()).then_some(Self { id: view.id(), gpus: request.gpus, submit_secs, done, runs })
    }

    /// Number of epochs.
    pub fn epochs(&self) -> u32 {
        self.runs.iter().map(|run| run.epochs).sum()
    }

    /// Run time of the first `epochs` epochs, seconds.
    pub fn first_secs(&self, epochs: u32) -> f64 {
        let mut left = epochs;
        let secs = self.runs.iter().map(|run| {
            let here = run.epochs.min(left);
            left -= here;
            f64::from(here) * run.secs
        });
        secs.sum()
    }

    /// Mean run time of an epoch up to the present one, seconds.
    pub fn mean_epoch_secs(&self) -> f64 {
        let begun = (self.done + 1).min(self.epochs());
        self.first_secs(begun) / f64::from(begun)
    }

    /// Expected run time of the epochs that are left, seconds; one second where none is.
    pub fn remaining_secs(&self) -> f64 {
        let epochs = self.epochs();
        let left = epochs.saturating_sub(self.done);
        if left == 0 {
            return 1.0;
        }
        let sizes = BatchSizes::of(self);
        let count = f64::from(epochs);
        let prior = count / sizes.0.len() as f64;
        let begun: f64 = sizes.0.iter().map(|size| f64::from(size.begun)).sum();
        // Epochs of each size over the whole job, and of those the ones that have not begun.
        let ahead = sizes.0.iter().map(|size| {
            let expected = count * (prior + f64::from(size.begun)) / (count + begun);
            (expected - f64::from(size.begun).min(expected.floor()), size.secs)
        });
        let (all, secs) = ahead.fold((0.0, 0.0), |(all, total), (epochs, secs)| (all + epochs, total + epochs * secs));
        // The expected numbers need not add up to what is left.
        secs * f64::from(left) / (all + 1.0).floor().max(f64::from(left))
    }
}

/// Batch sizes of a job, told apart by the run times of their epochs.
struct BatchSizes(Vec<BatchSize>);

struct BatchSize {
    secs: f64,
    /// Epochs of the size that have begun.
    begun: u32,
}

impl BatchSizes {
    fn of(job: &PlannedJob) -> Self {
        let mut sizes: Vec<BatchSize> = Vec::new();
        let mut left = job.done + 1;
        for run in &job.runs {
            let begun = run.epochs.min(left);
            left -= begun;
            match sizes.iter_mut().find(|size| size.secs.to_bits() == run.secs.to_bits()) {
                Some(size) => size.begun += begun,
                None => sizes.push(BatchSize { secs: run.secs, begun }),
            }
        }
        Self(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(done: u32, runs: &[(u32, f64)]) -> PlannedJob {
        let runs = runs.iter().map(|&(epochs, secs)| EpochRun { epochs, secs }).collect();
        PlannedJob { id: JobId(0), gpus: 1, submit_secs: 0.0, done, runs }
    }

    #[test]
    fn a_job_of_one_batch_size_is_known_exactly() {
        // Ten epochs of 30 s, four of them done. The fifth has begun, which the posterior counts as passed.
        let job = job(4, &[(10, 30.0)]);
        assert_eq!(job.first_secs(4), 120.0);
        assert_eq!(job.mean_epoch_secs(), 30.0);
        let expected = (10.0 - 5.0) * 30.0 * 6.0 / 6.0;
        assert!((job.remaining_secs() - expected).abs() < 1e-9, "{}", job.remaining_secs());
    }

    #[test]
    fn the_posterior_moves_towards_the_batch_size_that_is_seen() {
        // Before the job starts both sizes count alike; the longer the slow one runs, the more of it is expected.
        let runs = [(50, 40.0), (50, 10.0)];
        let mean = |done: u32| job(done, &runs).remaining_secs() / f64::from(100 - done);
        assert!((mean(0) - 25.0).abs() < 0.5, "{}", mean(0));
        assert!(mean(40) < mean(0) && mean(40) > 10.0, "slow epochs that ran are not ahead any more: {}", mean(40));
        assert_eq!(job(100, &runs).remaining_secs(), 1.0);
    }
}
