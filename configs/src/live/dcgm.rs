//! A DCGM exporter as a second source about the health of accelerators.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::times::check_millis;
use crate::error::CheckError;

/// NVIDIA's DCGM exporter of this node, read beside the driver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DcgmConfig {
    /// Address of its metrics, such as `http://127.0.0.1:9400/metrics`.
    pub url: String,
    /// Time between two readings, milliseconds.
    #[serde(default = "period_ms")]
    pub period_ms: u64,
    /// Temperature in degrees Celsius above which an accelerator is taken out; absent: no temperature is.
    #[serde(default)]
    pub hottest_c: Option<f64>,
}

const fn period_ms() -> u64 {
    10_000
}

impl DcgmConfig {
    /// Host with port, and path, of an address without TLS; `None` of anything else.
    pub fn parts(url: &str) -> Option<(&str, &str)> {
        let rest = url.strip_prefix("http://")?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let port = host.rsplit_once(':')?.1.parse::<u16>();
        port.is_ok().then_some((host, if path.is_empty() { "/" } else { path }))
    }

    pub(super) fn check(&self) -> Result<(), CheckError> {
        if Self::parts(&self.url).is_none() {
            return Err(CheckError::value("dcgm.url", format!("{:?}", self.url), "http://HOST:PORT/metrics"));
        }
        if self.period_ms < 100 {
            return Err(CheckError::value("dcgm.period_ms", self.period_ms, "at least 100"));
        }
        if let Some(hottest) = self.hottest_c
            && !(30.0..=150.0).contains(&hottest)
        {
            return Err(CheckError::value("dcgm.hottest_c", hottest, "30 to 150 degrees Celsius"));
        }
        check_millis("dcgm.period_ms", self.period_ms)
    }
}
