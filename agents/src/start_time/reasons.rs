//! Reasons for the start of a job, by its futures: the jobs that wait ahead of it, and those that end before it starts.

use std::collections::BTreeMap;

use goodput_env::job::JobId;
use goodput_env::time::SimTime;
use serde::{Deserialize, Serialize};

use super::futures::FutureStart;
use super::interval::WaitInterval;

/// Events before the start of a job, in all its futures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StartReasons {
    /// Waiting jobs that start before the job, each with the share of futures in which it does, by descending share.
    pub ahead: Vec<(JobId, f64)>,
    /// Mean number of jobs that are submitted later and start before the job.
    pub overtaking: f64,
    /// Running jobs that end before the job starts in more than half of the futures, by the medians of their ends.
    pub frees: Vec<RunningEnd>,
}

/// End of a running job in the futures of another job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunningEnd {
    /// Id of the running job.
    pub job: JobId,
    /// Share of the futures in which it ends before the other job starts.
    pub share: f64,
    /// Time from the question to its end, seconds. Futures in which the other job starts and this end is not known, as
    /// of a job that was stopped, are left out. In a future without a start, an end that is not known is infinite:
    /// beyond the two months.
    pub ends: WaitInterval,
}

/// Accelerators that are free once some running jobs have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomMade {
    /// Number of running jobs that have to end, in the order of their ends.
    pub jobs: usize,
    /// Accelerators that are free then, if no job starts meanwhile.
    pub gpus: u32,
    /// Number of them that waiting jobs which start earlier ask for.
    pub ahead: u32,
}

impl StartReasons {
    /// Reasons by the futures of a question that was asked at `now`; `tail`: the share of ends beyond each end of their
    /// intervals.
    pub fn of(futures: &[FutureStart], now: SimTime, tail: f64) -> Self {
        let count = futures.len().max(1) as f64;
        let (mut before, mut ends) = (BTreeMap::<JobId, u32>::new(), BTreeMap::<JobId, (u32, Vec<f64>)>::new());
        for future in futures {
            future.before.iter().for_each(|job| *before.entry(*job).or_default() += 1);
            for (job, end) in &future.ends {
                let (earlier, all) = ends.entry(*job).or_default();
                *earlier += u32::from(end.is_some_and(|end| future.start.is_none_or(|start| end <= start)));
                match end {
                    Some(end) => all.push((*end - now).as_secs_f64().max(0.0)),
                    None if future.start.is_none() => all.push(f64::INFINITY),
                    None => {}
                }
            }
        }
        let mut ahead: Vec<_> = before.into_iter().map(|(job, times)| (job, f64::from(times) / count)).collect();
        ahead.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let freed = ends.into_iter().filter_map(|(job, (earlier, ends))| {
            Some(RunningEnd { job, share: f64::from(earlier) / count, ends: WaitInterval::with_tail(ends, tail)? })
        });
        let mut frees: Vec<RunningEnd> = freed.filter(|end| end.share > 0.5).collect();
        frees.sort_by(|a, b| a.ends.median.total_cmp(&b.ends.median).then(a.job.cmp(&b.job)));
        let overtaking = futures.iter().map(|future| f64::from(future.later)).sum::<f64>() / count;
        Self { ahead, overtaking, frees }
    }

    /// Number of waiting jobs that start before the job in more than half of the futures.
    pub fn ahead_in_most(&self) -> usize {
        self.ahead.iter().filter(|(_, share)| *share > 0.5).count()
    }
}

/// The fewest ends of `frees` (accelerators by running job, in the order of their ends) that leave enough room beside
/// `free` accelerators for a job of `asked` and for jobs ahead of it that ask for `ahead` in all. `None` where all ends
/// together do not leave enough: jobs that are ahead have to start and end, too.
pub fn room_made(free: u32, asked: u32, ahead: u32, frees: impl IntoIterator<Item = u32>) -> Option<RoomMade> {
    let (mut gpus, needed) = (free, asked.saturating_add(ahead));
    if gpus >= needed {
        return Some(RoomMade { jobs: 0, gpus, ahead });
    }
    for (at, held) in frees.into_iter().enumerate() {
        gpus += held;
        if gpus >= needed {
            return Some(RoomMade { jobs: at + 1, gpus, ahead });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn future(start: i64, ends: [Option<i64>; 2]) -> FutureStart {
        let at = SimTime::from_secs;
        let ends = ends.into_iter().enumerate().map(|(job, end)| (JobId::at(job), end.map(at))).collect();
        FutureStart { start: Some(at(start)), before: vec![JobId::at(2)], later: 1, ends }
    }

    /// The first job ends before the start in three of four futures, and the second one only in one.
    #[test]
    fn ends_count_where_they_come_before_the_start() {
        let futures = [
            future(100, [Some(60), Some(400)]),
            future(200, [Some(200), Some(90)]),
            future(300, [Some(80), None]),
            future(50, [Some(70), Some(500)]),
        ];
        let found = StartReasons::of(&futures, SimTime::from_secs(10), 0.0);
        let [end] = found.frees[..] else { panic!("{found:?}") };
        assert_eq!((end.job, end.share), (JobId::at(0), 0.75));
        // The end after the start counts as well: ends before starts are the early ones.
        assert_eq!(end.ends, WaitInterval { low: 50.0, median: 70.0, high: 190.0 });
        assert_eq!((found.ahead_in_most(), found.overtaking), (1, 1.0));
        // A job that a policy stops has no end that is known, which does not mean that it runs for months.
        let stopped = [future(100, [Some(60), None]), future(100, [Some(70), None]), future(100, [None, None])];
        let [end] = StartReasons::of(&stopped, SimTime::from_secs(10), 0.0).frees[..] else { panic!("one job ends") };
        assert_eq!((end.ends.low, end.ends.high), (50.0, 60.0));
        let never = FutureStart { start: None, ..future(0, [None, None]) };
        let found = StartReasons::of(&[stopped[0].clone(), stopped[1].clone(), never], SimTime::ZERO, 0.0);
        assert_eq!(found.frees[0].ends.high, f64::INFINITY);
        assert_eq!(StartReasons::of(&[], SimTime::ZERO, 0.1), StartReasons::default());
    }

    #[test]
    fn room_is_made_by_the_first_ends_that_suffice() {
        assert_eq!(room_made(2, 8, 0, [4, 4, 8]), Some(RoomMade { jobs: 2, gpus: 10, ahead: 0 }));
        assert_eq!(room_made(0, 8, 8, [8, 8]), Some(RoomMade { jobs: 2, gpus: 16, ahead: 8 }));
        // There is room, and the policy waits for something else.
        assert_eq!(room_made(8, 8, 0, [4]), Some(RoomMade { jobs: 0, gpus: 8, ahead: 0 }));
        assert_eq!(room_made(0, 8, 8, [8]), None);
    }
}
