//! Client of the HTTP interface of a daemon.

use std::path::Path;

use goodput_console::CommandError;
use goodput_executor::http::identity;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::Agent;
use ureq::http::Response;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::Invocation;
use crate::args::DaemonAddress;

/// Authorities in a file of certificates.
fn authorities(path: &Path) -> Result<Vec<Certificate<'static>>, CommandError> {
    let found = identity::certificates(path).map_err(CommandError::input)?;
    Ok(found.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect())
}

/// Connection to one daemon.
pub struct Client {
    url: String,
    token: String,
    agent: Agent,
    invocation: Invocation,
}

impl Client {
    /// Client of the daemon that the options, or the environment variables, name.
    pub fn new(address: &DaemonAddress, invocation: Invocation) -> Result<Self, CommandError> {
        let url = address.url.clone().or_else(|| std::env::var("GOODPUT_URL").ok());
        let url = url.unwrap_or_else(|| "http://127.0.0.1:7070".into()).trim_end_matches('/').to_string();
        let token = match &address.token_file {
            Some(path) => std::fs::read_to_string(path)
                .map_err(|error| CommandError::input(format!("{}: {error}", path.display())))?,
            None => std::env::var("GOODPUT_TOKEN").map_err(|_| {
                CommandError::input("no token").with_help(format!(
                    "put it into the variable GOODPUT_TOKEN, or name its file by --token-file; `{} token` makes one",
                    invocation.0
                ))
            })?,
        };
        let ca = address.ca.clone().or_else(|| std::env::var_os("GOODPUT_CA").map(Into::into));
        let ca = match (ca, url.starts_with("https:")) {
            (Some(path), true) => authorities(&path)?,
            (None, true) => {
                return Err(CommandError::input(format!("{url}: no authority to trust")).with_help(
                    "name the certificate that signed the daemon's by --ca, or in the variable GOODPUT_CA",
                ));
            }
            (_, false) => Vec::new(),
        };
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&ca))
            .unversioned_rustls_crypto_provider(identity::provider());
        let agent = Agent::config_builder().http_status_as_error(false).tls_config(tls.build()).build().new_agent();
        Ok(Self { url, token: token.trim().into(), agent, invocation })
    }

    /// Reads the resource at `path`.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, CommandError> {
        let request = self.agent.get(format!("{}{path}", self.url)).header("authorization", self.bearer());
        self.read(request.call())
    }

    /// Posts `body` to `path`.
    pub fn post(&self, path: &str, body: &impl Serialize) -> Result<Value, CommandError> {
        let request = self.agent.post(format!("{}{path}", self.url)).header("authorization", self.bearer());
        self.read(request.send_json(body))
    }

    /// Deletes the resource at `path`.
    pub fn delete(&self, path: &str) -> Result<Value, CommandError> {
        let request = self.agent.delete(format!("{}{path}", self.url)).header("authorization", self.bearer());
        self.read(request.call())
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    fn read<T: DeserializeOwned>(&self, answer: Result<Response<ureq::Body>, ureq::Error>) -> Result<T, CommandError> {
        let unreachable = |error: ureq::Error| {
            CommandError::failed(format!("{}: {error}", self.url)).with_help(format!(
                "is the daemon running? `{} run DEPLOYMENT.toml`; name another one by --url",
                self.invocation.0
            ))
        };
        let mut answer = answer.map_err(unreachable)?;
        let good = answer.status().is_success();
        let text = answer.body_mut().read_to_string().map_err(unreachable)?;
        if good {
            return serde_json::from_str(&text)
                .map_err(|error| CommandError::failed(format!("{}: not understood: {error}", self.url)));
        }
        let reason =
            serde_json::from_str::<Value>(&text).ok().and_then(|value| Some(value.get("error")?.as_str()?.to_string()));
        Err(CommandError::failed(reason.unwrap_or_else(|| format!("{}: {} {text}", self.url, answer.status()))))
    }
}
