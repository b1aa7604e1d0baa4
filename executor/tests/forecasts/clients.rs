//! Real clients of the two protocols: `grpcio` with stubs of KEDA's published protocol, and the transport of Dynamo's
//! planner from the package `ai-dynamo`.
//!
//! `GOODPUT_GRPC_PYTHON` names a Python with `grpcio-tools` and `pydantic`, and with `ai-dynamo` (1.6.1) installed
//! without its dependencies. `GOODPUT_DYNAMO_PYTHON` names one in which `dynamo.planner` can be imported, but for the
//! package `aisimulate`. `GOODPUT_KEDA_PROTO` names `pkg/scalers/externalscaler/externalscaler.proto` of kedacore/keda.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::double::Double;
use super::{PER_REPLICA, Running, config, wave};

/// Path in an environment variable; a test without it says what is not tested.
fn named(variable: &str, lost: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    if path.is_none() {
        #[allow(clippy::print_stderr, reason = "a skip has to be seen")]
        {
            eprintln!("{variable} is not set: {lost}");
        }
    }
    path
}

/// Output of a client.
fn ask(python: &PathBuf, script: &str, arguments: &[String]) -> Value {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(script);
    let output = Command::new(python).arg(script).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn keda_scales_by_the_server() {
    let lost = "THE SERVER OF FORECASTS IS NOT TESTED WITH STUBS OF KEDA'S PROTOCOL";
    let (Some(python), Some(proto)) = (named("GOODPUT_GRPC_PYTHON", lost), named("GOODPUT_KEDA_PROTO", lost)) else {
        return;
    };
    let (prometheus, folder) = (Double::start(|_| Some(wave(5))), tempfile::tempdir().unwrap());
    let server = Running::start(&config(&prometheus.url, "load", folder.path())).unwrap();
    let room = server.stands("fresh")["room"].as_f64().unwrap();
    let told = ask(&python, "keda_client.py", &[server.grpc.to_string(), proto.display().to_string()]);
    let replicas = (room / PER_REPLICA).ceil();
    assert_eq!(told["active"], true);
    assert_eq!(told["pushed"], true);
    assert_eq!(told["replicas"], json!({ "name": "goodput-chat-replicas", "target": 1.0, "value": replicas }));
    assert_eq!(told["load"], json!({ "name": "goodput-chat-load", "target": PER_REPLICA, "value": room }));
    let statuses = ["unknown", "nameless", "other", "specs"].map(|call| told[call].as_str().unwrap().to_owned());
    assert_eq!(statuses, ["NOT_FOUND", "INVALID_ARGUMENT", "INVALID_ARGUMENT", "UNIMPLEMENTED"]);
    server.stop();
}

#[test]
fn the_planner_of_dynamo_goes_by_the_server() {
    let lost = "THE SERVER OF FORECASTS IS NOT TESTED WITH THE TRANSPORT OF DYNAMO'S PLANNER";
    let Some(python) = named("GOODPUT_GRPC_PYTHON", lost) else { return };
    let (prometheus, folder) = (Double::start(|_| Some(wave(5))), tempfile::tempdir().unwrap());
    let server = Running::start(&config(&prometheus.url, "load", folder.path())).unwrap();
    let room = server.stands("fresh")["room"].as_f64().unwrap();
    let told = ask(&python, "dynamo_client.py", &[server.grpc.to_string()]);
    let requests = told["num_req"].as_f64().unwrap();
    assert!((requests - 60.0 * room).abs() < 1.0, "{told}");
    assert_eq!((&told["isl"], &told["osl"]), (&json!(512.0), &json!(64.0)), "lengths are the planner's own");
    assert_eq!((&told["source"], &told["lifecycle"]), (&json!("goodput"), &json!("not served")));
    assert!(told["reasons"][0].as_str().unwrap().starts_with("room for a load of"), "{told}");
    server.stop();
}

#[test]
fn a_planner_that_asks_no_plugin_first_goes_by_the_server_too() {
    let lost = "THE FILE FOR DYNAMO'S PLANNER IS NOT TESTED WITH THE PLANNER'S OWN PREDICTION STAGE";
    let Some(python) = named("GOODPUT_DYNAMO_PYTHON", lost) else { return };
    let (prometheus, folder) = (Double::start(|_| Some(wave(5))), tempfile::tempdir().unwrap());
    let server = Running::start(&config(&prometheus.url, "load", folder.path())).unwrap();
    let room = server.stands("fresh")["room"].as_f64().unwrap();
    let clients = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("clients/python");
    let told = ask(&python, "dynamo_predictor.py", &[clients.display().to_string(), format!("http://{}", server.http)]);
    let requests = told["served"][0].as_f64().unwrap();
    assert!((requests - 60.0 * room).abs() < 1.0, "{told}");
    assert_eq!((&told["served"][1], &told["served"][2]), (&json!(300.0), &json!(50.0)));
    assert_eq!(told["silent"][0], told["served"][0], "a server out of reach lowers nothing");
    assert_eq!(told["risen"][0], json!(1e6), "the load that the planner sees raises the prediction");
    server.stop();
}
