//! `goodput list`: what there is.

use std::process::ExitCode;

use goodput_agents::heuristic;
use goodput_eval::METRICS;
use goodput_eval::reproduce::REPRODUCTIONS;

use crate::args::{List, What};
use crate::fault::Fault;
use crate::output::{Cell, Rows};

/// Trace formats, the header or file they are recognised by, and where they come from.
const FORMATS: [(&str, &str, &str); 4] = [
    (
        "goodput",
        "Parquet with job_id, submit_secs, duration_secs, gpus, ...",
        "`goodput data import` and `goodput data synth`",
    ),
    (
        "pollux",
        "csv: name,time,application,num_replicas,batch_size",
        "petuum/adaptdl, branch osdi21-artifact, simulator/workloads",
    ),
    (
        "philly",
        "csv: timestamp,duration,num_gpus,gpu_time,cluster",
        "the same artifact's extract of msr-fiddle/philly-traces",
    ),
    (
        "pollux-profiles",
        "directory: APP/{placements,scalability,validation-B}.csv",
        "the same artifact, simulator/traces",
    ),
];

/// Runs it.
pub fn run(args: &List) -> Result<ExitCode, Fault> {
    let rows = match args.what {
        What::Policies => {
            let mut rows = Rows::new(&[
                "policy",
                "needs",
                "as_published",
                "preemptive",
                "elastic",
                "heterogeneous",
                "replica",
                "about",
                "source",
            ]);
            for policy in heuristic::policies() {
                let yes = |holds: bool| Cell::from(if holds { "yes" } else { "no" });
                rows.push(vec![
                    policy.name.into(),
                    policy.needs().to_string().into(),
                    policy.information().to_string().into(),
                    yes(policy.traits.preemptive),
                    yes(policy.traits.elastic),
                    yes(policy.traits.heterogeneous),
                    yes(policy.replica.is_some()),
                    policy.about.into(),
                    policy.source.into(),
                ]);
            }
            rows
        }
        What::Metrics => {
            let mut rows = Rows::new(&["metric", "unit", "better", "description"]);
            for metric in METRICS {
                let better = format!("{:?}", metric.better).to_lowercase();
                rows.push(vec![
                    metric.name.into(),
                    metric.unit.to_string().into(),
                    better.into(),
                    metric.description.into(),
                ]);
            }
            rows
        }
        What::Reproductions => {
            let mut rows = Rows::new(&["table", "about", "source", "files"]);
            for table in REPRODUCTIONS {
                rows.push(vec![
                    table.name.into(),
                    table.about.into(),
                    table.source.into(),
                    table.files.join(" ").into(),
                ]);
            }
            rows
        }
        What::Formats => {
            let mut rows = Rows::new(&["format", "recognised_by", "origin"]);
            for (format, header, origin) in FORMATS {
                rows.push(vec![format.into(), header.into(), origin.into()]);
            }
            rows
        }
    };
    rows.print(args.output)?;
    Ok(ExitCode::SUCCESS)
}
