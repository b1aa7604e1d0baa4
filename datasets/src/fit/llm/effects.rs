//! Effects of a configuration on the efficiency of a cost: what backends, systems, models and their combinations have
//! in common, and the slope and the curve over the number of devices that divide a layer.

use std::collections::BTreeMap;

use super::posynomial::Prior;
use crate::import::silicon::SiliconRow;

/// Stiffness of what a configuration shares with many others.
const SHARED: f64 = 10.0;
/// Stiffness of combinations and of slopes.
const OWN: f64 = 30.0;
/// Stiffness of the level of a cost.
const LEVEL: f64 = 1e-3;

/// Effects by name, in the order in which they were met.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    positions: BTreeMap<String, usize>,
    priors: Vec<Prior>,
}

impl Effects {
    /// The effects before the fit.
    pub(super) fn priors(&self) -> &[Prior] {
        &self.priors
    }

    /// Effects of a row on the cost `term`, with an efficiency of `exp(start)` before the fit. Effects that were not
    /// met before are added.
    pub(super) fn of(&mut self, term: &str, start: f64, row: &SiliconRow) -> Vec<(usize, f64)> {
        let mut position = |(name, x, stiffness): (String, f64, f64)| {
            let at = *self.positions.entry(name).or_insert(self.priors.len());
            if at == self.priors.len() {
                let start = if stiffness == LEVEL { start } else { 0.0 };
                self.priors.push(Prior { start, stiffness });
            }
            (at, x)
        };
        named(term, row).map(&mut position).collect()
    }

    /// As [`Self::of`], without the effects that were not met.
    pub(super) fn known(&self, term: &str, row: &SiliconRow) -> Vec<(usize, f64)> {
        named(term, row).filter_map(|(name, x, _)| Some((*self.positions.get(&name)?, x))).collect()
    }
}

/// Name, factor and stiffness of each effect.
fn named(term: &str, row: &SiliconRow) -> impl Iterator<Item = (String, f64, f64)> {
    let of = &row.configuration;
    let (system, backend, model, precision) = (&of.system, &of.backend, &of.model, of.precision.name());
    let division = (of.expert > 1, of.data > 1);
    let slope = f64::from(of.tensor).log2() - 2.0;
    [
        (String::new(), 1.0, LEVEL),
        (format!("backend {backend}"), 1.0, SHARED),
        (format!("system {system}"), 1.0, SHARED),
        (format!("model {model}"), 1.0, SHARED),
        (format!("precision {backend} {precision}"), 1.0, SHARED),
        (format!("division {backend} {division:?}"), 1.0, SHARED),
        (format!("pair {backend} {model}"), 1.0, OWN),
        (format!("set {backend} {system} {model} {precision}"), 1.0, OWN),
        (format!("version {backend} {}", row.version), 1.0, OWN),
        ("slope".to_owned(), slope, SHARED),
        (format!("slope {backend}"), slope, OWN),
        (format!("slope {model}"), slope, OWN),
        ("curve".to_owned(), slope * slope, OWN),
        (format!("curve {backend}"), slope * slope, 2.0 * OWN),
    ]
    .into_iter()
    .map(move |(name, x, stiffness)| (format!("{term} {name}"), x, stiffness))
    .collect::<Vec<_>>()
    .into_iter()
}
