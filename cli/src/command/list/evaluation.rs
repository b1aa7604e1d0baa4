//! Metrics of evaluations, and published tables that can be computed again.

use goodput_eval::METRICS;
use goodput_eval::reproduce::REPRODUCTIONS;

use crate::output::Rows;

/// Rows of `goodput list metrics`.
pub fn metrics() -> Rows {
    let mut rows = Rows::new(&["metric", "unit", "better", "description"]);
    for metric in METRICS {
        let better = format!("{:?}", metric.better).to_lowercase();
        rows.push(vec![metric.name.into(), metric.unit.to_string().into(), better.into(), metric.description.into()]);
    }
    rows
}

/// Rows of `goodput list reproductions`.
pub fn reproductions() -> Rows {
    let mut rows = Rows::new(&["table", "about", "source", "files"]);
    for table in REPRODUCTIONS {
        rows.push(vec![table.name.into(), table.about.into(), table.source.into(), table.files.join(" ").into()]);
    }
    rows
}
