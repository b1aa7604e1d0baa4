//! Jobs that may come: those of a past stretch of time at the present hour of the day.

use std::ops::Range;

use goodput_env::job::{JobSpec, Workload};
use goodput_env::time::SimTime;
use rand::{Rng, RngExt};

const DAY: i64 = 86_400_000;

/// Jobs submitted after `now` and until `end`, drawn from those that `workload` has until `now`: stretches of at most a
/// day, each from a day drawn at random, so that the hour of the day stays. Before the second day, any stretch will do.
/// Jobs keep their own work.
pub(crate) fn draw(workload: &Workload, now: SimTime, end: SimTime, random: &mut impl Rng) -> Vec<JobSpec> {
    let known = &workload.jobs[..workload.jobs.partition_point(|job| job.request.submit <= now)];
    let Some(first) = known.first().map(|job| job.request.submit.as_millis()) else { return Vec::new() };
    let (now, end) = (now.as_millis(), end.as_millis());
    let mut drawn = Vec::new();
    let mut begin = now;
    while begin < end && now > first {
        let most = DAY.min(end - begin);
        let source = past(first..now, begin, most, random);
        let length = most.min(now - source);
        let at = |time: i64| known.partition_point(|job| job.request.submit.as_millis() <= time);
        for job in &known[at(source)..at(source + length)] {
            let mut job = job.clone();
            let shift = SimTime::from_millis(begin - source);
            job.request.submit += shift;
            job.request.deadline = job.request.deadline.map(|deadline| deadline + shift);
            drawn.push(job);
        }
        begin += length;
    }
    drawn
}

/// Beginning of a past stretch of `length` that starts at the hour of `begin`, else of any stretch that is not short.
fn past(known: Range<i64>, begin: i64, length: i64, random: &mut impl Rng) -> i64 {
    let days_back = |time: i64| (begin - time).div_euclid(DAY);
    let nearest = (begin + length - known.end).div_euclid(DAY) + i64::from((begin + length - known.end) % DAY != 0);
    let (nearest, farthest) = (nearest.max(1), days_back(known.start));
    match nearest <= farthest {
        true => begin - DAY * random.random_range(nearest..=farthest),
        false => known.start + random.random_range(0..=(known.end - known.start) / 2),
    }
}

#[cfg(test)]
mod tests {
    use goodput_env::job::{JobRequest, Work};
    use goodput_env::seed::{Stream, rng};

    use super::*;

    /// A job every hour in the first twelve hours of each of `days` days.
    fn trace(days: i64) -> Workload {
        let hours = (0..24 * days).filter(|hour| hour % 24 < 12);
        let job = |hour: i64| {
            let request = JobRequest { submit: SimTime::from_secs(3600 * hour), ..JobRequest::default() };
            JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(60) } }
        };
        Workload::new(Vec::new(), hours.map(job).collect())
    }

    #[test]
    fn the_hour_of_the_day_stays() {
        let (workload, mut random) = (trace(5), rng(1, Stream::Futures));
        // At noon of the fourth day: nothing comes for twelve hours, and then twelve jobs.
        let now = SimTime::from_secs(86_400 * 3 + 3600 * 12);
        let end = SimTime::from_secs(86_400 * 4 + 3600 * 12);
        for _ in 0..20 {
            let drawn = draw(&workload, now, end, &mut random);
            assert!((11..=12).contains(&drawn.len()), "{}", drawn.len());
            assert!(drawn.iter().all(|job| job.request.submit >= SimTime::from_secs(86_400 * 4)));
            assert!(drawn.is_sorted_by_key(|job| job.request.submit));
        }
    }

    #[test]
    fn a_short_past_and_none_at_all_will_do() {
        let (workload, mut random) = (trace(1), rng(1, Stream::Futures));
        let at = |hours: i64| SimTime::from_secs(3600 * hours);
        let drawn = draw(&workload, at(6), at(30), &mut random);
        assert!(drawn.iter().all(|job| job.request.submit > at(6) && job.request.submit <= at(30)));
        assert!(drawn.len() > 12, "{}", drawn.len());
        assert!(draw(&workload, at(0), at(30), &mut random).is_empty());
        assert!(draw(&Workload::default(), at(6), at(30), &mut random).is_empty());
    }
}
