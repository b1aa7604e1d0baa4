//! `goodput data replay-services`: every request of the language models of a scenario, beside what a run counts.

use std::process::ExitCode;

use goodput_agents::compose::loaning::complete;
use goodput_console::{Cell, CommandError, Listing};
use goodput_eval::entries;
use goodput_eval::studies::token_replay::{ReplayedService, replay};

use crate::args::ReplayServices;
use crate::command::study::fault;
use crate::config;

/// Runs `goodput data replay-services` and gives its exit code.
pub fn run(asked: &ReplayServices) -> Result<ExitCode, CommandError> {
    let experiment = config::read(&asked.experiment, &asked.sets)?;
    let setup = experiment.setup().map_err(config::setup_error)?;
    let servers = setup.token_servers();
    if servers.iter().all(Option::is_none) {
        let problem = format!("{}: no service runs a language model", asked.experiment.display());
        return Err(CommandError::input(problem)
            .with_help("name a replica of `goodput list llm-replicas` as the model of a service"));
    }
    let entry = entries::policy(&asked.policy, None, &experiment, &setup).map_err(|error| fault(error.into()))?;
    let scenario = entry.under(&setup.scenario(asked.seed));
    let mut policy = complete((entry.make)(asked.seed), &scenario, setup.sharing());
    let needs = policy.needs();
    if !scenario.options.information.allows(needs) {
        let given = scenario.options.information;
        return Err(CommandError::input(format!("policy {} cannot run at information level {given}", asked.policy))
            .with_help(format!("it needs at least: {needs}")));
    }
    let services = replay(&scenario, &servers, &mut *policy).map_err(CommandError::failed)?;
    table(&services).print(asked.output)?;
    Ok(ExitCode::SUCCESS)
}

fn table(services: &[ReplayedService]) -> Listing {
    let mut rows = Listing::new(&["service", "objective", "requests", "counted", "replayed", "difference"]);
    for ReplayedService { name, requests, counted, replayed } in services {
        let of = [
            ("ttft", counted.ttft, replayed.ttft),
            ("tpot", counted.tpot, replayed.tpot),
            ("both", counted.both, replayed.both),
        ];
        for (objective, counted, replayed) in of {
            rows.push(vec![
                name.as_str().into(),
                objective.into(),
                Cell::Whole(*requests as i64),
                Cell::Number(counted, 4),
                Cell::Number(replayed, 4),
                Cell::Number(counted - replayed, 4),
            ]);
        }
    }
    rows
}
