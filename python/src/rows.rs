//! Arrays of numpy into which environments write, one row an environment.

use goodput_env::gym::{EnvError, Layout, StepRow, StepSlices};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Arrays of `N` environments, written anew by each step.
pub struct Arrays {
    layout: Layout,
    observations: Py<PyArray2<f32>>,
    masks: Py<PyArray2<u8>>,
    final_observations: Py<PyArray2<f32>>,
    rewards: Py<PyArray1<f64>>,
    elapsed_secs: Py<PyArray1<f64>>,
    terminated: Py<PyArray1<bool>>,
    truncated: Py<PyArray1<bool>>,
    jct_mean_secs: Py<PyArray1<f64>>,
}

impl Arrays {
    /// Arrays of zeros for `count` environments of `layout`.
    pub fn new(py: Python<'_>, count: usize, layout: Layout) -> Self {
        let (dim, actions) = (layout.obs_dim(), layout.actions());
        Self {
            layout,
            observations: PyArray2::zeros(py, [count, dim], false).unbind(),
            masks: PyArray2::zeros(py, [count, actions], false).unbind(),
            final_observations: PyArray2::zeros(py, [count, dim], false).unbind(),
            rewards: PyArray1::zeros(py, count, false).unbind(),
            elapsed_secs: PyArray1::zeros(py, count, false).unbind(),
            terminated: PyArray1::zeros(py, count, false).unbind(),
            truncated: PyArray1::zeros(py, count, false).unbind(),
            jct_mean_secs: PyArray1::zeros(py, count, false).unbind(),
        }
    }

    /// The arrays by name.
    ///
    /// # Errors
    /// Python is out of memory.
    pub fn named<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let named = PyDict::new(py);
        named.set_item("observations", &self.observations)?;
        named.set_item("masks", &self.masks)?;
        named.set_item("final_observations", &self.final_observations)?;
        named.set_item("rewards", &self.rewards)?;
        named.set_item("elapsed_secs", &self.elapsed_secs)?;
        named.set_item("terminated", &self.terminated)?;
        named.set_item("truncated", &self.truncated)?;
        named.set_item("jct_mean_secs", &self.jct_mean_secs)?;
        Ok(named)
    }

    /// Does `act` to every element of `items` and its row, in parallel on the threads of `pool`, without the lock of
    /// the interpreter. Without a pool, the calling thread does all.
    ///
    /// # Errors
    /// The first error of `act`.
    pub fn each<T: Send>(
        &self,
        py: Python<'_>,
        items: &mut [T],
        pool: Option<&rayon::ThreadPool>,
        act: impl Fn(&mut T, StepRow<'_>) -> Result<(), EnvError> + Sync + Send,
    ) -> PyResult<()> {
        let mut observations = self.observations.bind(py).readwrite();
        let mut masks = self.masks.bind(py).readwrite();
        let mut last = self.final_observations.bind(py).readwrite();
        let (mut rewards, mut elapsed) = (self.rewards.bind(py).readwrite(), self.elapsed_secs.bind(py).readwrite());
        let (mut terminated, mut truncated) =
            (self.terminated.bind(py).readwrite(), self.truncated.bind(py).readwrite());
        let mut jct = self.jct_mean_secs.bind(py).readwrite();
        let slices = StepSlices {
            layout: self.layout,
            features: observations.as_slice_mut()?,
            masks: masks.as_slice_mut()?,
            final_features: last.as_slice_mut()?,
            rewards: rewards.as_slice_mut()?,
            elapsed_secs: elapsed.as_slice_mut()?,
            terminated: terminated.as_slice_mut()?,
            truncated: truncated.as_slice_mut()?,
            jct_mean_secs: jct.as_slice_mut()?,
        };
        py.detach(|| match pool {
            Some(pool) => pool.install(|| halves(items, slices, pool.current_num_threads(), &act)),
            None => halves(items, slices, 1, &act),
        })
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}

/// Does `act` to every item and its row, in as many parts as there are threads.
fn halves<T: Send>(
    items: &mut [T],
    slices: StepSlices<'_>,
    threads: usize,
    act: &(impl Fn(&mut T, StepRow<'_>) -> Result<(), EnvError> + Sync),
) -> Result<(), EnvError> {
    if threads < 2 || items.len() < 2 {
        return items.iter_mut().zip(slices.rows()).try_for_each(|(item, row)| act(item, row));
    }
    let middle = items.len() * (threads / 2) / threads;
    let (first, others) = items.split_at_mut(middle);
    let (first_rows, other_rows) = slices.split_at(middle);
    let (left, right) = rayon::join(
        || halves(first, first_rows, threads / 2, act),
        || halves(others, other_rows, threads - threads / 2, act),
    );
    left.and(right)
}
