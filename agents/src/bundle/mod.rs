//! Trained policy as one file, with everything needed to use it: `train` writes it, `eval` and the
//! executor read it.
//!
//! The file is in safetensors format with the manifest as JSON in its metadata, so that other tools
//! can open it and nothing can be separated from the weights it belongs to. Loading refuses a
//! policy trained on another observation schema: a net would answer anyway, and wrongly.
//!
//! - `model`: the policy's numbers; `card`: what it was trained on.
//! - `stored`: both as bytes and back; `file`: as a file, refused where this program cannot run it.
//! - `types`: whether it can divide a cluster's accelerators; `at_work`: the policy behind the
//!   interface of all schedulers.

mod at_work;
mod card;
mod error;
#[cfg(feature = "learn")]
mod explained;
mod file;
pub mod forecaster;
mod model;
mod stored;
mod types;

pub use card::{Card, Provenance};
pub use error::BundleError;
pub use model::{FORMAT, Model, PolicyBundle};
pub use types::WrongTypes;
