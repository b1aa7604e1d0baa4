//! A predicted start, for users and in words.

pub use goodput_agents::start_time::{RoomMade, is_real_clock};
use goodput_agents::start_time::{WaitInterval, end_words};
use serde::{Deserialize, Serialize};

use crate::engine::OnNode;

/// Predicted start of a job that waits. Times are seconds of the engine's clock from the moment of the prediction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PredictedStart {
    /// Policy of the futures.
    pub policy: String,
    /// Moment of the prediction, milliseconds of the engine's clock.
    pub at_ms: i64,
    /// Past that the prediction goes by.
    pub basis: StartBasis,
    /// Time until the job starts.
    pub wait: Quantiles,
    /// Jobs that wait and start before the job in at least a tenth of the futures, by descending share; the first ones.
    pub ahead: Vec<JobAhead>,
    /// Number of jobs that wait and start before the job in more than half of the futures.
    pub ahead_in_most: usize,
    /// Mean number of jobs that come later and start before the job.
    pub overtaking: f64,
    /// Accelerators in service that are free at the moment of the prediction.
    #[serde(default)]
    pub free: u32,
    /// Jobs that run and end before the job starts in most futures, by their ends; the first ones.
    pub frees: Vec<FreeingJob>,
    /// Ends of `frees` that leave enough room for the job and those ahead of it; `None` where they do not, and on a
    /// cluster with several types of accelerators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<RoomMade>,
    /// Sentences on what the prediction leaves out or assumes.
    pub notes: Vec<String>,
}

/// Past that a prediction goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "by")]
pub enum StartBasis {
    /// Simulated futures, with run times and arrivals of the past.
    Futures {
        /// Number of futures.
        futures: usize,
        /// Jobs that have ended, of which run times are drawn.
        ended: usize,
        /// Jobs that came, of which arrivals are drawn.
        came: usize,
        /// Earlier predictions that the quantiles are calibrated on; 0 where there were too few.
        calibrated_on: usize,
    },
    /// The run times that users stated, and no arrivals: too few jobs have ended.
    Stated {
        /// Jobs that have ended.
        ended: usize,
        /// Jobs that have to have ended before futures are drawn.
        needed: usize,
        /// Jobs without a stated run time, for which an hour is assumed.
        assumed: usize,
    },
}

impl Default for StartBasis {
    fn default() -> Self {
        Self::Stated { ended: 0, needed: 0, assumed: 0 }
    }
}

/// Three quantiles of a time, seconds; `None`: later than the two months that are simulated. Where nothing is drawn at
/// random, all three are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// One in ten is earlier.
    pub low: Option<f64>,
    /// Half are earlier.
    pub median: Option<f64>,
    /// One in ten is later.
    pub high: Option<f64>,
}

/// Fate of a submission that is not made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TriedSubmission {
    /// Reasons for which the job would be refused; empty where it would be taken.
    pub refused: Vec<String>,
    /// Predicted start; `None` where the job would be refused, or nothing can be predicted.
    pub start: Option<PredictedStart>,
    /// Reason why nothing is predicted of a job that would be taken; else empty.
    pub no_start: String,
}

impl From<Quantiles> for WaitInterval {
    fn from(Quantiles { low, median, high }: Quantiles) -> Self {
        let secs = |time: Option<f64>| time.unwrap_or(f64::INFINITY);
        Self { low: secs(low), median: secs(median), high: secs(high) }
    }
}

impl From<WaitInterval> for Quantiles {
    fn from(WaitInterval { low, median, high }: WaitInterval) -> Self {
        let finite = |time: f64| Some(time).filter(|time| time.is_finite());
        Self { low: finite(low), median: finite(median), high: finite(high) }
    }
}

/// Waiting job that starts before another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobAhead {
    /// Key of the job.
    pub key: String,
    /// Name of the job.
    pub name: String,
    /// Accelerators that the job asks for.
    pub gpus: u32,
    /// Share of the futures in which the job starts earlier.
    pub share: f64,
}

/// Running job that ends before a waiting one starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FreeingJob {
    /// Key of the job.
    pub key: String,
    /// Name of the job.
    pub name: String,
    /// Accelerators that the job holds.
    pub placement: Vec<OnNode>,
    /// Share of the futures in which the job ends before the start.
    pub share: f64,
    /// Time until its end in all futures.
    pub ends: Quantiles,
}

impl Quantiles {
    /// Whether a time lies within the quantiles 0.1 and 0.9.
    pub fn holds(&self, time: f64) -> bool {
        self.low.is_some_and(|low| low <= time) && self.high.is_none_or(|high| time <= high)
    }
}

impl PredictedStart {
    /// The prediction in lines of text.
    pub fn words(&self) -> String {
        let Quantiles { low, median, high } = self.wait;
        let mut text = match (self.basis, high) {
            (_, Some(0.0)) => "predicted start: at once".to_owned(),
            (StartBasis::Stated { .. }, _) => format!("predicted start: in {}", span(median)),
            (StartBasis::Futures { .. }, _) => format!(
                "predicted start: in {}; one in ten is earlier than {}, and one in ten later than {}",
                span(median),
                span(low),
                span(high)
            ),
        };
        text.push_str(&match self.basis {
            StartBasis::Futures { futures, ended, came, calibrated_on } => {
                let calibrated = match calibrated_on {
                    0 => String::new(),
                    count => format!("; calibrated on {count} earlier predictions"),
                };
                format!(
                    "\n  by {futures} simulated futures under {}, with run times of {ended} jobs that have ended and arrivals of {came} that came{calibrated}",
                    self.policy
                )
            }
            StartBasis::Stated { ended, needed, assumed } => {
                let assumed = match assumed {
                    0 => String::new(),
                    count => format!("; {count} stated none, and an hour is assumed"),
                };
                format!(
                    "\n  under {}, by the run times that users stated{assumed}, and as if no job came: {ended} jobs have ended, and {needed} are needed for a prediction by their run times",
                    self.policy
                )
            }
        });
        let listed = self.ahead.iter().map(|ahead| {
            format!("{} ({}) in {:.0} % of futures", ahead.name, accelerators(ahead.gpus), 100.0 * ahead.share)
        });
        let listed = listed.collect::<Vec<_>>().join(", ");
        if !listed.is_empty() {
            text.push_str(&format!("\n  ahead of it: {listed}"));
            if self.ahead_in_most > self.ahead.len() {
                text.push_str(&format!("; {} in all in most futures", self.ahead_in_most));
            }
        }
        if self.overtaking >= 0.05 {
            text.push_str(&format!("\n  jobs that come later and start earlier: {:.1} on average", self.overtaking));
        }
        if let Some(room) = self.room {
            let names: Vec<&str> = self.frees.iter().map(|job| job.name.as_str()).collect();
            text.push_str(&format!("\n  {}", room.words(self.free, &names)));
        }
        for FreeingJob { name, placement, ends, .. } in &self.frees {
            let on: Vec<(&str, u32)> = placement.iter().map(|on| (on.node.as_str(), on.gpus)).collect();
            text.push_str(&format!("\n  {}", end_words(name, &on, &(*ends).into(), self.at_ms)));
        }
        for note in &self.notes {
            text.push_str(&format!("\n  note: {note}"));
        }
        text
    }
}

/// So many accelerators, in words.
pub(in crate::daemon) fn accelerators(count: u32) -> String {
    format!("{count} accelerator{}", if count == 1 { "" } else { "s" })
}

/// A span of time as people say it.
fn span(secs: Option<f64>) -> String {
    goodput_agents::start_time::span(secs.unwrap_or(f64::INFINITY))
}
