//! `goodput list`: what there is.

use std::process::ExitCode;

use goodput_agents::heuristic;
use goodput_agents::placement::fractional::strategy;
use goodput_agents::zoo::{self, ZOO};
use goodput_datasets::accelerators::Accelerators;
use goodput_datasets::import::FORMATS;
use goodput_env::model::switching::{NAMED, Switch};
use goodput_eval::METRICS;
use goodput_eval::reproduce::REPRODUCTIONS;

use crate::args::{List, What};
use crate::fault::Fault;
use crate::output::{Cell, Rows};

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
        What::Zoo => {
            let mut rows = Rows::new(&["policy", "kind", "information", "about"]);
            for entry in ZOO {
                let bundle = zoo::load(entry.name).map_err(Fault::input)?;
                let name = format!("{}{}", zoo::PREFIX, entry.name);
                rows.push(vec![name.into(), bundle.kind().into(), bundle.card.information.into(), entry.about.into()]);
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
        What::Accelerators => {
            let mut rows = Rows::new(&["accelerator", "kind", "memory_mib", "benchmarks", "models", "sources"]);
            for row in Accelerators::shipped().rows() {
                rows.push(vec![
                    row.accelerator.name.as_str().into(),
                    format!("{:?}", row.accelerator.kind).to_lowercase().into(),
                    Cell::option(row.accelerator.memory.as_ref(), |memory| Cell::Whole(i64::from(memory.mib))),
                    row.benchmarks.join(" ").into(),
                    Cell::Whole(row.models as i64),
                    row.sources.join("; ").into(),
                ]);
            }
            rows
        }
        What::Placements => {
            let mut rows = Rows::new(&["placement", "about", "source"]);
            for placement in strategy::STRATEGIES {
                rows.push(vec![placement.name.into(), placement.about.into(), placement.source.into()]);
            }
            rows
        }
        What::SwitchCosts => switch_costs(),
        What::Formats => {
            let mut rows = Rows::new(&["format", "reads", "columns", "origin"]);
            for format in FORMATS {
                rows.push(vec![
                    format.name.into(),
                    format.reads.into(),
                    format.columns.join(",").into(),
                    format.origin.into(),
                ]);
            }
            rows
        }
    };
    rows.print(args.output)?;
    Ok(ExitCode::SUCCESS)
}

/// Seconds that BERT and ResNet-50 stand still for, by event; 4 accelerators to 2 or 8, or as many elsewhere.
fn switch_costs() -> Rows {
    let mut rows = Rows::new(&["model", "application", "cold", "grow", "shrink", "move", "resume", "about", "source"]);
    for named in NAMED {
        for application in ["bert", "imagenet"] {
            let secs = |from, to, started| {
                let switch = Switch { application, from, to, moved: true, started };
                Cell::Number(named.cost.components(&switch).total() as f64 / 1e3, 3)
            };
            rows.push(vec![
                named.name.into(),
                application.into(),
                secs(0, 4, false),
                secs(4, 8, true),
                secs(4, 2, true),
                secs(4, 4, true),
                secs(0, 4, true),
                named.about.into(),
                named.source.into(),
            ]);
        }
    }
    rows
}
