//! Forecasts of loads as a service, for autoscalers: `goodput forecast serve`.
//!
//! # Layout
//! - [`watched`]: one service: its steps, its forecaster, its decision ([`decision`]).
//! - `keeper`: the loop that asks Prometheus; `state`: states on disk.
//! - [`board`]: the present state, for the interfaces.
//! - `api`, [`metrics`]: HTTP; `grpc`: KEDA, and the planner of Dynamo.
//! - [`ForecastServer`]: all of them together.

mod api;
pub mod board;
pub mod decision;
mod grpc;
mod keeper;
pub mod metrics;
mod state;
pub mod watched;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::{future, io};

use goodput_configs::forecast::ForecastServerConfig;
use thiserror::Error;
use tokio::net::TcpListener;

use crate::agent::record::RecordError;
use crate::http::identity::IdentityError;
use crate::http::{self, Door};
use crate::prometheus::{Prometheus, PrometheusError};
use board::ServiceBoard;
use keeper::Keeper;
use state::StateFolder;

/// Reason why the server does not start.
#[derive(Debug, Error)]
pub enum ForecastServerError {
    /// Prometheus does not take the query of a service.
    #[error("{problem}")]
    Query {
        /// Name of the service.
        service: String,
        /// Answer of Prometheus.
        problem: PrometheusError,
    },
    /// An address cannot be listened on.
    #[error("{key} = {address:?}: cannot listen: {source}; choose another address or port")]
    Listen {
        /// Key of the address.
        key: &'static str,
        /// Address as the file has it.
        address: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The folder of the states cannot be made.
    #[error("state_dir = {}: {source}; name a folder that this user may write", path.display())]
    State {
        /// Path of the folder.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A state cannot be used.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The certificates for Prometheus cannot be used.
    #[error("[prometheus] ca: {0}")]
    Identity(#[from] IdentityError),
}

/// Server that listens and has its states, and that has not begun to serve.
pub struct ForecastServer {
    /// Address of the HTTP interface.
    pub http: SocketAddr,
    /// Address of the gRPC interface; `None` where it is off.
    pub grpc: Option<SocketAddr>,
    listeners: (TcpListener, Option<TcpListener>),
    keeper: Keeper,
}

impl ForecastServer {
    /// Listens, reads the states and tries the queries.
    ///
    /// # Errors
    /// [`ForecastServerError`].
    pub async fn open(config: &ForecastServerConfig) -> Result<Self, ForecastServerError> {
        let folder = StateFolder::open(&config.state_dir)?;
        let services = config.services.iter().map(|service| Ok((service.clone(), folder.load(service)?)));
        let services = services.collect::<Result<Vec<_>, ForecastServerError>>()?;
        let dynamo = config.dynamo.as_ref().map(|dynamo| dynamo.service.to_string());
        let keeper = Keeper {
            saved: vec![None; services.len()],
            board: Arc::new(ServiceBoard::new(services, dynamo)),
            prometheus: Prometheus::new(&config.prometheus)?,
            folder,
            settle_millis: (config.prometheus.settle_secs * 1e3).round() as i64,
        };
        keeper.try_queries().await?;
        let (http, http_address) = listen("listen", &config.listen).await?;
        let grpc = match config.grpc.as_str() {
            "" => None,
            address => Some(listen("grpc", address).await?),
        };
        let (grpc, grpc_address) = grpc.unzip();
        Ok(Self { http: http_address, grpc: grpc_address, listeners: (http, grpc), keeper })
    }

    /// Serves until `stop`, and writes the states at the end.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let (http, grpc) = self.listeners;
        let board = Arc::clone(&self.keeper.board);
        // Until the first round is over, a state that was read answers by its age.
        board.places.iter().for_each(|place| self.keeper.decide(place));
        let for_grpc = grpc::router(&board);
        let grpc = async move {
            match grpc {
                Some(listener) => http::serve_grpc(listener, Door::Plain, for_grpc).await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            () = stop => {}
            () = self.keeper.keep() => {}
            () = http::serve(http, Door::Plain, api::router(Arc::clone(&board))) => {}
            () = grpc => {}
        }
        self.keeper.save(true).await;
    }
}

async fn listen(key: &'static str, address: &str) -> Result<(TcpListener, SocketAddr), ForecastServerError> {
    let fault = |source| ForecastServerError::Listen { key, address: address.to_owned(), source };
    let listener = TcpListener::bind(address).await.map_err(fault)?;
    let bound = listener.local_addr().map_err(fault)?;
    Ok((listener, bound))
}
