//! `goodput data replay-llm`: a trace of requests on replicas of a language model.

mod pools;

use std::fs;
use std::process::ExitCode;

use goodput_console::{Cell, CommandError, Listing, say};
use goodput_datasets::DataError;
use goodput_datasets::fit::llm::calibrate::calibrate;
use goodput_datasets::import::llm_requests;
use goodput_datasets::llm::replicas::read_costs;
use goodput_datasets::llm::{LlmTrace, ReplicaCatalog, ReplicaEntry};
use goodput_env::model::serving::llm::request::SECOND_PS;
use goodput_env::model::serving::llm::{
    BatchTime, ColdStart, LlmOutcome, LlmService, ReplicaLimits, ScaleRule, ScaledReplay, ServedTokens, StepCosts,
    replay_scaled,
};
use goodput_eval::stats::quantile;

use crate::args::ReplayLlm;
use crate::command::sim::data_fault;

/// Percentiles that are printed.
const PERCENTILES: [f64; 4] = [0.5, 0.9, 0.95, 0.99];

/// Runs `goodput data replay-llm` and gives its exit code.
pub fn run(asked: &ReplayLlm) -> Result<ExitCode, CommandError> {
    let (trace, report) = llm_requests::read(&asked.trace).map_err(fault)?;
    say(&format!("{}: {report}", asked.trace.display()));
    if (asked.check || asked.fit.is_some()) && trace.measured.len() < trace.requests.len() {
        return Err(CommandError::input(format!("{}: the trace has no measured times", asked.trace.display()))
            .with_help("leave out --check and --fit, or give the requests of a run of vLLM"));
    }
    let (mut costs, kv_tokens) = replica(asked)?;
    costs = on_device(costs, asked.memory, asked.compute);
    let limits = limits(asked, kv_tokens)?;
    if let Some(out) = &asked.fit {
        let (found, distance) = calibrate(&trace, asked.replicas, limits, &costs);
        if !distance.is_finite() {
            return Err(CommandError::input("no costs replay every request")
                .with_help("look at too_long and timed_out without --fit"));
        }
        costs = found;
        let text = toml::to_string(&costs).map_err(CommandError::failed)?;
        fs::write(out, text)
            .map_err(|error| CommandError::input(format!("cannot write {}: {error}", out.display())))?;
        say(&format!("wrote costs of a step with a distance of {distance:.4} to {}", out.display()));
    }
    let step = BatchTime::new(&costs, asked.budget).map_err(CommandError::input)?;
    let played = match (asked.scale.most, asked.pools.prefill_replicas) {
        (Some(most), _) => scaled(asked, most, &trace, limits, &step)?,
        (None, Some(count)) => pools::play(asked, count, &trace, limits, &costs, step)?,
        (None, None) => fixed(asked, &trace, limits, &step)?,
    };
    figures(asked, &trace, &played).print(asked.output)?;
    Ok(ExitCode::SUCCESS)
}

/// Error of a trace of requests, with what such a trace looks like.
fn fault(error: DataError) -> CommandError {
    let is_other = matches!(error, DataError::Format { .. } | DataError::Empty { .. });
    let fault = data_fault(error);
    match is_other {
        true => fault.with_help(
            "a table of your own has the columns arrival_secs, input and output; the traces of Mooncake, Azure and BurstGPT and \
             the requests of a run of vLLM are read as they are",
        ),
        false => fault,
    }
}

/// A replay and what it took.
struct PlayedTrace {
    outcomes: Vec<LlmOutcome>,
    reused_tokens: u64,
    /// Times from the first token until a decode replica has the keys and values, seconds, where pools divide the work.
    handover_secs: Option<Vec<f64>>,
    /// Time of all replicas, hours, and cold starts, where their number changed.
    scaled: Option<(f64, u32)>,
}

/// Tokens of a block of a prompt, and blocks of earlier prompts that a replica keeps, where the trace names blocks.
fn prefixes(asked: &ReplayLlm, trace: &LlmTrace) -> Option<(u32, usize)> {
    let most = asked.prefix_tokens / u64::from(trace.block_tokens.max(1));
    (!trace.blocks.is_empty()).then_some((trace.block_tokens, most as usize))
}

fn fixed(
    asked: &ReplayLlm,
    trace: &LlmTrace,
    limits: ReplicaLimits,
    step: &BatchTime,
) -> Result<PlayedTrace, CommandError> {
    let mut service = LlmService::new(asked.replicas, limits, step).map_err(CommandError::input)?;
    if let Some((block, most)) = prefixes(asked, trace) {
        service = service.with_prefixes(block, most);
    }
    let outcomes = service.replay(&trace.requests, &trace.blocks);
    Ok(PlayedTrace { outcomes, reused_tokens: service.reused_tokens(), handover_secs: None, scaled: None })
}

fn scaled(
    asked: &ReplayLlm,
    most: u32,
    trace: &LlmTrace,
    limits: ReplicaLimits,
    step: &BatchTime,
) -> Result<PlayedTrace, CommandError> {
    let scale = &asked.scale;
    let cold = ColdStart {
        schedule_secs: scale.cold_schedule,
        pull_secs: scale.cold_pull,
        weights_gb: scale.weights,
        load_gb_per_sec: scale.load,
        warm_secs: scale.cold_warm,
    };
    let parts = [scale.cold_schedule, scale.cold_pull, scale.weights, scale.cold_warm];
    let is_possible = parts.iter().all(|part| *part >= 0.0) && scale.load > 0.0 && cold.secs() < 1e6;
    if !is_possible {
        return Err(CommandError::input(format!("the parts of a cold start add up to {} seconds", cold.secs()))
            .with_help("give at least 0 to --cold-* and --weights, more to --load, and less than 1e6 seconds in all"));
    }
    if !(1e-3..=1e6).contains(&scale.period) {
        return Err(CommandError::input(format!("--period is {}, expected 0.001 to 1e6 seconds", scale.period)));
    }
    let ps = |secs: f64| (secs * SECOND_PS as f64) as u64;
    let rule = ScaleRule {
        least: asked.replicas,
        most,
        tokens: scale.target,
        period_ps: ps(scale.period),
        window: scale.window,
        cold_ps: ps(cold.secs()),
    };
    let replay = replay_scaled(&trace.requests, limits, step, rule).map_err(CommandError::input)?;
    let ScaledReplay { outcomes, replica_hours, starts } = replay;
    Ok(PlayedTrace { outcomes, reused_tokens: 0, handover_secs: None, scaled: Some((replica_hours, starts)) })
}

/// Costs of a step, and tokens that fit into memory.
fn replica(asked: &ReplayLlm) -> Result<(StepCosts, u64), CommandError> {
    if let (Some(file), Some(tokens)) = (&asked.costs, asked.kv_tokens) {
        let help = "--fit FILE writes a file of costs, from a run with measured times";
        let costs = read_costs(file).map_err(|error| CommandError::input(error).with_help(help))?;
        return Ok((costs, tokens));
    }
    let entry = entry("--replica", asked.replica.as_deref().unwrap_or_default())?;
    Ok((entry.step, asked.kv_tokens.unwrap_or(entry.kv_tokens)))
}

/// Replica of the catalog that an option names.
fn entry(option: &str, name: &str) -> Result<&'static ReplicaEntry, CommandError> {
    ReplicaCatalog::shipped().replica(name).ok_or_else(|| {
        CommandError::input(format!("{option} {name}: the catalog has no such replica"))
            .with_help("goodput list llm-replicas")
    })
}

/// Costs on a device with other speeds.
fn on_device(costs: StepCosts, memory: f64, compute: f64) -> StepCosts {
    StepCosts {
        fixed_ms: costs.fixed_ms * memory,
        experts_ms: costs.experts_ms * memory,
        context_ms: costs.context_ms * memory,
        prompt_ms: costs.prompt_ms * compute,
        pair_ms: costs.pair_ms * compute,
        ..costs
    }
}

fn limits(asked: &ReplayLlm, kv_tokens: u64) -> Result<ReplicaLimits, CommandError> {
    let timeout = asked.timeout.unwrap_or(f64::INFINITY);
    if !(timeout > 0.0 && asked.memory > 0.0 && asked.compute > 0.0) {
        return Err(CommandError::input("--timeout, --memory and --compute must be above 0"));
    }
    // A float too large for the type becomes its greatest number, which is no timeout.
    let timeout_ps = (timeout * SECOND_PS as f64) as u64;
    let limits =
        ReplicaLimits { sequences: asked.sequences, tokens: asked.budget, kv_tokens, block: asked.block, timeout_ps };
    limits.check().map_err(CommandError::input)?;
    Ok(limits)
}

/// The table of a replay.
fn figures(asked: &ReplayLlm, trace: &LlmTrace, played: &PlayedTrace) -> Listing {
    let outcomes = &played.outcomes;
    let served: Vec<(usize, &ServedTokens)> = (0..)
        .zip(outcomes)
        .filter_map(|(at, outcome)| match outcome {
            LlmOutcome::Served(served) => Some((at, served)),
            LlmOutcome::TimedOut | LlmOutcome::TooLong => None,
        })
        .collect();
    let count = |is: fn(&LlmOutcome) -> bool| Cell::Whole(outcomes.iter().filter(|outcome| is(outcome)).count() as i64);
    let columns = ["figure", "replayed", "measured", "difference"];
    let mut rows = Listing::new(if asked.check { &columns } else { &columns[..2] });
    let mut add = |figure: String, value: Cell, measured: Option<(f64, f64)>| {
        let mut row = vec![figure.into(), value];
        if asked.check {
            row.push(Cell::option(measured, |(_, known)| Cell::Number(known, 4)));
            row.push(Cell::option(measured, |(found, known)| Cell::Number(found / known - 1.0, 4)));
        }
        rows.push(row);
    };
    let kept = |served: &ServedTokens| {
        served.ttft_secs() <= asked.ttft && served.tpot_secs().is_none_or(|tpot| tpot <= asked.tpot)
    };
    let good = served.iter().filter(|(_, served)| kept(served)).count();
    let span = served.iter().map(|(_, served)| served.last_ps).max().unwrap_or(0) as f64 / SECOND_PS as f64;
    add("requests".into(), Cell::Whole(outcomes.len() as i64), None);
    add("served".into(), Cell::Whole(served.len() as i64), None);
    add("timed_out".into(), count(|outcome| matches!(outcome, LlmOutcome::TimedOut)), None);
    add("too_long".into(), count(|outcome| matches!(outcome, LlmOutcome::TooLong)), None);
    let preemptions = served.iter().map(|(_, served)| i64::from(served.preemptions)).sum();
    add("preemptions".into(), Cell::Whole(preemptions), None);
    add("reused_tokens".into(), Cell::Whole(played.reused_tokens as i64), None);
    if let Some((hours, starts)) = played.scaled {
        add("replica_hours".into(), Cell::Number(hours, 3), None);
        add("cold_starts".into(), Cell::Whole(i64::from(starts)), None);
    }
    add("within_both_objectives".into(), Cell::Number(good as f64 / outcomes.len() as f64, 4), None);
    add("goodput_per_sec".into(), Cell::Number(if span > 0.0 { good as f64 / span } else { 0.0 }, 4), None);
    let measured = |at: usize| trace.measured.get(at);
    let each = |at: usize| {
        let known = measured(at)?;
        let gaps = trace.requests[at].output.checked_sub(1).filter(|&gaps| gaps > 0)?;
        Some((known.latency_secs - known.ttft_secs) / f64::from(gaps))
    };
    let both: [(&str, Vec<f64>, Vec<f64>); 3] = [
        (
            "ttft_secs",
            served.iter().map(|(_, served)| served.ttft_secs()).collect(),
            served.iter().filter_map(|(at, _)| Some(measured(*at)?.ttft_secs)).collect(),
        ),
        (
            "tpot_secs",
            served.iter().filter_map(|(_, served)| served.tpot_secs()).collect(),
            served.iter().filter_map(|(at, _)| each(*at)).collect(),
        ),
        (
            "latency_secs",
            served.iter().map(|(_, served)| served.latency_secs()).collect(),
            served.iter().filter_map(|(at, _)| Some(measured(*at)?.latency_secs)).collect(),
        ),
    ];
    let both = both.into_iter().chain(played.handover_secs.iter().map(|secs| ("handover_secs", secs.clone(), vec![])));
    for (name, found, known) in both {
        let [found, known] = [summary(found), summary(known)];
        for (at, (figure, value)) in found.iter().enumerate() {
            let known = known.get(at).map(|(_, known)| (*value, *known));
            add(format!("{name}_{figure}"), Cell::Number(*value, 4), known);
        }
    }
    rows
}

/// Mean and percentiles of values, between two neighbours on a straight line; empty where there are none.
fn summary(mut values: Vec<f64>) -> Vec<(String, f64)> {
    if values.is_empty() {
        return Vec::new();
    }
    values.sort_by(f64::total_cmp);
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let percentile = |&share: &f64| Some((format!("p{}", share * 100.0), quantile(&values, share)?));
    let percentiles = PERCENTILES.iter().filter_map(percentile);
    std::iter::once(("mean".to_owned(), mean)).chain(percentiles).collect()
}
