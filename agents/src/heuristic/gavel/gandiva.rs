//! Gandiva's packing (Xiao et al., OSDI'18) as Gavel's evaluation models it: when there are more
//! jobs than accelerators, random pairs share accelerators, and a pair is given up when it is
//! slower together than one job after the other.
//!
//! Time is shared equally among pairs and single jobs; speeds of types play no part.

use goodput_env::job::JobId;
use goodput_env::seed::{Stream, rng};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::form::GavelForm;
use super::instance::{GavelInstance, TimeShares};
use super::python_random::PythonRandom;

/// Generator that draws pairs.
#[derive(Clone, Debug)]
enum PairDraws {
    /// The project's own stream.
    Own(Box<ChaCha8Rng>),
    /// Python's generator, for replicas.
    Python(Box<PythonRandom>),
}

impl PairDraws {
    fn two_of(&mut self, len: usize) -> [usize; 2] {
        match self {
            Self::Own(random) => {
                let first = random.random_range(0..len);
                // Drawing from one number fewer and replacing a hit keeps all pairs equally likely.
                let second = random.random_range(0..len - 1);
                [first, if second == first { len - 1 } else { second }]
            }
            Self::Python(random) => random.two_of(len),
        }
    }
}

/// Pairs that have been drawn and kept.
#[derive(Clone, Debug)]
pub struct GandivaPairs {
    draws: PairDraws,
    /// Jobs with their partner, ascending. A job without a partner stays alone as long as there is
    /// a queue.
    assigned: Vec<(JobId, Option<JobId>)>,
}

impl GandivaPairs {
    /// No pairs yet. The artifact's pairs are drawn as Python draws, and kept as the artifact keeps
    /// them.
    pub fn new(seed: u64, form: GavelForm) -> Self {
        let draws = match form {
            GavelForm::Artifact => PairDraws::Python(Box::new(PythonRandom::new(seed))),
            _ => PairDraws::Own(Box::new(rng(seed, Stream::Policy))),
        };
        Self { draws, assigned: Vec::new() }
    }

    /// Equal shares for all pairs and single jobs. Pairs are rows of the instance; a pair without a
    /// row cannot be formed.
    pub fn allocate(&mut self, instance: &GavelInstance, ids: &[JobId]) -> TimeShares {
        let row_of = |one: JobId, other: JobId| {
            let find = |id| ids.binary_search(&id).ok();
            let (one, other) = (find(one.min(other))?, find(one.max(other))?);
            let pairs = instance.rows.iter().skip(ids.len());
            let at = pairs.into_iter().position(|row| row.first == one && row.second == Some(other))?;
            Some(ids.len() + at)
        };
        // The artifact compares the sum of gains over all types with 1; the mean is meant.
        let enough = match self.draws {
            PairDraws::Own(_) => instance.kinds() as f64,
            PairDraws::Python(_) => 1.0,
        };
        // Single jobs are drawn again each time; so are pairs that lost a job or are slower
        // together.
        let kept = |&(job, partner): &(JobId, Option<JobId>)| {
            partner.and_then(|partner| row_of(job, partner)).is_some_and(|row| together(instance, row) >= enough)
        };
        self.assigned.retain(kept);
        let asked: u32 = instance.jobs.iter().map(|job| job.gpus).sum();
        let rows: Vec<usize> = if asked <= instance.total() {
            (0..ids.len()).collect()
        } else {
            self.pair_up(instance, ids, row_of);
            let row = |&(job, partner): &(JobId, Option<JobId>)| match partner {
                None => ids.binary_search(&job).ok(),
                // A pair stands in the list twice, and its row is taken once.
                Some(partner) if partner > job => row_of(job, partner),
                Some(_) => None,
            };
            self.assigned.iter().filter_map(row).collect()
        };
        let mut allocation = TimeShares::zero(instance);
        for &row in &rows {
            let gpus = f64::from(instance.jobs[instance.rows[row].first].gpus);
            let share = |count: u32| f64::from(count) / rows.len() as f64 / gpus;
            let time: f64 = instance.counts.iter().map(|&count| share(count)).sum();
            for (of_kind, &count) in allocation.row_mut(row).iter_mut().zip(&instance.counts) {
                // No pair and no job can have more than all of its time.
                *of_kind = share(count) / time.max(1.0);
            }
        }
        allocation
    }

    fn pair_up(&mut self, instance: &GavelInstance, ids: &[JobId], row_of: impl Fn(JobId, JobId) -> Option<usize>) {
        let known = |job: &JobId| self.assigned.binary_search_by_key(job, |(job, _)| *job).is_ok();
        let mut left: Vec<JobId> = ids.iter().copied().filter(|job| !known(job)).collect();
        for _ in 0..left.len() {
            if left.len() < 2 {
                break;
            }
            let [one, other] = self.draws.two_of(left.len()).map(|at| left[at]);
            let gpus = |id: JobId| ids.binary_search(&id).ok().map(|job| instance.jobs[job].gpus);
            // A draw of two jobs that cannot share is lost, which bounds the number of draws.
            if gpus(one) == gpus(other) && row_of(one, other).is_some() {
                left.retain(|&job| job != one && job != other);
                self.assigned.extend([(one, Some(other)), (other, Some(one))]);
            }
        }
        self.assigned.extend(left.into_iter().map(|job| (job, None)));
        self.assigned.sort_unstable();
    }
}

/// Speeds of both jobs of a pair relative to being alone, summed over types; zero where one job
/// cannot run beside the other.
fn together(instance: &GavelInstance, row: usize) -> f64 {
    let pair = &instance.rows[row];
    let Some(second) = pair.second else { return 0.0 };
    let of_kind = |kind: usize| {
        let [one, other] = pair.rates[kind]?;
        let alone = [instance.rows[pair.first].rates[kind]?[0], instance.rows[second].rates[kind]?[0]];
        (one > 0.0 && other > 0.0).then_some(one / alone[0] + other / alone[1])
    };
    (0..instance.kinds()).map(of_kind).sum::<Option<f64>>().unwrap_or(0.0)
}
