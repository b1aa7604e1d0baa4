//! The queues of Tiresias as one line, in which a decision touches only the jobs that change.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use goodput_env::job::JobId;
use goodput_env::time::SimTime;

use crate::allocation::passing::{Holder, Verdict, Waiting, admit};
use crate::placement::Consolidation;

/// Part of a queue, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// Jobs in order of entry, or of their index; where running jobs go first, the running ones.
    Front,
    /// Where running jobs go first, the waiting ones.
    Back,
    /// Where running jobs go first, jobs that entered in this decision.
    Entered,
}

/// Place of a job in the line: its queue, the part of it, and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub queue: usize,
    pub part: Part,
    pub number: i64,
}

/// A job in a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueuedJob {
    pub job: JobId,
    pub gpus: u32,
    pub submit: SimTime,
    /// Requirement of the model on the number of nodes.
    pub consolidation: Consolidation,
    /// Whether the job is to hold accelerators since the last decision.
    pub running: bool,
    /// Wall time with accelerators at `since`.
    pub executed: SimTime,
    /// Time in `executed` from before the last promotion.
    pub forgiven: SimTime,
    /// Time spent waiting after a run, since the last promotion, at `since`.
    pub waited: SimTime,
    /// Decision at which the times above were true.
    pub since: SimTime,
    /// Index of the job's service, where the queue is ordered by one; NaN: out of date.
    pub rank: f64,
    pub at: Position,
    /// Moment at which the job is to change its queue.
    pub due: SimTime,
}

impl QueuedJob {
    /// Wall time that counts as service, at `since`.
    pub fn counted(&self) -> SimTime {
        self.executed - self.forgiven
    }
}

/// Jobs in order of (queue, position).
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    jobs: HashMap<JobId, QueuedJob>,
    /// Jobs that hold accelerators.
    holders: BTreeMap<Position, JobId>,
    /// Jobs that hold none, by the accelerators that they ask for.
    waiting: BTreeMap<u32, BTreeMap<Position, JobId>>,
    due: BTreeSet<(SimTime, JobId)>,
    /// By queue and part: numbers that were given out at the front and at the back.
    numbers: BTreeMap<(usize, Part), (i64, i64)>,
}

impl Line {
    /// Number of jobs.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// A job of the line.
    pub fn get(&self, job: JobId) -> Option<&QueuedJob> {
        self.jobs.get(&job)
    }

    /// Jobs of the line, in no order.
    pub fn jobs(&self) -> impl Iterator<Item = &QueuedJob> {
        self.jobs.values()
    }

    /// Jobs that hold accelerators, in order.
    pub fn holders(&self) -> impl Iterator<Item = &QueuedJob> {
        self.holders.values().filter_map(|job| self.jobs.get(job))
    }

    /// The first moment at which a job is to change its queue.
    pub fn next_due(&self) -> Option<SimTime> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Jobs that are to have changed their queue by `now`.
    pub fn due_by(&self, now: SimTime) -> impl Iterator<Item = JobId> {
        self.due.iter().take_while(move |(at, _)| *at <= now).map(|(_, job)| *job)
    }

    /// Takes a job out of the line.
    pub fn remove(&mut self, job: JobId) -> Option<QueuedJob> {
        let entry = self.jobs.remove(&job)?;
        self.due.remove(&(entry.due, job));
        match entry.running {
            true => self.holders.remove(&entry.at),
            false => self.waiting.get_mut(&entry.gpus).and_then(|waiting| waiting.remove(&entry.at)),
        };
        Some(entry)
    }

    /// Puts a job at its place.
    pub fn insert(&mut self, entry: QueuedJob) {
        match entry.running {
            true => self.holders.insert(entry.at, entry.job),
            false => self.waiting.entry(entry.gpus).or_default().insert(entry.at, entry.job),
        };
        if entry.due < SimTime::NEVER {
            self.due.insert((entry.due, entry.job));
        }
        self.jobs.insert(entry.job, entry);
    }

    /// Those among `jobs` that `wanted` names, each once, in order.
    pub fn in_order(&self, jobs: &[JobId], wanted: impl Fn(&QueuedJob) -> bool) -> Vec<QueuedJob> {
        let entries = jobs.iter().filter_map(|&job| self.get(job)).filter(|entry| wanted(entry));
        let mut entries: Vec<QueuedJob> = entries.copied().collect();
        entries.sort_unstable_by_key(|entry| entry.at);
        entries.dedup_by_key(|entry| entry.at);
        entries
    }

    /// Moves a job to another place.
    pub fn move_to(&mut self, entry: &QueuedJob, at: Position) {
        self.remove(entry.job);
        self.insert(QueuedJob { at, ..*entry });
    }

    /// Replaces what is known of a job.
    pub fn update(&mut self, entry: QueuedJob) {
        let Some(known) = self.jobs.get_mut(&entry.job) else { return };
        if (known.running, known.at) != (entry.running, entry.at) {
            self.remove(entry.job);
            return self.insert(entry);
        }
        let before = std::mem::replace(known, entry).due;
        if before != entry.due {
            self.due.remove(&(before, entry.job));
            if entry.due < SimTime::NEVER {
                self.due.insert((entry.due, entry.job));
            }
        }
    }

    /// The place behind all others of a part.
    pub fn last(&mut self, queue: usize, part: Part) -> Position {
        let (_, back) = self.numbers.entry((queue, part)).or_default();
        *back += 1;
        Position { queue, part, number: *back }
    }

    /// The place before all others of a part.
    pub fn first(&mut self, queue: usize, part: Part) -> Position {
        let (front, _) = self.numbers.entry((queue, part)).or_default();
        *front -= 1;
        Position { queue, part, number: *front + 1 }
    }

    /// Changes of a walk along the line, in its order; jobs of `barred` are not in it.
    pub fn admit(&self, free: u32, barred: &BTreeSet<JobId>) -> Vec<Verdict> {
        let holders = self.holders.iter().rev().filter_map(|(&key, &job)| {
            let gpus = self.jobs.get(&job)?.gpus;
            Some(Holder { key, job, gpus })
        });
        let waiting = self.waiting.iter().filter(|(_, jobs)| !jobs.is_empty()).map(|(&gpus, jobs)| {
            let open = jobs.iter().filter(move |(_, job)| !barred.contains(*job));
            Waiting::new(gpus, open.map(|(&key, &job)| (key, job)))
        });
        admit(free, holders, waiting.collect())
    }

    /// Sorts every queue by `order` of what `refresh` makes of its jobs; equal jobs keep their order.
    pub fn sort_by(
        &mut self,
        refresh: impl Fn(QueuedJob) -> QueuedJob,
        order: impl Fn(&QueuedJob, &QueuedJob) -> std::cmp::Ordering,
    ) {
        let mut jobs: Vec<QueuedJob> = self.jobs.values().copied().map(refresh).collect();
        jobs.sort_unstable_by_key(|entry| entry.at);
        jobs.sort_by(|a, b| a.at.queue.cmp(&b.at.queue).then_with(|| order(a, b)));
        *self = Self::default();
        for mut entry in jobs {
            entry.at = self.last(entry.at.queue, Part::Front);
            self.insert(entry);
        }
    }
}
