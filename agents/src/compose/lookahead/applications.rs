//! Applications that a run has shown.

use std::sync::Arc;

use goodput_env::application::Application;
use goodput_env::job::Work;
use goodput_env::time::SimTime;

/// Applications that a run has shown, with the numbers that the run has for them now.
///
/// A simulated run keeps its applications. On a live cluster a job that reports speeds has an application of its own,
/// which changes with the reports, and a later job takes over the number.
#[derive(Debug, Default)]
pub(super) struct SeenApplications {
    /// The applications of the run at the last decision, by its numbers.
    now: Vec<Arc<Application>>,
    /// Place of each of them in the list of all that were seen; `None` beyond the numbers that there are.
    places: Vec<Option<u16>>,
}

impl SeenApplications {
    /// Takes note of the applications of the run in `seen`, the list of all. One that only changes keeps its place.
    pub fn observe(&mut self, now: &[Arc<Application>], seen: &mut Vec<Arc<Application>>) {
        for (at, application) in now.iter().enumerate() {
            let known = self.now.get(at);
            if known.is_some_and(|known| Arc::ptr_eq(known, application)) {
                continue;
            }
            let keeps = known.is_some_and(|known| known.name == application.name);
            let place = self.places.get(at).copied().flatten().filter(|_| keeps);
            let place = match place {
                Some(place) => {
                    seen[usize::from(place)] = application.clone();
                    Some(place)
                }
                None => u16::try_from(seen.len()).ok().inspect(|_| seen.push(application.clone())),
            };
            if known.is_some() {
                (self.now[at], self.places[at]) = (application.clone(), place);
            } else {
                self.now.push(application.clone());
                self.places.push(place);
            }
        }
    }

    /// Work by the list of all; work of which nothing is known for an application without a place in it.
    pub fn placed(&self, work: Work) -> Work {
        let Work::Application { index, work_milli } = work else { return work };
        match self.places.get(usize::from(index)).copied().flatten() {
            Some(index) => Work::Application { index, work_milli },
            None => Work::Fixed { duration: SimTime::ZERO },
        }
    }

    /// Whether the list of all, which has `seen` applications, is that of the run.
    pub fn is_that_of_the_run(&self, seen: usize) -> bool {
        seen == self.now.len() && self.places.iter().enumerate().all(|(at, place)| *place == Some(at as u16))
    }
}
