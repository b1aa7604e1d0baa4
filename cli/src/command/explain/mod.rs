//! `goodput explain`: one decision of a policy beside published ones, and why.

mod asked;
mod shown;

use std::process::ExitCode;
use std::sync::Arc;

use goodput_agents::policies::explain::{Decision, Explained, Explanation};
use goodput_agents::policies::external::ChosenAction;
use goodput_configs::policies::FIGURES;
use goodput_configs::seeds::HELD_OUT;
use goodput_console::{CommandError, counted, say};
use goodput_datasets::{Catalog, read_workload};
use goodput_env::gym::{ExpectedPeak, USUAL_SLOTS, layout};
use goodput_env::job::JobId;
use goodput_env::scenario::{Scenario, SimOptions};
use goodput_env::sim::{Simulator, Status};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;
use goodput_eval::entries;
use goodput_eval::studies::explain::{ComparedDecision, JobRow, compare_decision};

use self::asked::{AskedPolicy, Situation};
use self::shown::{Shown, Why};
use crate::args::Explain;
use crate::command::{programs, sim, sim_inputs, study};
use crate::config;

/// Runs `goodput explain` and gives its exit code.
pub fn run(args: &Explain) -> Result<ExitCode, CommandError> {
    let asked = AskedPolicy::open(&args.policy)?;
    let situation = situation(args, &asked)?;
    check(&situation.scenario)?;
    asked.check(&situation)?;
    let mut policy = asked.explained(&situation)?;
    let scenario = situation.scenario;
    let at = match args.at {
        Some(secs) if !(0.0..=1e12).contains(&secs) => {
            return Err(CommandError::input(format!("--at {secs}: expected a number of seconds from 0 on")));
        }
        Some(secs) => SimTime::from_secs_f64(secs),
        // Jobs are in order of submission.
        None => {
            scenario.workload.jobs.get(scenario.workload.jobs.len() / 2).map_or(SimTime::ZERO, |job| job.request.submit)
        }
    };
    let mut simulator = Simulator::new(scenario);
    while simulator.run_until_decision().map_err(CommandError::failed)? == Status::Decision {
        if simulator.view().now >= at && simulator.view().active() > 0 {
            return show(args, &asked, &mut policy, &simulator.view());
        }
        let plan = policy.decide(&simulator.view());
        simulator.apply(&plan).map_err(CommandError::failed)?;
        simulator.wake_at(policy.wake_at());
    }
    let end = simulator.outcome().end.as_secs_f64();
    Err(CommandError::input(format!(
        "--at {}: the last decision was before; the run ends at {end} s",
        at.as_secs_f64()
    )))
}

/// The run of an experiment, or the workload of a file under the policy's own conventions.
fn situation(args: &Explain, asked: &AskedPolicy) -> Result<Situation, CommandError> {
    if let Some(path) = &args.config {
        let experiment = config::read(path, &args.sets)?;
        let setup = experiment.setup().map_err(config::setup_error)?;
        experiment.check_policy("POLICY", &args.policy, &setup).map_err(|error| config::setup_error(error.into()))?;
        let layout = experiment.gym().layout();
        let scenario = setup.scenario(args.seed.unwrap_or(HELD_OUT));
        return Ok(Situation {
            // The run of a published policy is that of `goodput eval`.
            scenario: match asked {
                AskedPolicy::Made(_) => {
                    let entry = entries::policy(&args.policy, None, &experiment, &setup);
                    entry.map_err(|error| study::fault(error.into()))?.under(&scenario)
                }
                _ => scenario,
            },
            types: setup.type_names(layout.types),
            layout,
            expected: experiment.expected_peak(&setup),
        });
    }
    let Some(path) = &args.workload else { return Err(CommandError::input("give --config or --workload")) };
    let (batching, information) = asked.conventions()?;
    let options = SimOptions { batching, information, ..SimOptions::standard() };
    let workload = read_workload(path, Catalog::shipped()).map_err(sim::data_fault)?.workload;
    let cluster = sim_inputs::cluster(&args.cluster)?;
    if let AskedPolicy::Made(made) = asked
        && let Some(problem) = made.lacks(&cluster)
    {
        return Err(CommandError::input(problem).with_help(FIGURES));
    }
    Ok(Situation {
        scenario: Arc::new(Scenario::new(Arc::new(cluster), Arc::new(workload), options, 0)),
        layout: layout(USUAL_SLOTS),
        types: Vec::new(),
        expected: ExpectedPeak::default(),
    })
}

/// Refuses what the explanation would be wrong about.
fn check(scenario: &Scenario) -> Result<(), CommandError> {
    let workload = &scenario.workload;
    if workload.jobs.is_empty() {
        return Err(CommandError::input("the workload has no jobs: there is nothing to decide"));
    }
    if !workload.services.is_empty() || !workload.requests.is_empty() || scenario.cluster.has_pools() {
        return Err(CommandError::input(
            "`explain` is about training jobs; this workload has services, requests or pools",
        )
        .with_help("an experiment with jobs alone: `goodput init experiment/elastic`"));
    }
    Ok(())
}

/// Explains the decision at hand.
fn show(
    args: &Explain,
    asked: &AskedPolicy,
    policy: &mut Explained,
    view: &ClusterView<'_>,
) -> Result<ExitCode, CommandError> {
    let decision = policy.explain(view);
    if let Some(problem) = asked.fault() {
        return Err(CommandError::failed(format!("policy {} has no reasons: {problem}", args.policy)));
    }
    let scores: Vec<Option<f64>> = decision.scores.iter().map(|(_, score)| *score).collect();
    let compared = compare_decision(view, &decision.plan, &scores);
    let why = why(args, asked, &decision, &compared)?;
    let shown = Shown { kind: asked.kind(), moment: moment(view, &decision), view, compared: &compared, why };
    if let Some(path) = &args.report {
        let page = shown.page(&args.policy);
        std::fs::write(path, page)
            .map_err(|error| CommandError::input(format!("cannot write {}: {error}", path.display())))?;
        say(&format!("page: {}", path.display()));
    }
    shown.print(args.output)?;
    if let AskedPolicy::Program(program) = asked {
        programs::warn_of_faults(program);
    }
    Ok(ExitCode::SUCCESS)
}

/// Reasons of the decision, as far as the policy gives some.
fn why(
    args: &Explain,
    asked: &AskedPolicy,
    decision: &Decision,
    compared: &ComparedDecision,
) -> Result<Why, CommandError> {
    if let Some(look) = decision.look() {
        args.job.as_deref().map(|name| active(name, compared)).transpose()?;
        return Ok(Why::Simulated(look.clone()));
    }
    match asked {
        AskedPolicy::Bundle(bundle) if !matches!(bundle.kind(), "hold" | "queue") => {
            let (job, explanation) = taken_apart(args, decision, compared)?;
            Ok(Why::TakenApart { job, explanation })
        }
        AskedPolicy::Bundle(_) | AskedPolicy::Program(_) | AskedPolicy::Made(_) => {
            let asked_for = args.job.as_deref().map(|name| active(name, compared)).transpose()?;
            let of_job = |action: &&ChosenAction| asked_for.is_none_or(|row| action.id == Some(row.id));
            let silence = asked.silence();
            Ok(Why::Told { actions: decision.actions().iter().filter(of_job).cloned().collect(), silence })
        }
    }
}

/// The active job called `name`.
fn active<'a>(name: &str, compared: &'a ComparedDecision) -> Result<&'a JobRow, CommandError> {
    compared.queue.iter().find(|row| row.job == *name).ok_or_else(|| {
        let known: Vec<&str> = compared.queue.iter().take(20).map(|row| row.job.as_str()).collect();
        CommandError::input(format!("--job {name}: not active at this decision"))
            .with_help(format!("active are, in the policy's order: {}", known.join(", ")))
    })
}

/// Explanation of one job: the job that the options name, or the job with the largest change of
/// accelerators.
fn taken_apart(
    args: &Explain,
    decision: &Decision,
    compared: &ComparedDecision,
) -> Result<(String, Explanation), CommandError> {
    let named = |id: JobId, name: &str| decision.explain(id).map(|explanation| (name.to_owned(), explanation));
    if let Some(name) = &args.job {
        let row = active(name, compared)?;
        return named(row.id, &row.job).ok_or_else(|| {
            CommandError::input(format!(
                "--job {name}: the policy does not score it now: it keeps what it has, because it restarts or did so often, or no slot of the round shows it"
            ))
        });
    }
    let mut order: Vec<_> = compared.queue.iter().collect();
    order.sort_by_key(|row| (std::cmp::Reverse(row.own.gpus.abs_diff(row.held)), row.own.rank.unwrap_or(usize::MAX)));
    order
        .into_iter()
        .find_map(|row| named(row.id, &row.job))
        .ok_or_else(|| CommandError::input("every job keeps what it has at this decision, because it restarts or did so often; choose another one with --at"))
}

fn moment(view: &ClusterView<'_>, decision: &Decision) -> String {
    let trigger = view.trigger;
    let causes = [
        (trigger.arrival, "an arrival"),
        (trigger.completion, "a completion"),
        (trigger.round, "a round"),
        (trigger.wake, "its own wish"),
        (trigger.fault, "a fault"),
    ];
    let causes: Vec<&str> = causes.iter().filter(|cause| cause.0).map(|cause| cause.1).collect();
    format!(
        "Decision at {} s, on {}: {}, {} of {} accelerators free, {}.",
        view.now.as_secs_f64(),
        if causes.is_empty() { "other events".into() } else { causes.join(" and ") },
        counted(view.active() as u64, "job"),
        view.total_free(),
        view.cluster().total_gpus(),
        counted(decision.plan.changes.len() as u64, "change")
    )
}
