//! Numbers of replicas of all jobs with the least sum of terms, if nodes did not matter: a multiple-choice knapsack.
//!
//! Dynamic programming solves the knapsack exactly, in jobs x accelerators x sizes. Most options of a long queue are
//! settled before it: [`super::reduction`] drops those that no optimum takes. A job with one option left costs a pass
//! over the accelerators and no choice to remember. What is chosen, ties included, is what the whole program chooses.

use super::reduction::Reduction;

/// A number of replicas and the term of the job that takes it.
pub(super) type ReplicaOption = (u32, f64);

/// Solver of the knapsack, with its buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct ReplicaCounts {
    /// Options of all jobs, job by job: replicas ascending from 0, terms descending.
    options: Vec<ReplicaOption>,
    /// End of each job's options.
    ends: Vec<usize>,
    reduction: Reduction,
    /// Least sum of terms by accelerators, over the jobs so far.
    least: Vec<f64>,
    /// The sums without the last job.
    before: Vec<f64>,
    /// Place of the option that a job takes of so many accelerators, among the job's own. Jobs with one option have
    /// no row.
    taken: Vec<u16>,
    chosen: Vec<u32>,
}

impl ReplicaCounts {
    /// Forgets all jobs.
    pub fn clear(&mut self) {
        self.options.clear();
        self.ends.clear();
    }

    /// Adds an option of the job that [`ReplicaCounts::end_job`] ends. Options that cost more accelerators and are no
    /// better are not kept. The first option of a job must be of 0 replicas.
    pub fn offer(&mut self, replicas: u32, term: f64) {
        let first = self.ends.last().copied().unwrap_or(0);
        if self.options.len() == first || self.options.last().is_some_and(|(_, best)| term < *best) {
            self.options.push((replicas, term));
        }
    }

    /// Ends a job's options.
    pub fn end_job(&mut self) {
        self.ends.push(self.options.len());
    }

    /// Chooses the replicas of each job: at most `total` together, for the least sum of terms.
    pub fn solve(&mut self, total: u32) {
        self.reduction.apply(&mut self.options, &mut self.ends, total);
        let columns = total as usize + 1;
        self.least.clear();
        // Without any job, every number of accelerators costs nothing.
        self.least.resize(columns, 0.0);
        self.taken.clear();
        let mut start = 0;
        for &end in &self.ends {
            std::mem::swap(&mut self.least, &mut self.before);
            self.least.clear();
            match &self.options[start..end] {
                [(replicas, term)] => append_only(*replicas as usize, *term, &self.before, &mut self.least),
                options => append_best(options, &self.before, &mut self.least, &mut self.taken),
            }
            start = end;
        }
        self.trace_back(columns);
    }

    /// Replicas that the last call of [`ReplicaCounts::solve`] chose, by job.
    pub fn chosen(&self) -> &[u32] {
        &self.chosen
    }

    fn trace_back(&mut self, columns: usize) {
        self.chosen.clear();
        self.chosen.resize(self.ends.len(), 0);
        let (mut left, mut row) = (columns - 1, self.taken.len());
        for job in (0..self.ends.len()).rev() {
            let start = if job == 0 { 0 } else { self.ends[job - 1] };
            let options = &self.options[start..self.ends[job]];
            let place = match options {
                [_] => 0,
                _ => {
                    row -= columns;
                    usize::from(self.taken[row + left])
                }
            };
            self.chosen[job] = options[place].0;
            left -= self.chosen[job] as usize;
        }
    }
}

/// Appends, for each number of accelerators, the sum of terms with a job of one option.
fn append_only(replicas: usize, term: f64, before: &[f64], least: &mut Vec<f64>) {
    least.resize(replicas.min(before.len()), f64::INFINITY);
    let sums = before[..before.len() - least.len()].iter().map(|before| before + term);
    least.extend(sums);
}

/// Columns of which the sums are settled together: no more than the first cache of a processor holds.
const BLOCK: usize = 512;

/// Appends, for each number of accelerators, the least sum of terms with one of a job's options and the place of that
/// option. `before` has the least sums without the job.
fn append_best(options: &[ReplicaOption], before: &[f64], least: &mut Vec<f64>, taken: &mut Vec<u16>) {
    for start in (0..before.len()).step_by(BLOCK) {
        let columns = start..before.len().min(start + BLOCK);
        let (mut sums, mut places) = ([f64::INFINITY; BLOCK], [0_u32; BLOCK]);
        // Option by option, so that the processor compares several sums at once.
        for (place, &(replicas, term)) in (0_u32..).zip(options) {
            let replicas = replicas as usize;
            // The first columns of the block may be fewer than the replicas.
            let skipped = replicas.saturating_sub(start).min(columns.len());
            let from = &before[(start + skipped).saturating_sub(replicas)..];
            let settled = sums[skipped..columns.len()].iter_mut().zip(&mut places[skipped..]);
            for ((sum, best), before) in settled.zip(from) {
                let with = before + term;
                (*sum, *best) = if with < *sum { (with, place) } else { (*sum, *best) };
            }
        }
        least.extend_from_slice(&sums[..columns.len()]);
        taken.extend(places[..columns.len()].iter().map(|&place| place as u16));
    }
}

#[cfg(test)]
mod tests {
    use goodput_env::seed::{Stream, rng};
    use rand::RngExt;

    use super::*;

    /// The whole program, without a reduction.
    fn whole(jobs: &[Vec<ReplicaOption>], total: u32) -> Vec<u32> {
        let columns = total as usize + 1;
        let (mut least, mut taken) = (vec![0.0; columns], Vec::new());
        for options in jobs {
            let before = std::mem::take(&mut least);
            append_best(options, &before, &mut least, &mut taken);
        }
        let mut left = total as usize;
        let mut chosen = vec![0; jobs.len()];
        for (job, options) in jobs.iter().enumerate().rev() {
            chosen[job] = options[usize::from(taken[job * columns + left])].0;
            left -= chosen[job] as usize;
        }
        chosen
    }

    fn reduced(jobs: &[Vec<ReplicaOption>], total: u32) -> (Vec<u32>, usize) {
        let mut counts = ReplicaCounts::default();
        for options in jobs {
            options.iter().for_each(|&(replicas, term)| counts.offer(replicas, term));
            counts.end_job();
        }
        counts.solve(total);
        (counts.chosen().to_vec(), counts.options.len())
    }

    /// Few distinct terms make ties the rule.
    fn problem(seed: u64) -> (Vec<Vec<ReplicaOption>>, u32) {
        let mut random = rng(seed, Stream::Workload);
        let kinds: Vec<Vec<ReplicaOption>> = (0..random.random_range(1..6))
            .map(|_| {
                let mut options = vec![(0, f64::from(random.random_range(5..20)))];
                for replicas in 1..random.random_range(2..9) {
                    let (_, last) = options[options.len() - 1];
                    let term = match random.random_range(0..3) {
                        0 => last - f64::from(random.random_range(0..4)),
                        1 => last * random.random_range(0.5..1.0),
                        _ => last / 2.0,
                    };
                    if term < last && random.random_range(0..3) > 0 {
                        options.push((replicas, term));
                    }
                }
                options
            })
            .collect();
        let jobs = (0..random.random_range(1..40)).map(|_| kinds[random.random_range(0..kinds.len())].clone());
        (jobs.collect(), random.random_range(0..80))
    }

    #[test]
    fn the_reduction_changes_no_choice() {
        let (mut before, mut after) = (0, 0);
        for seed in 0..3_000 {
            let (jobs, total) = problem(seed);
            let (chosen, options) = reduced(&jobs, total);
            assert_eq!(chosen, whole(&jobs, total), "seed {seed}");
            before += jobs.iter().map(Vec::len).sum::<usize>();
            after += options;
        }
        assert!(3 * after < 2 * before, "{after} of {before} options are left");
    }

    #[test]
    fn terms_without_bound_are_chosen_as_without_a_reduction() {
        let jobs =
            vec![vec![(0, f64::INFINITY), (2, 1.0)], vec![(0, 5.0), (1, 2.0)], vec![(0, 7.0), (1, 6.0), (2, 1.0)]];
        assert_eq!(reduced(&jobs, 4).0, whole(&jobs, 4));
        assert_eq!(reduced(&jobs, 4).0, [2, 0, 2]);
    }
}
