//! Checkpoints of a running job: work and writes alternate, and a fault sets the job back to the
//! last complete write.
//!
//! A cycle is `work` milliseconds of progress, then `write` milliseconds of standing still; its end
//! is a checkpoint. Cycles repeat until the job stops, so progress up to any moment, the moment
//! some work is done, and what the last checkpoint holds are closed forms: writes are exact to the
//! millisecond and need no events. A job that completes does not write once more.

use super::{JobState, Phase};
use crate::time::SimTime;

/// State of the checkpoints on a job's nodes after a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeStore {
    /// The checkpoints are there.
    Kept,
    /// The checkpoints are gone with the node that held them.
    Lost,
}

/// Work that is safe.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    /// In the job's unit.
    pub progress: f64,
    /// Accelerator time that made it, hundredths of GPU-milliseconds.
    pub kept: i64,
}

/// A job's checkpoints and what faults did to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Saving {
    /// Milliseconds of work between two writes; 0: it writes none.
    pub work: i64,
    /// Milliseconds of a write.
    pub write: i64,
    /// Beginning of the first cycle.
    pub from: SimTime,
    /// Work that is left after a fault.
    pub point: Point,
    /// Work that is left after a fault which takes the checkpoint store with it.
    pub base: Point,
    /// Accelerator time of writes before the job was last settled, hundredths of GPU-milliseconds.
    pub writing: i64,
    /// Accelerator time of work that was undone, hundredths of GPU-milliseconds.
    pub lost: i64,
    /// Faults of the hardware under it.
    pub hits: u32,
    /// Attempts that failed by themselves.
    pub failures: u32,
    /// Whether every attempt of the job fails.
    pub buggy: bool,
    /// Running time before this attempt.
    pub attempt_from: SimTime,
}

impl Saving {
    /// Milliseconds of work from the first cycle's beginning until `at`.
    fn worked(&self, at: SimTime) -> i64 {
        let span = (at - self.from).as_millis();
        let cycle = self.work + self.write;
        // Every whole cycle works for `work`; the open one works first and writes last.
        span / cycle * self.work + (span % cycle).min(self.work)
    }

    /// Time of progress between two moments of one run.
    #[inline]
    pub fn work_between(&self, since: SimTime, now: SimTime) -> SimTime {
        if self.work == 0 { now - since } else { SimTime::from_millis(self.worked(now) - self.worked(since)) }
    }

    /// Moment at which `left` more of work is done, from `now` on.
    pub fn when_done(&self, now: SimTime, left: SimTime) -> SimTime {
        let at = now.saturating_add(left);
        if self.work == 0 || at == SimTime::NEVER {
            return at;
        }
        let in_cycle = (now - self.from).as_millis() % (self.work + self.write);
        // During a write, nothing of this cycle's work is left.
        let here = (self.work - in_cycle).max(0);
        let beyond = left.as_millis() - here;
        if beyond <= 0 {
            return if left == SimTime::ZERO { now } else { at };
        }
        let rest_of_cycle = self.work + self.write - in_cycle;
        // Work that ends together with a cycle needs no write after it, hence the one less.
        let full = (beyond - 1) / self.work;
        now.saturating_add(SimTime::from_millis(rest_of_cycle + beyond)).saturating_add(pauses(full, self.write))
    }

    /// The last checkpoint that is complete at `now`; the beginning of the run where there is none.
    fn last(&self, now: SimTime) -> SimTime {
        let cycle = self.work + self.write;
        self.from + SimTime::from_millis((now - self.from).as_millis() / cycle * cycle)
    }
}

fn pauses(count: i64, each: i64) -> SimTime {
    SimTime::from_millis(count.saturating_mul(each))
}

impl JobState {
    /// Time of progress since the job was last settled, seconds.
    pub(crate) fn worked_secs(&self, now: SimTime) -> f64 {
        self.saving.work_between(self.since, now).as_secs_f64()
    }

    /// Accelerator time of writes until `now`, GPU-milliseconds.
    pub(crate) fn writing_gpu_millis(&self, now: SimTime) -> i64 {
        self.writing_percent_millis(now) / 100
    }

    fn writing_percent_millis(&self, now: SimTime) -> i64 {
        if self.saving.work == 0 || self.phase != Phase::Running {
            return self.saving.writing;
        }
        let write = (now - self.since) - self.saving.work_between(self.since, now);
        self.saving.writing + i64::from(self.share().compute_percent()) * write.as_millis()
    }

    /// Accelerator time of work that was undone, GPU-milliseconds.
    pub(crate) fn lost_gpu_millis(&self) -> i64 {
        self.saving.lost / 100
    }

    /// Counts all work that is not undone yet as lost.
    pub(crate) fn lose_all(&mut self, now: SimTime) {
        self.saving.lost += self.kept_percent_millis(now);
    }

    /// Accelerator time until `now` that made progress which is not undone, hundredths of GPU-milliseconds.
    fn kept_percent_millis(&self, now: SimTime) -> i64 {
        let rest = self.idle_percent_millis(now) + self.writing_percent_millis(now) + self.saving.lost;
        self.attained_percent_millis(now) - rest
    }

    /// Takes the last checkpoint that falls between the latest settling and `now`. To be called
    /// before the job is settled at `now`.
    pub(crate) fn save_until(&mut self, now: SimTime) {
        if self.saving.work == 0 || self.phase != Phase::Running {
            return;
        }
        let last = self.saving.last(now);
        // A checkpoint before `since` was taken when the job was settled then.
        if last > self.since {
            self.saving.point = Point { progress: self.done(last), kept: self.kept_percent_millis(last) };
        }
        self.saving.writing = self.writing_percent_millis(now);
    }

    /// A settled job that is stopped by plan saves all of its work.
    pub(crate) fn save_all(&mut self) {
        self.saving.point = Point { progress: self.progress, kept: self.kept_percent_millis(self.since) };
        self.saving.base = self.saving.point;
        // The cycle ends here; the next run of the job begins one of its own.
        self.saving.work = 0;
    }

    /// Sets a settled job back to what is safe.
    pub(crate) fn undo(&mut self, store: NodeStore) {
        if store == NodeStore::Lost {
            self.saving.point = self.saving.base;
        }
        self.saving.lost += self.kept_percent_millis(self.since) - self.saving.point.kept;
        self.progress = self.saving.point.progress;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: i64) -> SimTime {
        SimTime::from_secs(secs)
    }

    fn saving(work: i64, write: i64, from: i64) -> Saving {
        Saving { work: work * 1000, write: write * 1000, from: secs(from), ..Saving::default() }
    }

    #[test]
    fn work_and_writes_alternate() {
        let cycle = saving(100, 10, 5);
        for (at, done) in [(5, 0), (55, 50), (105, 100), (110, 100), (115, 100), (116, 101), (335, 300)] {
            assert_eq!(cycle.work_between(secs(5), secs(at)), secs(done), "{at}");
        }
        assert_eq!(cycle.last(secs(114)), secs(5));
        assert_eq!(cycle.last(secs(115)), secs(115));
        assert_eq!(cycle.last(secs(300)), secs(225));
    }

    #[test]
    fn work_is_done_when_it_is_done_and_not_before() {
        for (work, write) in [(7, 3), (1, 5), (50, 0), (100, 1)] {
            let cycle = saving(work, write, 3);
            for now in 3..60 {
                for left in 0..120 {
                    let at = cycle.when_done(secs(now), secs(left));
                    assert_eq!(cycle.work_between(secs(now), at), secs(left), "{work} {write} {now} {left}");
                    let before = cycle.work_between(secs(now), at - SimTime::from_millis(1));
                    assert!(left == 0 || before < secs(left), "{work} {write} {now} {left}");
                }
            }
        }
        assert_eq!(Saving::default().when_done(secs(9), secs(4)), secs(13));
        assert_eq!(saving(5, 5, 0).when_done(secs(9), SimTime::NEVER), SimTime::NEVER);
    }
}
