//! Metrics of evaluations, and published tables that can be computed again.

use goodput_console::Listing;
use goodput_eval::METRICS;
use goodput_eval::reproduce::REPRODUCTIONS;

/// Listing of `goodput list metrics`.
pub fn metrics() -> Listing {
    let mut rows = Listing::new(&["metric", "unit", "better", "description"]);
    for metric in METRICS {
        let better = format!("{:?}", metric.better).to_lowercase();
        rows.push(vec![metric.name.into(), metric.unit.to_string().into(), better.into(), metric.description.into()]);
    }
    rows
}

/// Listing of `goodput list reproductions`.
pub fn reproductions() -> Listing {
    let mut rows = Listing::new(&["table", "about", "source", "files"]).brief(&["table", "about"]);
    for table in REPRODUCTIONS {
        rows.push(vec![table.name.into(), table.about.into(), table.source.into(), table.files.join(" ").into()]);
    }
    rows
}
