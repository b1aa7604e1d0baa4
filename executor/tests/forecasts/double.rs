//! A stand-in for Prometheus at its HTTP interface, with a clock and values that the test sets. A query with `slow` in
//! it takes an hour from the second time on, and one with `bad` in it is refused.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::post;
use goodput_executor::machine::wall_ms;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Facts by which the stand-in answers.
pub struct Facts {
    /// Time by which its clock is late, seconds.
    pub late: i64,
    /// Whether the stand-in answers.
    pub up: bool,
    /// Load of a second; `None` for no value.
    pub load: Box<dyn Fn(i64) -> Option<f64> + Send>,
    /// Number of series in an answer.
    pub series: usize,
    /// First and last second of every range that was asked for.
    pub asked: Vec<(i64, i64)>,
}

/// A stand-in for Prometheus.
pub struct Double {
    pub url: String,
    pub facts: Arc<Mutex<Facts>>,
    runtime: Option<Runtime>,
}

impl Drop for Double {
    fn drop(&mut self) {
        // Tests that are tasks themselves may not wait for a runtime to end.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Double {
    pub fn start(load: impl Fn(i64) -> Option<f64> + Send + 'static) -> Self {
        let facts = Facts { late: 0, up: true, load: Box::new(load), series: 1, asked: Vec::new() };
        let facts = Arc::new(Mutex::new(facts));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (now, range) = (Arc::clone(&facts), Arc::clone(&facts));
        let slow = Arc::new(AtomicUsize::new(0));
        let router = Router::new()
            .route("/api/v1/query", post(move |body: String| async move { answer_now(&now.lock().unwrap(), &body) }))
            .route(
                "/api/v1/query_range",
                post(move |body: String| async move {
                    if body.contains("slow") && slow.fetch_add(1, Ordering::Relaxed) > 0 {
                        tokio::time::sleep(Duration::from_secs(3600)).await;
                    }
                    answer_range(&mut range.lock().unwrap(), &body)
                }),
            );
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, router).await
        });
        Self { url, facts, runtime: Some(runtime) }
    }

    pub fn set(&self, change: impl FnOnce(&mut Facts)) {
        change(&mut self.facts.lock().unwrap());
    }
}

fn answer_now(facts: &Facts, body: &str) -> Response {
    assert!(body.starts_with("query=time%28%29"), "{body}");
    let now = (wall_ms() - 1000 * facts.late) as f64 / 1e3;
    success(facts, "scalar", json!([now, now.to_string()]))
}

fn answer_range(facts: &mut Facts, body: &str) -> Response {
    let form: BTreeMap<&str, &str> = body.split('&').filter_map(|pair| pair.split_once('=')).collect();
    // A dot is escaped.
    let second = |key: &str| form[key].replace("%2E", ".").parse::<f64>().unwrap() as i64;
    let (first, last) = (second("start"), second("end"));
    if form["query"].contains("bad") {
        let error = "invalid parameter \"query\": parse error: unclosed left parenthesis";
        return (StatusCode::BAD_REQUEST, Json(json!({ "status": "error", "errorType": "bad_data", "error": error })))
            .into_response();
    }
    facts.asked.push((first, last));
    let values: Vec<Value> =
        (first..=last).filter_map(|at| (facts.load)(at).map(|load| json!([at, load.to_string()]))).collect();
    let one = json!({ "metric": {}, "values": values });
    let series = if values.is_empty() { 0 } else { facts.series };
    success(facts, "matrix", vec![one; series].into())
}

fn success(facts: &Facts, kind: &str, result: Value) -> Response {
    if !facts.up {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    Json(json!({ "status": "success", "data": { "resultType": kind, "result": result } })).into_response()
}
