//! Run policies on workloads; metrics, statistics, reports.
//!
//! Rooms, from the ground up; each uses only those above it:
//!
//! - [`stats`]: pure functions over matrices of seeds x workloads: intervals, paired differences,
//!   tests.
//! - [`metrics`]: named metrics that are measured on a finished run.
//! - [`run`]: policies x scenarios in parallel, on common random numbers, and `summary.json`.
//! - [`entries`]: the policies and the scenarios of an experiment.
//! - [`report`]: the HTML page, its SVG plots, the leaderboard, and the tables in CSV and Parquet.
//! - [`sweep`]: studies cell by cell: on many machines, and going on where they stopped.
//! - [`studies`]: bounds, explanations of decisions, federations, forecasters.
//! - [`reproduce`]: published tables run again, ours beside theirs.
//!
//! **Invariant.** Same runs, same bytes: nothing here depends on the clock, on the number of
//! threads or on hash order.

pub mod entries;
pub mod metrics;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod stats;
pub mod studies;
pub mod sweep;

pub use metrics::{Better, METRICS, Metric, MetricUnit};
pub use report::results::ComparisonResults;
pub use report::{Report, ReportError};
pub use run::summary::{Statistics, Summary};
pub use run::{Comparison, Evaluation, NamedScenario, PolicyEntry, PolicyRun, RunError, RunLayout};
pub use stats::{Estimate, Interval};
