//! Readings of devices at any moment, without ever waiting for the driver.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use goodput_configs::live::dcgm::DcgmConfig;
use goodput_configs::live::devices::DeviceChoice;
use goodput_configs::live::node_agent::PaceConfig;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};

use super::watch::watch_with_deadline;
use super::{DeviceError, HealthBook, Tracked, choice, dcgm, events};

/// Readings of all devices at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Readings {
    /// The devices, by index.
    pub devices: Vec<Tracked>,
    /// Time of the readings, milliseconds of the caller's clock; 0: never.
    pub read_ms: i64,
    /// Time for which the driver has not answered, milliseconds; `None`: it does.
    pub stuck_ms: Option<u64>,
    /// Reason why the last listing failed, where it did.
    pub error: Option<String>,
}

struct TelemetryState {
    book: HealthBook,
    read_ms: i64,
    stuck_ms: Option<u64>,
    error: Option<String>,
}

/// Watches the devices of a machine; ends when dropped.
pub struct Telemetry {
    state: Arc<Mutex<TelemetryState>>,
    changed: Arc<watch::Sender<u64>>,
    stop: Arc<AtomicBool>,
    now: Arc<Notify>,
    clock: fn() -> i64,
}

impl Telemetry {
    /// Starts to watch. Opening the driver is part of it and may hang or fail as any question to
    /// it: then it is tried again.
    ///
    /// # Panics
    /// Outside a tokio runtime with time enabled.
    #[must_use]
    pub fn start(choice: DeviceChoice, folder: PathBuf, node: String, pace: PaceConfig, clock: fn() -> i64) -> Self {
        let book = HealthBook::new(i64::try_from(pace.back_after_ms).unwrap_or(i64::MAX));
        let state = Arc::new(Mutex::new(TelemetryState { book, read_ms: 0, stuck_ms: None, error: None }));
        let (changed, _) = watch::channel(0);
        let (changed, stop) = (Arc::new(changed), Arc::new(AtomicBool::new(false)));
        let now = Arc::new(Notify::new());
        let telemetry = Self { state, changed, stop, now: Arc::clone(&now), clock };
        let source = Lazy { choice, folder, node, opened: None, on_open: telemetry.listener() };
        let period = Duration::from_millis(pace.period_ms);
        let mut answers = watch_with_deadline(source, period, Duration::from_millis(pace.deadline_ms), now);
        let (state, changed, stop) =
            (Arc::clone(&telemetry.state), Arc::clone(&telemetry.changed), Arc::clone(&telemetry.stop));
        tokio::spawn(async move {
            let mut told = DeviceOffer::default();
            while let Some(answer) = answers.recv().await {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                take(&mut lock(&state), answer, clock());
                let offer = DeviceOffer::of(&lock(&state));
                if offer != told {
                    offer.tell();
                    told = offer;
                }
                changed.send_modify(|version| *version += 1);
            }
        });
        telemetry
    }

    /// Reads a DCGM exporter too. An exporter that does not answer takes no device out.
    pub fn follow_dcgm(&self, config: DcgmConfig) {
        let (state, changed, stop, clock) =
            (Arc::clone(&self.state), Arc::clone(&self.changed), Arc::clone(&self.stop), self.clock);
        tokio::spawn(async move {
            let mut silent = false;
            while !stop.load(Ordering::Relaxed) {
                match dcgm::read(&config).await {
                    Ok(values) => {
                        lock(&state).book.observe_dcgm(&values, config.hottest_c, clock());
                        changed.send_modify(|version| *version += 1);
                        silent = false;
                    }
                    Err(problem) if !silent => {
                        tracing::warn!(problem, "the DCGM exporter does not answer; the driver alone tells health");
                        silent = true;
                    }
                    Err(_) => {}
                }
                tokio::time::sleep(Duration::from_millis(config.period_ms)).await;
            }
        });
    }

    /// Goes on from what an earlier process knew.
    pub fn inherit(&self, earlier: HealthBook) {
        lock(&self.state).book.inherit(earlier);
    }

    /// Reads the driver at once instead of at the next period.
    pub fn read_soon(&self) {
        self.now.notify_one();
    }

    /// Newest readings of all devices.
    #[must_use]
    pub fn readings(&self) -> Readings {
        let state = lock(&self.state);
        let (devices, error) = (state.book.devices().to_vec(), state.error.clone());
        Readings { devices, read_ms: state.read_ms, stuck_ms: state.stuck_ms, error }
    }

    /// The health of all devices, to be kept for the next process.
    #[must_use]
    pub fn book(&self) -> HealthBook {
        lock(&self.state).book.clone()
    }

    /// An administrator says that a device is well.
    pub fn restore(&self, uuid: &str) -> bool {
        let known = lock(&self.state).book.restore(uuid);
        self.changed.send_modify(|version| *version += 1);
        known
    }

    /// Changes whenever something new is known.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn listener(&self) -> impl Fn(PathBuf) + Send + 'static {
        let (state, changed, stop, clock) =
            (Arc::clone(&self.state), Arc::clone(&self.changed), Arc::clone(&self.stop), self.clock);
        move |library| {
            let (state, changed) = (Arc::clone(&state), Arc::clone(&changed));
            events::listen(&library, Arc::clone(&stop), move |uuid, code| {
                lock(&state).book.xid(uuid, code, clock());
                changed.send_modify(|version| *version += 1);
            });
        }
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn lock(state: &Mutex<TelemetryState>) -> MutexGuard<'_, TelemetryState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Accelerators of the machine as its log tells them: once, and again when they change.
#[derive(Default, PartialEq)]
struct DeviceOffer {
    /// Number of accelerators that are known, whatever their health.
    accelerators: usize,
    /// Problem of the driver with its remedy, where there is one.
    problem: Option<String>,
}

impl DeviceOffer {
    fn of(state: &TelemetryState) -> Self {
        let stuck = state.stuck_ms.map(|_| "the driver does not answer".to_owned());
        let accelerators = state.book.devices().len();
        let none = || {
            let silence =
                "the driver lists no accelerator; `devices` in the agent's file names another library or fake ones";
            (accelerators == 0).then(|| silence.to_owned())
        };
        Self { accelerators, problem: stuck.or_else(|| state.error.clone()).or_else(none) }
    }

    fn tell(&self) {
        match &self.problem {
            Some(problem) if self.accelerators == 0 => {
                tracing::error!(%problem, "no accelerators: to the daemon this node is down");
            }
            Some(problem) => tracing::warn!(%problem, "the driver does not tell the state of the accelerators"),
            None => tracing::info!(accelerators = self.accelerators, "the driver lists the accelerators"),
        }
    }
}

fn take(state: &mut TelemetryState, answer: Result<super::Inventory, DeviceError>, now_ms: i64) {
    (state.stuck_ms, state.error) = match answer {
        Ok(inventory) => {
            state.book.observe(&inventory, now_ms);
            state.read_ms = now_ms;
            (None, None)
        }
        Err(DeviceError::Stuck { waited }) => (Some(waited.as_millis() as u64), None),
        Err(error) => {
            let remedy = error.remedy().map(|remedy| format!("; {remedy}"));
            (None, Some(format!("{error}{}", remedy.unwrap_or_default())))
        }
    };
}

/// Opens the driver at the first question, on the thread that may hang.
struct Lazy<F> {
    choice: DeviceChoice,
    folder: PathBuf,
    node: String,
    opened: Option<super::NvmlSource>,
    on_open: F,
}

impl<F: Fn(PathBuf) + Send> super::DeviceSource for Lazy<F> {
    fn list(&mut self) -> Result<super::Inventory, DeviceError> {
        if self.opened.is_none() {
            let source = choice::open(&self.choice, &self.folder, &self.node)?;
            (self.on_open)(source.library().to_owned());
            self.opened = Some(source);
        }
        match &mut self.opened {
            Some(source) => source.list(),
            None => Ok(super::Inventory::default()),
        }
    }
}
