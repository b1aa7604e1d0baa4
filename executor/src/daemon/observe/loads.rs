//! Loads of services that a Prometheus knows.
//!
//! A task of its own asks, so that a silent Prometheus delays no cycle. The first look goes back by the history that
//! the file names, and every later one to the last value that is known: what Prometheus has measured while it did not
//! answer comes in when it answers again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::services::ServiceLoadConfig;
use tokio::task::AbortHandle;

use super::ClusterObserver;
use crate::engine::{ClusterSnapshot, EngineProblem};
use crate::http::identity::IdentityError;
use crate::machine::wall_ms;
use crate::prometheus::{MOST_STEPS, Prometheus, PrometheusError};

/// Shortest and longest time between two looks.
const PAUSE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(15));

/// Steps for which a value holds.
const HOLDS_STEPS: i64 = 2;

/// Load of one service.
#[derive(Clone, Debug)]
struct MeasuredLoad {
    service: String,
    query: String,
    step_millis: i64,
    /// End of the first step that is not known, milliseconds of the Unix epoch.
    next_millis: i64,
    /// Last value: end of its step, and requests per second.
    last: Option<(i64, f64)>,
    /// Values that the observation has not seen.
    fresh: Vec<(i64, f64)>,
    problem: Option<PrometheusError>,
}

impl MeasuredLoad {
    /// Takes in the answer to a look at the steps up to `last_millis`.
    fn take(&mut self, answer: Result<Vec<(i64, f64)>, PrometheusError>) {
        match answer {
            Ok(values) => {
                self.problem = None;
                let values = values.into_iter().filter(|(at, _)| *at >= self.next_millis);
                self.fresh.extend(values.map(|(at, load)| (at, load.max(0.0))));
                self.last = self.fresh.last().copied().or(self.last);
                self.next_millis = self.last.map_or(self.next_millis, |(at, _)| at + self.step_millis);
            }
            Err(problem) => self.problem = Some(problem),
        }
    }

    /// Requests per second at `now_millis`; `None` where the last value is older than two steps and `patience_millis`.
    fn rate(&self, now_millis: i64, patience_millis: i64) -> Option<f64> {
        let (at, load) = self.last?;
        (now_millis - at <= HOLDS_STEPS * self.step_millis + patience_millis).then_some(load)
    }
}

/// Loads of all services that have a query.
pub(in crate::daemon) struct ServiceLoads {
    prometheus: Arc<Prometheus>,
    known: Arc<Mutex<Vec<MeasuredLoad>>>,
    /// Time after the end of a step before the step is asked for, milliseconds.
    settle_millis: i64,
    /// Handle of the task; `None` before the first cycle.
    task: Option<AbortHandle>,
}

impl Drop for ServiceLoads {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl ServiceLoads {
    /// Loads of the services of `settings`, none of them before `first_millis`; `None` where no service has a query.
    ///
    /// # Errors
    /// The certificates of the authorities cannot be read.
    pub fn of(settings: &Deployment, first_millis: Option<i64>) -> Result<Option<Self>, IdentityError> {
        let Some(config) = &settings.prometheus else { return Ok(None) };
        let services = settings.services().unwrap_or_default();
        let pairs = settings.services.iter().zip(&services);
        let queried = pairs.filter_map(|(config, service)| Some((config.load.as_ref()?, service)));
        let measured = queried.map(|(load, service)| {
            let step_millis = (service.rates.step().as_millis() as f64 / settings.cycle.speedup).round() as i64;
            let step_millis = step_millis.max(1);
            let first = (wall_ms() - history_millis(load)).max(first_millis.unwrap_or(i64::MIN));
            MeasuredLoad {
                service: service.name.clone(),
                query: load.query.clone(),
                step_millis,
                next_millis: first.div_euclid(step_millis) * step_millis,
                last: None,
                fresh: Vec::new(),
                problem: None,
            }
        });
        let measured: Vec<MeasuredLoad> = measured.collect();
        if measured.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            prometheus: Arc::new(Prometheus::new(config)?),
            known: Arc::new(Mutex::new(measured)),
            settle_millis: (config.settle_secs * 1e3).round() as i64,
            task: None,
        }))
    }

    /// Puts the loads of now into `snapshot`, and hands to `observer` what is new. A load that is not known now stays
    /// out of the snapshot. The first call begins to ask.
    pub fn show(&mut self, snapshot: &mut ClusterSnapshot, observer: &mut ClusterObserver) {
        self.begin();
        for load in lock(&self.known).iter_mut() {
            observer.note_loads(&load.service, std::mem::take(&mut load.fresh));
        }
        self.put(snapshot);
    }

    fn put(&self, snapshot: &mut ClusterSnapshot) {
        let patience_millis = self.settle_millis + 1000;
        for load in lock(&self.known).iter() {
            if let Some(seen) = snapshot.services.iter_mut().find(|seen| seen.name == load.service) {
                seen.rate = load.rate(wall_ms(), patience_millis);
            }
        }
    }

    /// Age of the last value of each service, seconds; `None` before the first one.
    pub fn ages(&self) -> Vec<(String, Option<f64>)> {
        let age = |at: i64| (wall_ms() - at) as f64 / 1e3;
        lock(&self.known).iter().map(|load| (load.service.clone(), load.last.map(|(at, _)| age(at)))).collect()
    }

    /// Problems of the queries that are asked.
    pub fn problems(&self) -> Vec<EngineProblem> {
        let known = lock(&self.known);
        let troubled = known.iter().filter_map(|load| Some((load, load.problem.as_ref()?)));
        troubled
            .map(|(load, problem)| EngineProblem { kind: "load", text: format!("service {}: {problem}", load.service) })
            .collect()
    }

    fn begin(&mut self) {
        if self.task.is_some() {
            return;
        }
        let (prometheus, known, settle_millis) =
            (Arc::clone(&self.prometheus), Arc::clone(&self.known), self.settle_millis);
        let shortest = lock(&known).iter().map(|load| load.step_millis).min().unwrap_or_default();
        let pause = Duration::from_millis(shortest.unsigned_abs() / 2).clamp(PAUSE.0, PAUSE.1);
        let task = tokio::spawn(async move {
            loop {
                look(&prometheus, &known, settle_millis).await;
                tokio::time::sleep(pause).await;
            }
        });
        self.task = Some(task.abort_handle());
    }
}

/// Puts the loads of now into a snapshot that no daemon was there to see, and waits for Prometheus: for a plan.
///
/// # Errors
/// The certificates of the authorities cannot be read.
pub async fn measure(settings: &Deployment, snapshot: &mut ClusterSnapshot) -> Result<(), IdentityError> {
    let Some(loads) = ServiceLoads::of(settings, None)? else { return Ok(()) };
    for load in lock(&loads.known).iter_mut() {
        let steps = HOLDS_STEPS + 1 + loads.settle_millis / load.step_millis;
        load.next_millis = (wall_ms() / load.step_millis - steps) * load.step_millis;
    }
    look(&loads.prometheus, &loads.known, loads.settle_millis).await;
    loads.put(snapshot);
    Ok(())
}

/// History of a load, milliseconds.
fn history_millis(load: &ServiceLoadConfig) -> i64 {
    (load.history_hours * 3.6e6).round() as i64
}

/// Time zero of a policy that learns from the longest history of `settings`; `None` where no service has a query.
pub(in crate::daemon) fn first_millis(settings: &Deployment) -> Option<i64> {
    let loads = settings.services.iter().filter_map(|service| service.load.as_ref());
    loads.map(history_millis).max().map(|history| wall_ms() - history)
}

/// Asks for all loads. Each answer is kept when it comes, so that a slow query holds up no other's value.
async fn look(prometheus: &Prometheus, known: &Mutex<Vec<MeasuredLoad>>, settle_millis: i64) {
    let now = prometheus.now_millis().await;
    let asked: Vec<MeasuredLoad> = lock(known).clone();
    for (index, load) in asked.into_iter().enumerate() {
        let answer = match &now {
            Ok(now) => {
                let last = (now - settle_millis).div_euclid(load.step_millis) * load.step_millis;
                steps(prometheus, &load, last).await
            }
            Err(error) => Err(error.clone()),
        };
        lock(known)[index].take(answer);
    }
}

/// Values of the steps of `load` up to `last_millis`, in as many queries as it takes.
async fn steps(
    prometheus: &Prometheus,
    load: &MeasuredLoad,
    last_millis: i64,
) -> Result<Vec<(i64, f64)>, PrometheusError> {
    let mut values = Vec::new();
    let mut first = load.next_millis;
    while first <= last_millis {
        let end = last_millis.min(first + (MOST_STEPS - 1) * load.step_millis);
        values.extend(prometheus.range(&load.query, first, end, load.step_millis).await?);
        first = end + load.step_millis;
    }
    Ok(values)
}

fn lock(known: &Mutex<Vec<MeasuredLoad>>) -> MutexGuard<'_, Vec<MeasuredLoad>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load() -> MeasuredLoad {
        MeasuredLoad {
            service: "web".into(),
            query: "q".into(),
            step_millis: 60_000,
            next_millis: 0,
            last: None,
            fresh: Vec::new(),
            problem: None,
        }
    }

    #[test]
    fn a_value_holds_for_two_steps_and_a_failure_takes_nothing_away() {
        let mut load = load();
        load.take(Ok(vec![(0, 5.0), (60_000, 7.0)]));
        assert_eq!((load.next_millis, load.rate(60_000 + 120_000, 0)), (120_000, Some(7.0)));
        assert_eq!(load.rate(60_000 + 120_001, 0), None);
        load.take(Err(PrometheusError::Series { count: 2 }));
        assert_eq!((load.next_millis, load.fresh.len(), load.problem.is_some()), (120_000, 2, true));
        // A gap of two steps, of which nothing is known: the value after it comes in alone.
        load.take(Ok(vec![(240_000, 1.0)]));
        assert_eq!((load.next_millis, load.last, load.problem), (300_000, Some((240_000, 1.0)), None));
    }
}
