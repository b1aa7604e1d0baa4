//! The daemon in this process.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use goodput_datasets::Catalog;
use goodput_executor::daemon::interface::api;
use goodput_executor::daemon::settings::{EngineSettings, Mode, Settings};
use goodput_executor::daemon::{self, Daemon, DaemonError};
use goodput_executor::engine::agents::AgentsEngine;
use goodput_executor::engine::recorded::Recorded;
use goodput_executor::engine::slurm::SlurmEngine;
use goodput_executor::engine::{ClusterSnapshot, Engine, Order};
use tokio::sync::oneshot;

use crate::args::Format;
use crate::fault::Fault;
use crate::output::{Cell, Rows, say};

fn settings(path: &Path) -> Result<Settings, Fault> {
    Settings::read(path).map_err(|error| Fault::input(error).with_help("configs/live has complete examples"))
}

fn open<E: Engine>(engine: E, settings: Settings) -> Result<Daemon<E>, Fault> {
    let applications = Catalog::shipped().applications.clone();
    let tenants = settings.tenants().map_err(Fault::input)?;
    daemon::open(engine, settings, applications, Arc::new(tenants)).map_err(Fault::failed)
}

fn runtime() -> Result<tokio::runtime::Runtime, Fault> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(Fault::failed)
}

/// `live run`.
pub fn run(config: &Path, mode: Option<&str>, json_logs: bool) -> Result<ExitCode, Fault> {
    let mut settings = settings(config)?;
    if let Some(mode) = mode {
        settings.mode = Mode::by_name(mode)
            .ok_or_else(|| Fault::input(format!("--mode {mode}: expected observe, canary or act")))?;
    }
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Whoever set up logs before keeps them.
    let _ = if json_logs { logs.json().try_init() } else { logs.try_init() };
    match settings.engine.clone() {
        EngineSettings::Slurm(slurm) => serve(SlurmEngine::new(&slurm), settings),
        EngineSettings::Agents(agents) => serve(AgentsEngine::open(agents).map_err(Fault::failed)?, settings),
    }
}

fn serve<E: Engine>(engine: E, settings: Settings) -> Result<ExitCode, Fault> {
    let daemon = open(engine, settings)?;
    say(&format!(
        "mode {}; a file called STOP in the state directory sets it to observe at once",
        daemon.mode().name()
    ));
    let runtime = runtime()?;
    let (stop, stopped) = oneshot::channel();
    runtime.block_on(async {
        tokio::spawn(async move {
            let _ = tokio::signal::ctrl_c().await;
            let _ = stop.send(());
        });
        api::run(daemon, stopped).await.map_err(Fault::failed)
    })?;
    runtime.shutdown_background();
    say("the lease is given up; jobs run on");
    Ok(ExitCode::SUCCESS)
}

/// `live plan`.
pub fn plan(config: &Path, record: Option<&Path>, output: Format) -> Result<ExitCode, Fault> {
    let settings = settings(config)?;
    let runtime = runtime()?;
    let snapshot = runtime.block_on(async {
        match settings.engine.clone() {
            EngineSettings::Slurm(slurm) => SlurmEngine::new(&slurm).snapshot().await.map_err(Fault::failed),
            EngineSettings::Agents(agents) => {
                AgentsEngine::open(agents).map_err(Fault::failed)?.snapshot().await.map_err(Fault::failed)
            }
        }
    })?;
    if let Some(path) = record {
        let text = serde_json::to_string(&snapshot).map_err(Fault::failed)?;
        std::fs::write(path, text).map_err(|error| Fault::failed(format!("{}: {error}", path.display())))?;
    }
    print(planned(settings, vec![snapshot])?, output)
}

/// `live replay`.
pub fn replay(config: &Path, snapshots: &[PathBuf], output: Format) -> Result<ExitCode, Fault> {
    let settings = settings(config)?;
    let read = |path: &PathBuf| -> Result<ClusterSnapshot, Fault> {
        let fault = |error: &dyn std::fmt::Display| Fault::input(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| fault(&error))?;
        serde_json::from_str(&text)
            .map_err(|error| fault(&error).with_help("expected a snapshot as `live plan --record` writes it"))
    };
    print(planned(settings, snapshots.iter().map(read).collect::<Result<_, _>>()?)?, output)
}

/// What would be done about each of some snapshots. Nothing of it touches the deployment's own state.
fn planned(mut settings: Settings, snapshots: Vec<ClusterSnapshot>) -> Result<Vec<(u64, Order)>, Fault> {
    let scratch = std::env::temp_dir().join(format!("goodput-plan-{}", std::process::id()));
    settings.state.directory = scratch.clone();
    settings.mode = Mode::Observe;
    let count = snapshots.len();
    let mut daemon = open(Recorded::new(snapshots), settings)?;
    let orders = runtime()?.block_on(async {
        let mut orders = Vec::new();
        for _ in 0..count {
            daemon.cycle().await?;
            let version = daemon.engine_mut().version();
            orders.extend(daemon.proposed().iter().cloned().map(|order| (version, order)));
        }
        Ok(orders)
    });
    drop(daemon);
    let _ = std::fs::remove_dir_all(scratch);
    orders.map_err(|error: DaemonError| Fault::failed(error))
}

fn print(orders: Vec<(u64, Order)>, output: Format) -> Result<ExitCode, Fault> {
    let mut rows = Rows::new(&["snapshot", "verb", "job", "placement"]);
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
    }
    rows.print(output)?;
    Ok(ExitCode::SUCCESS)
}
