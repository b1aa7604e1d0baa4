//! `goodput explain`: one decision of a trained policy, and why.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use goodput_agents::bundle::PolicyBundle;
use goodput_agents::compose;
use goodput_agents::policies::explain::{Contribution, Decision, Explained, Explanation};
use goodput_agents::zoo;
use goodput_configs::names::nearest;
use goodput_configs::seeds::HELD_OUT;
use goodput_console::{Cell, CommandError, Listing, OutputFormat, counted, say};
use goodput_datasets::{Catalog, read_workload};
use goodput_env::job::JobId;
use goodput_env::scenario::{Scenario, SimOptions};
use goodput_env::sim::{Simulator, Status};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;
use goodput_eval::report::plots::ContributionBar;
use goodput_eval::studies::explain::{ComparedDecision, ExplainPage, JobStanding, compare_decision};
use serde_json::json;

use crate::args::Explain;
use crate::command::results;
use crate::command::{sim, sim_inputs};
use crate::config;

/// Advice on the policies that can be explained.
const TRAINED: &str = "give a bundle, or a shipped policy as in zoo:elastic (`goodput list zoo`)";

/// Runs `goodput explain` and gives its exit code.
pub fn run(args: &Explain) -> Result<ExitCode, CommandError> {
    if compose::by_name(&args.bundle, 0).is_some() {
        let message = format!("{} is a published policy; explain takes trained ones", args.bundle);
        return Err(CommandError::input(message).with_help(TRAINED));
    }
    if !args.bundle.starts_with(zoo::PREFIX) && !Path::new(&args.bundle).exists() {
        return Err(absent(&args.bundle));
    }
    let bundle = sim::bundle(&args.bundle)?;
    let (scenario, expected) = match &args.config {
        Some(path) => {
            let experiment = config::read(path, &args.sets)?;
            let setup = experiment.setup().map_err(config::setup_error)?;
            (setup.scenario(args.seed.unwrap_or(HELD_OUT)), experiment.expected_peak(&setup))
        }
        None => (of_file(args, &bundle)?, Default::default()),
    };
    check(&bundle, &scenario)?;
    let decoder = |error: serde_json::Error| CommandError::input(format!("{}: decoder options: {error}", args.bundle));
    let mut policy = bundle.explained(expected).map_err(decoder)?;
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
            return show(args, &bundle, &mut policy, &simulator.view());
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

/// Error of a name that is neither a policy nor a bundle, with the policy of the closest name.
fn absent(name: &str) -> CommandError {
    let shipped = nearest(name, zoo::ZOO.iter().map(|entry| entry.name));
    let near = match (shipped, nearest(name, compose::names())) {
        (Some(shipped), _) => format!(" (did you mean \"{}{shipped}\"?)", zoo::PREFIX),
        (None, Some(published)) => format!("; {published:?} is a published policy, and explain takes trained ones"),
        (None, None) => String::new(),
    };
    CommandError::input(format!("there is no bundle file {name:?}{near}")).with_help(TRAINED)
}

/// The workload of a file, under the policy's own conventions.
fn of_file(args: &Explain, bundle: &PolicyBundle) -> Result<Arc<Scenario>, CommandError> {
    let Some(path) = &args.workload else { return Err(CommandError::input("give --config or --workload")) };
    let policy =
        bundle.policy(Default::default()).map_err(|error| CommandError::input(format!("{}: {error}", args.bundle)))?;
    let (batching, information) = (policy.batching(), policy.information());
    let options = SimOptions { batching, information, ..SimOptions::standard() };
    let workload = read_workload(path, Catalog::shipped()).map_err(sim::data_fault)?.workload;
    Ok(Arc::new(Scenario::new(Arc::new(sim_inputs::cluster(&args.cluster)?), Arc::new(workload), options, 0)))
}

/// Refuses what the explanation would be wrong about.
fn check(bundle: &PolicyBundle, scenario: &Scenario) -> Result<(), CommandError> {
    let workload = &scenario.workload;
    if workload.jobs.is_empty() {
        return Err(CommandError::input("the workload has no jobs: there is nothing to decide"));
    }
    if !workload.services.is_empty() || !workload.requests.is_empty() || scenario.cluster.has_pools() {
        return Err(CommandError::input(
            "`explain` is about training jobs; this workload has services, requests or pools",
        )
        .with_help("a workload of jobs alone: configs/experiment/elastic.toml"));
    }
    bundle.check_types(&scenario.cluster).map_err(CommandError::input)?;
    let trained = bundle.policy(Default::default()).map_err(|error| CommandError::input(error.to_string()))?;
    let (given, meant) = (scenario.options.information, trained.information());
    if std::mem::discriminant(&given) != std::mem::discriminant(&meant) {
        return Err(CommandError::input(format!(
            "the policy was trained at information level {meant}, this run gives {given}"
        ))
        .with_help("give a run whose `information` is that of the training; its model card has it"));
    }
    Ok(())
}

/// Explains the decision at hand.
fn show(
    args: &Explain,
    bundle: &PolicyBundle,
    policy: &mut Explained,
    view: &ClusterView<'_>,
) -> Result<ExitCode, CommandError> {
    let decision = policy.explain(view);
    let scores: Vec<Option<f64>> = decision.scores.iter().map(|(_, score)| *score).collect();
    let compared = compare_decision(view, &decision.plan, &scores);
    let (job, explanation) = taken_apart(args, &decision, &compared)?;
    let moment = moment(view, &decision);
    if let Some(path) = &args.report {
        let page = ExplainPage {
            title: &format!("{}: why", args.bundle),
            moment: &moment,
            question: &question(&job, &explanation),
            bars: &sorted(&explanation).map(bar).collect::<Vec<_>>(),
            compared: &compared,
            command: &results::own_command(),
        };
        std::fs::write(path, page.render())
            .map_err(|error| CommandError::input(format!("cannot write {}: {error}", path.display())))?;
        say(&format!("page: {}", path.display()));
    }
    match args.output {
        OutputFormat::Json => print_json(bundle, view, &compared, &job, &explanation)?,
        OutputFormat::Csv => queue(&compared).print(OutputFormat::Csv)?,
        OutputFormat::Table | OutputFormat::Wide => {
            goodput_console::print(&format!("{moment}\n\n"))?;
            queue(&compared).print(args.output)?;
            goodput_console::print("\n")?;
            agreement(&compared).print(args.output)?;
            goodput_console::print(&format!("\n{}\n\n", question(&job, &explanation)))?;
            features(&explanation).print(args.output)?;
        }
    }
    Ok(ExitCode::SUCCESS)
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
        let row = compared.queue.iter().find(|row| row.job == *name).ok_or_else(|| {
            let known: Vec<&str> = compared.queue.iter().take(20).map(|row| row.job.as_str()).collect();
            CommandError::input(format!("--job {name}: not active at this decision"))
                .with_help(format!("active are, in the policy's order: {}", known.join(", ")))
        })?;
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

fn question(job: &str, explanation: &Explanation) -> String {
    let Explanation { of, score, usual_score, .. } = explanation;
    let residual = explanation.residual();
    // Sums of rounded numbers differ in the last digits; that is no news.
    let sum = match residual.abs() < 1e-9 * score.abs().max(1.0) {
        true => "The contributions make up the difference.".to_owned(),
        false => format!("The contributions make up the difference but for {residual:.1e}."),
    };
    format!("{job}: {of} is {score:.4}; the usual job of the queue in its place: {usual_score:.4}. {sum}")
}

/// Largest contributions first.
fn sorted(explanation: &Explanation) -> impl Iterator<Item = &Contribution> {
    let mut parts: Vec<&Contribution> = explanation.contributions.iter().collect();
    parts.sort_by(|a, b| b.contribution.abs().total_cmp(&a.contribution.abs()));
    parts.into_iter().filter(|part| part.contribution != 0.0 || part.occlusion != 0.0)
}

fn bar(part: &Contribution) -> ContributionBar {
    ContributionBar { name: part.feature.clone(), value: part.contribution, check: part.occlusion }
}

fn queue(compared: &ComparedDecision) -> Listing {
    let mut rows = Listing::new(&[
        "job",
        "model",
        "age_secs",
        "attained_gpu_secs",
        "held",
        "score",
        "rank",
        "gives",
        "tiresias_rank",
        "tiresias_gives",
        "srtf_rank",
        "srtf_gives",
        "pollux_gives",
    ]);
    let rank = |standing: &JobStanding| Cell::option(standing.rank, |rank| Cell::Whole(rank as i64));
    let gives = |standing: &JobStanding| match standing.accelerator {
        Some(_) => standing.gives().as_str().into(),
        None => Cell::Whole(i64::from(standing.gpus)),
    };
    for row in &compared.queue {
        let mut cells = vec![
            row.job.as_str().into(),
            row.model.as_str().into(),
            Cell::Number(row.age_secs, 0),
            Cell::Number(row.attained_gpu_secs, 0),
            Cell::Whole(i64::from(row.held)),
            Cell::option(row.score, |score| Cell::Number(score, 3)),
            rank(&row.own),
            gives(&row.own),
        ];
        for (other, beside) in row.others.iter().zip(&compared.beside) {
            // Pollux gives no order of jobs.
            if beside.policy != "pollux" {
                cells.push(rank(other));
            }
            cells.push(gives(other));
        }
        rows.push(cells);
    }
    rows
}

fn agreement(compared: &ComparedDecision) -> Listing {
    let mut rows = Listing::new(&["beside", "information", "tau_order", "tau_sizes", "same_size"]);
    for other in &compared.beside {
        rows.push(vec![
            other.policy.into(),
            other.information.as_str().into(),
            Cell::option(other.tau_order, |tau| Cell::Number(tau, 3)),
            Cell::option(other.tau_sizes, |tau| Cell::Number(tau, 3)),
            Cell::Whole(other.same_size as i64),
        ]);
    }
    rows
}

fn features(explanation: &Explanation) -> Listing {
    let mut rows = Listing::new(&["feature", "value", "usual", "contribution", "occlusion"]);
    for part in sorted(explanation) {
        rows.push(vec![
            part.feature.as_str().into(),
            Cell::Number(part.value, 4),
            Cell::Number(part.usual, 4),
            Cell::Number(part.contribution, 4),
            Cell::Number(part.occlusion, 4),
        ]);
    }
    rows
}

fn print_json(
    bundle: &PolicyBundle,
    view: &ClusterView<'_>,
    compared: &ComparedDecision,
    job: &str,
    explanation: &Explanation,
) -> Result<(), CommandError> {
    let features: Vec<_> = explanation
        .contributions
        .iter()
        .map(|part| {
            json!({
                "feature": part.feature, "value": part.value, "usual": part.usual,
                "contribution": part.contribution, "occlusion": part.occlusion,
            })
        })
        .collect();
    let all = json!({
        "kind": bundle.kind(),
        "at_secs": view.now.as_secs_f64(),
        "active": view.active(),
        "free": view.total_free(),
        "accelerators": view.cluster().total_gpus(),
        "queue": compared.queue,
        "beside": compared.beside,
        "explained": {
            "job": job, "of": explanation.of, "score": explanation.score, "usual_score": explanation.usual_score,
            "residual": explanation.residual(), "features": features,
        },
    });
    let text = serde_json::to_string_pretty(&all).map_err(CommandError::failed)?;
    goodput_console::print(&format!("{text}\n"))
}
