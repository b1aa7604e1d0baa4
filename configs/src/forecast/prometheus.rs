//! A Prometheus that is asked for loads.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::serve::is_this_host;
use crate::error::CheckError;

/// A Prometheus, or a store with its HTTP interface (Thanos, Mimir, VictoriaMetrics).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrometheusConfig {
    /// URL of the server, such as `http://127.0.0.1:9090`; a path before `/api/v1` may follow.
    pub url: String,
    /// Certificates of the authorities that sign the server's, in PEM; needed for `https`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// File with a bearer token, read again for each connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// Longest time for an answer, seconds.
    #[serde(default = "ten")]
    pub timeout_secs: f64,
    /// Time after the end of a step before Prometheus is asked for the step, seconds: samples need time to arrive.
    #[serde(default = "five")]
    pub settle_secs: f64,
}

fn ten() -> f64 {
    10.0
}

fn five() -> f64 {
    5.0
}

/// Parts of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    /// Whether the scheme is `https`.
    pub tls: bool,
    /// Name or address of the host.
    pub host: String,
    /// Port; 80 or 443 where the URL has none.
    pub port: u16,
    /// Path before `/api/v1`, without a slash at the end.
    pub path: String,
}

impl PrometheusConfig {
    /// Parts of the URL; `None` where the text is no URL with the scheme `http` or `https`.
    pub fn address(&self) -> Option<ServerAddress> {
        let (tls, rest) = match self.url.split_once("://")? {
            ("http", rest) => (false, rest),
            ("https", rest) => (true, rest),
            _ => return None,
        };
        let (authority, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
        let (host, port) = match authority.rsplit_once(':') {
            // A colon within brackets belongs to an IPv6 address.
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (authority, if tls { 443 } else { 80 }),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let plain = !host.is_empty() && !host.contains(['@', ' ']) && !path.contains(['?', '#', ' ']);
        plain.then(|| ServerAddress { tls, host: host.to_owned(), port, path: path.trim_end_matches('/').to_owned() })
    }

    pub(crate) fn check(&self) -> Result<(), CheckError> {
        let Some(address) = self.address() else {
            let expected = "a URL such as http://127.0.0.1:9090, without user, password and query";
            return Err(CheckError::value("prometheus.url", format!("{:?}", self.url), expected));
        };
        if address.tls && self.ca.is_none() {
            let expected = "the file with the certificates of the authorities, since the URL begins with https";
            return Err(CheckError::value("prometheus.ca", "absent", expected));
        }
        if self.token_file.is_some() && !address.tls && !is_this_host(&address.host) {
            let expected = "a URL that begins with https, since a token would cross the network in clear";
            return Err(CheckError::value("prometheus.url", format!("{:?}", self.url), expected));
        }
        if !(0.1..=600.0).contains(&self.timeout_secs) {
            return Err(CheckError::value("prometheus.timeout_secs", self.timeout_secs, "0.1 to 600 seconds"));
        }
        if !(0.0..=86_400.0).contains(&self.settle_secs) {
            return Err(CheckError::value("prometheus.settle_secs", self.settle_secs, "0 to 86400 seconds"));
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn address(url: &str) -> Option<(bool, String, u16, String)> {
        let config =
            PrometheusConfig { url: url.into(), ca: None, token_file: None, timeout_secs: 1.0, settle_secs: 0.0 };
        config.address().map(|address| (address.tls, address.host, address.port, address.path))
    }

    #[test]
    fn a_url_has_a_scheme_a_host_and_perhaps_a_port_and_a_path() {
        assert_eq!(address("http://a:9090"), Some((false, "a".into(), 9090, String::new())));
        assert_eq!(address("https://a.b/prom/"), Some((true, "a.b".into(), 443, "/prom".into())));
        assert_eq!(address("http://[::1]:9090/x"), Some((false, "::1".into(), 9090, "/x".into())));
        assert_eq!(address("http://[::1]"), Some((false, "::1".into(), 80, String::new())));
        for wrong in ["a:9090", "ftp://a", "http://", "http://a:x", "http://u:p@a:1", "http://a/?b"] {
            assert_eq!(address(wrong), None, "{wrong}");
        }
    }
}
