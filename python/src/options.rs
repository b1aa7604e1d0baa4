//! Options of environments, as Python writes them.

use std::num::NonZeroUsize;

use goodput_configs::seeds::Split;
use goodput_env::gym::{Autoreset, Discount};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Treatment of actions that the mask forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnForbidden {
    /// An error, before anything is stepped.
    Raise,
    /// The round ends instead; where the round may not end, the first allowed action is taken.
    Wait,
}

/// Options of environments.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Workloads to play.
    pub split: Split,
    /// Moment at which the next episode begins.
    pub autoreset: Autoreset,
    /// Treatment of forbidden actions.
    pub on_forbidden: OnForbidden,
    /// Discount of rewards within a step.
    pub discount: Option<Discount>,
    /// Whether rewards are discounted to the beginning of the workload.
    pub present_value: bool,
    /// Most actions of a round; it must end then, where it may. `None`: as many as are allowed.
    pub round_actions: Option<NonZeroUsize>,
}

impl Options {
    /// Reads options. `half_life_secs` is in seconds.
    ///
    /// # Errors
    /// A name or a number that is none, with those that are.
    pub fn read(
        split: &str,
        autoreset: &str,
        on_forbidden: &str,
        half_life_secs: Option<f64>,
        present_value: bool,
        round_actions: Option<usize>,
    ) -> PyResult<Self> {
        let round_actions = match round_actions.map(NonZeroUsize::new) {
            Some(None) => return Err(PyValueError::new_err("round_actions is 0, expected at least 1, or None")),
            given => given.flatten(),
        };
        if present_value && half_life_secs.is_none() {
            return Err(PyValueError::new_err("present_value needs half_life_secs, the half-life of the discount"));
        }
        let discount = match half_life_secs {
            None => None,
            Some(secs) => Some(Discount::with_half_life_secs(secs).ok_or_else(|| {
                PyValueError::new_err(format!("half_life_secs is {secs}, expected a positive number of seconds"))
            })?),
        };
        let splits = Split::ALL.map(|split| (split.name(), split));
        let resets =
            [("same-step", Autoreset::SameStep), ("next-step", Autoreset::NextStep), ("disabled", Autoreset::Disabled)];
        let treatments = [("raise", OnForbidden::Raise), ("wait", OnForbidden::Wait)];
        Ok(Self {
            split: named("split", split, splits)?,
            autoreset: named("autoreset", autoreset, resets)?,
            on_forbidden: named("on_forbidden", on_forbidden, treatments)?,
            discount,
            present_value,
            round_actions,
        })
    }
}

/// Value called `name` among `values`.
fn named<T: Copy, const N: usize>(option: &str, name: &str, values: [(&str, T); N]) -> PyResult<T> {
    values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<String> = values.iter().map(|(known, _)| format!("{known:?}")).collect();
        PyValueError::new_err(format!("{option} is {name:?}, expected {}", known.join(" or ")))
    })
}
