//! The HTTP interface: health, metrics and forecasts.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use goodput_forecast::check_levels;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::board::{ServiceBoard, ServicePlace};
use super::decision::{DecisionGround, ReplicaDecision};
use super::metrics;
use super::watched::PastStep;
use crate::machine::wall_ms;

/// Levels of the quantiles where a call names none.
const LEVELS: [f64; 5] = [0.1, 0.5, 0.9, 0.95, 0.99];

/// Most levels of a call.
const MOST_LEVELS: usize = 99;

/// Calls of the interface.
pub fn router(board: Arc<ServiceBoard>) -> Router {
    Router::new()
        .route("/healthz", get(health))
        .route("/metrics", get(text))
        .route("/v1/forecast", get(all))
        .route("/v1/forecast/{service}", get(one))
        .with_state(board)
}

/// Load of a step ahead.
#[derive(Debug, Serialize)]
struct StepAhead {
    /// End of the step, milliseconds of the Unix epoch.
    epoch_millis: i64,
    /// Median of the load.
    load: f64,
    /// Quantiles at the levels of the answer.
    quantiles: Vec<f64>,
}

/// A service with its decision.
#[derive(Debug, Serialize)]
struct ServiceAnswer {
    service: String,
    #[serde(flatten)]
    decision: ReplicaDecision,
    /// Seconds since the end of the last step with a value; `null` before the first.
    age_secs: Option<f64>,
    /// Steps known, and those of them without a value.
    known_steps: u64,
    gaps: u64,
    /// Reason why Prometheus gave nothing when it was last asked.
    problem: Option<String>,
}

/// A service with its decision, its forecast and its past.
#[derive(Debug, Serialize)]
struct ForecastAnswer {
    #[serde(flatten)]
    service: ServiceAnswer,
    step_secs: f64,
    levels: Vec<f64>,
    steps: Vec<StepAhead>,
    past: Vec<PastStep>,
}

impl ServiceAnswer {
    fn of(place: &ServicePlace) -> Self {
        let watched = place.watched();
        Self {
            service: place.config.name.to_string(),
            decision: watched.decision().clone(),
            age_secs: place.age_millis(wall_ms()).map(|age| age as f64 / 1e3),
            known_steps: watched.steps(),
            gaps: watched.gaps(),
            problem: place.problem(),
        }
    }
}

/// Parameters of a call for a forecast.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ForecastCall {
    /// Steps ahead; those until an order of now serves where it is left out.
    steps: Option<usize>,
    /// Levels of the quantiles, separated by commas.
    levels: Option<String>,
    /// Steps of the past; none where it is left out.
    past: Option<usize>,
}

/// `ok` where every service has a decision that rests on its last values; else `holding`. A server that holds is well,
/// so the status is 200 either way.
async fn health(State(board): State<Arc<ServiceBoard>>) -> Response {
    let rests = |place: &ServicePlace| {
        matches!(place.watched().decision().standing, DecisionGround::Learning | DecisionGround::Fresh)
    };
    let well = board.places.iter().all(|place| rests(place) && place.problem().is_none());
    let services: Vec<ServiceAnswer> = board.places.iter().map(ServiceAnswer::of).collect();
    Json(json!({ "status": if well { "ok" } else { "holding" }, "services": services })).into_response()
}

async fn text(State(board): State<Arc<ServiceBoard>>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], metrics::text(&board, wall_ms())).into_response()
}

async fn all(State(board): State<Arc<ServiceBoard>>) -> Response {
    Json(board.places.iter().map(ServiceAnswer::of).collect::<Vec<_>>()).into_response()
}

async fn one(State(board): State<Arc<ServiceBoard>>, Path(name): Path<String>, asked: Query<ForecastCall>) -> Response {
    let Some(place) = board.place(&name) else {
        let names: Vec<&str> = board.places.iter().map(|place| place.config.name.as_str()).collect();
        return refuse(
            StatusCode::NOT_FOUND,
            &format!("no service is called {name:?}: there are {}", names.join(", ")),
        );
    };
    match answer(place, &asked) {
        Ok(answer) => Json(answer).into_response(),
        Err(problem) => refuse(StatusCode::BAD_REQUEST, &problem),
    }
}

fn answer(place: &ServicePlace, asked: &ForecastCall) -> Result<ForecastAnswer, String> {
    let season = place.config.season_steps();
    let steps = asked.steps.unwrap_or_else(|| place.config.reach_steps());
    if !(1..=season).contains(&steps) {
        return Err(format!("steps is {steps}, expected 1 to {season}, the steps of a season"));
    }
    let levels = match &asked.levels {
        None => LEVELS.to_vec(),
        Some(text) => text
            .split(',')
            .map(|level| {
                level.trim().parse().map_err(|_| format!("levels: {level:?} is no number, expected 0.1,0.5,0.9"))
            })
            .collect::<Result<Vec<f64>, String>>()?,
    };
    if levels.len() > MOST_LEVELS {
        return Err(format!("{} levels, expected at most {MOST_LEVELS}", levels.len()));
    }
    check_levels(&levels).map_err(|error| format!("levels: {error}"))?;
    let watched = place.watched();
    let step_millis = place.config.step_millis();
    let first = watched.last_millis().unwrap_or_default() + step_millis;
    let step_ahead = |step: usize, load: f64, quantiles: Vec<f64>| StepAhead {
        epoch_millis: first + step as i64 * step_millis,
        load,
        quantiles,
    };
    let mut ahead = Vec::new();
    if let Some(forecast) = watched.forecast(steps, &levels) {
        for (step, (row, load)) in forecast.quantiles().rows().into_iter().zip(forecast.point()).enumerate() {
            ahead.push(step_ahead(step, *load, row.to_vec()));
        }
    }
    let shown = asked.past.unwrap_or(0);
    let past: Vec<PastStep> = watched.past().copied().collect();
    Ok(ForecastAnswer {
        service: ServiceAnswer::of(place),
        step_secs: place.config.step_secs,
        levels,
        steps: ahead,
        past: past[past.len().saturating_sub(shown)..].to_vec(),
    })
}

fn refuse(status: StatusCode, problem: &str) -> Response {
    (status, Json(json!({ "error": problem }))).into_response()
}
