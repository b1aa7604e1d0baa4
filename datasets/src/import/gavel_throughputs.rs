//! Measured speeds of job classes, alone and in pairs, by accelerator type: Gavel's `simulation_throughputs.json`.
//!
//! ```json
//! {"v100": {"('LM (batch size 5)', 1)": {"null": 109.2, "('CycleGAN', 1)": [60.1, 2.2]}}}
//! ```
//!
//! Type, then class and accelerators, then steps per second alone under `null`, and beside another class its own and the other's. Zero
//! means that it does not fit, so zero stays what it is here: missing. The types called `..._unconsolidated` are jobs spread
//! over nodes; they are read as types of that name.

use std::collections::BTreeMap;
use std::path::Path;

use goodput_env::job::JobClass;
use serde_json::Value;

use crate::error::DataError;

/// Reads the bytes of a file; `path` is for messages. Classes are in ascending order of name and accelerators.
///
/// # Errors
/// Where it is not JSON of this shape: the place and what is wrong there.
pub fn parse(path: &Path, text: &[u8]) -> Result<Vec<JobClass>, DataError> {
    let wrong = |at: String, problem: &str| DataError::Json { path: path.to_owned(), at, problem: problem.into() };
    let root: BTreeMap<String, BTreeMap<String, BTreeMap<String, Value>>> =
        serde_json::from_slice(text).map_err(|error| {
            let at = format!("line {} column {}", error.line(), error.column());
            DataError::Json { path: path.to_owned(), at, problem: error.to_string() }
        })?;
    let mut classes: BTreeMap<(String, u32), JobClass> = BTreeMap::new();
    for (kind, of_kind) in root {
        for (key, speeds) in of_kind {
            let at = || format!("{kind}, {key}");
            let (name, gpus) = class_key(&key).ok_or_else(|| wrong(at(), "expected a key as ('CycleGAN', 1)"))?;
            let class = classes.entry((name.to_string(), gpus)).or_insert_with(|| JobClass {
                name: name.to_string(),
                gpus,
                ..JobClass::default()
            });
            let mut beside = BTreeMap::new();
            for (other, value) in &speeds {
                let at = || format!("{kind}, {key}, {other}");
                if other == "null" {
                    let speed = speed(value).ok_or_else(|| wrong(at(), "expected steps per second"))?;
                    if speed > 0.0 {
                        class.steps_per_sec.insert(kind.clone(), speed);
                    }
                    continue;
                }
                let (other, others) =
                    class_key(other).ok_or_else(|| wrong(at(), "expected a key as ('CycleGAN', 1)"))?;
                let own = value.as_array().filter(|pair| pair.len() == 2).and_then(|pair| speed(&pair[0]));
                let own = own.ok_or_else(|| wrong(at(), "expected two speeds in steps per second"))?;
                if own > 0.0 && others == gpus {
                    beside.insert(other.to_string(), own);
                }
            }
            if !beside.is_empty() {
                class.steps_per_sec_beside.insert(kind.clone(), beside);
            }
        }
    }
    if classes.is_empty() {
        return Err(DataError::Empty { path: path.to_owned() });
    }
    Ok(classes.into_values().collect())
}

/// Name and accelerators of `('ResNet-18 (batch size 16)', 1)`.
fn class_key(key: &str) -> Option<(&str, u32)> {
    let (name, gpus) = key.strip_prefix("('")?.strip_suffix(')')?.rsplit_once("', ")?;
    Some((name, gpus.parse().ok().filter(|&gpus| gpus > 0)?))
}

fn speed(value: &Value) -> Option<f64> {
    value.as_f64().filter(|speed| speed.is_finite() && *speed >= 0.0)
}
