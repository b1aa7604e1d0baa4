//! `goodput sim --preset fgd-atc23`: pods of the openb trace under a placement strategy, a row a pod.

use std::path::Path;
use std::process::ExitCode;

use goodput_agents::placement::fractional::TieBreak;
use goodput_agents::placement::fractional::strategy::{self, STRATEGIES};
use goodput_configs::names::did_you_mean;
use goodput_console::{Cell, CommandError, Listing, say};
use goodput_eval::reproduce::fgd::Openb;

use crate::args::Sim;

/// Places the pods of `--workload` on the nodes of `--cluster`, and gives the exit code. Pods are drawn and
/// shuffled by the seed until they ask for 130 % of the accelerators; one that fits nowhere is dropped, and
/// none leaves.
pub fn run(args: &Sim) -> Result<ExitCode, CommandError> {
    let measured = args.profiles.is_some() || args.throughputs.is_some() || args.step_times.is_some();
    if args.information.is_some() || args.switch_cost.is_some() || measured || args.interference != 0.0 {
        return Err(CommandError::input("fgd-atc23 has no speeds, costs, interference or information to set")
            .with_help("under this preset only --workload, --cluster, --policy, --seed and --output have a meaning"));
    }
    let trace = Openb::of_files(Path::new(&args.cluster), &args.workload).map_err(|error| {
        CommandError::input(error)
            .with_help("under fgd-atc23 --cluster is a list of nodes and --workload a list of pods of the openb trace")
    })?;
    let strategy = strategy::by_name(&args.policy, &trace.typical).ok_or_else(|| {
        let near = did_you_mean(&args.policy, STRATEGIES.iter().map(|entry| entry.name));
        CommandError::input(format!("there is no placement strategy {:?}{near}", args.policy))
            .with_help("`goodput list placements` names all strategies")
    })?;
    // The artifact draws one order of the nodes a run.
    let placements = trace.placements(strategy, TieBreak::FixedRandom, args.seed);
    let mut rows = Listing::new(&["pod", "accelerators", "milli", "node"]);
    for (at, (pod, node)) in placements.iter().enumerate() {
        rows.push(vec![
            Cell::Whole(at as i64),
            Cell::Whole(i64::from(pod.accelerators)),
            Cell::Whole(i64::from(pod.milli)),
            Cell::option(*node, |node| Cell::Whole(i64::from(node))),
        ]);
    }
    rows.print(args.output)?;
    say(&format!("allocated: {:.2} % of the accelerators", trace.percent(&placements)));
    Ok(ExitCode::SUCCESS)
}
