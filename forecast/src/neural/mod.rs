//! Neural forecasters: DLinear, LSTM, N-HiTS, PatchTST and one net for all series, each with quantile heads that
//! cannot cross.
//!
//! **Where the numbers live.** A net is one flat vector ([`NeuralNet`]) and the list of the matrices that
//! divide it. burn is asked one question only, "what is the gradient of this loss at these
//! weights", and keeps nothing between calls; it is needed only to train (feature `train`).
//! Prediction is plain Rust, so a deployed forecaster links no tensor framework. A test holds the
//! two forwards together to 1e-5.
//!
//! **One scale.** A net sees a window of values relative to its last value (or mean) and in units
//! of its own spread, and answers in the same units: a level shift moves the forecast, whatever was
//! trained on (RevIN without its affine part: Kim et al., ICLR 2022; the last value: NLinear, Zeng
//! et al., AAAI 2023).
//!
//! One file an architecture: settings, parameters, plain forward and, for training, the same
//! forward in burn. Around them: [`Spec`] says what a net is, [`NeuralNet`] has its weights,
//! [`FittedNet`] knows a series too, `Trainer` finds weights.

mod dlinear;
mod fitted;
mod global;
mod head;
mod lstm;
mod net;
mod nhits;
mod parameters;
mod patchtst;
mod rate;
mod scale;
mod spec;

#[cfg(feature = "train")]
mod adam;
#[cfg(feature = "train")]
mod fit;
#[cfg(feature = "train")]
mod graph;
#[cfg(feature = "train")]
mod probe;
#[cfg(feature = "train")]
mod processor;
#[cfg(feature = "train")]
mod synthetic;
#[cfg(feature = "train")]
mod trainer;
#[cfg(feature = "train")]
mod windows;

pub use dlinear::Dlinear;
pub use fitted::FittedNet;
pub use global::Global;
pub use head::NetLoss;
pub use lstm::Lstm;
pub use net::{NetError, NeuralNet};
pub use nhits::Nhits;
pub use patchtst::PatchTst;
pub use scale::Centre;
pub use spec::{Architecture, Spec, SpecError};

#[cfg(feature = "train")]
pub use adam::AdamW;
#[cfg(feature = "train")]
pub use fit::Neural;
#[cfg(feature = "train")]
pub use probe::Probe;
#[cfg(feature = "train")]
pub use processor::Processor;
#[cfg(feature = "train")]
pub use synthetic::synthetic_load;
#[cfg(feature = "train")]
pub use trainer::{NetCheckpoint, NetTrainError, Trainer, Training};

pub(crate) use fitted::NetPath;
