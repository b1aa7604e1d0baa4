//! A Prometheus that is asked for loads, by its HTTP interface `/api/v1`.

use std::path::PathBuf;
use std::time::Duration;

use goodput_configs::forecast::{PrometheusConfig, ServerAddress};
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::http::identity::{IdentityError, Reloaded, connector};
use crate::http::{Connection, ConnectionError};

/// Largest answer, bytes: [`MOST_STEPS`] steps of a few series.
const LARGEST_ANSWER: usize = 16 << 20;

/// Most steps of one query; Prometheus refuses more than 11,000.
pub const MOST_STEPS: i64 = 10_000;

/// Reason why Prometheus gave no load.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PrometheusError {
    /// Prometheus does not answer, or is not ready.
    #[error("Prometheus does not answer at {url}: {problem}")]
    Silent {
        /// URL of the server.
        url: String,
        /// Failure of the call.
        problem: String,
    },
    /// Prometheus does not take the query.
    #[error("Prometheus refuses the query: {problem}")]
    Refused {
        /// Message of Prometheus.
        problem: String,
    },
    /// Prometheus cannot run the query now, or its answer is none of Prometheus.
    #[error("Prometheus cannot run the query: {problem}")]
    Failed {
        /// Message of Prometheus, or the beginning of the answer.
        problem: String,
    },
    /// The query has no value for the steps of now.
    #[error("the query gives no value: look whether the exporter runs, and whether the labels in the query are right")]
    NoValue,
    /// The query has more than one series as its result.
    #[error("the query gives {count} series, expected one: put sum(...) or max(...) around the query")]
    Series {
        /// Number of series.
        count: usize,
    },
}

/// A Prometheus, or a store with its HTTP interface.
pub struct Prometheus {
    url: String,
    address: ServerAddress,
    connector: Option<Reloaded<TlsConnector>>,
    token_file: Option<PathBuf>,
    patience: Duration,
}

#[derive(Deserialize)]
struct RangeData {
    result: Value,
}

#[derive(Deserialize)]
struct RangeSeries {
    values: Vec<(f64, String)>,
}

impl Prometheus {
    /// The server that `config` names. It is asked at the first call.
    ///
    /// # Errors
    /// The certificates of the authorities cannot be read.
    pub fn new(config: &PrometheusConfig) -> Result<Self, IdentityError> {
        let address = config.address().ok_or_else(|| {
            let problem = "no URL with the scheme http or https";
            IdentityError { path: PathBuf::from(&config.url), problem: problem.to_owned() }
        })?;
        let ca = config.ca.as_ref().filter(|_| address.tls);
        Ok(Self {
            url: config.url.clone(),
            connector: ca.map(|ca| connector(ca)).transpose()?,
            address,
            token_file: config.token_file.clone(),
            patience: Duration::from_secs_f64(config.timeout_secs),
        })
    }

    /// Present time by the clock of Prometheus, milliseconds of the Unix epoch.
    ///
    /// # Errors
    /// [`PrometheusError`].
    pub async fn now_millis(&self) -> Result<i64, PrometheusError> {
        let answer = self.call("query", &[("query", "time()".to_owned())]).await?;
        let (_, value): (f64, String) = read(answer.result)?;
        value.parse().map(millis).map_err(|_| unreadable(&value))
    }

    /// Values of `query` at `first_millis` and every `step_millis` up to `last_millis`; a time without a value is left
    /// out, and so is a value that is no finite number. At most [`MOST_STEPS`] steps are asked for.
    ///
    /// # Errors
    /// [`PrometheusError`].
    pub async fn range(
        &self,
        query: &str,
        first_millis: i64,
        last_millis: i64,
        step_millis: i64,
    ) -> Result<Vec<(i64, f64)>, PrometheusError> {
        let parameters = [
            ("query", query.to_owned()),
            ("start", seconds(first_millis)),
            ("end", seconds(last_millis)),
            ("step", seconds(step_millis)),
            // Thanos would leave out what a silent store knows, and a sum would be too small.
            ("partial_response", "false".to_owned()),
        ];
        let answer = self.call("query_range", &parameters).await?;
        let mut series: Vec<RangeSeries> = read(answer.result)?;
        if series.len() > 1 {
            return Err(PrometheusError::Series { count: series.len() });
        }
        let values = series.pop().map(|series| series.values).unwrap_or_default();
        let finite =
            |(at, value): (f64, String)| Some((millis(at), value.parse().ok().filter(|load: &f64| load.is_finite())?));
        Ok(values.into_iter().filter_map(finite).collect())
    }

    async fn call(&self, call: &str, parameters: &[(&str, String)]) -> Result<RangeData, PrometheusError> {
        let silent = |problem: String| PrometheusError::Silent { url: self.url.clone(), problem };
        let body = parameters.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect::<Vec<_>>();
        let asked = timeout(self.patience, self.exchange(call, body.join("&"))).await;
        let asked = asked.map_err(|_| silent(format!("no answer within {} s", self.patience.as_secs_f64())))?;
        let (status, answer) = asked.map_err(|error| silent(error.to_string()))?;
        let answer: Value = serde_json::from_slice(&answer).unwrap_or(Value::Null);
        match status {
            200 => read(answer["data"].clone()),
            400 | 422 => {
                let problem = answer["error"].as_str().map_or_else(|| format!("status {status}"), str::to_owned);
                // A query that cannot be read stays so. One that cannot be run may run later, when a store is back.
                Err(if status == 400 {
                    PrometheusError::Refused { problem }
                } else {
                    PrometheusError::Failed { problem }
                })
            }
            401 | 403 => Err(silent(format!("status {status}: see [prometheus] token_file"))),
            _ => Err(silent(format!("status {status}"))),
        }
    }

    async fn exchange(&self, call: &str, body: String) -> Result<(u16, Bytes), ConnectionError> {
        let ServerAddress { host, port, path, .. } = &self.address;
        let stream = TcpStream::connect((host.as_str(), *port)).await?;
        let connection = match &self.connector {
            Some(connector) => {
                let name = ServerName::try_from(host.clone())?;
                Connection::over(connector.get().connect(name, stream).await?).await?
            }
            None => Connection::over(stream).await?,
        };
        let mut request = Request::post(format!("{path}/api/v1/{call}"))
            .header("host", format!("{host}:{port}"))
            .header("content-type", "application/x-www-form-urlencoded");
        if let Some(file) = &self.token_file {
            let token = tokio::fs::read_to_string(file).await?;
            request = request.header("authorization", format!("Bearer {}", token.trim()));
        }
        let (status, answer, _) = connection.ask(request.body(Full::new(Bytes::from(body)))?, LARGEST_ANSWER).await?;
        Ok((status, answer))
    }
}

fn read<T: serde::de::DeserializeOwned>(answer: Value) -> Result<T, PrometheusError> {
    T::deserialize(&answer).map_err(|_| unreadable(&answer.to_string()))
}

/// Error of an answer that is not one of Prometheus.
fn unreadable(answer: &str) -> PrometheusError {
    let start: String = answer.chars().take(80).collect();
    PrometheusError::Failed { problem: format!("the answer cannot be read: {start}") }
}

fn millis(seconds: f64) -> i64 {
    (seconds * 1e3).round() as i64
}

fn seconds(millis: i64) -> String {
    format!("{}.{:03}", millis.div_euclid(1000), millis.rem_euclid(1000))
}

/// A value of a form, with everything but letters and digits escaped.
fn encoded(value: &str) -> String {
    let escaped = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    value.bytes().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_queries_are_written_as_prometheus_reads_them() {
        assert_eq!(seconds(1_700_000_000_050), "1700000000.050");
        assert_eq!(encoded("a{b=\"c d\"}"), "a%7Bb%3D%22c%20d%22%7D");
    }
}
