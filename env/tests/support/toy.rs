//! Toy application: the one that tests of the simulator and of live clusters share.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_env::application::{Application, EpochTable, GradientTable};
use goodput_env::model::{BatchLimits, ThroughputParams};

/// Application of four epochs with a growing noise scale, about ten minutes on one accelerator. Its throughput
/// scales to eight accelerators and more.
pub fn application() -> Arc<Application> {
    let params = ThroughputParams {
        alpha_c: 0.05,
        beta_c: 0.002,
        alpha_n: 0.1,
        beta_n: 0.005,
        alpha_r: 0.02,
        beta_r: 0.002,
        gamma: 1.8,
    };
    let table = |values: &[f64]| EpochTable::new(vec![128.0], values.to_vec()).unwrap();
    Arc::new(Application {
        name: "toy".into(),
        limits: BatchLimits::new(128, 4096, 32, 512).unwrap(),
        max_replicas: 32,
        fixed_batch: None,
        tensors: None,
        epochs: vec![400.0, 800.0, 1200.0, 1600.0],
        gradients: GradientTable { sqr: table(&[1.0, 1.0, 1.0, 1.0]), var: table(&[1.0, 4.0, 8.0, 16.0]) },
        iterations: None,
        reference: "gpu".into(),
        local_limits: Default::default(),
        params: BTreeMap::from([("gpu".to_string(), params)]),
        measured: Default::default(),
    })
}
