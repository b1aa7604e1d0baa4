//! The loop that asks Prometheus, lets the forecasters learn, and decides.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ForecastServerError;
use super::board::{ServiceBoard, ServicePlace};
use super::state::StateFolder;
use crate::machine::wall_ms;
use crate::prometheus::{MOST_STEPS, Prometheus, PrometheusError};

/// Longest and shortest time between two rounds.
const ROUNDS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(15));

/// Time between two writes of a state. A restart asks Prometheus for what the state lacks.
const SAVE_EVERY: Duration = Duration::from_secs(60);

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
    /// Time of the last write of each service, with the steps and the replicas that it held.
    pub saved: Vec<Option<(Instant, StateMark)>>,
}

impl Keeper {
    /// Keeps the services for ever.
    pub async fn keep(&mut self) {
        let shortest = self.board.places.iter().map(|place| place.config.step_secs).fold(f64::INFINITY, f64::min);
        let pause = Duration::from_secs_f64(shortest.min(1e6) / 2.0).clamp(ROUNDS.0, ROUNDS.1);
        loop {
            self.round().await;
            self.save(false).await;
            tokio::time::sleep(pause).await;
        }
    }

    /// Asks for every service once, and decides. What Prometheus says of a service at fault stands on the board.
    pub async fn round(&mut self) {
        let now = self.prometheus.now_millis().await;
        let board = Arc::clone(&self.board);
        for place in &board.places {
            let asked = match &now {
                Ok(now) => self.ask(place, *now).await,
                Err(error) => Err(error.clone()),
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
        }
        board.tell();
    }

    /// Asks for the queries once, before anything is served.
    ///
    /// # Errors
    /// A query that Prometheus refuses, or that gives several series. A Prometheus that is silent is no error.
    pub async fn try_queries(&self) -> Result<(), ForecastServerError> {
        let Ok(now) = self.prometheus.now_millis().await else { return Ok(()) };
        for place in &self.board.places {
            let step = place.config.step_millis();
            let at = now.div_euclid(step) * step;
            match self.prometheus.range(&place.config.query, at, at, step).await {
                Ok(_) | Err(PrometheusError::Silent { .. } | PrometheusError::Failed { .. }) => {}
                Err(problem) => {
                    return Err(ForecastServerError::Query { service: place.config.name.to_string(), problem });
                }
            }
        }
        Ok(())
    }

    /// Asks for the steps of a service that are over by the clock of Prometheus, and lets its forecaster learn them.
    async fn ask(&self, place: &ServicePlace, now_millis: i64) -> Result<(), PrometheusError> {
        let step = place.config.step_millis();
        let last = (now_millis - self.settle_millis).div_euclid(step) * step;
        let mut first = place.watched().wanted_from(&place.config, last);
        while first <= last {
            let end = last.min(first + (MOST_STEPS - 1) * step);
            let values = self.prometheus.range(&place.config.query, first, end, step).await?;
            if !values.is_empty() {
                self.learn(place, values).await;
            }
            first = end + step;
        }
        Ok(())
    }

    /// An estimate takes seconds, so a thread of its own works on a copy.
    async fn learn(&self, place: &ServicePlace, values: Vec<(i64, f64)>) {
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

    /// Writes the states that have learnt something, `all` of them or those that were not written for a while.
    pub async fn save(&mut self, all: bool) {
        let board = Arc::clone(&self.board);
        for (place, saved) in board.places.iter().zip(&mut self.saved) {
            let watched = place.watched();
            let held: StateMark = (watched.steps(), watched.decision().replicas);
            let due = match *saved {
                Some((at, last)) => last != held && (all || at.elapsed() >= SAVE_EVERY),
                None => watched.steps() > 0,
            };
            if !due {
                continue;
            }
            let (folder, config) = (self.folder.clone(), place.config.clone());
            let written = tokio::task::spawn_blocking(move || folder.save(&config, &watched)).await;
            match written {
                Ok(Ok(())) => *saved = Some((Instant::now(), held)),
                Ok(Err(error)) => tracing::error!(service = %place.config.name, %error, "the state cannot be written"),
                Err(error) => tracing::error!(service = %place.config.name, %error, "the state cannot be written"),
            }
        }
    }
}
