//! Queues by (priority, age) in which jobs alike are passed over together.
//!
//! On a cluster that cannot keep up the queue grows without end, while the jobs in it have few
//! different shapes. Once one of a shape has no place, those behind it have none either until
//! something changes, so a decision looks at each shape about once, whatever the length of the
//! queue. The order in which jobs are looked at is that of a plain queue.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use goodput_env::job::JobId;
use goodput_env::scenario::JobShapes;

/// Place of a job in a queue: ids follow submission.
type QueuePlace = (Reverse<i32>, JobId);

/// Waiting jobs of one shape, in the order of the queue.
#[derive(Clone, Debug)]
struct ShapeQueue {
    shape: u32,
    jobs: Vec<QueuePlace>,
    /// Index of the first job that is still in the queue.
    next: usize,
}

impl ShapeQueue {
    fn front(&self) -> Option<QueuePlace> {
        self.jobs.get(self.next).copied()
    }
}

/// Queue of waiting jobs by (priority, age), grouped by shape.
#[derive(Clone, Debug, Default)]
pub struct Line {
    alike: Vec<ShapeQueue>,
    /// The first of each shape that is not barred.
    open: BTreeSet<(QueuePlace, usize)>,
    barred: Vec<usize>,
    /// All before this place have left the queue.
    passed: Option<QueuePlace>,
}

impl Line {
    /// The first job that is not barred, with its shape. Those before it are passed over for good;
    /// where there is none, all are.
    pub fn first(&mut self) -> Option<(JobId, u32)> {
        match self.open.first() {
            Some(&(place, at)) => {
                self.passed = Some(place);
                Some((place.1, self.alike[at].shape))
            }
            None => {
                self.barred.clear();
                None
            }
        }
    }

    /// The first job leaves.
    pub fn pop(&mut self) {
        if let Some((_, at)) = self.open.pop_first() {
            self.alike[at].next += 1;
            self.open.extend(self.alike[at].front().map(|place| (place, at)));
        }
    }

    /// The first job leaves, and nothing can be done for those like it.
    pub fn bar(&mut self) {
        if let Some((_, at)) = self.open.pop_first() {
            self.alike[at].next += 1;
            self.barred.push(at);
        }
    }

    /// Something changed: jobs that were barred and not passed over may be looked at again.
    pub fn reopen(&mut self) {
        for at in std::mem::take(&mut self.barred) {
            let alike = &mut self.alike[at];
            let passed = |place: &QueuePlace| self.passed.is_some_and(|passed| *place < passed);
            // A barred shape did not advance while jobs of other shapes were passed over.
            alike.next = alike.next.max(alike.jobs.partition_point(passed));
            self.open.extend(alike.front().map(|place| (place, at)));
        }
    }

    fn add(&mut self, shape: u32, jobs: Vec<QueuePlace>) {
        let alike = ShapeQueue { shape, jobs, next: 0 };
        self.open.extend(alike.front().map(|place| (place, self.alike.len())));
        self.alike.push(alike);
    }

    /// Whether no job is left, barred ones included.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.barred.is_empty()
    }
}

/// Queues being filled.
#[derive(Debug)]
pub struct Lines<'v> {
    shapes: &'v JobShapes,
    /// By shape: its jobs.
    jobs: Vec<Vec<QueuePlace>>,
}

impl<'v> Lines<'v> {
    /// No jobs yet.
    pub fn new(shapes: &'v JobShapes) -> Self {
        Self { shapes, jobs: vec![Vec::new(); shapes.len()] }
    }

    /// Adds a job at its priority.
    pub fn push(&mut self, job: JobId, priority: i32) {
        self.jobs[self.shapes.of(job) as usize].push((Reverse(priority), job));
    }

    /// Shapes with the number of their jobs.
    pub fn counts(&self) -> impl Iterator<Item = (u32, usize)> {
        (0..).zip(self.jobs.iter().map(Vec::len)).filter(|(_, count)| *count > 0)
    }

    fn filled(&mut self) -> Vec<(u32, Vec<QueuePlace>)> {
        let jobs = (0..).zip(self.jobs.iter_mut()).filter(|(_, jobs)| !jobs.is_empty());
        let sorted = jobs.map(|(shape, jobs)| {
            let mut jobs = std::mem::take(jobs);
            // Jobs of one shape differ in priority only where priorities are adapted.
            jobs.sort_unstable();
            (shape, jobs)
        });
        sorted.collect()
    }

    /// One queue for each tenant.
    pub fn by_tenant(mut self) -> BTreeMap<u32, Line> {
        let mut lines: BTreeMap<u32, Line> = BTreeMap::new();
        for (shape, jobs) in self.filled() {
            lines.entry(self.shapes.get(shape).tenant).or_default().add(shape, jobs);
        }
        lines
    }

    /// One queue for all.
    pub fn together(mut self) -> Line {
        let mut line = Line::default();
        self.filled().into_iter().for_each(|(shape, jobs)| line.add(shape, jobs));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs 0 to 6 of shapes 0, 1, 0, 2, 1, 0, 2, the last shape more important.
    fn line() -> Line {
        let mut line = Line::default();
        for (shape, priority, jobs) in [(0, 0, [0, 2, 5].as_slice()), (1, 0, &[1, 4]), (2, 1, &[3, 6])] {
            line.add(shape, jobs.iter().map(|&id| (Reverse(priority), JobId(id))).collect());
        }
        line
    }

    fn rest(line: &mut Line) -> Vec<u32> {
        std::iter::from_fn(|| line.first().inspect(|_| line.pop()).map(|(job, _)| job.0)).collect()
    }

    #[test]
    fn the_more_important_then_the_older_come_first() {
        let mut line = line();
        assert_eq!(rest(&mut line), [3, 6, 0, 1, 2, 4, 5]);
        assert!(line.is_empty());
    }

    #[test]
    fn those_like_a_barred_one_wait_until_something_changes_and_then_only_those_not_passed_over() {
        let mut line = line();
        line.pop();
        line.pop();
        assert_eq!(line.first(), Some((JobId(0), 0)));
        line.bar();
        assert_eq!(line.first(), Some((JobId(1), 1)));
        line.pop();
        // Looking at 4 passes over 2.
        assert_eq!(line.first(), Some((JobId(4), 1)));
        line.reopen();
        assert_eq!(rest(&mut line), [4, 5]);
    }

    #[test]
    fn a_queue_with_only_barred_jobs_is_drained_by_looking_at_it() {
        let mut line = line();
        for _ in 0..3 {
            line.first();
            line.bar();
        }
        assert!(!line.is_empty());
        assert_eq!(line.first(), None);
        line.reopen();
        assert!(line.is_empty());
    }
}
