//! Run policies on workloads; metrics, statistics, reports.
//!
//! Layout, from the ground up:
//!
//! - [`metrics`]: what is measured on a finished run, as a table of named metrics.
//! - [`stats`]: pure functions over matrices of seeds x workloads: intervals, paired differences, tests.
//! - [`run`]: policies x scenarios in parallel, on common random numbers.
//! - [`summary`]: what it comes to; `summary.json`.
//! - [`tables`]: per-job rows as CSV and Parquet, the leaderboard as Markdown.
//! - [`timeseries`]: the state of the cluster over time.
//! - [`plots`]: SVG figures that follow the reader's light or dark theme.
//! - [`report`]: one self-contained HTML page.
//! - [`explain`]: one decision of a policy beside those of published ones.
//! - [`forecasting`]: studies of load forecasters: backtests, comparisons, lending.
//! - [`federation`]: clusters that lend each other servers, with and without a coordinator.
//! - [`reproduce`]: published tables run again, ours beside theirs.
//!
//! **Invariant.** Same runs, same bytes: nothing here depends on the clock, on the number of threads or on hash order.

pub mod bound;
pub mod explain;
pub mod federation;
pub mod forecasting;
mod format;
pub mod metrics;
pub mod plots;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod stats;
pub mod summary;
pub mod tables;
pub mod timeseries;

pub use metrics::{Better, METRICS, Metric, Unit};
pub use report::{Report, ReportError};
pub use run::{Comparison, Evaluation, NamedScenario, PolicyEntry, Run, RunError};
pub use stats::{Estimate, Interval};
pub use summary::{Statistics, Summary};
