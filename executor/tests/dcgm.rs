//! A DCGM exporter as a second source about the health of accelerators: text in the form that NVIDIA's exporter
//! serves (version 3.3, its default counters), over a real connection.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use goodput_configs::live::dcgm::DcgmConfig;
use goodput_executor::agent::api::NodeAccelerator;
use goodput_executor::devices::DeviceHealth;
use goodput_executor::devices::dcgm::{DcgmValues, parse, read};

use super::nodes::{Node, until};

/// Values that an exporter serves of one device.
#[derive(Clone, Copy, Default)]
struct Served {
    xid: u64,
    ecc: u64,
    remap_failed: u64,
    celsius: u64,
}

/// Text of an exporter for devices of these UUIDs.
fn text(devices: &[(String, Served)]) -> String {
    let mut text = String::new();
    let mut metric = |name: &str, help: &str, kind: &str, value: &dyn Fn(&Served) -> String| {
        text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for (at, (uuid, served)) in devices.iter().enumerate() {
            text += &format!(
                "{name}{{gpu=\"{at}\",UUID=\"{uuid}\",pci_bus_id=\"00000000:0{at}:00.0\",device=\"nvidia{at}\",modelName=\"NVIDIA A100-SXM4-80GB\",Hostname=\"n0\",DCGM_FI_DRIVER_VERSION=\"535.161.08\"}} {}\n",
                value(served)
            );
        }
    };
    metric("DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).", "gauge", &|_| "1410".into());
    metric("DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", "gauge", &|of| of.celsius.to_string());
    metric("DCGM_FI_DEV_XID_ERRORS", "Value of the last XID error encountered.", "gauge", &|of| of.xid.to_string());
    metric("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "Total number of double-bit volatile ECC errors.", "counter", &|of| {
        of.ecc.to_string()
    });
    metric("DCGM_FI_DEV_ROW_REMAP_FAILURE", "Whether remapping of rows has failed", "gauge", &|of| {
        of.remap_failed.to_string()
    });
    metric("DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", "gauge", &|_| "81050".into());
    text
}

/// Serves `text` over HTTP/1.1 for as long as the test runs.
fn serve(text: Arc<Mutex<String>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = [0; 2048];
            let read = stream.read(&mut asked).unwrap_or(0);
            let found = String::from_utf8_lossy(&asked[..read]).starts_with("GET /metrics HTTP/1.1\r\n");
            let body = if found { text.lock().unwrap().clone() } else { String::new() };
            let status = if found { "200 OK" } else { "404 Not Found" };
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n", body.len());
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    address
}

fn reason(device: &NodeAccelerator) -> &str {
    match &device.health {
        DeviceHealth::Fit => "",
        DeviceHealth::Out { reason, .. } => reason,
    }
}

#[test]
fn the_text_of_an_exporter_is_read_by_device() {
    let served = Served { xid: 79, ecc: 2, remap_failed: 1, celsius: 41 };
    let devices = [("GPU-aa".to_owned(), served), ("GPU-bb".to_owned(), Served::default())];
    let mut text = text(&devices);
    text += "DCGM_FI_DEV_GPU_TEMP{gpu=\"2\",UUID=\"GPU-cc\"} NaN\nDCGM_FI_DEV_XID_ERRORS{gpu=\"3\"} 1\nDCGM_broken\n";
    text += "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL{gpu=\"1\",UUID=\"GPU-bb\",GPU_I_ID=\"1\"} 9 1732530000000\n";
    let read = parse(&text);
    let all =
        DcgmValues { xid: Some(79), ecc_uncorrected: Some(2), remap_failed: Some(true), temperature_c: Some(41.0) };
    assert_eq!(read["GPU-aa"], all);
    assert_eq!(read["GPU-bb"].ecc_uncorrected, Some(9));
    assert_eq!(read["GPU-cc"], DcgmValues::default(), "what a device does not have is unknown");
    assert_eq!(read.len(), 3);
}

#[tokio::test]
async fn an_exporter_takes_accelerators_out_beside_the_driver() {
    let page = Arc::new(Mutex::new(String::new()));
    let address = serve(page.clone());
    let mut node = Node::new("n0");
    node.config.devices = "fake:4xA100".parse().unwrap();
    node.config.pace.back_after_ms = 600_000;
    let url = format!("http://{address}/metrics");
    node.config.dcgm = Some(DcgmConfig { url: url.clone(), period_ms: 100, hottest_c: Some(95.0) });
    let agent = node.agent().await;
    let client = node.client(agent.address);
    let uuids = super::nodes::uuids(&client).await;
    // An error of days ago, of which the driver says nothing: no reason to take a device out now.
    let old = Served { xid: 48, ecc: 5, celsius: 60, ..Served::default() };
    let mut devices: Vec<(String, Served)> = uuids.iter().map(|uuid| (uuid.clone(), old)).collect();
    *page.lock().unwrap() = text(&devices);
    while read(&DcgmConfig { url: url.clone(), period_ms: 100, hottest_c: None }).await.unwrap().len() < 4 {}
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    assert!(client.status().await.unwrap().accelerators.iter().all(|device| reason(device).is_empty()));

    devices[0].1.xid = 79;
    devices[1].1 = Served { ecc: 6, xid: 31, ..old }; // a program's error, and one of the memory
    devices[2].1.celsius = 97;
    devices[3].1.xid = 13;
    *page.lock().unwrap() = text(&devices);
    let expected = ["xid 79", "ecc_uncorrectable", "97 degrees Celsius", ""];
    let told = |status: &goodput_executor::agent::api::NodeStatus| {
        status.accelerators.iter().map(|device| reason(device).to_owned()).collect::<Vec<_>>()
    };
    until(&client, "the faults of the exporter", |status| told(status) == expected).await;

    // An exporter that is gone takes nothing out and brings nothing back.
    *page.lock().unwrap() = String::new();
    devices[3].1.remap_failed = 1;
    *page.lock().unwrap() = text(&devices);
    let expected = ["xid 79", "ecc_uncorrectable", "97 degrees Celsius", "row_remap_failure"];
    until(&client, "a row that cannot be put aside", |status| told(status) == expected).await;
    let error = read(&DcgmConfig { url: format!("http://{address}/other"), period_ms: 100, hottest_c: None }).await;
    assert!(error.unwrap_err().contains("404"));
    let nothing = read(&DcgmConfig { url: "http://127.0.0.1:1/metrics".into(), period_ms: 100, hottest_c: None }).await;
    assert!(nothing.is_err());
}
