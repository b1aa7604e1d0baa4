//! Measured speeds of job classes, alone and in pairs, by accelerator type: Gavel's
//! `simulation_throughputs.json`.
//!
//! ```json
//! {"v100": {"('LM (batch size 5)', 1)": {"null": 109.2, "('CycleGAN', 1)": [60.1, 2.2]}}}
//! ```
//!
//! Type, then class and accelerators, then steps per second alone under `null`, and beside another
//! class its own and the other's. Zero means that it does not fit, so zero stays what it is here:
//! missing. The types called `..._unconsolidated` are jobs spread over nodes; they are read as
//! types of that name.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use goodput_env::job::JobClass;
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

use crate::error::DataError;

/// Speeds by type, then class, then the class beside it; keys are borrowed from the text, of which
/// there is a megabyte.
type SpeedsByType<'a> = BTreeMap<ClassKey<'a>, BTreeMap<ClassKey<'a>, BTreeMap<ClassKey<'a>, MeasuredSpeed>>>;

/// Reads the bytes of a file; `path` is for messages. Classes are in ascending order of name and
/// accelerators.
///
/// # Errors
/// Where it is not JSON of this shape: the place and what is wrong there.
pub fn parse(path: &Path, text: &[u8]) -> Result<Vec<JobClass>, DataError> {
    let wrong = |at: String, problem: &str| DataError::Json { path: path.to_owned(), at, problem: problem.into() };
    let root: SpeedsByType<'_> = serde_json::from_slice(text).map_err(|error| {
        let at = format!("line {} column {}", error.line(), error.column());
        DataError::Json { path: path.to_owned(), at, problem: error.to_string() }
    })?;
    let mut classes: BTreeMap<(String, u32), JobClass> = BTreeMap::new();
    for (kind, of_kind) in root {
        for (key, speeds) in of_kind {
            let at = || format!("{}, {}", kind.0, key.0);
            let (name, gpus) = class_key(&key.0).ok_or_else(|| wrong(at(), "expected a key as ('CycleGAN', 1)"))?;
            let class = classes.entry((name.to_string(), gpus)).or_insert_with(|| JobClass {
                name: name.to_string(),
                gpus,
                ..JobClass::default()
            });
            let mut beside = BTreeMap::new();
            for (other, speed) in speeds {
                let at = || format!("{}, {}, {}", kind.0, key.0, other.0);
                match (&*other.0, speed) {
                    ("null", MeasuredSpeed::Alone(own)) if own.is_finite() && own >= 0.0 => {
                        if own > 0.0 {
                            class.steps_per_sec.insert(kind.0.to_string(), own);
                        }
                    }
                    ("null", _) => return Err(wrong(at(), "expected steps per second")),
                    (_, MeasuredSpeed::Beside(own)) if own.is_finite() && own >= 0.0 => {
                        let (other, others) =
                            class_key(&other.0).ok_or_else(|| wrong(at(), "expected a key as ('CycleGAN', 1)"))?;
                        // Only jobs of one size can share all of their accelerators.
                        if own > 0.0 && others == gpus {
                            beside.insert(other.to_string(), own);
                        }
                    }
                    _ => return Err(wrong(at(), "expected two speeds in steps per second")),
                }
            }
            if !beside.is_empty() {
                class.steps_per_sec_beside.insert(kind.0.to_string(), beside);
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

#[derive(serde::Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct ClassKey<'a>(#[serde(borrow)] Cow<'a, str>);

/// Steps per second; none where there is something else.
#[derive(Clone, Copy)]
enum MeasuredSpeed {
    Alone(f64),
    /// Speed of the job beside another one; the speed of the other job stands elsewhere.
    Beside(f64),
    Unknown,
}

impl<'de> Deserialize<'de> for MeasuredSpeed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrTwo;
        impl<'de> Visitor<'de> for OneOrTwo {
            type Value = MeasuredSpeed;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("steps per second, or two of them")
            }

            fn visit_f64<E>(self, speed: f64) -> Result<MeasuredSpeed, E> {
                Ok(MeasuredSpeed::Alone(speed))
            }

            fn visit_u64<E>(self, speed: u64) -> Result<MeasuredSpeed, E> {
                Ok(MeasuredSpeed::Alone(speed as f64))
            }

            fn visit_i64<E>(self, speed: i64) -> Result<MeasuredSpeed, E> {
                Ok(MeasuredSpeed::Alone(speed as f64))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<MeasuredSpeed, A::Error> {
                let two = (pair.next_element()?, pair.next_element::<f64>()?);
                let more = pair.next_element::<f64>()?.is_some();
                // The parser expects a visitor to read a sequence to its end.
                while more && pair.next_element::<f64>()?.is_some() {}
                Ok(match two {
                    (Some(own), Some(_)) if !more => MeasuredSpeed::Beside(own),
                    _ => MeasuredSpeed::Unknown,
                })
            }
        }
        deserializer.deserialize_any(OneOrTwo)
    }
}
