//! Health of devices as a DCGM exporter tells it, beside the driver.
//!
//! Sites watch their accelerators by NVIDIA's DCGM exporter, which serves text for Prometheus. The exporter sees
//! errors while no agent runs, and remapped rows that the driver does not report as events. Its gauges keep the
//! last value, so only what changes between two readings is news.

use std::collections::BTreeMap;
use std::time::Duration;

use goodput_configs::live::dcgm::DcgmConfig;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Largest answer of an exporter, bytes.
const LARGEST_ANSWER: usize = 8 << 20;

/// Longest time for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Values of one device, as far as the exporter is told to serve them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DcgmValues {
    /// Last critical error; 0: none (`DCGM_FI_DEV_XID_ERRORS`).
    pub xid: Option<u64>,
    /// Memory errors that could not be corrected, since the driver was loaded or ever
    /// (`DCGM_FI_DEV_ECC_DBE_VOL_TOTAL`, `DCGM_FI_DEV_ECC_DBE_AGG_TOTAL`).
    pub ecc_uncorrected: Option<u64>,
    /// Whether a bad row of memory could not be put aside (`DCGM_FI_DEV_ROW_REMAP_FAILURE`).
    pub remap_failed: Option<bool>,
    /// Temperature in degrees Celsius (`DCGM_FI_DEV_GPU_TEMP`).
    pub temperature_c: Option<f64>,
}

/// Reads the text of an exporter: values by the UUID of the device. Lines about one instance of a split device
/// count for the device.
pub fn parse(text: &str) -> BTreeMap<String, DcgmValues> {
    let mut devices: BTreeMap<String, DcgmValues> = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("DCGM_")) {
        let Some((uuid, field, value)) = sample(line) else { continue };
        let values = devices.entry(uuid.to_owned()).or_default();
        // A field that the device does not have is served as NaN, or as a number beyond what can be counted.
        if !(0.0..1e15).contains(&value) {
            continue;
        }
        let larger = |old: Option<u64>| Some(old.unwrap_or(0).max(value as u64));
        match field {
            "DCGM_FI_DEV_XID_ERRORS" => values.xid = larger(values.xid),
            "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL" | "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL" => {
                values.ecc_uncorrected = larger(values.ecc_uncorrected);
            }
            "DCGM_FI_DEV_ROW_REMAP_FAILURE" => values.remap_failed = Some(value > 0.0),
            "DCGM_FI_DEV_GPU_TEMP" => values.temperature_c = Some(value),
            _ => {}
        }
    }
    devices
}

/// UUID, name and value of one line, as in `DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1",...} 41`.
fn sample(line: &str) -> Option<(&str, &str, f64)> {
    let (field, rest) = line.split_once('{')?;
    let (labels, values) = rest.rsplit_once('}')?;
    let uuid = labels.split_once("UUID=\"")?.1.split('"').next()?;
    // A time may follow the value.
    let value = values.split_whitespace().next()?.parse().ok()?;
    Some((uuid, field, value))
}

/// Faults that a reading shows and the one before did not; faults that last are shown each time.
pub(super) fn faults(before: Option<&DcgmValues>, now: &DcgmValues, hottest_c: Option<f64>) -> Vec<DcgmFault> {
    let mut faults = Vec::new();
    // What the first reading says may be old, and may have been put right.
    if let Some(before) = before {
        match (before.xid, now.xid) {
            (Some(old), Some(xid)) if xid != 0 && xid != old => faults.push(DcgmFault::Xid(xid)),
            _ => {}
        }
        if let (Some(old), Some(new)) = (before.ecc_uncorrected, now.ecc_uncorrected)
            && new > old
        {
            faults.push(DcgmFault::Lasting("ecc_uncorrectable".into()));
        }
    }
    if now.remap_failed == Some(true) {
        faults.push(DcgmFault::Lasting("row_remap_failure".into()));
    }
    if let (Some(hottest), Some(temperature)) = (hottest_c, now.temperature_c)
        && temperature > hottest
    {
        faults.push(DcgmFault::Lasting(format!("{temperature:.0} degrees Celsius")));
    }
    faults
}

/// Fault of one device.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum DcgmFault {
    /// Critical error of this number, which programs may have caused.
    Xid(u64),
    /// Fault of the device itself.
    Lasting(String),
}

/// Reads an exporter once.
///
/// # Errors
/// Why there is no text: no connection, no answer in time, another status than 200, too long.
pub async fn read(config: &DcgmConfig) -> Result<BTreeMap<String, DcgmValues>, String> {
    let url = config.url.as_str();
    let text = timeout(PATIENCE, fetch(url)).await;
    let text = text.map_err(|_| format!("{url}: no answer within {} s", PATIENCE.as_secs()))?;
    text.map(|text| parse(&text)).map_err(|error| format!("{url}: {error}"))
}

async fn fetch(url: &str) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let (host, path) = DcgmConfig::parts(url).ok_or("expected http://HOST:PORT/PATH")?;
    let stream = TcpStream::connect(host).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let request = Request::builder().uri(path).header("host", host).body(Empty::<Bytes>::new())?;
    let answer = sender.send_request(request).await?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), LARGEST_ANSWER).collect().await?.to_bytes();
    connection.abort();
    match status.is_success() {
        true => Ok(String::from_utf8_lossy(&body).into_owned()),
        false => Err(format!("the exporter answers {status}").into()),
    }
}
