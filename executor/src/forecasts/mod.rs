//! Forecasts of loads as a service, for autoscalers: `goodput forecast serve`.
//!
//! # Layout
//! - [`watched`]: one service: its steps, its forecaster, its decision ([`decision`]).
//! - `keeper`: tasks that ask Prometheus, one for each service; `state`: states on disk.
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

use goodput_configs::forecast::{ForecastServerConfig, ForecastTls};
use thiserror::Error;
use tokio::net::TcpListener;

use crate::agent::record::RecordError;
use crate::http::identity::{self, IdentityError};
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
    /// The certificates of the interfaces cannot be used.
    #[error("[tls] {0}")]
    Tls(IdentityError),
}

/// Listener, and the certificate, if any, that it shows.
type Entrance = (TcpListener, Door);

/// Server that listens and has its states, and that has not begun to serve.
pub struct ForecastServer {
    /// Address of the HTTP interface.
    pub http: SocketAddr,
    /// Address of the gRPC interface; `None` where it is off.
    pub grpc: Option<SocketAddr>,
    listeners: (Entrance, Option<Entrance>),
    keeper: Arc<Keeper>,
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
        let board = ServiceBoard::new(services, dynamo);
        let settle_millis = (config.prometheus.settle_secs * 1e3).round() as i64;
        let keeper = Arc::new(Keeper::new(board, Prometheus::new(&config.prometheus)?, folder, settle_millis));
        keeper.try_queries().await?;
        let (for_http, for_grpc) = (door(config, &[])?, door(config, identity::GRPC)?);
        let (http, http_address) = listen("listen", &config.listen).await?;
        let grpc = match config.grpc.as_str() {
            "" => None,
            address => Some(listen("grpc", address).await?),
        };
        let (grpc, grpc_address) = grpc.unzip();
        let (http, grpc) = ((http, for_http), grpc.map(|listener| (listener, for_grpc)));
        Ok(Self { http: http_address, grpc: grpc_address, listeners: (http, grpc), keeper })
    }

    /// Serves until `stop`, and writes the states at the end.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let (http, grpc) = self.listeners;
        let board = Arc::clone(&self.keeper.board);
        // Until the first turn of a service is over, a state that was read answers by its age.
        board.places.iter().for_each(|place| self.keeper.decide(place));
        let for_grpc = grpc::router(&board);
        let grpc = async move {
            match grpc {
                Some((listener, door)) => http::serve_grpc(listener, door, for_grpc).await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            () = stop => {}
            () = self.keeper.keep() => {}
            () = http::serve(http.0, http.1, api::router(Arc::clone(&board))) => {}
            () = grpc => {}
        }
        self.keeper.save_all().await;
    }
}

/// Entry to an interface that offers `protocols`.
fn door(config: &ForecastServerConfig, protocols: &[&[u8]]) -> Result<Door, ForecastServerError> {
    let Some(ForecastTls { certificate, key, clients }) = &config.tls else { return Ok(Door::Plain) };
    let acceptor = identity::acceptor_for(certificate, key, clients.as_deref(), protocols);
    acceptor.map(Door::Tls).map_err(ForecastServerError::Tls)
}

async fn listen(key: &'static str, address: &str) -> Result<(TcpListener, SocketAddr), ForecastServerError> {
    let fault = |source| ForecastServerError::Listen { key, address: address.to_owned(), source };
    let listener = TcpListener::bind(address).await.map_err(fault)?;
    let bound = listener.local_addr().map_err(fault)?;
    Ok((listener, bound))
}
