//! Values of consecutive steps with gaps.

use serde::{Deserialize, Serialize};

/// Values of consecutive steps, NaN in a gap. JSON has no NaN, so a file holds `null` for a gap.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Option<f64>>", into = "Vec<Option<f64>>")]
pub(super) struct MeasuredSteps(pub Vec<f64>);

impl From<Vec<Option<f64>>> for MeasuredSteps {
    fn from(steps: Vec<Option<f64>>) -> Self {
        Self(steps.into_iter().map(|step| step.unwrap_or(f64::NAN)).collect())
    }
}

impl From<MeasuredSteps> for Vec<Option<f64>> {
    fn from(steps: MeasuredSteps) -> Self {
        steps.0.into_iter().map(|step| step.is_finite().then_some(step)).collect()
    }
}
