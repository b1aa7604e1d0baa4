//! Start of a waiting job, predicted from simulated futures.
//!
//! How long jobs run and which jobs will come is not known. So the cluster as it is now is simulated many times under
//! its policy. Each time the run times are drawn anew from jobs that have ended, and the arrivals from days that have
//! passed ([`crate::futures`]); what differs from future to future is what is not known. The earlier predictions and
//! what became of them then say how wide the interval has to be.
//!
//! Files, each of which uses only those above it:
//!
//! - `futures`: the start of one job in one future.
//! - `interval`: an interval of the wait, calibrated on past predictions.
//! - `reasons`: what has to happen before the job starts: the jobs ahead of it, and the ends of running ones.
//! - `words`: the reasons in sentences.

mod futures;
mod interval;
mod reasons;
mod words;

pub use futures::{FutureStart, StartQuestion};
pub use interval::{StartCalibration, WaitInterval};
pub use reasons::{RoomMade, RunningEnd, StartReasons, room_made};
pub use words::{end_words, is_real_clock, span};
