//! External scaler of KEDA: the service `externalscaler.ExternalScaler`.
//!
//! Protocol: `pkg/scalers/externalscaler/externalscaler.proto` of kedacore/keda. A ScaledObject names the service by
//! the key `service` of its metadata; the key `metric` is `replicas`, the default, or `load`. Replicas have the target
//! 1, so that the autoscaler of Kubernetes runs as many replicas as were decided, within its tolerance; a load has the
//! load of one replica as target.
//! Before the first decision a metric is `UNAVAILABLE`: the autoscaler of Kubernetes then leaves the replicas alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::routing::post;
use futures_util::{Stream, stream};
use prost::Message;
use tonic::Status;

use super::calls::{streaming, unary};
use crate::forecasts::board::{ServiceBoard, ServicePlace};

/// Reference to a ScaledObject.
#[derive(Clone, PartialEq, Message)]
struct ScaledObjectRef {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    namespace: String,
    #[prost(btree_map = "string, string", tag = "3")]
    scaler_metadata: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct IsActiveResponse {
    #[prost(bool, tag = "1")]
    result: bool,
}

#[derive(Clone, PartialEq, Message)]
struct GetMetricSpecResponse {
    #[prost(message, repeated, tag = "1")]
    metric_specs: Vec<MetricSpec>,
}

#[derive(Clone, PartialEq, Message)]
struct MetricSpec {
    #[prost(string, tag = "1")]
    metric_name: String,
    #[prost(int64, tag = "2")]
    target_size: i64,
    #[prost(double, tag = "3")]
    target_size_float: f64,
}

#[derive(Clone, PartialEq, Message)]
struct GetMetricsRequest {
    #[prost(message, optional, tag = "1")]
    scaled_object_ref: Option<ScaledObjectRef>,
    #[prost(string, tag = "2")]
    metric_name: String,
}

#[derive(Clone, PartialEq, Message)]
struct GetMetricsResponse {
    #[prost(message, repeated, tag = "1")]
    metric_values: Vec<MetricValue>,
}

#[derive(Clone, PartialEq, Message)]
struct MetricValue {
    #[prost(string, tag = "1")]
    metric_name: String,
    #[prost(int64, tag = "2")]
    metric_value: i64,
    #[prost(double, tag = "3")]
    metric_value_float: f64,
}

/// Quantity that the autoscaler of Kubernetes is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScaledMetric {
    Replicas,
    Load,
}

impl ScaledMetric {
    fn of(reference: &ScaledObjectRef) -> Result<Self, Status> {
        match reference.scaler_metadata.get("metric").map_or("replicas", String::as_str) {
            "replicas" => Ok(Self::Replicas),
            "load" => Ok(Self::Load),
            other => Err(Status::invalid_argument(format!("metadata metric is {other:?}, expected replicas or load"))),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Replicas => "replicas",
            Self::Load => "load",
        }
    }
}

/// Calls of the service.
pub fn router(board: Arc<ServiceBoard>) -> Router {
    let path = |call: &str| format!("/externalscaler.ExternalScaler/{call}");
    Router::new()
        .route(&path("IsActive"), post(is_active))
        .route(&path("StreamIsActive"), post(stream_is_active))
        .route(&path("GetMetricSpec"), post(metric_spec))
        .route(&path("GetMetrics"), post(metrics))
        .with_state(board)
}

async fn is_active(State(board): State<Arc<ServiceBoard>>, request: Request) -> axum::response::Response {
    unary(request, |asked: ScaledObjectRef| Ok(IsActiveResponse { result: active(place(&board, &asked)?) })).await
}

async fn stream_is_active(State(board): State<Arc<ServiceBoard>>, request: Request) -> axum::response::Response {
    streaming(request, |asked: ScaledObjectRef| {
        let name = place(&board, &asked)?.config.name.to_string();
        Ok(activity(Arc::clone(&board), name))
    })
    .await
}

async fn metric_spec(State(board): State<Arc<ServiceBoard>>, request: Request) -> axum::response::Response {
    unary(request, |asked: ScaledObjectRef| {
        let (place, metric) = (place(&board, &asked)?, ScaledMetric::of(&asked)?);
        let target = match metric {
            ScaledMetric::Replicas => 1.0,
            ScaledMetric::Load => place.config.load_per_replica,
        };
        let metric_name = metric_name(place, metric);
        let spec = MetricSpec { metric_name, target_size: target.ceil() as i64, target_size_float: target };
        Ok(GetMetricSpecResponse { metric_specs: vec![spec] })
    })
    .await
}

async fn metrics(State(board): State<Arc<ServiceBoard>>, request: Request) -> axum::response::Response {
    unary(request, |asked: GetMetricsRequest| {
        let reference = asked.scaled_object_ref.unwrap_or_default();
        let (place, metric) = (place(&board, &reference)?, ScaledMetric::of(&reference)?);
        let watched = place.watched();
        let decision = watched.decision();
        let value = match metric {
            ScaledMetric::Replicas => decision.replicas.map(f64::from),
            ScaledMetric::Load => decision.room,
        };
        let value = value.ok_or_else(|| Status::unavailable(decision.reason.clone()))?;
        let metric_name = metric_name(place, metric);
        let value = MetricValue { metric_name, metric_value: value.ceil() as i64, metric_value_float: value };
        Ok(GetMetricsResponse { metric_values: vec![value] })
    })
    .await
}

/// Whether a service needs a replica. One of which nothing is known does: what is not known takes no replica away.
fn active(place: &ServicePlace) -> bool {
    place.watched().decision().replicas.is_none_or(|replicas| replicas > 0)
}

/// Whether a service needs a replica, now and whenever that changes.
fn activity(board: Arc<ServiceBoard>, name: String) -> impl Stream<Item = Result<IsActiveResponse, Status>> {
    let changes = board.changes();
    stream::unfold((board, changes, None), move |(board, mut changes, told)| {
        let name = name.clone();
        async move {
            loop {
                changes.mark_unchanged();
                let result = active(board.place(&name)?);
                if told != Some(result) {
                    return Some((Ok(IsActiveResponse { result }), (board, changes, Some(result))));
                }
                changes.changed().await.ok()?;
            }
        }
    })
}

fn metric_name(place: &ServicePlace, metric: ScaledMetric) -> String {
    format!("goodput-{}-{}", place.config.name, metric.name())
}

/// Service that a ScaledObject names.
fn place<'a>(board: &'a ServiceBoard, reference: &ScaledObjectRef) -> Result<&'a ServicePlace, Status> {
    let ScaledObjectRef { name, namespace, scaler_metadata } = reference;
    let object = format!("ScaledObject {namespace}/{name}");
    let service = scaler_metadata.get("service");
    let service = service.ok_or_else(|| Status::invalid_argument(format!("{object}: the metadata lacks `service`")))?;
    let names = || board.places.iter().map(|place| place.config.name.as_str()).collect::<Vec<_>>().join(", ");
    let unknown = || format!("{object}: no service is called {service:?}; there are {}", names());
    board.place(service).ok_or_else(|| Status::not_found(unknown()))
}
