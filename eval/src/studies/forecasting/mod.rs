//! Studies of forecasters on a load series: backtests, comparisons, lending, one page.

mod error;
mod forecasts;
mod page;
mod scores;
mod study;

pub use error::StudyError;
pub use forecasts::forecasts;
pub use page::{StudyOrigin, page};
pub use scores::{ScoreRow, mean_rows};
pub use study::{LendingRow, Study, read_panel, read_series, series_name};
