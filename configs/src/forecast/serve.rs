//! Forecasts as a service: a Prometheus, and the services of which the server forecasts the load.

use std::net::IpAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::prometheus::PrometheusConfig;
use crate::error::CheckError;
use crate::kind::Kind;
use crate::live::name::JobName;
use crate::names::did_you_mean;
use crate::reader::ConfigFile;

/// Server of forecasts: `goodput forecast serve FILE`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForecastServerConfig {
    /// Address of the HTTP interface: health, metrics and forecasts. Port 0 stands for any free port.
    #[serde(default = "http_address")]
    pub listen: String,
    /// Address of the gRPC interface, for KEDA and for the planner of Dynamo. An empty text turns the interface off.
    #[serde(default = "grpc_address")]
    pub grpc: String,
    /// Certificates by which both interfaces use TLS; absent: they are not encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ForecastTls>,
    /// Whether the interfaces may listen beyond this host though callers show no certificate (`tls.clients`): a program
    /// in reach of a port reads the loads.
    #[serde(default)]
    pub insecure: bool,
    /// Folder for the state of the forecasters. After a restart the server asks Prometheus only for the steps that the
    /// state lacks.
    pub state_dir: PathBuf,
    /// Prometheus that knows the loads.
    pub prometheus: PrometheusConfig,
    /// Services of which the server forecasts the load.
    pub services: Vec<ServedLoad>,
    /// Predictions for the planner of Dynamo; none where the table is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dynamo: Option<DynamoConfig>,
}

/// Files by which the interfaces use TLS. Files that change are read again without a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForecastTls {
    /// Certificate of the server in PEM, followed by those between it and the authority.
    pub certificate: PathBuf,
    /// Private key of the certificate in PEM.
    pub key: PathBuf,
    /// Authorities in PEM: callers show a certificate that one of them has signed. Absent: every caller is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<PathBuf>,
}

/// Service of which the server forecasts the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServedLoad {
    /// Name of the service, in addresses and in metrics.
    pub name: JobName,
    /// Query in PromQL with one series as its result: the load, in any unit.
    pub query: String,
    /// Seconds of a step. The server decides once a step.
    #[serde(default = "five_minutes")]
    pub step_secs: f64,
    /// Seconds of the short season of the load, a whole number of steps.
    #[serde(default = "day")]
    pub season_secs: f64,
    /// Short seasons in a long season.
    #[serde(default = "seven")]
    pub long_season: u32,
    /// Short seasons of the past that the first start asks of Prometheus.
    #[serde(default = "four_weeks")]
    pub history_seasons: f64,
    /// Seconds from an order of a replica until the replica serves: how far the decision looks ahead.
    pub cold_start_secs: f64,
    /// Share of steps with a load that may exceed the capacity.
    #[serde(default = "one_percent")]
    pub violated_share: f64,
    /// Load that one replica serves, in the unit of the query.
    pub load_per_replica: f64,
    /// Fewest replicas that the server asks for.
    #[serde(default = "one")]
    pub min_replicas: u32,
    /// Most replicas that the server asks for.
    #[serde(default = "hundred")]
    pub max_replicas: u32,
}

/// Predictions for the planner of Dynamo.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DynamoConfig {
    /// Service that the planner scales. Its query gives requests per second.
    pub service: JobName,
}

fn http_address() -> String {
    "127.0.0.1:9107".into()
}

fn grpc_address() -> String {
    "127.0.0.1:9108".into()
}

fn five_minutes() -> f64 {
    300.0
}

fn day() -> f64 {
    86_400.0
}

fn seven() -> u32 {
    7
}

fn four_weeks() -> f64 {
    28.0
}

fn one_percent() -> f64 {
    0.01
}

fn one() -> u32 {
    1
}

fn hundred() -> u32 {
    100
}

/// Most steps of a short season: regressions over more of them take minutes.
const MOST_STEPS: f64 = 1440.0;

impl ServedLoad {
    /// Length of a step, milliseconds.
    pub fn step_millis(&self) -> i64 {
        (self.step_secs * 1e3).round() as i64
    }

    /// Steps in the short season, at least 1.
    pub fn season_steps(&self) -> usize {
        ((self.season_secs / self.step_secs).round() as usize).max(1)
    }

    /// Steps until an order of now serves, the present step included.
    pub fn reach_steps(&self) -> usize {
        (self.cold_start_secs / self.step_secs).ceil() as usize + 1
    }

    /// Steps that the first start asks of Prometheus, at least 1.
    pub fn history_steps(&self) -> i64 {
        ((self.history_seasons * self.season_secs / self.step_secs).round() as i64).max(1)
    }

    fn check(&self) -> Result<(), CheckError> {
        let expect = |holds: bool, key, value: f64, expected: &str| match holds {
            true => Ok(()),
            false => Err(CheckError::value(key, value, expected)),
        };
        if self.query.trim().is_empty() {
            let expected = "a query in PromQL, such as sum(rate(http_requests_total[2m]))";
            return Err(CheckError::value("services.query", "empty", expected));
        }
        let step = self.step_secs;
        expect((0.1..=86_400.0).contains(&step), "services.step_secs", step, "0.1 to 86400 seconds")?;
        let steps = self.season_secs / step;
        let whole = (steps - steps.round()).abs() < 1e-6;
        let fits = (2.0..=MOST_STEPS).contains(&steps) && whole;
        let expected = format!("a whole number of steps, 2 to {MOST_STEPS}; step_secs is {step}");
        expect(fits, "services.season_secs", self.season_secs, &expected)?;
        expect((1..=366).contains(&self.long_season), "services.long_season", self.long_season.into(), "1 to 366")?;
        let history = self.history_seasons;
        expect((1.0..=200.0).contains(&history), "services.history_seasons", history, "1 to 200")?;
        let cold = self.cold_start_secs;
        let expected = "at least 0 and shorter than the season";
        expect(cold >= 0.0 && cold < self.season_secs, "services.cold_start_secs", cold, expected)?;
        let share = self.violated_share;
        expect(share > 0.0 && share <= 0.5, "services.violated_share", share, "above 0 and at most 0.5")?;
        let per = self.load_per_replica;
        expect(per > 0.0 && per.is_finite(), "services.load_per_replica", per, "a load above 0")?;
        let (least, most) = (self.min_replicas, self.max_replicas);
        expect((1..=1_000_000).contains(&most), "services.max_replicas", most.into(), "1 to 1000000")?;
        expect(least <= most, "services.min_replicas", least.into(), "0 to max_replicas")
    }
}

/// Whether a host is this one.
pub(super) fn is_this_host(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

impl ConfigFile for ForecastServerConfig {
    const KIND: Kind = Kind::ForecastServer;

    fn check(&self) -> Result<(), CheckError> {
        self.prometheus.check()?;
        for (key, address) in [("listen", &self.listen), ("grpc", &self.grpc)] {
            let port = address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
            let off = key == "grpc" && address.is_empty();
            if !off && port.is_none_or(|(host, _)| host.is_empty()) {
                return Err(CheckError::value(key, format!("{address:?}"), "HOST:PORT, such as \"127.0.0.1:9107\""));
            }
        }
        let known = self.tls.as_ref().is_some_and(|tls| tls.clients.is_some());
        for (key, address) in [("listen", &self.listen), ("grpc", &self.grpc)] {
            let host = address.rsplit_once(':').map_or("", |(host, _)| host);
            if !self.insecure && !known && !address.is_empty() && !is_this_host(host) {
                let expected = "an address of this host, such as 127.0.0.1:9107, or tls.clients, the authority of the \
                                callers, or insecure = true in a network in which no other program reaches the port";
                return Err(CheckError::value(key, format!("{address:?}"), expected));
            }
        }
        if self.services.is_empty() {
            return Err(CheckError::value("services", "empty", "at least one service"));
        }
        for (index, service) in self.services.iter().enumerate() {
            let name = service.name.as_str();
            service.check().map_err(|error| error.within("services", name))?;
            let settle = self.prometheus.settle_secs;
            if settle > service.step_secs {
                let expected =
                    format!("at most {}, the step of {name}: a decision would come too late", service.step_secs);
                return Err(CheckError::value("prometheus.settle_secs", settle, &expected));
            }
            if self.services[..index].iter().any(|other| other.name == service.name) {
                let expected = "a name that no other service has";
                let error = CheckError::value("services.name", format!("{name:?}"), expected);
                return Err(error.within("services", name));
            }
        }
        let Some(dynamo) = &self.dynamo else { return Ok(()) };
        if self.tls.is_some() {
            let expected = "no such table beside [tls]: the planner of Dynamo has no encrypted transport";
            return Err(CheckError::value("dynamo", "a table", expected));
        }
        let names = || self.services.iter().map(|service| service.name.as_str());
        let name = dynamo.service.as_str();
        if names().any(|known| known == name) {
            return Ok(());
        }
        let expected = format!("the name of a service of this file{}", did_you_mean(name, names()));
        Err(CheckError::value("dynamo.service", format!("{name:?}"), expected))
    }
}
