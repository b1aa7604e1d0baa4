//! Present state of each service: written by the keeper, read by the interfaces.

use std::sync::{Arc, Mutex, PoisonError};

use goodput_configs::forecast::ServedLoad;
use tokio::sync::watch;

use super::watched::WatchedService;

/// A service with its present state.
#[derive(Debug)]
pub struct ServicePlace {
    /// Terms of the service.
    pub config: ServedLoad,
    watched: Mutex<Arc<WatchedService>>,
    problem: Mutex<Option<String>>,
}

impl ServicePlace {
    /// State of the service at this moment.
    pub fn watched(&self) -> Arc<WatchedService> {
        Arc::clone(&self.watched.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reason why Prometheus gave nothing when it was last asked.
    pub fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut WatchedService)) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut watched));
    }

    pub(super) fn note(&self, problem: Option<String>) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    /// Age of the last value at the time `now_millis`, milliseconds, at least 0; `None` before the first value.
    pub fn age_millis(&self, now_millis: i64) -> Option<i64> {
        Some((now_millis - self.watched().last_millis()?).max(0))
    }
}

/// All services of a server.
#[derive(Debug)]
pub struct ServiceBoard {
    /// Services in the order of the file.
    pub places: Vec<ServicePlace>,
    /// Service that the planner of Dynamo scales.
    dynamo: Option<String>,
    changes: watch::Sender<u64>,
}

impl ServiceBoard {
    /// Services with the states that they have.
    pub fn new(services: Vec<(ServedLoad, WatchedService)>, dynamo: Option<String>) -> Self {
        let unasked = || Mutex::new(Some("Prometheus was not asked yet".to_owned()));
        let place =
            |(config, watched)| ServicePlace { config, watched: Mutex::new(Arc::new(watched)), problem: unasked() };
        Self { places: services.into_iter().map(place).collect(), dynamo, changes: watch::channel(0).0 }
    }

    /// The service called `name`.
    pub fn place(&self, name: &str) -> Option<&ServicePlace> {
        self.places.iter().find(|place| place.config.name.as_str() == name)
    }

    /// Service that the planner of Dynamo scales.
    pub fn of_dynamo(&self) -> Option<&ServicePlace> {
        self.dynamo.as_deref().and_then(|name| self.place(name))
    }

    /// Counts turns of services.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Tells readers that wait for changes that the turn of a service is over.
    pub(super) fn tell(&self) {
        self.changes.send_modify(|turn| *turn += 1);
    }
}
