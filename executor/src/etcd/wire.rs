//! HTTP calls to one of the members of an etcd cluster.

use std::time::Duration;

use goodput_configs::live::leader::{EtcdConfig, address};
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::EtcdError;
use crate::agent::tls;
use crate::http::identity::Reloaded;
use crate::http::{Connection, ConnectionError};

/// Largest answer, bytes: a page of jobs.
const LARGEST_ANSWER: usize = 64 << 20;

/// The members, and the connection to one of them.
pub struct Wire {
    members: Vec<Member>,
    /// Member that answered last.
    current: usize,
    open: Option<Connection>,
    connector: Option<Reloaded<TlsConnector>>,
    patience: Duration,
}

struct Member {
    endpoint: String,
    tls: bool,
    host: String,
    port: u16,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let endpoints = self.members.iter().map(|member| member.endpoint.as_str());
        f.debug_list().entries(endpoints).finish()
    }
}

impl Wire {
    pub fn new(settings: &EtcdConfig) -> Result<Self, EtcdError> {
        let member = |endpoint: &String| {
            let wrong = || EtcdError::Setup(format!("{endpoint:?} is not http://HOST:PORT or https://HOST:PORT"));
            let (tls, host, port) = address(endpoint).ok_or_else(wrong)?;
            Ok(Member { endpoint: endpoint.clone(), tls, host, port })
        };
        let members = settings.endpoints.iter().map(member).collect::<Result<_, EtcdError>>()?;
        let connector = settings.tls.as_ref().map(tls::connector).transpose();
        let connector = connector.map_err(|error| EtcdError::Setup(error.to_string()))?;
        let patience = Duration::from_millis(settings.patience_ms);
        Ok(Self { members, current: 0, open: None, connector, patience })
    }

    /// Asks the member that answered last, then the others in turn.
    pub async fn call(&mut self, call: &'static str, body: &Value) -> Result<Value, EtcdError> {
        let body = Bytes::from(body.to_string());
        let (mut problems, count) = (Vec::new(), self.members.len());
        for _ in 0..count {
            let problem = match self.ask(call, body.clone()).await {
                Ok((200, answer)) => return read(call, answer),
                Ok((status, answer)) => {
                    let problem = said(&answer);
                    // A member without a majority, or one that just lost it, is as good as silent.
                    if status < 500 {
                        return Err(EtcdError::Refused { call, problem });
                    }
                    problem
                }
                Err(problem) => problem,
            };
            self.open = None;
            problems.push(format!("{}: {problem}", self.members[self.current].endpoint));
            self.current = (self.current + 1) % count;
        }
        Err(EtcdError::Unreachable { problem: problems.join("; ") })
    }

    /// One answer of the current member, within the patience. A connection that was kept open may
    /// have been closed by the member meanwhile, so a new one is tried then.
    async fn ask(&mut self, call: &'static str, body: Bytes) -> Result<(u16, Value), String> {
        let kept = self.open.is_some();
        let patience = self.patience;
        let both = async {
            match self.exchange(call, body.clone()).await {
                Err(_) if kept => {
                    self.open = None;
                    self.exchange(call, body).await
                }
                answer => answer,
            }
        };
        match timeout(patience, both).await {
            Err(_) => Err(format!("no answer within {} ms", patience.as_millis())),
            Ok(answer) => answer.map_err(|error| error.to_string()),
        }
    }

    async fn exchange(&mut self, call: &'static str, body: Bytes) -> Result<(u16, Value), ConnectionError> {
        let open = match self.open.take() {
            Some(open) => open,
            None => self.connect().await?,
        };
        let host = &self.members[self.current].host;
        let request = Request::post(call).header("host", host).header("content-type", "application/json");
        let (status, answer, open) = open.ask(request.body(Full::new(body))?, LARGEST_ANSWER).await?;
        self.open = Some(open);
        Ok((status, serde_json::from_slice(&answer).unwrap_or(Value::Null)))
    }

    async fn connect(&self) -> Result<Connection, ConnectionError> {
        let member = &self.members[self.current];
        let stream = TcpStream::connect((member.host.as_str(), member.port)).await?;
        stream.set_nodelay(true)?;
        match self.connector.as_ref().filter(|_| member.tls) {
            Some(connector) => {
                let name = ServerName::try_from(member.host.clone())?;
                Connection::over(connector.get().connect(name, stream).await?).await
            }
            None => Connection::over(stream).await,
        }
    }
}

/// Message of an error in an answer.
fn said(answer: &Value) -> String {
    let words = |key: &str| answer[key].as_str().map(str::to_owned);
    words("message").or_else(|| words("error")).unwrap_or_else(|| answer.to_string())
}

/// An answer as the type that the call promises.
pub fn read<T: DeserializeOwned>(call: &'static str, answer: Value) -> Result<T, EtcdError> {
    serde_json::from_value(answer)
        .map_err(|error| EtcdError::Refused { call, problem: format!("an answer that cannot be read: {error}") })
}

/// A number of 64 bits, which the gateway writes as text.
pub fn number<'de, D: Deserializer<'de>>(value: D) -> Result<i64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Number(i64),
    }
    match Written::deserialize(value)? {
        Written::Text(text) => text.parse().map_err(serde::de::Error::custom),
        Written::Number(number) => Ok(number),
    }
}
