//! Inference requests of a trace, and the workload that they join.

use std::collections::BTreeMap;

use goodput_env::job::Workload;
use goodput_env::request::{InferenceRequest, ServedModel};
use goodput_env::time::SimTime;

/// One request for inference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRow {
    /// Line in the file it came from, from 1; for messages only.
    pub line: u64,
    /// The trace's own name.
    pub name: String,
    /// Time of arrival.
    pub submit: SimTime,
    /// Model that the request asks for.
    pub model: String,
    /// Application of which the model is a variant.
    pub application: String,
    /// Time of computation on a warm instance.
    pub duration: SimTime,
}

/// Adds requests to a workload: in order of submission, equal times in the order of the file;
/// models in order of their names.
pub(crate) fn add(workload: &mut Workload, rows: &[RequestRow]) {
    let names: BTreeMap<&str, &str> = rows.iter().map(|row| (row.model.as_str(), row.application.as_str())).collect();
    let model_of = |row: &RequestRow| names.keys().position(|name| *name == row.model).unwrap_or_default() as u16;
    workload.requests = rows
        .iter()
        .map(|row| InferenceRequest { model: model_of(row), submit: row.submit, duration: row.duration })
        .collect();
    workload.requests.sort_by_key(|request| request.submit);
    workload.served = names
        .into_iter()
        .map(|(name, application)| ServedModel { name: name.into(), application: application.into() })
        .collect();
}
