//! What an allocation is computed from, and what it is: shares of time by job and accelerator type.

/// Jobs, accelerator types, and how fast each job is on each type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instance {
    /// Accelerators of each type.
    pub counts: Vec<u32>,
    /// The jobs.
    pub jobs: Vec<Job>,
    /// What can run: row `i` is job `i` alone for every job; pairs that share accelerators come after those.
    pub rows: Vec<Row>,
}

/// A job as an allocation sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Job {
    /// Accelerators it runs on: all or none.
    pub gpus: u32,
    /// Its weight where jobs share fairly; 1 is usual.
    pub weight: f64,
    /// Work left, steps.
    pub steps_left: f64,
    /// Time since submission, seconds.
    pub age_secs: f64,
    /// How long what it has done so far would have taken under [`isolated`](super::isolated::isolated) shares, seconds.
    pub isolated_secs: f64,
}

impl Job {
    /// A job on `gpus` accelerators, just submitted, of weight 1.
    pub fn new(gpus: u32, steps_left: f64) -> Self {
        Self { gpus, weight: 1.0, steps_left, age_secs: 0.0, isolated_secs: 0.0 }
    }
}

/// One job alone, or two of the same size that share their accelerators.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The job, or the first of two.
    pub first: usize,
    /// The second of two.
    pub second: Option<usize>,
    /// Steps per second of the first and the second job by accelerator type; `None` where it was not measured or does not fit.
    pub rates: Vec<Option<[f64; 2]>>,
}

impl Row {
    /// A job alone.
    pub fn single(job: usize, rates: impl IntoIterator<Item = Option<f64>>) -> Self {
        let rates = rates.into_iter().map(|rate| rate.map(|rate| [rate, 0.0])).collect();
        Self { first: job, second: None, rates }
    }

    /// Steps per second of `job` on accelerator type `kind`; `None` where it has no part in this row or cannot run.
    pub fn rate_of(&self, job: usize, kind: usize) -> Option<f64> {
        let rates = self.rates[kind]?;
        match job {
            _ if job == self.first => Some(rates[0]),
            _ if Some(job) == self.second => Some(rates[1]),
            _ => None,
        }
    }
}

impl Instance {
    /// Jobs that do not share accelerators, with their steps per second by type.
    pub fn new(counts: Vec<u32>, jobs: Vec<Job>, rates: Vec<Vec<Option<f64>>>) -> Self {
        let rows = rates.into_iter().enumerate().map(|(job, rates)| Row::single(job, rates)).collect();
        Self { counts, jobs, rows }
    }

    /// Number of accelerator types.
    pub fn kinds(&self) -> usize {
        self.counts.len()
    }

    /// Accelerators of all types.
    pub fn total(&self) -> u32 {
        self.counts.iter().sum()
    }

    /// Steps per second of `job` alone by type.
    pub fn rates(&self, job: usize) -> impl Iterator<Item = Option<f64>> + '_ {
        self.rows[job].rates.iter().map(|rates| rates.map(|[rate, _]| rate))
    }

    /// Steps per second of `job` if it has the same share of every accelerator: the mean of its speeds, weighted by the number of
    /// accelerators of each type; zero where it does not fit. What others normalise speeds by.
    pub fn proportional_rate(&self, job: usize) -> f64 {
        let sum: f64 =
            self.rates(job).zip(&self.counts).map(|(rate, &count)| f64::from(count) * rate.unwrap_or(0.0)).sum();
        sum / f64::from(self.total())
    }

    /// The same instance as a scheduler sees it that does not know how types differ: each job is everywhere as fast as
    /// `rate(job)` says.
    pub fn blind(&self, rate: impl Fn(usize) -> f64) -> Self {
        let mut blind = self.clone();
        for row in &mut blind.rows {
            let pair = [rate(row.first), row.second.map_or(0.0, &rate)];
            for rates in &mut row.rates {
                *rates = rates.map(|_| pair);
            }
        }
        blind
    }
}

/// Shares of time, in [0, 1], by row and accelerator type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allocation {
    kinds: usize,
    shares: Vec<f64>,
}

impl Allocation {
    /// Nothing for anybody.
    pub fn zero(instance: &Instance) -> Self {
        Self { kinds: instance.kinds(), shares: vec![0.0; instance.rows.len() * instance.kinds()] }
    }

    /// Share of time of row `row` on each type.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.shares[row * self.kinds..(row + 1) * self.kinds]
    }

    /// The same, to be changed.
    pub fn row_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.shares[row * self.kinds..(row + 1) * self.kinds]
    }

    /// Steps per second that `job` gets in the long run.
    pub fn rate(&self, instance: &Instance, job: usize) -> f64 {
        let parts = instance.rows.iter().enumerate().filter(|(_, row)| row.first == job || row.second == Some(job));
        parts
            .map(|(at, row)| {
                let shares = self.row(at).iter().enumerate();
                shares.map(|(kind, share)| row.rate_of(job, kind).unwrap_or(0.0) * share).sum::<f64>()
            })
            .sum()
    }

    /// By how much the allocation breaks the rules at worst: a share below 0, a job with more than all of its time, more
    /// accelerators of a type than there are. Zero or tiny for a feasible one.
    pub fn violation(&self, instance: &Instance) -> f64 {
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
