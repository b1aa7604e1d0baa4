//! Table of `goodput eval --headroom`: the policies of a comparison beside a probe that knows the future, and the
//! bound.

use goodput_console::{Cell, CommandError, Listing, OutputFormat};
use goodput_eval::report::results::ComparisonResults;
use goodput_eval::studies::headroom::{self, Headroom};
use goodput_eval::sweep::Sweep;

use super::study::fault;

/// Note below the table.
const NOTE: &str = "\nforesight probe: a reference that reads the future, which no scheduler can; it cannot be run as \
                    a policy\n";

/// Prints four lines for each workload.
pub fn print(sweep: &Sweep, results: &ComparisonResults, format: OutputFormat) -> Result<(), CommandError> {
    let found = headroom::of(sweep, &results.heads).map_err(fault)?;
    let mut rows = Listing::new(&["workload", "line", "policy", "jct_mean_secs", "above_bound_percent"]);
    for Headroom { workload, published, ours, probe_secs, bound } in found {
        let bound = bound.map(|bound| bound.jct_mean_secs);
        let lines = [
            ("best published", published),
            ("ours", ours),
            ("foresight probe", probe_secs.map(|secs| (String::new(), secs))),
            ("bound", bound.map(|secs| (String::new(), secs))),
        ];
        for (line, (policy, secs)) in lines.into_iter().filter_map(|(line, found)| Some((line, found?))) {
            rows.push(vec![
                workload.as_str().into(),
                line.into(),
                policy.as_str().into(),
                Cell::Number(secs, 1),
                Cell::option(bound, |bound| Cell::Number(100.0 * (secs / bound - 1.0), 1)),
            ]);
        }
    }
    let on_a_page = matches!(format, OutputFormat::Table | OutputFormat::Wide);
    if on_a_page {
        goodput_console::print("\n")?;
    }
    rows.print(format)?;
    if on_a_page { goodput_console::print(NOTE) } else { Ok(()) }
}
