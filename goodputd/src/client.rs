//! Client of the HTTP interface of a daemon. A daemon that stands by names the one that leads, and the client sends
//! the call there: nothing was accepted before.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use goodput_console::CommandError;
use goodput_executor::http::identity;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::Agent;
use ureq::http::uri::Authority;
use ureq::http::{Response, Uri};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::Invocation;
use crate::args::DaemonAddress;

/// Time for which a call waits for a daemon to lead.
const NO_LEADER: Duration = Duration::from_secs(30);

/// Daemons that a call is sent to at most.
const HOPS: u32 = 4;

/// Authorities in a file of certificates.
fn authorities(path: &Path) -> Result<Vec<Certificate<'static>>, CommandError> {
    let found = identity::certificates(path).map_err(CommandError::input)?;
    Ok(found.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect())
}

/// Connections that trust the authorities in a file, and no authority without one.
fn connections(ca: Option<&Path>) -> Result<Agent, CommandError> {
    let roots = ca.map(authorities).transpose()?.unwrap_or_default();
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&roots))
        .unversioned_rustls_crypto_provider(identity::provider());
    Ok(Agent::config_builder().http_status_as_error(false).tls_config(tls.build()).build().new_agent())
}

/// Address of a daemon in the form in which paths are put behind it.
fn base(text: &str) -> Result<String, CommandError> {
    let url = text.trim_end_matches('/');
    let is_good = |url: &str| {
        url.parse::<Uri>().is_ok_and(|uri| {
            let is_plain = |at: &Authority| at.port_u16().is_some() || at.as_str() == at.host();
            let has_host = uri.authority().filter(|at| !at.host().is_empty()).is_some_and(is_plain);
            matches!(uri.scheme_str(), Some("http" | "https")) && has_host && uri.query().is_none()
        })
    };
    if is_good(url) {
        return Ok(url.to_owned());
    }
    // HOST:PORT, as `[api] listen` has it, or a scheme that is misspelt.
    let rest = text.split_once("//").map_or(text, |(_, rest)| rest).trim_end_matches('/');
    let near = format!("http://{rest}");
    let near = if is_good(&near) { near } else { "http://127.0.0.1:7070".into() };
    let problem = format!("{text:?} is no address of a daemon: expected http://HOST:PORT or https://HOST:PORT");
    Err(CommandError::input(problem)
        .with_help(format!("name it by --url or in the variable GOODPUT_URL, as in {near}")))
}

fn is_secure(url: &str) -> bool {
    url.starts_with("https:")
}

/// Connection to one daemon, and to the one that leads.
pub struct Client {
    url: RefCell<String>,
    token: String,
    agent: Agent,
    invocation: Invocation,
}

impl Client {
    /// Client of the daemon that the options, or the environment variables, name.
    pub fn new(address: &DaemonAddress, invocation: Invocation) -> Result<Self, CommandError> {
        let url = address.url.clone().or_else(|| std::env::var("GOODPUT_URL").ok());
        let url = base(&url.unwrap_or_else(|| "http://127.0.0.1:7070".into()))?;
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
        let ca: Option<PathBuf> = address.ca.clone().or_else(|| std::env::var_os("GOODPUT_CA").map(Into::into));
        if ca.is_none() && is_secure(&url) {
            return Err(CommandError::input(format!("{url}: no authority to trust")).with_help(
                "name the certificate of the authority that signed the daemon's by --ca, or in the variable GOODPUT_CA",
            ));
        }
        let agent = connections(ca.as_deref())?;
        Ok(Self { url: RefCell::new(url), token: token.trim().into(), agent, invocation })
    }

    /// Reads the resource at `path`.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, CommandError> {
        let request = self.agent.get(format!("{}{path}", self.url.borrow())).header("authorization", self.bearer());
        let (status, text) = self.answer(request.call())?;
        self.read_text(status, &text)
    }

    /// Posts `body` to `path`.
    pub fn post(&self, path: &str, body: &impl Serialize) -> Result<Value, CommandError> {
        self.send(|url| self.agent.post(format!("{url}{path}")).header("authorization", self.bearer()).send_json(body))
    }

    /// Posts `body` to `path`, once for all calls with the idempotency key `key`.
    pub fn post_once(&self, path: &str, key: &str, body: &impl Serialize) -> Result<Value, CommandError> {
        self.send(|url| {
            let request = self.agent.post(format!("{url}{path}")).header("authorization", self.bearer());
            request.header("idempotency-key", key).send_json(body)
        })
    }

    /// Deletes the resource at `path`.
    pub fn delete(&self, path: &str) -> Result<Value, CommandError> {
        self.send(|url| self.agent.delete(format!("{url}{path}")).header("authorization", self.bearer()).call())
    }

    /// Sends a call that changes something to the daemon that leads.
    fn send(&self, call: impl Fn(&str) -> Result<Response<ureq::Body>, ureq::Error>) -> Result<Value, CommandError> {
        let began = Instant::now();
        let mut hops = 0;
        loop {
            let url = self.url.borrow().clone();
            let (status, text) = self.answer(call(&url))?;
            let body = serde_json::from_str::<Value>(&text).unwrap_or_default();
            let leader = body["leader"]["address"].as_str().map(|url| url.trim_end_matches('/').to_owned());
            match (status, leader) {
                // A token that was given to HTTPS does not cross the network in clear.
                (421, Some(leader)) if is_secure(&url) && !is_secure(&leader) => {
                    return Err(CommandError::failed(format!("{leader} leads, and its interface has no certificate"))
                        .with_help("set `[api] tls` in its deployment file, and https in its `[leader] address`"));
                }
                (421, Some(leader)) if leader != url && hops < HOPS => {
                    hops += 1;
                    self.url.replace(leader);
                }
                // Between two leaders none takes calls.
                (503, None) if body.get("leader").is_some() && began.elapsed() < NO_LEADER => {
                    std::thread::sleep(Duration::from_millis(500));
                }
                _ => return self.read_text(status, &text),
            }
        }
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    fn answer(&self, answer: Result<Response<ureq::Body>, ureq::Error>) -> Result<(u16, String), CommandError> {
        let unreachable = |error: ureq::Error| {
            let problem = format!("{}: {error}", self.url.borrow());
            let help = if problem.contains("peer certificate") {
                "the authority in the file of --ca did not sign the daemon's certificate, or the certificate is \
                 good for other names; `openssl x509 -text` shows both"
                    .to_owned()
            } else {
                format!("is the daemon running? `{} run DEPLOYMENT.toml`; name another one by --url", self.invocation.0)
            };
            CommandError::failed(problem).with_help(help)
        };
        let mut answer = answer.map_err(unreachable)?;
        Ok((answer.status().as_u16(), answer.body_mut().read_to_string().map_err(unreachable)?))
    }

    fn read_text<T: DeserializeOwned>(&self, status: u16, text: &str) -> Result<T, CommandError> {
        let url = self.url.borrow();
        if (200..300).contains(&status) {
            return serde_json::from_str(text)
                .map_err(|error| CommandError::failed(format!("{url}: not understood: {error}")));
        }
        let reason =
            serde_json::from_str::<Value>(text).ok().and_then(|value| Some(value.get("error")?.as_str()?.to_string()));
        Err(CommandError::failed(reason.unwrap_or_else(|| format!("{url}: {status} {text}"))))
    }
}
