//! Language models among the services of a scenario: `[services.llm]`.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use goodput_datasets::import::llm_requests;
use goodput_datasets::llm::{LlmFacts, ReplicaEntry};
use goodput_datasets::synth::{TokenLengths, TokenTrace};
use goodput_env::model::serving::llm::{
    BatchTime, ColdStart, MeasureError, ReplicaLimits, TokenLoad, TokenObjectives, TokenServer, measure,
};
use goodput_env::service::{RateSeries, Service, ServingProfile, Slo, TokenProfile};
use goodput_env::time::SimTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ServiceConfig, SetupError};
use crate::error::CheckError;
use crate::serving::{SloConfig, within};

/// Requests to a language model, and its server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LlmConfig {
    /// Lengths of the requests: the name of a public trace, a distribution, or a trace in a file.
    pub lengths: LengthsConfig,
    /// Most requests that a replica works on at a time (`max_num_seqs` of vLLM).
    #[serde(default = "sequences")]
    pub sequences: u32,
    /// Most tokens of a step (`max_num_batched_tokens` of vLLM).
    #[serde(default = "step_tokens")]
    pub step_tokens: u32,
    /// Parts of a cold start; absent where `cold_start_secs` gives the whole of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_start: Option<ColdStartConfig>,
}

fn sequences() -> u32 {
    256
}

fn step_tokens() -> u32 {
    8192
}

/// Lengths of the requests to a language model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LengthsConfig {
    /// Lognormal lengths with the moments of an hour of a coding service of Azure.
    AzureCode,
    /// Lognormal lengths with the moments of an hour of a conversation service of Azure.
    AzureConversation,
    /// Lognormal lengths with the moments of an hour of the conversation service Kimi.
    MooncakeConversation,
    /// Lengths drawn from lognormal distributions.
    Lognormal(TokenLengths),
    /// Pairs of lengths of a trace in a file, in any format of `goodput data replay-llm`.
    Trace(PathBuf),
}

/// Parts of a cold start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ColdStartConfig {
    /// Time until the replica has its accelerators, seconds.
    pub schedule_secs: f64,
    /// Time to pull its image, seconds.
    pub pull_secs: f64,
    /// Bandwidth at which a replica reads its weights, GB a second.
    pub load_gb_per_sec: f64,
    /// Weights that a replica reads, GB; absent: parameters times the bytes of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights_gb: Option<f64>,
    /// Time to compile and to warm up, seconds.
    pub warm_secs: f64,
}

/// Server of a service that runs a language model, and its objectives.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenService {
    /// Replicas and requests.
    pub server: TokenServer,
    /// Objectives of the requests.
    pub objectives: TokenObjectives,
}

/// Profiles that were measured last. The points of a study differ in other keys, so they share their profiles.
static MEASURED: Mutex<VecDeque<(TokenService, TokenProfile)>> = Mutex::new(VecDeque::new());
/// Number of profiles that are kept.
const KEPT: usize = 16;

impl TokenService {
    /// Measured profile of a replica.
    fn profile(&self) -> Result<TokenProfile, MeasureError> {
        let kept = || MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, profile)) = kept().iter().find(|(of, _)| of == self) {
            return Ok(profile.clone());
        }
        let profile = measure(&self.server, &self.objectives)?;
        let mut kept = kept();
        kept.push_back((self.clone(), profile.clone()));
        if kept.len() > KEPT {
            kept.pop_front();
        }
        Ok(profile)
    }
}

/// Number of pairs of lengths that stand for a distribution.
const SAMPLE: usize = 8192;
/// Tokens of a block of a replica's memory: the default of vLLM.
const BLOCK_TOKENS: u32 = 16;

/// The service of a language model, and its server. No rate of requests is known yet.
///
/// # Errors
/// [`SetupError`] naming the key.
pub(super) fn service(config: &ServiceConfig, replica: &ReplicaEntry) -> Result<(Service, TokenService), SetupError> {
    let llm = config.llm.as_ref().ok_or_else(|| {
        let expected = "a table with `lengths`, as in llm = { lengths = \"azure-conversation\" }";
        CheckError::value("services.llm", "absent", expected)
    })?;
    let devices = replica.configuration.devices();
    own_keys_only(config, devices)?;
    let (least, most) = (config.min_replicas, config.max_replicas);
    within("services.min_replicas", f64::from(least), 0.0..=f64::from(most), "0 to max_replicas")?;
    within("services.drain_secs", config.drain_secs, 0.0..=1e6, "0 to 1000000")?;
    within("services.arrival_cv2", config.arrival_cv2, 0.0..=100.0, "0 to 100")?;
    let objectives = config.slo.of_tokens()?;
    let load = TokenLoad { lengths: llm.lengths.pairs()?, arrival_cv2: config.arrival_cv2 };
    let limits = llm.limits(replica);
    let step = BatchTime::new(&replica.step, llm.step_tokens.clamp(1, 1 << 20)).map_err(|error| impossible(&error))?;
    let runs = TokenService { server: TokenServer { load, limits, step }, objectives };
    let tokens = runs.profile().map_err(|error| unmeasured(&error))?;
    let kind = accelerator(replica).to_owned();
    let service = Service {
        name: config.name.clone(),
        tenant: config.tenant,
        rates: RateSeries::default(),
        arrival_cv2: config.arrival_cv2,
        work_cv2: 0.0,
        profiles: BTreeMap::from([(kind.clone(), ServingProfile::Tokens(Box::new(tokens)))]),
        reference: kind,
        gpus_per_replica: devices,
        slo: Slo {
            class: config.slo.class.clone(),
            latency: SimTime::from_secs_f64(objectives.ttft_secs),
            target: objectives.target,
        },
        cold_start: SimTime::from_secs_f64(llm.cold_start_secs(config, replica)?),
        drain: SimTime::from_secs_f64(config.drain_secs),
        min_replicas: least,
        max_replicas: most,
    };
    Ok((service, runs))
}

/// Name of the accelerator type of a replica: that of its system, without the form of the module.
fn accelerator(replica: &ReplicaEntry) -> &str {
    let system = replica.configuration.system.as_str();
    system.strip_suffix("_sxm").unwrap_or(system)
}

/// Refuses the keys that a language model does not know.
fn own_keys_only(config: &ServiceConfig, devices: u32) -> Result<(), CheckError> {
    let value = |key: &'static str, found: String, expected: &str| Err(CheckError::value(key, found, expected));
    if !config.profiles.is_empty() {
        return value("services.profiles", "given".into(), "none: the replica of a language model has its speed");
    }
    if config.reference.is_some() {
        return value("services.reference", "given".into(), "none: the system of the replica is the reference");
    }
    if config.work_cv2 != 0.0 {
        return value("services.work_cv2", config.work_cv2.to_string(), "none: `lengths` are the work of a request");
    }
    if ![1, devices].contains(&config.gpus_per_replica) {
        let expected = format!("{devices}, which a replica holds, or none");
        return value("services.gpus_per_replica", config.gpus_per_replica.to_string(), &expected);
    }
    Ok(())
}

fn impossible(error: &impl ToString) -> CheckError {
    CheckError::at("services.model", error.to_string())
}

fn unmeasured(error: &MeasureError) -> CheckError {
    let key = match error {
        MeasureError::Limits(_) => "services.llm",
        MeasureError::TooLong { .. } => "services.llm.lengths",
        MeasureError::Objective { name: "ttft", .. } => "services.slo.ttft_ms",
        MeasureError::Objective { .. } => "services.slo.tpot_ms",
    };
    let remedy = match error {
        MeasureError::Limits(_) => "step_tokens are at least sequences, and both at least 1",
        MeasureError::TooLong { .. } => "choose shorter lengths, or a replica with more memory",
        MeasureError::Objective { .. } => "choose a longer objective, or a faster replica",
    };
    CheckError { remedy: Some(remedy), ..CheckError::at(key, format!("{key}: {error}")) }
}

impl LlmConfig {
    /// Limits of a replica with this server.
    pub(super) fn limits(&self, replica: &ReplicaEntry) -> ReplicaLimits {
        ReplicaLimits {
            sequences: self.sequences.min(1 << 20),
            tokens: self.step_tokens.min(1 << 20),
            kv_tokens: replica.kv_tokens,
            block: BLOCK_TOKENS,
            timeout_ps: u64::MAX,
        }
    }

    fn cold_start_secs(&self, config: &ServiceConfig, replica: &ReplicaEntry) -> Result<f64, CheckError> {
        const KEY: &str = "services.llm.cold_start";
        let (whole, parts) = (config.cold_start_secs, self.cold_start);
        let parts = match (whole, parts) {
            (Some(secs), None) => {
                within("services.cold_start_secs", secs, 0.0..=1e6, "0 to 1000000")?;
                return Ok(secs);
            }
            (None, Some(parts)) => parts,
            (None, None) => return Err(CheckError::value(KEY, "absent", "its parts, or cold_start_secs")),
            (Some(_), Some(_)) => {
                return Err(CheckError::value(KEY, "given", "its parts, or cold_start_secs, not both"));
            }
        };
        let cold = ColdStart {
            schedule_secs: parts.schedule_secs,
            pull_secs: parts.pull_secs,
            weights_gb: parts.weights_gb.map_or_else(|| weights_gb(replica), Ok)?,
            load_gb_per_sec: parts.load_gb_per_sec,
            warm_secs: parts.warm_secs,
        };
        let each = [cold.schedule_secs, cold.pull_secs, cold.weights_gb, cold.warm_secs];
        let is_possible = each.iter().all(|part| *part >= 0.0) && cold.load_gb_per_sec > 0.0;
        if !(is_possible && cold.secs() <= 1e6) {
            return Err(CheckError::value(KEY, format!("{} seconds in all", cold.secs()), "parts of at least 0"));
        }
        Ok(cold.secs())
    }
}

/// Weights of a replica, GB: parameters, in thousands of millions, times the bytes of one.
fn weights_gb(replica: &ReplicaEntry) -> Result<f64, CheckError> {
    let configuration = &replica.configuration;
    let facts = LlmFacts::shipped().model(&configuration.model);
    let absent = || CheckError::value("services.llm.cold_start.weights_gb", "absent", "the GB that a replica reads");
    facts.map(|model| model.parameters * configuration.precision.bytes()).ok_or_else(absent)
}

impl LengthsConfig {
    /// Pairs of tokens of a prompt and of an answer.
    pub(super) fn pairs(&self) -> Result<Vec<(u32, u32)>, SetupError> {
        let lengths = match self {
            Self::AzureCode => TokenTrace::AzureCode.lengths(),
            Self::AzureConversation => TokenTrace::AzureConversation.lengths(),
            Self::MooncakeConversation => TokenTrace::MooncakeConversation.lengths(),
            Self::Lognormal(lengths) => *lengths,
            Self::Trace(path) => {
                let (trace, _) = llm_requests::read(path)?;
                return Ok(trace.requests.iter().map(|request| (request.input, request.output)).collect());
            }
        };
        let refused = |error| CheckError::at("services.llm.lengths", format!("services.llm.lengths: {error}"));
        Ok(lengths.sample(SAMPLE).map_err(refused)?)
    }
}

impl SloConfig {
    /// Objectives of a language model.
    fn of_tokens(&self) -> Result<TokenObjectives, CheckError> {
        if let Some(ms) = self.latency_ms {
            let expected = "ttft_ms and tpot_ms in its place: the model is a language model";
            return Err(CheckError::value("services.slo.latency_ms", ms, expected));
        }
        within("services.slo.target", self.target, 0.5..=0.999_99, "0.5 to 0.99999")?;
        let secs = |key: &'static str, ms: Option<f64>, least: f64, expected: &str| {
            let ms = ms.ok_or_else(|| CheckError::value(key, "absent", expected))?;
            within(key, ms, least..=1e9, expected)?;
            Ok::<_, CheckError>(ms / 1e3)
        };
        Ok(TokenObjectives {
            ttft_secs: secs("services.slo.ttft_ms", self.ttft_ms.map(f64::from), 1.0, "1 to 1000000000")?,
            tpot_secs: secs("services.slo.tpot_ms", self.tpot_ms, 1e-3, "0.001 to 1000000000")?,
            target: self.target,
        })
    }
}
