//! Calls to a daemon's interface.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::Agent;
use ureq::http::Response;

use crate::args::DaemonAddress;
use crate::fault::Fault;

/// A daemon to talk to.
pub struct Client {
    url: String,
    token: String,
    agent: Agent,
}

impl Client {
    /// The daemon that the options, or the environment, name.
    pub fn new(address: &DaemonAddress) -> Result<Self, Fault> {
        let url = address.url.clone().or_else(|| std::env::var("GOODPUT_URL").ok());
        let url = url.unwrap_or_else(|| "http://127.0.0.1:7070".into()).trim_end_matches('/').to_string();
        let token = match &address.token_file {
            Some(path) => std::fs::read_to_string(path).map_err(|error| Fault::input(format!("{}: {error}", path.display())))?,
            None => std::env::var("GOODPUT_TOKEN").map_err(|_| {
                Fault::input("no token").with_help("put it into the variable GOODPUT_TOKEN, or name its file by --token-file; `goodput live token` makes one")
            })?,
        };
        let agent = Agent::config_builder().http_status_as_error(false).build().new_agent();
        Ok(Self { url, token: token.trim().into(), agent })
    }

    /// What a path shows.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Fault> {
        let request = self.agent.get(format!("{}{path}", self.url)).header("authorization", self.bearer());
        self.read(request.call())
    }

    /// Hands something in.
    pub fn post(&self, path: &str, body: &impl Serialize) -> Result<Value, Fault> {
        let request = self.agent.post(format!("{}{path}", self.url)).header("authorization", self.bearer());
        self.read(request.send_json(body))
    }

    /// Takes something back.
    pub fn delete(&self, path: &str) -> Result<Value, Fault> {
        let request = self.agent.delete(format!("{}{path}", self.url)).header("authorization", self.bearer());
        self.read(request.call())
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    fn read<T: DeserializeOwned>(&self, answer: Result<Response<ureq::Body>, ureq::Error>) -> Result<T, Fault> {
        let unreachable = |error: ureq::Error| {
            Fault::failed(format!("{}: {error}", self.url))
                .with_help("is the daemon running? `goodput live run DEPLOYMENT.toml`; name another one by --url")
        };
        let mut answer = answer.map_err(unreachable)?;
        let good = answer.status().is_success();
        let text = answer.body_mut().read_to_string().map_err(unreachable)?;
        if good {
            return serde_json::from_str(&text)
                .map_err(|error| Fault::failed(format!("{}: not understood: {error}", self.url)));
        }
        let said =
            serde_json::from_str::<Value>(&text).ok().and_then(|value| Some(value.get("error")?.as_str()?.to_string()));
        Err(Fault::failed(said.unwrap_or_else(|| format!("{}: {} {text}", self.url, answer.status()))))
    }
}
