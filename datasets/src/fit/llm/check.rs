//! Errors of the fit on rows that it has not seen.

use sha2::{Digest, Sha256};

use super::{Predicted, TwoStages};
use crate::import::silicon::{DividedRow, SiliconRow};

/// Parts into which the rows are divided.
pub const FOLDS: u64 = 4;

/// Part of a measurement that a fit has not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// The load on a configuration: lengths and number of requests at a time, on all versions of the backend.
    Load,
    /// The configuration: system, backend, model, precision and parallel sizes together.
    Configuration,
    /// The model, on every system and backend.
    Model,
}

/// Relative errors on unseen rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Errors {
    /// Absolute relative errors of the time to the first token.
    pub ttft: Vec<f64>,
    /// Absolute relative errors of the time of a further token.
    pub tpot: Vec<f64>,
}

impl Errors {
    /// Errors of a fit on rows.
    pub fn of<'a>(fit: &TwoStages, rows: impl IntoIterator<Item = &'a SiliconRow>) -> Self {
        let mut errors = Self::default();
        for row in rows {
            let Some(Predicted { ttft_ms, tpot_ms }) = fit.predict(row) else { continue };
            errors.ttft.push((ttft_ms / row.ttft_ms - 1.0).abs());
            errors.tpot.push((tpot_ms / row.tpot_ms - 1.0).abs());
        }
        errors
    }

    /// Errors of a fit on rows of replicas that divide prefill and decode, of which a fit uses none.
    pub fn of_divided<'a>(fit: &TwoStages, rows: impl IntoIterator<Item = &'a DividedRow>) -> Self {
        let mut errors = Self::default();
        for row in rows {
            let Some(Predicted { ttft_ms, tpot_ms }) = fit.predict_divided(row) else { continue };
            errors.ttft.push((ttft_ms / row.decode.ttft_ms - 1.0).abs());
            errors.tpot.push((tpot_ms / row.decode.tpot_ms - 1.0).abs());
        }
        errors
    }

    fn extend(&mut self, other: Self) {
        self.ttft.extend(other.ttft);
        self.tpot.extend(other.tpot);
    }
}

/// Median of values; `None` where there are none.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let low = sorted.get(middle.saturating_sub(1))?;
    if sorted.len().is_multiple_of(2) { Some(0.5 * (low + sorted[middle])) } else { sorted.get(middle).copied() }
}

/// Divides the rows into parts by a hash of what is to be unseen, fits all parts but one, and gives the errors on that
/// one: by backend, over all parts.
pub fn unseen(rows: &[SiliconRow], what: Unseen) -> Vec<(String, Errors)> {
    let part = |row: &SiliconRow| {
        let name = match what {
            Unseen::Load => format!("{} {:?}", row.configuration, row.shape),
            Unseen::Configuration => row.configuration.to_string(),
            Unseen::Model => row.configuration.model.clone(),
        };
        let digest = Sha256::digest(name.as_bytes());
        u64::from_be_bytes(std::array::from_fn(|at| digest[at])) % FOLDS
    };
    let mut found: Vec<(String, Errors)> = Vec::new();
    for fold in 0..FOLDS {
        let seen: Vec<&SiliconRow> = rows.iter().filter(|row| part(row) != fold).collect();
        let fit = TwoStages::fit(&seen);
        for row in rows.iter().filter(|row| part(row) == fold) {
            let errors = Errors::of(&fit, [row]);
            let backend = &row.configuration.backend;
            match found.iter_mut().find(|(name, _)| name == backend) {
                Some((_, all)) => all.extend(errors),
                None => found.push((backend.clone(), errors)),
            }
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}
