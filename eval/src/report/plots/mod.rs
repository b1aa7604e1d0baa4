//! Figures as SVG text, drawn with plotters.
//!
//! Three decisions shape them. Colours are roles, not values: the SVG refers to CSS variables, so a
//! figure follows the reader's light or dark theme, on a page as well as alone. Series are labelled
//! where they are, not in a box. And nothing is drawn that carries no information: no frames, no
//! ticks where gridlines do, no titles inside (captions say what to see).

mod axis;
mod canvas;
mod cdf;
mod contributions;
mod figure;
mod forecast;
mod forest;
mod gantt;
mod growth;
mod headroom;
mod ink;
mod labels;
mod learning;
mod profile;
mod utilization;
mod waits;

pub use cdf::{CdfSeries, CompletionTimes, cdf};
pub use contributions::{ContributionBar, contributions};
pub use figure::Figure;
pub(in crate::report) use figure::escape;
pub use forecast::{Fan, calibration, fan, frontier};
pub use forest::{ForestRow, forest};
pub use gantt::{GANTT_MOST_JOBS, GanttFrame, gantt};
pub use growth::{GrowthSeries, growth};
pub use headroom::{HeadroomRow, headroom};
pub(crate) use ink::Ink;
pub use ink::THEME_CSS;
pub use learning::{CurvePoint, LearningCurve, learning_curve};
pub use profile::{PROFILE_MOST_BANDS, ProfileSeries, performance_profiles};
pub use utilization::{UtilizationRow, utilization};
pub use waits::{WaitRow, waits};

/// Width of every figure, CSS pixels at full size.
pub const WIDTH: f64 = 880.0;
