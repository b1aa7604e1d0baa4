//! Studies of forecasters on a load series: backtests, comparisons, lending, one page.

mod page;
mod study;

pub use page::{StudyOrigin, page};
pub use study::{LendingRow, ScoreRow, Study, StudyError, read_series};
