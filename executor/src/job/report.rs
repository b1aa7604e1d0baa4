//! Reports of a running job on itself: one JSON object a line.

use serde::{Deserialize, Serialize};

use super::fence::Fence;
use super::members::ReportedMembers;

/// One report. All but `fence`, `attempt` and `step` may be left out; what is left out is not
/// known, never 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobReport {
    /// Token of the attempt that speaks.
    pub fence: Fence,
    /// Number of the attempt, from 0.
    pub attempt: u32,
    /// Optimiser steps done over all attempts.
    pub step: u64,
    /// Samples processed over all attempts.
    #[serde(default)]
    pub samples: Option<u64>,
    /// Epochs done over all attempts; may be fractional.
    #[serde(default)]
    pub epoch: Option<f64>,
    /// Total batch size now, samples.
    #[serde(default)]
    pub batch_size: Option<u32>,
    /// Batch size of one replica and pass, samples.
    #[serde(default)]
    pub atomic_batch: Option<u32>,
    /// Passes without synchronisation before the one with (gradient accumulation).
    #[serde(default)]
    pub accumulation: Option<u32>,
    /// Seconds of a step, all of it.
    #[serde(default)]
    pub step_time_s: Option<f64>,
    /// Seconds of a step spent on synchronising gradients.
    #[serde(default)]
    pub sync_time_s: Option<f64>,
    /// Squared norm of the true gradient, estimated (Pollux, section 3.1).
    #[serde(default)]
    pub grad_sqr: Option<f64>,
    /// Variance of the gradient of the initial batch size, estimated (Pollux, section 3.1).
    #[serde(default)]
    pub grad_var: Option<f64>,
    /// Training loss, where the job reports it.
    #[serde(default)]
    pub loss: Option<f64>,
    /// Step of the newest complete checkpoint.
    #[serde(default)]
    pub ckpt_step: Option<u64>,
    /// Seconds the newest checkpoint took to write.
    #[serde(default)]
    pub ckpt_time_s: Option<f64>,
    /// Load of an inference replica.
    #[serde(default)]
    pub serving: Option<Serving>,
    /// Members of an elastic attempt that train together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<ReportedMembers>,
}

/// Load of an inference replica since its last report.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Serving {
    /// Requests a second.
    pub qps: f64,
    /// Median latency, milliseconds.
    pub p50_ms: f64,
    /// 99th percentile of latency, milliseconds.
    pub p99_ms: f64,
    /// Requests being served.
    pub inflight: u32,
}

impl JobReport {
    /// A report that says only how far the job is.
    #[must_use]
    pub fn new(fence: Fence, attempt: u32, step: u64) -> Self {
        Self {
            fence,
            attempt,
            step,
            samples: None,
            epoch: None,
            batch_size: None,
            atomic_batch: None,
            accumulation: None,
            step_time_s: None,
            sync_time_s: None,
            grad_sqr: None,
            grad_var: None,
            loss: None,
            ckpt_step: None,
            ckpt_time_s: None,
            serving: None,
            members: None,
        }
    }

    /// Gradient noise scale in units of the initial batch size: variance over squared norm (Pollux,
    /// PGNS over M0).
    #[must_use]
    pub fn noise_scale(&self) -> Option<f64> {
        match (self.grad_var, self.grad_sqr) {
            (Some(var), Some(sqr)) if sqr > 0.0 => Some(var / sqr),
            _ => None,
        }
    }

    /// The field that is not a number a job can have, if any. The loss may be anything: diverging
    /// jobs exist.
    #[must_use]
    pub fn nonsense(&self) -> Option<&'static str> {
        let serving = self.serving.map(|serving| [serving.qps, serving.p50_ms, serving.p99_ms]);
        let fields = [
            ("epoch", self.epoch),
            ("step_time_s", self.step_time_s),
            ("sync_time_s", self.sync_time_s),
            ("grad_sqr", self.grad_sqr),
            ("grad_var", self.grad_var),
            ("ckpt_time_s", self.ckpt_time_s),
            ("serving", serving.map(|values| values.into_iter().fold(0.0, f64::min))),
        ];
        let bad = |value: &Option<f64>| value.is_some_and(|value| !value.is_finite() || value < 0.0);
        fields.into_iter().find(|(_, value)| bad(value)).map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_contract_reads_and_what_is_not_said_is_not_known() {
        let fence = Fence::from_text("a");
        let line = format!(
            r#"{{"fence":"{}","attempt":2,"step":40,"samples":1280,"batch_size":32,"step_time_s":0.5,"grad_sqr":2.0,"grad_var":8.0,"a_field_of_later":1}}"#,
            fence.as_str()
        );
        let report: JobReport = serde_json::from_str(&line).unwrap();
        assert_eq!((report.attempt, report.step, report.samples), (2, 40, Some(1280)));
        assert_eq!(report.noise_scale(), Some(4.0));
        assert_eq!((report.loss, report.ckpt_step, report.nonsense()), (None, None, None));
        assert_eq!(JobReport { step_time_s: Some(-1.0), ..report.clone() }.nonsense(), Some("step_time_s"));
        assert_eq!(JobReport { grad_var: Some(f64::INFINITY), ..report }.nonsense(), Some("grad_var"));
    }
}
