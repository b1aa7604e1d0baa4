//! Loads of services that a Prometheus knows.
//!
//! A task for each service asks, so that a silent Prometheus delays no cycle, and a slow query no other service. The
//! first look goes back by the history that the file names, and every later one to the last value that is known: what
//! Prometheus has measured while it did not answer comes in when it answers again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::services::ServiceLoadConfig;
use tokio::task::JoinSet;

use super::ClusterObserver;
use crate::engine::{ClusterSnapshot, EngineProblem};
use crate::http::identity::IdentityError;
use crate::machine::wall_ms;
use crate::prometheus::{MOST_STEPS, Prometheus, PrometheusError};

/// Shortest and longest time between two looks.
const PAUSE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(15));

/// Steps for which a value holds. A step without a value is asked for again for so long.
const HOLDS_STEPS: i64 = 2;

/// Steps of the history in one call, at most; a day of minutes.
const CALL_STEPS: i64 = 1440;
const _: () = assert!(CALL_STEPS <= MOST_STEPS, "Prometheus answers a call");

/// Query for the load of one service.
#[derive(Clone, Debug)]
struct LoadQuery {
    text: String,
    step_millis: i64,
    /// End of the first step that is not known, milliseconds of the Unix epoch.
    next_millis: i64,
}

/// Load of one service.
#[derive(Clone, Debug)]
struct MeasuredLoad {
    service: String,
    query: LoadQuery,
    /// Last value: end of its step by the clock of Prometheus, and requests per second.
    last: Option<(i64, f64)>,
    /// Values that the observation has not seen.
    fresh: Vec<(i64, f64)>,
    problem: Option<PrometheusError>,
    /// Milliseconds by which the clock of Prometheus is ahead of that of this host.
    ahead_millis: i64,
}

impl MeasuredLoad {
    /// Takes in the values of the steps up to `end_millis`.
    fn take(&mut self, values: Vec<(i64, f64)>, end_millis: i64) {
        let query = &mut self.query;
        let values = values.into_iter().filter(|(at, _)| *at >= query.next_millis);
        let before = self.fresh.len();
        self.fresh.extend(values.map(|(at, load)| (at, load.max(0.0))));
        if let Some(&(at, load)) = self.fresh[before..].last() {
            self.last = self.last.filter(|(known, _)| *known > at).or(Some((at, load)));
            query.next_millis = at + query.step_millis;
        }
        // A value may still come for the last steps, and for no earlier one.
        query.next_millis = query.next_millis.max(end_millis - (HOLDS_STEPS - 1) * query.step_millis);
    }

    /// Judges the query, where its steps are over at `last_millis`.
    fn judge(&mut self, last_millis: i64) {
        self.problem = self.rate_at(last_millis, 0).is_none().then_some(PrometheusError::NoValue);
    }

    /// Requests per second at a time of the clock of Prometheus; `None` where the last value is older than two steps
    /// and `patience_millis`.
    fn rate_at(&self, millis: i64, patience_millis: i64) -> Option<f64> {
        let (at, load) = self.last?;
        (millis - at <= HOLDS_STEPS * self.query.step_millis + patience_millis).then_some(load)
    }

    /// Age of the last value, milliseconds.
    fn age_millis(&self) -> Option<i64> {
        self.last.map(|(at, _)| wall_ms() + self.ahead_millis - at)
    }
}

/// Loads of all services that have a query.
pub(in crate::daemon) struct ServiceLoads {
    prometheus: Arc<Prometheus>,
    known: Vec<Arc<Mutex<MeasuredLoad>>>,
    /// Time after the end of a step before the step is asked for, milliseconds.
    settle_millis: i64,
    /// A task for each service; none before the first cycle.
    tasks: JoinSet<()>,
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
        let known: Vec<_> = queried
            .map(|(load, service)| {
                let step_millis = (service.rates.step().as_millis() as f64 / settings.cycle.speedup).round() as i64;
                let step_millis = step_millis.max(1);
                let first = (wall_ms() - history_millis(load)).max(first_millis.unwrap_or(i64::MIN));
                Arc::new(Mutex::new(MeasuredLoad {
                    service: service.name.clone(),
                    query: LoadQuery {
                        text: load.query.clone(),
                        step_millis,
                        next_millis: first.div_euclid(step_millis) * step_millis,
                    },
                    last: None,
                    fresh: Vec::new(),
                    problem: None,
                    ahead_millis: 0,
                }))
            })
            .collect();
        if known.is_empty() {
            return Ok(None);
        }
        let settle_millis = (config.settle_secs * 1e3).round() as i64;
        Ok(Some(Self { prometheus: Arc::new(Prometheus::new(config)?), known, settle_millis, tasks: JoinSet::new() }))
    }

    /// Puts the loads of now into `snapshot`, and hands to `observer` what is new. A load that is not known now stays
    /// out of the snapshot. The first call begins to ask.
    pub fn show(&mut self, snapshot: &mut ClusterSnapshot, observer: &mut ClusterObserver) {
        if self.tasks.is_empty() {
            self.begin();
        }
        for load in &self.known {
            let mut load = lock(load);
            let fresh = std::mem::take(&mut load.fresh);
            observer.note_loads(&load.service, fresh);
        }
        self.put(snapshot);
    }

    fn put(&self, snapshot: &mut ClusterSnapshot) {
        let patience_millis = self.settle_millis + 1000;
        for load in &self.known {
            let load = lock(load);
            if let Some(seen) = snapshot.services.iter_mut().find(|seen| seen.name == load.service) {
                seen.rate = load.rate_at(wall_ms() + load.ahead_millis, patience_millis);
            }
        }
    }

    /// Age of the last value of each service, seconds; `None` before the first one.
    pub fn ages(&self) -> Vec<(String, Option<f64>)> {
        let age = |load: &MeasuredLoad| load.age_millis().map(|millis| millis as f64 / 1e3);
        self.known.iter().map(|load| lock(load)).map(|load| (load.service.clone(), age(&load))).collect()
    }

    /// Problems of the queries that are asked.
    pub fn problems(&self) -> Vec<EngineProblem> {
        let problem = |load: &Arc<Mutex<MeasuredLoad>>| {
            let load = lock(load);
            let problem = load.problem.as_ref()?;
            Some(EngineProblem { kind: "load", text: format!("service {}: {problem}", load.service) })
        };
        self.known.iter().filter_map(problem).collect()
    }

    fn begin(&mut self) {
        for load in &self.known {
            let (prometheus, load, settle_millis) =
                (Arc::clone(&self.prometheus), Arc::clone(load), self.settle_millis);
            let half = Duration::from_millis(lock(&load).query.step_millis.unsigned_abs() / 2);
            self.tasks.spawn(async move {
                loop {
                    if let Err(problem) = look(&prometheus, &load, settle_millis).await {
                        lock(&load).problem = Some(problem);
                    }
                    tokio::time::sleep(half.clamp(PAUSE.0, PAUSE.1)).await;
                }
            });
        }
    }
}

/// Puts the loads of now into a snapshot that a plan is made for, without a daemon. Returns the problems of queries.
///
/// # Errors
/// The certificates of the authorities cannot be read.
pub async fn measure(
    settings: &Deployment,
    snapshot: &mut ClusterSnapshot,
) -> Result<Vec<EngineProblem>, IdentityError> {
    let Some(loads) = ServiceLoads::of(settings, None)? else { return Ok(Vec::new()) };
    for load in &loads.known {
        let asked = async {
            let last = last_step(&loads.prometheus, load, loads.settle_millis).await?;
            ask_now(&loads.prometheus, load, last).await
        };
        if let Err(problem) = asked.await {
            lock(load).problem = Some(problem);
        }
    }
    loads.put(snapshot);
    Ok(loads.problems())
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

/// Asks for the load of one service: for the steps of now first, so that a history which Prometheus cannot give holds
/// them up no longer than one call, and then for all steps that are not known.
async fn look(prometheus: &Prometheus, load: &Mutex<MeasuredLoad>, settle_millis: i64) -> Result<(), PrometheusError> {
    let last = last_step(prometheus, load, settle_millis).await?;
    let LoadQuery { text, step_millis, next_millis } = lock(load).query.clone();
    if next_millis < last - HOLDS_STEPS * step_millis {
        ask_now(prometheus, load, last).await?;
    }
    let mut first = next_millis;
    while first <= last {
        let end = last.min(first + (CALL_STEPS - 1) * step_millis);
        let values = prometheus.range(&text, first, end, step_millis).await?;
        lock(load).take(values, end);
        first = end + step_millis;
    }
    lock(load).judge(last);
    Ok(())
}

/// End of the last step that Prometheus can be asked for, milliseconds of its clock.
async fn last_step(
    prometheus: &Prometheus,
    load: &Mutex<MeasuredLoad>,
    settle_millis: i64,
) -> Result<i64, PrometheusError> {
    let now = prometheus.now_millis().await?;
    let mut load = lock(load);
    load.ahead_millis = now - wall_ms();
    Ok((now - settle_millis).div_euclid(load.query.step_millis) * load.query.step_millis)
}

/// Asks for the steps of now alone.
async fn ask_now(prometheus: &Prometheus, load: &Mutex<MeasuredLoad>, last_millis: i64) -> Result<(), PrometheusError> {
    let LoadQuery { text, step_millis, .. } = lock(load).query.clone();
    let values = prometheus.range(&text, last_millis - HOLDS_STEPS * step_millis, last_millis, step_millis).await?;
    let mut load = lock(load);
    load.last = values.last().map(|&(at, load)| (at, load.max(0.0))).or(load.last);
    load.judge(last_millis);
    Ok(())
}

fn lock(load: &Mutex<MeasuredLoad>) -> MutexGuard<'_, MeasuredLoad> {
    load.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: i64 = 60_000;

    fn load() -> MeasuredLoad {
        let query = LoadQuery { text: "q".into(), step_millis: STEP, next_millis: 0 };
        MeasuredLoad { service: "web".into(), query, last: None, fresh: Vec::new(), problem: None, ahead_millis: 0 }
    }

    #[test]
    fn a_value_holds_for_two_steps_and_a_gap_stays_one() {
        let mut load = load();
        load.take(vec![(0, 5.0), (STEP, 7.0)], STEP);
        assert_eq!(load.query.next_millis, 2 * STEP);
        assert_eq!((load.rate_at(3 * STEP, 0), load.rate_at(3 * STEP + 1, 0)), (Some(7.0), None));
        // Of a gap of two steps nothing is known: the value after it comes in alone.
        load.take(vec![(4 * STEP, 1.0)], 4 * STEP);
        assert_eq!((load.query.next_millis, load.last), (5 * STEP, Some((4 * STEP, 1.0))));
        assert_eq!(load.fresh, [(0, 5.0), (STEP, 7.0), (4 * STEP, 1.0)]);
    }

    #[test]
    fn a_query_without_values_is_a_problem_and_its_past_is_asked_for_once() {
        let mut load = load();
        load.take(Vec::new(), 200 * STEP);
        load.judge(200 * STEP);
        assert_eq!((load.query.next_millis, load.problem.as_ref()), (199 * STEP, Some(&PrometheusError::NoValue)));
        // A value that comes late is taken.
        load.take(vec![(199 * STEP, 3.0)], 201 * STEP);
        load.judge(201 * STEP);
        assert_eq!((load.last, load.problem), (Some((199 * STEP, 3.0)), None));
    }
}
