//! Instance and result of an allocation: throughputs, and shares of time by job and accelerator
//! type.

/// Jobs, accelerator types, and the throughput of each job on each type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GavelInstance {
    /// Accelerators of each type.
    pub counts: Vec<u32>,
    /// Active jobs that take part.
    pub jobs: Vec<GavelJob>,
    /// Job combinations: row `i` is job `i` alone for every job; pairs that share accelerators come
    /// after those.
    pub rows: Vec<CombinationRow>,
}

/// Job of an instance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GavelJob {
    /// Number of accelerators that the job runs on: all or none.
    pub gpus: u32,
    /// Weight in fair sharing; 1 is usual.
    pub weight: f64,
    /// Work left, steps.
    pub steps_left: f64,
    /// Time since submission, seconds.
    pub age_secs: f64,
    /// Time that the steps done so far would have taken under
    /// [`isolated`](super::isolated::isolated) shares, seconds.
    pub isolated_secs: f64,
}

impl GavelJob {
    /// A job on `gpus` accelerators, just submitted, of weight 1.
    pub fn new(gpus: u32, steps_left: f64) -> Self {
        Self { gpus, weight: 1.0, steps_left, age_secs: 0.0, isolated_secs: 0.0 }
    }
}

/// Job combination: one job alone, or two of equal size that share accelerators.
#[derive(Clone, Debug, PartialEq)]
pub struct CombinationRow {
    /// Index of the job, or of the first of two.
    pub first: usize,
    /// Index of the second of two.
    pub second: Option<usize>,
    /// Steps per second of the first and the second job by accelerator type; `None` where the
    /// combination was not measured or does not fit.
    pub rates: Vec<Option<[f64; 2]>>,
}

impl CombinationRow {
    /// One job alone.
    pub fn single(job: usize, rates: impl IntoIterator<Item = Option<f64>>) -> Self {
        let rates = rates.into_iter().map(|rate| rate.map(|rate| [rate, 0.0])).collect();
        Self { first: job, second: None, rates }
    }

    /// Steps per second of `job` on accelerator type `kind`; `None` where the job is not in this
    /// row or cannot run.
    pub fn rate_of(&self, job: usize, kind: usize) -> Option<f64> {
        let rates = self.rates[kind]?;
        match job {
            _ if job == self.first => Some(rates[0]),
            _ if Some(job) == self.second => Some(rates[1]),
            _ => None,
        }
    }
}

impl GavelInstance {
    /// An instance of jobs that do not share accelerators, with their steps per second by type.
    pub fn new(counts: Vec<u32>, jobs: Vec<GavelJob>, rates: Vec<Vec<Option<f64>>>) -> Self {
        let rows = rates.into_iter().enumerate().map(|(job, rates)| CombinationRow::single(job, rates)).collect();
        Self { counts, jobs, rows }
    }

    /// Number of accelerator types.
    pub fn kinds(&self) -> usize {
        self.counts.len()
    }

    /// Number of accelerators of all types.
    pub fn total(&self) -> u32 {
        self.counts.iter().sum()
    }

    /// Steps per second of `job` alone by type.
    pub fn rates(&self, job: usize) -> impl Iterator<Item = Option<f64>> + '_ {
        self.rows[job].rates.iter().map(|rates| rates.map(|[rate, _]| rate))
    }

    /// Steps per second of `job` with an equal share of every accelerator: the mean of its speeds,
    /// weighted by the number of accelerators of each type; zero where the job does not fit. Fair
    /// objectives normalise speeds by it.
    pub fn proportional_rate(&self, job: usize) -> f64 {
        let sum: f64 =
            self.rates(job).zip(&self.counts).map(|(rate, &count)| f64::from(count) * rate.unwrap_or(0.0)).sum();
        sum / f64::from(self.total())
    }

    /// Instance in which the speeds of each job are divided by `divisor(job)`.
    pub fn divided(&self, divisor: impl Fn(usize) -> f64) -> Self {
        let mut divided = self.clone();
        for row in &mut divided.rows {
            let by = [divisor(row.first), row.second.map_or(1.0, &divisor)];
            for rates in row.rates.iter_mut().flatten() {
                *rates = [rates[0] / by[0], rates[1] / by[1]];
            }
        }
        divided
    }

    /// Instance as seen by a scheduler that does not know speeds of types: each job has `rate(job)`
    /// on every type.
    pub fn unaware(&self, rate: impl Fn(usize) -> f64) -> Self {
        let mut unaware = self.clone();
        for row in &mut unaware.rows {
            let pair = [rate(row.first), row.second.map_or(0.0, &rate)];
            for rates in &mut row.rates {
                *rates = rates.map(|_| pair);
            }
        }
        unaware
    }
}

/// Shares of time, in [0, 1], by row and accelerator type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeShares {
    kinds: usize,
    shares: Vec<f64>,
}

impl TimeShares {
    /// No time for any row.
    pub fn zero(instance: &GavelInstance) -> Self {
        Self { kinds: instance.kinds(), shares: vec![0.0; instance.rows.len() * instance.kinds()] }
    }

    /// Share of time of row `row` on each type.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.shares[row * self.kinds..(row + 1) * self.kinds]
    }

    /// Share of time of row `row` on each type, to be changed.
    pub fn row_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.shares[row * self.kinds..(row + 1) * self.kinds]
    }

    /// Steps per second that `job` gets in the long run.
    pub fn rate(&self, instance: &GavelInstance, job: usize) -> f64 {
        let parts = instance.rows.iter().enumerate().filter(|(_, row)| row.first == job || row.second == Some(job));
        parts
            .map(|(at, row)| {
                let shares = self.row(at).iter().enumerate();
                shares.map(|(kind, share)| row.rate_of(job, kind).unwrap_or(0.0) * share).sum::<f64>()
            })
            .sum()
    }

    /// Largest violation of a constraint: a share below 0, a job with more than all of its time,
    /// more accelerators of a type than there are. Zero or tiny for a feasible allocation.
    pub fn violation(&self, instance: &GavelInstance) -> f64 {
        let mut worst = self.shares.iter().map(|share| -share).fold(0.0, f64::max);
        for job in 0..instance.jobs.len() {
            let rows = instance.rows.iter().enumerate().filter(|(_, row)| row.first == job || row.second == Some(job));
            let time: f64 = rows.map(|(at, _)| self.row(at).iter().sum::<f64>()).sum();
            worst = worst.max(time - 1.0);
        }
        for (kind, &count) in instance.counts.iter().enumerate() {
            let rows = instance.rows.iter().enumerate();
            let held: f64 = rows.map(|(at, row)| f64::from(instance.jobs[row.first].gpus) * self.row(at)[kind]).sum();
            worst = worst.max(held - f64::from(count));
        }
        worst
    }
}
