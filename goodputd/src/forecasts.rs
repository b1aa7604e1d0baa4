//! `goodput forecast serve`: forecasts as a service, in this process.

use std::path::Path;

use goodput_configs::error::CheckError;
use goodput_configs::forecast::ForecastServerConfig;
use goodput_configs::reader;
use goodput_console::{CommandError, say};
use goodput_executor::forecasts::{ForecastServer, ForecastServerError};
use tokio::signal::unix::{SignalKind, signal};

use crate::config_file::command_error;
use crate::daemon::runtime;
use crate::logs::{self, LogFormat};

/// Serves the forecasts of a file until the program is interrupted.
///
/// # Errors
/// A file that cannot be used, a query that Prometheus refuses, or an address or a folder that cannot be had.
pub fn serve(path: &Path, sets: &[String]) -> Result<(), CommandError> {
    let (config, document) = reader::read::<ForecastServerConfig>(path, sets).map_err(command_error)?;
    logs::start(LogFormat::Text);
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        let server = match ForecastServer::open(&config).await {
            Ok(server) => server,
            Err(ForecastServerError::Query { service, problem }) => {
                let mut error = CheckError::at("services.query", format!("service {service:?}: {problem}"));
                error.names.push(("services", service));
                return Err(command_error(document.at_error(&error)));
            }
            Err(error) => return Err(CommandError::failed(error)),
        };
        let scheme = if config.tls.is_some() { "https" } else { "http" };
        say(&format!("forecasts at {scheme}://{}", server.http));
        if let Some(grpc) = server.grpc {
            let callers = if config.tls.is_some() { "KEDA, encrypted," } else { "KEDA and Dynamo" };
            say(&format!("gRPC for {callers} at {grpc}"));
        }
        let mut ended = signal(SignalKind::terminate()).map_err(CommandError::failed)?;
        let stop = async move {
            tokio::select! {
                _ = ended.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        };
        server.run(stop).await;
        Ok(())
    });
    // An estimate that is under way is of no use any more.
    runtime.shutdown_background();
    served
}
