//! Forecasters for Python: fit, update, quantiles, and the file that `goodput forecast` reads and writes.

use goodput_forecast::{Adaptive, ForecasterSnapshot, Horizon, Model, Predict, Series, check_levels};
use numpy::ndarray::Array2;
use numpy::{PyArray2, PyReadonlyArray1, ToPyArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

fn refused(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A forecaster that was fitted to one series, and the time of the next value.
#[pyclass(module = "goodput_gym._core", name = "Forecaster")]
#[derive(Clone)]
pub struct Forecaster {
    snapshot: ForecasterSnapshot,
}

#[pymethods]
impl Forecaster {
    /// Fits the weighed models, or those that are named, to values at even steps from `start_epoch_millis` on; NaN is
    /// a gap. Lengths of a day and of the horizon are in steps.
    #[staticmethod]
    #[pyo3(signature = (start_epoch_millis, step_millis, values, models, day_steps, horizon_steps))]
    fn fit(
        py: Python<'_>,
        start_epoch_millis: i64,
        step_millis: i64,
        values: PyReadonlyArray1<'_, f64>,
        models: Vec<String>,
        day_steps: Option<usize>,
        horizon_steps: Option<usize>,
    ) -> PyResult<Self> {
        let values = values.as_slice()?.to_vec();
        let models = models.iter().map(|name| model(name)).collect::<PyResult<Vec<_>>>()?;
        py.detach(|| {
            let series = Series::new(start_epoch_millis, step_millis, values.into()).map_err(refused)?;
            let day = day_steps.or(series.steps_per_day()).ok_or_else(|| {
                refused(format!(
                    "a day is no whole number of steps of {step_millis} ms; give day_steps, the length of a season"
                ))
            })?;
            let mut settings = Adaptive::daily(day);
            if !models.is_empty() {
                settings.models = models;
            }
            settings.horizon_steps = horizon_steps.unwrap_or(day).max(1);
            Ok(Self { snapshot: ForecasterSnapshot::fit(&settings, &series).map_err(refused)? })
        })
    }

    /// Forecaster of a file of `goodput forecast fit`.
    #[staticmethod]
    fn read(text: &str) -> PyResult<Self> {
        let unread = |error| refused(format!("no fitted forecaster, as `goodput forecast fit` writes one: {error}"));
        let snapshot: ForecasterSnapshot = serde_json::from_str(text).map_err(unread)?;
        if snapshot.regression.is_some() {
            return Err(refused("it was fitted with covariates: `goodput forecast predict` has their values ahead"));
        }
        Ok(Self { snapshot })
    }

    /// The text that `goodput forecast predict` reads.
    fn written(&self) -> PyResult<String> {
        serde_json::to_string(&self.snapshot).map_err(refused)
    }

    /// Takes in the values that came next; NaN is a gap.
    fn update(&mut self, py: Python<'_>, values: PyReadonlyArray1<'_, f64>) -> PyResult<()> {
        let values = values.as_slice()?.to_vec();
        if let Some(value) = values.iter().find(|value| value.is_infinite()) {
            return Err(refused(format!("a value is {value}, expected a number, or NaN for a gap")));
        }
        let ForecasterSnapshot { next_epoch_millis, step_millis, .. } = self.snapshot;
        let passed = i64::try_from(values.len()).ok().and_then(|steps| steps.checked_mul(step_millis));
        let next = passed.and_then(|passed| next_epoch_millis.checked_add(passed));
        self.snapshot.next_epoch_millis = next.ok_or_else(|| refused("the values end beyond the time line"))?;
        py.detach(|| self.snapshot.forecaster.update(&values));
        Ok(())
    }

    /// Estimates the parameters anew on the values that are kept.
    fn refresh(&mut self, py: Python<'_>) {
        py.detach(|| self.snapshot.forecaster.refresh());
    }

    /// Quantiles `[steps, levels]` of the next values.
    fn quantiles<'py>(&self, py: Python<'py>, steps: usize, levels: Vec<f64>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        check_levels(&levels).map_err(refused)?;
        if steps == 0 {
            return Err(refused("steps is 0, expected at least 1"));
        }
        let forecast = py.detach(|| self.snapshot.forecaster.predict(Horizon::steps(steps), &levels));
        let rows: Vec<f64> = forecast.quantiles().iter().copied().collect();
        Ok(Array2::from_shape_vec((steps, levels.len()), rows).map_err(refused)?.to_pyarray(py))
    }

    /// Time of the next value, milliseconds since 1970.
    #[getter]
    fn next_epoch_millis(&self) -> i64 {
        self.snapshot.next_epoch_millis
    }

    /// Length of a step, milliseconds.
    #[getter]
    fn step_millis(&self) -> i64 {
        self.snapshot.step_millis
    }

    /// Steps in a day.
    #[getter]
    fn day_steps(&self) -> usize {
        self.snapshot.day_steps
    }
}

/// Names of the models, as study files have them.
pub fn models() -> Vec<String> {
    Model::ALL.iter().filter_map(|model| Some(serde_json::to_value(model).ok()?.as_str()?.to_owned())).collect()
}

fn model(name: &str) -> PyResult<Model> {
    let known = || refused(format!("there is no model {name:?}; those that there are: {}", models().join(", ")));
    serde_json::from_value(name.into()).map_err(|_| known())
}
