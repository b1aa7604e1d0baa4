//! Prediction plugin of the planner of NVIDIA Dynamo: the service `dynamo.planner.plugin.v1.PredictPlugin`.
//!
//! Protocol: `components/src/dynamo/planner/plugins/proto/v1/plugin.proto` of ai-dynamo/dynamo. The planner sends the
//! traffic of its last window, and turns the predicted requests of the next one into engines. The prediction is the
//! room of the decision, in requests per second, times the window. Lengths of prompts and answers are left to the
//! planner's own predictor.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use prost::Message;

use super::calls::unary;
use crate::forecasts::board::ServiceBoard;

#[derive(Clone, PartialEq, Message)]
struct PredictStageRequest {
    #[prost(message, optional, tag = "1")]
    context: Option<PipelineContext>,
}

#[derive(Clone, PartialEq, Message)]
struct PipelineContext {
    #[prost(message, optional, tag = "3")]
    observations: Option<ObservationData>,
}

#[derive(Clone, PartialEq, Message)]
struct ObservationData {
    #[prost(message, optional, tag = "1")]
    traffic: Option<TrafficMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct TrafficMetrics {
    /// Length of the window, seconds.
    #[prost(double, tag = "1")]
    duration_s: f64,
}

#[derive(Clone, PartialEq, Message)]
struct PredictStageResponse {
    #[prost(message, optional, tag = "1")]
    predictions: Option<PredictionData>,
    #[prost(string, tag = "2")]
    reason: String,
    /// Whether no other plugin is to be asked.
    #[prost(bool, tag = "3")]
    is_final: bool,
}

#[derive(Clone, PartialEq, Message)]
struct PredictionData {
    /// Requests in the next window.
    #[prost(double, optional, tag = "1")]
    predicted_num_req: Option<f64>,
    #[prost(string, tag = "4")]
    source: String,
}

/// Calls of the service.
pub fn router(board: Arc<ServiceBoard>) -> Router {
    Router::new().route("/dynamo.planner.plugin.v1.PredictPlugin/Predict", post(predict)).with_state(board)
}

async fn predict(State(board): State<Arc<ServiceBoard>>, request: Request) -> Response {
    unary(request, |asked: PredictStageRequest| Ok(prediction(&board, &asked))).await
}

/// Prediction for the next window. Without one, the planner goes by its own predictor.
fn prediction(board: &ServiceBoard, asked: &PredictStageRequest) -> PredictStageResponse {
    let none = |reason: &str| PredictStageResponse { predictions: None, reason: reason.to_owned(), is_final: false };
    let Some(place) = board.of_dynamo() else {
        return none("the file of the server has no [dynamo] service");
    };
    let observations = asked.context.as_ref().and_then(|context| context.observations.as_ref());
    let window = observations.and_then(|seen| seen.traffic.as_ref()).map(|traffic| traffic.duration_s);
    let Some(window) = window.filter(|window| window.is_finite() && *window > 0.0) else {
        return none("the planner sent no traffic, so the length of its window is not known");
    };
    let watched = place.watched();
    let decision = watched.decision();
    let Some(room) = decision.room else { return none(&decision.reason) };
    let predictions = PredictionData { predicted_num_req: Some(room * window), source: "goodput".to_owned() };
    PredictStageResponse { predictions: Some(predictions), reason: decision.reason.clone(), is_final: false }
}
