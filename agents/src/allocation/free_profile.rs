//! Free accelerators over the time to come, as far as jobs end when they are expected to.

use goodput_env::time::SimTime;

/// A step function: from each time on, so many accelerators are free.
#[derive(Clone, Debug, Default)]
pub struct FreeProfile {
    /// Steps by ascending time; the first is now, and the last holds for ever.
    steps: Vec<(SimTime, u32)>,
}

impl FreeProfile {
    /// Profile of `free` accelerators now, to which each of `ends` adds so many at its time. A time before `now` counts
    /// as the first moment after it: the job outlives what was expected of it, and may end at any moment.
    pub fn new(now: SimTime, free: u32, mut ends: Vec<(SimTime, u32)>) -> Self {
        let soon = now.saturating_add(SimTime::from_millis(1));
        ends.iter_mut().for_each(|(end, _)| *end = (*end).max(soon));
        ends.sort_unstable();
        let mut steps = vec![(now, free)];
        for (end, gpus) in ends.into_iter().filter(|(end, _)| *end < SimTime::NEVER) {
            match steps.last_mut() {
                Some(last) if last.0 == end => last.1 += gpus,
                Some(&mut (_, before)) => steps.push((end, before + gpus)),
                None => {}
            }
        }
        Self { steps }
    }

    /// Earliest time at which `gpus` accelerators are free for `span`; `None` where that is not foreseen.
    pub fn earliest(&self, gpus: u32, span: SimTime) -> Option<SimTime> {
        let mut from = None;
        for &(at, free) in &self.steps {
            if let Some(start) = from.filter(|start| at >= SimTime::saturating_add(*start, span)) {
                return Some(start);
            }
            from = (free >= gpus).then(|| from.unwrap_or(at));
        }
        from
    }

    /// Sets `gpus` accelerators apart for `span` from `start`, where they are free.
    pub fn reserve(&mut self, start: SimTime, span: SimTime, gpus: u32) {
        self.reserve_until(start, start.saturating_add(span), gpus);
    }

    /// Sets `gpus` accelerators apart from `start` to `end`, where they are free.
    pub fn reserve_until(&mut self, start: SimTime, end: SimTime, gpus: u32) {
        self.between(start, end).iter_mut().for_each(|(_, free)| *free -= gpus);
    }

    /// Gives back `gpus` accelerators that were set apart from `start` to `end`.
    pub fn release_until(&mut self, start: SimTime, end: SimTime, gpus: u32) {
        self.between(start, end).iter_mut().for_each(|(_, free)| *free += gpus);
    }

    /// Steps by ascending time, each with the accelerators that are free from then on; the last holds for ever.
    pub fn steps(&self) -> &[(SimTime, u32)] {
        &self.steps
    }

    /// Joins steps with equally many free accelerators.
    pub fn merge(&mut self) {
        self.steps.dedup_by_key(|(_, free)| *free);
    }

    fn between(&mut self, start: SimTime, end: SimTime) -> &mut [(SimTime, u32)] {
        let first = self.step_at(start);
        let last = self.step_at(end);
        &mut self.steps[first..last]
    }

    /// Index of the step that begins at `at`, which is made where there is none; the number of steps for a time that
    /// never comes.
    fn step_at(&mut self, at: SimTime) -> usize {
        if at == SimTime::NEVER {
            return self.steps.len();
        }
        let index = self.steps.partition_point(|step| step.0 < at);
        if self.steps.get(index).is_none_or(|step| step.0 != at) {
            let before = index.checked_sub(1).map_or(0, |index| self.steps[index].1);
            self.steps.insert(index, (at, before));
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: i64) -> SimTime {
        SimTime::from_secs(secs)
    }

    #[test]
    fn a_job_starts_where_it_fits_for_its_whole_length() {
        // 2 free now, 4 more at 10 s, 2 more at 20 s.
        let mut profile = FreeProfile::new(secs(0), 2, vec![(secs(20), 2), (secs(10), 4)]);
        assert_eq!(profile.earliest(2, secs(100)), Some(secs(0)));
        assert_eq!(profile.earliest(3, secs(1)), Some(secs(10)));
        assert_eq!(profile.earliest(8, secs(1)), Some(secs(20)));
        assert_eq!(profile.earliest(9, secs(1)), None);
        profile.reserve(secs(10), secs(5), 5);
        // Two accelerators are free until 10 s, one until 15 s, and six then.
        assert_eq!(profile.earliest(2, secs(10)), Some(secs(0)));
        assert_eq!(profile.earliest(2, secs(11)), Some(secs(15)));
        assert_eq!(profile.earliest(1, SimTime::NEVER), Some(secs(0)));
        assert_eq!(profile.earliest(7, SimTime::NEVER), Some(secs(20)));
    }

    #[test]
    fn a_job_that_outlives_its_limit_may_end_at_any_moment() {
        let profile = FreeProfile::new(secs(50), 0, vec![(secs(10), 4), (SimTime::NEVER, 4)]);
        assert_eq!(profile.earliest(4, secs(9)), Some(SimTime::from_millis(50_001)));
        assert_eq!(profile.earliest(5, secs(9)), None, "no end of a job of unknown length is foreseen");
    }
}
