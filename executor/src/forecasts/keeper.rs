//! Tasks that ask Prometheus, let the forecasters learn, and decide: one for each service.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};

use super::ForecastServerError;
use super::board::{ServiceBoard, ServicePlace};
use super::state::StateFolder;
use crate::machine::wall_ms;
use crate::prometheus::{MOST_STEPS, Prometheus, PrometheusError};

/// Shortest and longest time between two turns of a service.
const TURNS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(15));

/// Time between two writes of a state. A restart asks Prometheus for what the state lacks.
const SAVE_EVERY: Duration = Duration::from_secs(60);

/// Queries at once. Prometheus works on twenty at once (`query.max-concurrency`), and others ask too.
const QUERIES: usize = 12;

/// Mark of a state: the number of steps, and the replicas decided, which rise in a silence too.
type StateMark = (u64, Option<u32>);

/// Keeper of all services of a board.
pub struct Keeper {
    /// Services that are kept.
    pub board: Arc<ServiceBoard>,
    /// Prometheus that knows the loads.
    pub prometheus: Prometheus,
    /// Folder of the states.
    pub folder: StateFolder,
    /// Time after the end of a step before it is asked for, milliseconds.
    pub settle_millis: i64,
    /// Permits to ask Prometheus.
    asking: Semaphore,
    /// Permits to learn, one for each processor.
    learning: Semaphore,
}

/// Last write of the state of a service; `None` before the first one.
type StateWrite = Option<(Instant, StateMark)>;

impl Keeper {
    /// Keeper of the services of `board`.
    pub fn new(board: ServiceBoard, prometheus: Prometheus, folder: StateFolder, settle_millis: i64) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            board: Arc::new(board),
            prometheus,
            folder,
            settle_millis,
            asking: Semaphore::new(QUERIES),
            learning: Semaphore::new(processors),
        }
    }

    /// Keeps the services for ever, each in a task of its own. A service that waits for its query or for an estimate
    /// delays no other one. The tasks end with the future.
    pub async fn keep(self: &Arc<Self>) {
        let mut tasks = JoinSet::new();
        for at in 0..self.board.places.len() {
            let keeper = Arc::clone(self);
            tasks.spawn(async move { keeper.keep_one(&keeper.board.places[at]).await });
        }
        while let Some(ended) = tasks.join_next().await {
            // A service without its keeper would stand by its last decision, and look healthy.
            if let Err(Ok(reason)) = ended.map_err(JoinError::try_into_panic) {
                resume_unwind(reason);
            }
        }
        std::future::pending().await
    }

    /// Keeps one service for ever.
    async fn keep_one(&self, place: &ServicePlace) {
        let pause = Duration::from_secs_f64(place.config.step_secs.min(1e6) / 2.0).clamp(TURNS.0, TURNS.1);
        let mut saved = None;
        loop {
            self.turn(place).await;
            self.save(place, &mut saved).await;
            tokio::time::sleep(pause).await;
        }
    }

    /// Asks for a service once, and decides. What Prometheus says at fault stands on the board.
    async fn turn(&self, place: &ServicePlace) {
        let asked = match self.prometheus.now_millis().await {
            Ok(now) => self.ask(place, now).await,
            Err(error) => Err(error),
        };
        let problem = asked.err().map(|error| error.to_string());
        if problem != place.problem() {
            match &problem {
                Some(problem) => tracing::warn!(service = %place.config.name, problem, "no load"),
                None => tracing::info!(service = %place.config.name, "Prometheus gives the load"),
            }
        }
        place.note(problem);
        self.decide(place);
        self.board.tell();
    }

    /// Asks for the queries once, all together, before anything is served.
    ///
    /// # Errors
    /// A query that Prometheus refuses, or that gives several series. A Prometheus that is silent is no error.
    pub async fn try_queries(&self) -> Result<(), ForecastServerError> {
        let Ok(now) = self.prometheus.now_millis().await else { return Ok(()) };
        let tried = self.board.places.iter().map(async |place| {
            let step = place.config.step_millis();
            let at = now.div_euclid(step) * step;
            match self.range(place, at, at).await {
                Ok(_) | Err(PrometheusError::Silent { .. } | PrometheusError::Failed { .. }) => Ok(()),
                Err(problem) => Err(ForecastServerError::Query { service: place.config.name.to_string(), problem }),
            }
        });
        try_join_all(tried).await.map(drop)
    }

    /// Loads of a service at the ends of its steps from `first` to `last`, milliseconds of the Unix epoch.
    async fn range(&self, place: &ServicePlace, first: i64, last: i64) -> Result<Vec<(i64, f64)>, PrometheusError> {
        let _permit = self.asking.acquire().await;
        self.prometheus.range(&place.config.query, first, last, place.config.step_millis()).await
    }

    /// Asks for the steps of a service that are over by the clock of Prometheus, and lets its forecaster learn them.
    async fn ask(&self, place: &ServicePlace, now_millis: i64) -> Result<(), PrometheusError> {
        let step = place.config.step_millis();
        let last = (now_millis - self.settle_millis).div_euclid(step) * step;
        let mut first = place.watched().wanted_from(&place.config, last);
        while first <= last {
            let end = last.min(first + (MOST_STEPS - 1) * step);
            let values = self.range(place, first, end).await?;
            if !values.is_empty() {
                self.learn(place, values).await;
            }
            first = end + step;
        }
        Ok(())
    }

    /// An estimate takes seconds, so a thread of its own works on a copy.
    async fn learn(&self, place: &ServicePlace, values: Vec<(i64, f64)>) {
        let _permit = self.learning.acquire().await;
        let mut watched = (*place.watched()).clone();
        let learnt = tokio::task::spawn_blocking(move || {
            watched.take(&values);
            watched
        });
        match learnt.await {
            Ok(watched) => place.update(|kept| *kept = watched),
            Err(error) => tracing::error!(service = %place.config.name, %error, "the forecaster failed"),
        }
    }

    /// Decides for a service by the clock of this machine.
    pub fn decide(&self, place: &ServicePlace) {
        let patience_millis = self.patience_millis(place);
        place.update(|watched| watched.decide(&place.config, wall_ms(), patience_millis));
    }

    /// Age of a value from which Prometheus counts as silent: a step that is over, one that is not yet, and the time
    /// until a step is asked for.
    fn patience_millis(&self, place: &ServicePlace) -> i64 {
        2 * place.config.step_millis() + self.settle_millis + 1000
    }

    /// Writes the state of a service where it has learnt something and was not written for a while.
    async fn save(&self, place: &ServicePlace, saved: &mut StateWrite) {
        let held = mark(place);
        let due = match *saved {
            Some((at, last)) => last != held && at.elapsed() >= SAVE_EVERY,
            None => held.0 > 0,
        };
        if due && self.write(place).await {
            *saved = Some((Instant::now(), held));
        }
    }

    /// Writes the states of all services.
    pub async fn save_all(&self) {
        for place in self.board.places.iter().filter(|place| mark(place).0 > 0) {
            self.write(place).await;
        }
    }

    /// Writes the state of a service, and says whether that went well.
    async fn write(&self, place: &ServicePlace) -> bool {
        let (folder, config, watched) = (self.folder.clone(), place.config.clone(), place.watched());
        let written = tokio::task::spawn_blocking(move || folder.save(&config, &watched)).await;
        let problem = match written {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::error!(service = %place.config.name, problem, "the state cannot be written");
        false
    }
}

fn mark(place: &ServicePlace) -> StateMark {
    let watched = place.watched();
    (watched.steps(), watched.decision().replicas)
}
