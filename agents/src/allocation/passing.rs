//! Preemptive admission in an order, where jobs that do not fit are passed over.
//!
//! The rule: jobs are walked in order, each gets its accelerators if they are left, and what the jobs before it got is
//! not left. Jobs that hold accelerators and get none are stopped. [`admit`] finds what such a walk changes without a
//! walk over the jobs that it leaves as they are. Two facts make that possible.
//!
//! - What is left only falls along the walk. Once a waiting job of some width does not fit, no later one of its width
//!   does, so each further waiting job that is looked at starts or ends its width.
//! - Until a holder is stopped, a place in the order is left the free accelerators and those of all holders behind it,
//!   less those that waiting jobs before it were given. So holders are counted from the last one, and no further than
//!   up to the accelerators that are asked for.

use std::iter::Peekable;

use goodput_env::job::JobId;

/// A job that holds accelerators.
#[derive(Clone, Copy, Debug)]
pub struct Holder<K> {
    /// Place of the job in the order.
    pub key: K,
    /// The job.
    pub job: JobId,
    /// Accelerators that it holds and asks for.
    pub gpus: u32,
}

/// Waiting jobs that ask for one number of accelerators.
pub struct Waiting<I: Iterator> {
    gpus: u32,
    jobs: Peekable<I>,
}

impl<I: Iterator> Waiting<I> {
    /// Jobs that ask for `gpus` accelerators each, in order.
    pub fn new(gpus: u32, jobs: I) -> Self {
        Self { gpus, jobs: jobs.peekable() }
    }
}

/// Change of what a job holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The waiting job starts.
    Start(JobId),
    /// The holder is stopped.
    Stop(JobId),
}

/// Holders from the last one, as far as they have been looked at.
struct Tail<K, H> {
    rest: H,
    /// Each with the accelerators of the holders behind it.
    seen: Vec<(Holder<K>, u32)>,
    /// Accelerators of all of them.
    gpus: u32,
}

impl<K: Ord + Copy, H: Iterator<Item = Holder<K>>> Tail<K, H> {
    /// Looks at holders behind `key`, until they hold `enough`.
    fn look(&mut self, key: K, enough: u32) {
        while self.gpus < enough
            && self.seen.last().is_none_or(|(last, _)| last.key > key)
            && let Some(holder) = self.rest.next()
        {
            self.seen.push((holder, self.gpus));
            self.gpus += holder.gpus;
        }
    }

    /// Accelerators of the holders behind `key` that have been looked at.
    fn behind(&self, key: K) -> u32 {
        let count = self.seen.partition_point(|(holder, _)| holder.key > key);
        self.seen.get(count).map_or(self.gpus, |(_, behind)| *behind)
    }
}

/// Changes of a walk, in its order. `free` accelerators are not held; `holders` come from the last one in order.
pub fn admit<K: Ord + Copy, I: Iterator<Item = (K, JobId)>>(
    free: u32,
    holders: impl Iterator<Item = Holder<K>>,
    mut waiting: Vec<Waiting<I>>,
) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let mut tail = Tail { rest: holders, seen: Vec::new(), gpus: 0 };
    // Accelerators that waiting jobs were given so far, and the place of the last one.
    let (mut given, mut last): (u32, Option<K>) = (0, None);
    // The walk goes on holder by holder from the first that is stopped.
    let mut next_holder = 0;
    let mut left: Option<u32> = None;
    loop {
        let head = first(&mut waiting);
        if left.is_none()
            && let Some(last) = last
            && given > free
        {
            // What is given beyond what is free comes from holders; enough of them are looked at to know the first.
            tail.look(last, given - free);
            let stopped = |(holder, behind): &(Holder<K>, u32)| holder.key > last && *behind < given - free;
            let count = tail.seen.partition_point(stopped);
            let stops = count.checked_sub(1).map(|at| tail.seen[at]);
            if let Some((holder, behind)) = stops.filter(|(holder, _)| head.is_none_or(|(_, key)| key > holder.key)) {
                left = Some(free + behind + holder.gpus - given);
                next_holder = count;
            }
        }
        let holder = left.and(next_holder.checked_sub(1)).map(|at| tail.seen[at].0);
        match (head, holder, &mut left) {
            (head, Some(holder), Some(left)) if head.is_none_or(|(_, key)| key > holder.key) => {
                next_holder -= 1;
                match left.checked_sub(holder.gpus) {
                    Some(rest) => *left = rest,
                    None => verdicts.push(Verdict::Stop(holder.job)),
                }
            }
            (Some((at, key)), _, left) => {
                let gpus = waiting[at].gpus;
                let fits = match left {
                    Some(left) => left.checked_sub(gpus).inspect(|rest| *left = *rest).is_some(),
                    None => {
                        tail.look(key, (given + gpus).saturating_sub(free));
                        free + tail.behind(key) >= given + gpus
                    }
                };
                if !fits {
                    waiting.swap_remove(at);
                } else if let Some((key, job)) = waiting[at].jobs.next() {
                    verdicts.push(Verdict::Start(job));
                    (given, last) = (given + gpus, Some(key));
                }
            }
            (None, ..) => return verdicts,
        }
    }
}

/// The waiting job that comes first: the index of its width, and its place.
fn first<K: Ord + Copy, I: Iterator<Item = (K, JobId)>>(waiting: &mut [Waiting<I>]) -> Option<(usize, K)> {
    let heads = waiting.iter_mut().enumerate().filter_map(|(at, of_width)| Some((at, of_width.jobs.peek()?.0)));
    heads.min_by_key(|(_, key)| *key)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// The rule itself: a walk over all jobs.
    fn walk(free: u32, jobs: &[(u32, bool)]) -> Vec<Verdict> {
        let mut left = free + jobs.iter().filter(|(_, holds)| *holds).map(|(gpus, _)| gpus).sum::<u32>();
        let mut verdicts = Vec::new();
        for (id, &(gpus, holds)) in (0..).zip(jobs) {
            match left.checked_sub(gpus) {
                Some(rest) => {
                    left = rest;
                    verdicts.extend((!holds).then_some(Verdict::Start(JobId(id))));
                }
                None => verdicts.extend(holds.then_some(Verdict::Stop(JobId(id)))),
            }
        }
        verdicts
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        /// The changes are those of a walk over all jobs.
        #[test]
        fn equals_a_walk_over_all_jobs(
            free in 0_u32..12,
            jobs in prop::collection::vec((prop::sample::select(vec![1, 2, 3, 4, 8]), any::<bool>()), 0..40),
        ) {
            let holders = (0..).zip(&jobs).filter(|(_, (_, holds))| *holds);
            let holders: Vec<Holder<u32>> =
                holders.map(|(key, &(gpus, _))| Holder { key, job: JobId(key), gpus }).collect();
            let mut widths: BTreeMap<u32, Vec<(u32, JobId)>> = BTreeMap::new();
            for (key, &(gpus, _)) in (0..).zip(&jobs).filter(|(_, (_, holds))| !holds) {
                widths.entry(gpus).or_default().push((key, JobId(key)));
            }
            let waiting = widths.into_iter().map(|(gpus, jobs)| Waiting::new(gpus, jobs.into_iter())).collect();
            prop_assert_eq!(admit(free, holders.into_iter().rev(), waiting), walk(free, &jobs));
        }
    }
}
