//! Inference loads of DeepBoot's experiments: three loads beside one set of 160 training jobs.
//! `small.csv` is read. The other two are drawn with the counts, models and durations of the
//! artifact's `middle.csv` and `large.csv`; their arrivals are flat over the hours.

use std::path::Path;
use std::sync::Arc;

use goodput_datasets::{Catalog, read_workload};
use goodput_env::job::Workload;
use goodput_env::request::{InferenceRequest, ServedModel};
use goodput_env::seed::{Stream, rng};
use goodput_env::time::SimTime;
use rand::RngExt;

use super::{ReproduceError, SEED};

/// Public file they are made of.
pub(super) const FILE: &str = "data/deepboot/small.csv";
/// Seconds over which requests come.
const SPAN_SECS: i64 = 55_387;

/// A workload by name.
#[derive(Clone)]
pub(super) struct InferenceLoad {
    pub(super) name: &'static str,
    pub(super) workload: Arc<Workload>,
}

/// Small, middle and large.
pub(super) fn loads(data: &Path) -> Result<Vec<InferenceLoad>, ReproduceError> {
    let small = read_workload(&data.join(FILE), Catalog::shipped())?.workload;
    // Requests, variants of each application, longest duration in seconds.
    let drawn = [("middle", 16_000, 3, 19), ("large", 32_000, 5, 29)].map(|(name, count, variants, longest)| {
        let mut rng = rng(SEED, Stream::Workload);
        let applications: Vec<Arc<str>> = small.served.iter().map(|model| model.application.clone()).collect();
        let served: Vec<ServedModel> = applications
            .iter()
            .flat_map(|app| (1..=variants).map(move |variant| (app, variant)))
            .map(|(app, variant)| ServedModel {
                name: format!("infer-{app}-{variant}").into(),
                application: app.clone(),
            })
            .collect();
        let mut requests: Vec<InferenceRequest> = (0..count)
            .map(|_| InferenceRequest {
                model: rng.random_range(0..served.len() as u16),
                submit: SimTime::from_secs(rng.random_range(0..SPAN_SECS)),
                duration: SimTime::from_secs(rng.random_range(1..=longest)),
            })
            .collect();
        requests.sort_by_key(|request| request.submit);
        InferenceLoad { name, workload: Arc::new(Workload { requests, served, ..small.clone() }) }
    });
    let [middle, large] = drawn;
    Ok(vec![InferenceLoad { name: "small", workload: Arc::new(small.clone()) }, middle, large])
}
