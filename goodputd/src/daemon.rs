//! `live run`, `live plan` and `live replay`: the daemon in this process.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use goodput_configs::live::deployment::{Deployment, Mode};
use goodput_configs::live::engine::{AgentsConfig, EngineConfig, SlurmConfig};
use goodput_configs::live::leader::LeaderConfig;
use goodput_configs::{policies, reader};
use goodput_console::{Cell, CommandError, Listing, OutputFormat, say};
use goodput_datasets::accelerators::AcceleratorEntry;
use goodput_datasets::{Accelerators, Catalog};
use goodput_executor::daemon::interface::api;
use goodput_executor::daemon::{Daemon, DaemonError, measure_loads};
use goodput_executor::engine::agents::AgentsEngine;
use goodput_executor::engine::kubernetes::KubernetesEngine;
use goodput_executor::engine::recorded::Recorded;
use goodput_executor::engine::slurm::{FactsKey, SlurmEngine};
use goodput_executor::engine::{ClusterSnapshot, DeclaredService, Engine, EngineError, Order};
use goodput_executor::etcd::Etcd;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::config_file::command_error;
use crate::logs::{self, LogFormat};

fn settings(path: &Path) -> Result<Deployment, CommandError> {
    Ok(reader::read(path, &[]).map_err(command_error)?.0)
}

fn open<E: Engine>(engine: E, settings: Deployment) -> Result<Daemon<E>, CommandError> {
    let applications = Catalog::shipped().applications.clone();
    let tenants = settings.tenants().map_err(CommandError::input)?;
    let daemon = goodput_executor::daemon::open(engine, settings, applications, Arc::new(tenants));
    let types = Accelerators::shipped().types.iter().map(AcceleratorEntry::accelerator_type).collect();
    Ok(daemon.map_err(CommandError::failed)?.knowing(types))
}

pub fn runtime() -> Result<tokio::runtime::Runtime, CommandError> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(CommandError::failed)
}

/// Runs the daemon until interrupted.
pub fn run(config: &Path, mode: Option<Mode>, format: LogFormat) -> Result<(), CommandError> {
    let mut settings = settings(config)?;
    settings.mode = mode.unwrap_or(settings.mode);
    logs::start(format);
    match settings.engine.clone() {
        EngineConfig::Slurm(slurm) => {
            let key = FactsKey::in_directory(&settings.state.directory).map_err(|error| {
                let directory = settings.state.directory.display();
                CommandError::failed(format!("[state] directory = {directory}: no key for comments of jobs: {error}"))
            })?;
            serve(asked_release(slurm_engine(&slurm, &settings, key)?)?, settings, mode)
        }
        EngineConfig::Agents(agents) => serve(agents_engine(agents, &settings)?, settings, mode),
        EngineConfig::Kubernetes(kubernetes) => serve(KubernetesEngine::new(&kubernetes), settings, mode),
    }
}

/// Asks Slurm for its release, and refuses one that is too old. A Slurm that does not answer may come
/// back, so it is asked again later.
fn asked_release(mut engine: SlurmEngine) -> Result<SlurmEngine, CommandError> {
    match runtime()?.block_on(engine.find_release()) {
        Ok(()) => say(&format!("Slurm {}", engine.release().unwrap_or_default())),
        Err(error @ EngineError::Refused { .. }) => return Err(CommandError::failed(error)),
        Err(error) => say(&format!("the release of Slurm is not known yet: {error}")),
    }
    Ok(engine)
}

fn slurm_engine(slurm: &SlurmConfig, settings: &Deployment, key: FactsKey) -> Result<SlurmEngine, CommandError> {
    let services = DeclaredService::of(settings).map_err(CommandError::input)?;
    Ok(SlurmEngine::new(slurm, key).with_services(services, slurm.reservation.as_deref().unwrap_or_default()))
}

fn agents_engine(agents: AgentsConfig, settings: &Deployment) -> Result<AgentsEngine, CommandError> {
    let services = DeclaredService::of(settings).map_err(CommandError::input)?;
    let engine = AgentsEngine::open(agents).map_err(CommandError::failed)?.with_services(services);
    let engine = engine.polled_every(settings.cycle.poll_secs);
    match settings.leader.etcd() {
        Some(etcd) => Ok(engine.shared(Etcd::new(etcd).map_err(CommandError::failed)?)),
        None => Ok(engine),
    }
}

/// Returns when the daemon is told to end: by Ctrl-C, or by SIGTERM as a service manager sends it.
async fn told_to_end() {
    let Ok(mut terminated) = signal(SignalKind::terminate()) else {
        let _ = tokio::signal::ctrl_c().await;
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
    }
}

/// Runs the daemon until it is told to end; `mode` is that of the command line.
fn serve<E: Engine>(engine: E, settings: Deployment, mode: Option<Mode>) -> Result<(), CommandError> {
    let mut daemon = open(engine, settings)?;
    if mode == Some(Mode::Observe) {
        daemon.observe_only();
    }
    say(&format!(
        "mode {}; a file called STOP in the state directory sets it to observe at once",
        daemon.mode().name()
    ));
    let runtime = runtime()?;
    let (stop, stopped) = oneshot::channel();
    runtime.block_on(async {
        tokio::spawn(async move {
            told_to_end().await;
            let _ = stop.send(());
        });
        api::run(daemon, stopped).await.map_err(CommandError::failed)
    })?;
    runtime.shutdown_background();
    say("the lease is given up; jobs run on");
    Ok(())
}

/// Observes the cluster once and lists what the daemon would do.
pub fn plan(config: &Path, record: Option<&Path>, output: OutputFormat) -> Result<(), CommandError> {
    let settings = settings(config)?;
    let runtime = runtime()?;
    let mut snapshot = runtime.block_on(async {
        match settings.engine.clone() {
            EngineConfig::Slurm(slurm) => {
                let key = FactsKey::found(&settings.state.directory).map_err(CommandError::failed)?;
                slurm_engine(&slurm, &settings, key)?.snapshot().await.map_err(CommandError::failed)
            }
            EngineConfig::Agents(agents) => {
                agents_engine(agents, &settings)?.snapshot().await.map_err(CommandError::failed)
            }
            EngineConfig::Kubernetes(kubernetes) => {
                KubernetesEngine::new(&kubernetes).snapshot().await.map_err(CommandError::failed)
            }
        }
    })?;
    let problems = runtime.block_on(measure_loads(&settings, &mut snapshot)).map_err(CommandError::failed)?;
    problems.iter().for_each(|problem| say(&problem.text));
    if let Some(path) = record {
        let text = serde_json::to_string(&snapshot).map_err(CommandError::failed)?;
        std::fs::write(path, text).map_err(|error| CommandError::failed(format!("{}: {error}", path.display())))?;
    }
    planned(settings, vec![snapshot])?.show(output)
}

/// Lists what the daemon would have done about recorded snapshots.
pub fn replay(config: &Path, snapshots: &[PathBuf], output: OutputFormat) -> Result<(), CommandError> {
    let settings = settings(config)?;
    let read = |path: &PathBuf| -> Result<ClusterSnapshot, CommandError> {
        let unreadable = |error: &dyn std::fmt::Display| CommandError::input(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(&error))?;
        serde_json::from_str(&text)
            .map_err(|error| unreadable(&error).with_help("expected a snapshot as `live plan --record` writes it"))
    };
    planned(settings, snapshots.iter().map(read).collect::<Result<_, _>>()?)?.show(output)
}

/// Plan for recorded snapshots. A snapshot is named by its version.
struct SnapshotPlan {
    /// Orders that the daemon would give.
    orders: Vec<(u64, Order)>,
    /// Reasons for which the fallback decided instead of the policy.
    instead: Vec<(u64, String)>,
}

impl SnapshotPlan {
    /// Lists the orders. The plan fails where some of them are not the policy's.
    fn show(self, output: OutputFormat) -> Result<(), CommandError> {
        print(self.orders, output)?;
        if self.instead.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> =
            self.instead.iter().map(|(version, reason)| format!("snapshot {version}: {reason}")).collect();
        let message = format!("the fallback decided instead of the policy:\n{}", lines.join("\n"));
        Err(CommandError::failed(message).with_help("the orders of these snapshots are those of the fallback"))
    }
}

/// Time for a program to decide in a plan, milliseconds. The program may take half of it to start, which is a minute.
const PROGRAM_TURN_MS: u64 = 140_000;

/// Orders that the daemon would give for each snapshot. The state directory of the deployment stays untouched.
fn planned(mut settings: Deployment, snapshots: Vec<ClusterSnapshot>) -> Result<SnapshotPlan, CommandError> {
    let scratch = std::env::temp_dir().join(format!("goodput-plan-{}", std::process::id()));
    settings.state.directory = scratch.clone();
    settings.mode = Mode::Observe;
    // A snapshot has its loads.
    settings.services.iter_mut().for_each(|service| service.load = None);
    // A program starts with the plan, and nothing waits for the plan.
    if settings.policy.name.as_deref().is_some_and(policies::is_program) {
        settings.reliance.timeout_ms = settings.reliance.timeout_ms.max(PROGRAM_TURN_MS);
    }
    // A plan takes nothing from the daemon that leads.
    settings.leader = LeaderConfig::default();
    let count = snapshots.len();
    let mut daemon = open(Recorded::new(snapshots), settings)?;
    let planned = runtime()?.block_on(async {
        let mut planned = SnapshotPlan { orders: Vec::new(), instead: Vec::new() };
        for _ in 0..count {
            daemon.cycle().await?;
            let version = daemon.engine_mut().version();
            planned.orders.extend(daemon.proposed().iter().cloned().map(|order| (version, order)));
            let reason = daemon.status().lock().unwrap_or_else(PoisonError::into_inner).fallback.clone();
            planned.instead.extend((!reason.is_empty()).then_some((version, reason)));
        }
        Ok(planned)
    });
    drop(daemon);
    let _ = std::fs::remove_dir_all(scratch);
    planned.map_err(|error: DaemonError| CommandError::failed(error))
}

fn print(orders: Vec<(u64, Order)>, output: OutputFormat) -> Result<(), CommandError> {
    let mut rows = Listing::new(&["snapshot", "verb", "job", "placement"]);
    for (version, order) in &orders {
        let place = order.action.placement().unwrap_or_default();
        let place: Vec<String> = place.iter().map(|on| format!("{}:{}", on.node, on.gpus)).collect();
        rows.push(vec![
            Cell::Whole(*version as i64),
            order.action.verb().into(),
            order.job.as_str().into(),
            place.join(" ").into(),
        ]);
    }
    if orders.is_empty() {
        say("nothing is to be done");
        // Programs that read csv or JSON get their empty list.
        if matches!(output, OutputFormat::Table | OutputFormat::Wide) {
            return Ok(());
        }
    }
    rows.print(output)
}
