//! A replay on replicas that prefill only and replicas that decode only.

use goodput_console::CommandError;
use goodput_datasets::llm::{LlmFacts, LlmTrace};
use goodput_env::model::serving::llm::request::SECOND_PS;
use goodput_env::model::serving::llm::{BatchTime, KvLink, LlmPools, ReplicaLimits, ReplicaPool, StepCosts};

use super::{PlayedTrace, entry, on_device, prefixes};
use crate::args::ReplayLlm;

/// Bytes of an element of keys and values: 16-bit numbers, as in the memory of the replicas of the catalog.
const ELEMENT_BYTES: u32 = 2;
/// Bytes a second of one Gbit/s.
const GBPS_BYTES: f64 = 1e9 / 8.0;
/// Longest time in which the keys and values of all requests move one after another, seconds: 64 bits of picoseconds
/// end at 1.8e7 seconds.
const LONGEST_SECS: u128 = 300_000;

/// Plays a trace on `count` replicas that prefill and on `asked.replicas` that decode. `costs` are those of a
/// step of --replica or --costs, and `step` its time.
pub(super) fn play(
    asked: &ReplayLlm,
    count: u32,
    trace: &LlmTrace,
    limits: ReplicaLimits,
    costs: &StepCosts,
    step: BatchTime,
) -> Result<PlayedTrace, CommandError> {
    let link = link(asked, trace)?;
    let prefill = prefill(asked, count, limits, costs)?;
    let decode = ReplicaPool { count: asked.replicas, limits, step };
    let mut pools = LlmPools::new(&prefill, &decode, link).map_err(CommandError::input)?;
    if let Some((block, most)) = prefixes(asked, trace) {
        pools = pools.with_prefixes(block, most);
    }
    let replay = pools.replay(&trace.requests, &trace.blocks);
    let secs = replay.handover_ps.iter().map(|&ps| ps as f64 / SECOND_PS as f64);
    Ok(PlayedTrace {
        outcomes: replay.outcomes,
        reused_tokens: pools.reused_tokens(),
        handover_secs: Some(secs.collect()),
        scaled: None,
    })
}

/// The replicas that prefill: as those that decode, where no option says otherwise.
fn prefill(
    asked: &ReplayLlm,
    count: u32,
    limits: ReplicaLimits,
    costs: &StepCosts,
) -> Result<ReplicaPool, CommandError> {
    let tokens = asked.pools.prefill_budget.unwrap_or(limits.tokens);
    let (costs, kv_tokens) = match &asked.pools.prefill_replica {
        Some(name) => {
            let entry = entry("--prefill-replica", name)?;
            if let Some(decode) = &asked.replica {
                one_model(&entry.configuration.model, &self::entry("--replica", decode)?.configuration.model)?;
            }
            (on_device(entry.step, asked.memory, asked.compute), asked.kv_tokens.unwrap_or(entry.kv_tokens))
        }
        None => (*costs, limits.kv_tokens),
    };
    let step = BatchTime::new(&costs, tokens).map_err(CommandError::input)?;
    Ok(ReplicaPool { count, limits: ReplicaLimits { tokens, kv_tokens, ..limits }, step })
}

/// Refuses pools of two models: keys and values of one are of no use to the other.
fn one_model(prefill: &str, decode: &str) -> Result<(), CommandError> {
    if prefill == decode {
        return Ok(());
    }
    Err(CommandError::input(format!("--prefill-replica runs {prefill}, and --replica runs {decode}"))
        .with_help("give two configurations of one model"))
}

/// Link over which the keys and values move.
fn link(asked: &ReplayLlm, trace: &LlmTrace) -> Result<KvLink, CommandError> {
    let gbps = asked.pools.kv_transfer_gbps;
    if !(1e-3..=1e9).contains(&gbps) {
        return Err(CommandError::input(format!("--kv-transfer-gbps is {gbps}, expected 0.001 to 1e9 Gbit/s"))
            .with_help("--kv-bytes-per-token 0 stands for a transfer that takes no time"));
    }
    let bytes_per_token = match (asked.pools.kv_bytes_per_token, &asked.replica) {
        (Some(bytes), _) => bytes,
        (None, Some(name)) => {
            let model = LlmFacts::shipped().model(&entry("--replica", name)?.configuration.model);
            let elements = model.map(|model| model.kv_elements);
            elements.map(|elements| elements.saturating_mul(ELEMENT_BYTES)).ok_or_else(missing)?
        }
        (None, None) => return Err(missing()),
    };
    let link = KvLink { bytes_per_token, bytes_per_sec: (gbps * GBPS_BYTES) as u64 };
    let all: u128 = trace.requests.iter().map(|request| u128::from(link.transfer_ps(request.input))).sum();
    let secs = all / u128::from(SECOND_PS);
    if secs > LONGEST_SECS {
        return Err(CommandError::input(format!(
            "the keys and values of all prompts move in {secs} s, one after another, expected at most {LONGEST_SECS} s"
        ))
        .with_help("give fewer --kv-bytes-per-token, or more --kv-transfer-gbps"));
    }
    Ok(link)
}

fn missing() -> CommandError {
    CommandError::input("the bytes of the keys and values of a token are not known").with_help(
        "give --kv-bytes-per-token: 2 x layers x heads of keys and values x size of a head x bytes of a number",
    )
}
