//! The daemon's side of the wire.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use goodput_configs::live::name::JobName;
use goodput_configs::live::tls::TlsFiles;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Method, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::api::{AttemptStatus, Done, LeaderLease, NodeStatus, Refused, ReportPage, Start, Stop, TellMembers, Term};
use super::error::AgentError;
use super::tls;
use crate::http::identity::Reloaded;
use crate::http::{Connection, ConnectionError};

/// Largest answer, bytes.
const LARGEST_ANSWER: usize = 16 << 20;

/// Reason why an agent did not carry out a call.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The agent cannot be reached, has another identity than expected, or took too long: the fate
    /// of the order is not known.
    #[error("agent {node} at {address}: {problem}")]
    Unreachable {
        /// Name of the node.
        node: JobName,
        /// Address of the agent.
        address: SocketAddr,
        /// Failure of the connection.
        problem: String,
    },
    /// The agent refused, and nothing has changed.
    #[error("agent {node}: {}", refused.error)]
    Refused {
        /// Name of the node.
        node: JobName,
        /// Status of HTTP.
        status: u16,
        /// Refusal of the agent.
        refused: Refused,
    },
}

impl ClientError {
    /// The agent's word for its refusal.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            ClientError::Unreachable { .. } => None,
            ClientError::Refused { refused, .. } => Some(&refused.code),
        }
    }
}

/// Speaks with the agent of one node, and only with that one: its certificate must name the node.
#[derive(Clone)]
pub struct AgentClient {
    node: JobName,
    address: SocketAddr,
    connector: Arc<Reloaded<TlsConnector>>,
    patience: Duration,
    /// Connection that no call uses now; handshakes take longer than calls.
    idle: Arc<Mutex<Option<Connection>>>,
}

impl AgentClient {
    /// For the agent of `node` at `address`. Calls take at most `patience`.
    ///
    /// # Errors
    /// The certificates cannot be read.
    pub fn new(node: JobName, address: SocketAddr, files: &TlsFiles, patience: Duration) -> Result<Self, AgentError> {
        Ok(Self { node, address, connector: Arc::new(tls::connector(files)?), patience, idle: Arc::default() })
    }

    /// Name of the node.
    #[must_use]
    pub fn node(&self) -> &JobName {
        &self.node
    }

    /// Asks for the state of the node.
    ///
    /// # Errors
    /// As all calls: [`ClientError`].
    pub async fn status(&self) -> Result<NodeStatus, ClientError> {
        self.call(Method::GET, "/v1/node", &()).await
    }

    /// Asks for the state of one attempt.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn attempt(&self, id: &str) -> Result<AttemptStatus, ClientError> {
        self.call(Method::GET, &format!("/v1/attempts/{id}"), &()).await
    }

    /// Reports from number `since` on.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn reports(&self, since: u64) -> Result<ReportPage, ClientError> {
        self.call(Method::GET, &format!("/v1/reports?since={since}"), &()).await
    }

    /// Renews the lease.
    ///
    /// # Errors
    /// [`ClientError`]; refused with `old_term` where another leads.
    pub async fn renew(&self, lease: &LeaderLease) -> Result<Done, ClientError> {
        self.call(Method::POST, "/v1/lease", lease).await
    }

    /// Starts an attempt.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn start(&self, start: &Start) -> Result<AttemptStatus, ClientError> {
        self.call(Method::POST, "/v1/attempts", start).await
    }

    /// Stops an attempt.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn stop(&self, id: &str, stop: &Stop) -> Result<AttemptStatus, ClientError> {
        self.call(Method::POST, &format!("/v1/attempts/{id}/stop"), stop).await
    }

    /// Tells a member of an elastic attempt the plan for all members.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn tell_members(&self, id: &str, order: &TellMembers) -> Result<AttemptStatus, ClientError> {
        self.call(Method::POST, &format!("/v1/attempts/{id}/members"), order).await
    }

    /// Has an attempt write a checkpoint and go on.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn checkpoint(&self, id: &str, term: u64) -> Result<AttemptStatus, ClientError> {
        self.call(Method::POST, &format!("/v1/attempts/{id}/checkpoint"), &Term { term }).await
    }

    /// Forgets an attempt that has ended.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn forget(&self, id: &str, term: u64) -> Result<Done, ClientError> {
        self.call(Method::POST, &format!("/v1/attempts/{id}/forget"), &Term { term }).await
    }

    /// Puts an accelerator back in service.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn restore(&self, uuid: &str, term: u64) -> Result<Done, ClientError> {
        self.call(Method::POST, &format!("/v1/accelerators/{uuid}/restore"), &Term { term }).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let unreachable =
            |problem: String| ClientError::Unreachable { node: self.node.clone(), address: self.address, problem };
        let body = serde_json::to_vec(body).map_err(|error| unreachable(error.to_string()))?;
        let exchange = timeout(self.patience, self.exchange(method, path, body)).await;
        let (status, answer) = exchange
            .map_err(|_| unreachable(format!("no answer within {} ms", self.patience.as_millis())))?
            .map_err(|error| unreachable(error.to_string()))?;
        if status == 200 {
            return serde_json::from_slice(&answer).map_err(|error| unreachable(format!("strange answer: {error}")));
        }
        let said = || Refused { code: "http".to_owned(), error: String::from_utf8_lossy(&answer).into_owned() };
        let refused = serde_json::from_slice(&answer).unwrap_or_else(|_| said());
        Err(ClientError::Refused { node: self.node.clone(), status, refused })
    }

    async fn exchange(&self, method: Method, path: &str, body: Vec<u8>) -> Result<(u16, Bytes), ConnectionError> {
        let body = Bytes::from(body);
        let request = || {
            let request = Request::builder().method(method.clone()).uri(path).header("host", self.node.as_str());
            request.body(Full::new(body.clone()))
        };
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().take();
        // The agent may have closed it meanwhile. Every call may be made twice.
        let answered = match kept {
            Some(kept) => kept.ask(request()?, LARGEST_ANSWER).await.ok(),
            None => None,
        };
        let (status, answer, open) = match answered {
            Some(answered) => answered,
            None => self.connect().await?.ask(request()?, LARGEST_ANSWER).await?,
        };
        *idle() = Some(open);
        Ok((status, answer))
    }

    async fn connect(&self) -> Result<Connection, ConnectionError> {
        let name = ServerName::try_from(self.node.to_string())?;
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        Connection::over(self.connector.get().connect(name, stream).await?).await
    }
}
