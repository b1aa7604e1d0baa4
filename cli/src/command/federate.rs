//! `goodput federate`: clusters that lend each other servers, with and without a coordinator.

use std::process::ExitCode;

use crate::args::Federate;
use crate::command::run::threads;
use crate::config;
use crate::progress::{Meter, Verbosity};
use goodput_console::{Cell, CommandError, Listing};

/// Runs `goodput federate` and gives its exit code.
pub fn run(args: &Federate, verbosity: Verbosity) -> Result<ExitCode, CommandError> {
    threads(args.jobs)?;
    let mut sets = args.sets.clone();
    sets.extend(args.seeds.map(|seeds| format!("seeds={seeds}")));
    let federation = config::read_federation(&args.federation, &sets)?;
    let meter = Meter::new(verbosity);
    let compared = federation.compare(&|done, total| meter.runs(done, total));
    meter.finish();
    let mut rows = Listing::new(&[
        "cluster",
        "coordinator",
        "jobs",
        "jct_mean_secs",
        "difference_secs",
        "ci_low",
        "ci_high",
        "preemptions",
        "servers_in",
        "servers_out",
        "slo_attainment",
    ]);
    for row in compared.map_err(CommandError::failed)? {
        let count = |count: u64| Cell::Whole(count as i64);
        let secs = |secs: Option<f64>| Cell::option(secs, |secs| Cell::Number(secs, 1));
        let interval = row.difference.and_then(|difference| difference.ci);
        rows.push(vec![
            row.cluster.unwrap_or_else(|| "all".into()).into(),
            row.outlook.name().into(),
            count(row.tally.jobs),
            secs(row.tally.jct_mean_secs()),
            secs(row.difference.map(|difference| difference.value)),
            secs(interval.map(|interval| interval.low)),
            secs(interval.map(|interval| interval.high)),
            count(row.tally.preemptions),
            count(row.tally.servers_in),
            count(row.tally.servers_out),
            Cell::option(row.tally.attainment(), |share| Cell::Number(share, 5)),
        ]);
    }
    rows.print(args.output)?;
    Ok(ExitCode::SUCCESS)
}
