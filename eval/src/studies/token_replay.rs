//! Services of language models in a run, beside a replay of every request on the replica model.
//!
//! A run counts requests by a table of what replicas keep at a load. This study draws the requests of a whole run one
//! by one, plays them on as many replicas as took requests at each moment of the run, and sets both counts side by
//! side.

use std::sync::Arc;

use goodput_configs::scenario::TokenService;
use goodput_env::model::serving::llm::request::SECOND_PS;
use goodput_env::model::serving::llm::{
    LlmOutcome, LlmRequest, ReadyFrom, ReplicaLimitsError, ServedTokens, TokenObjectives, TokenServer,
};
use goodput_env::policy::Policy;
use goodput_env::scenario::Scenario;
use goodput_env::seed::{Stream, keyed};
use goodput_env::service::Service;
use goodput_env::sim::{SimError, Simulator, Status};
use goodput_env::state::ServiceRecord;
use goodput_env::time::SimTime;
use thiserror::Error;

/// Shares of requests that kept the objectives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokensKept {
    /// Share with a time to the first token (TTFT) within its objective.
    pub ttft: f64,
    /// Share with a time of a further token (TPOT) within its objective.
    pub tpot: f64,
    /// Share with both within their objectives.
    pub both: f64,
}

/// A service in a run and in the replay.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayedService {
    /// Name of the service.
    pub name: String,
    /// Requests of the replay.
    pub requests: u64,
    /// Shares that the run counted.
    pub counted: TokensKept,
    /// Shares of the replay.
    pub replayed: TokensKept,
}

/// Reason for which there is no replay.
#[derive(Debug, Error)]
pub enum TokenReplayError {
    /// The run failed.
    #[error(transparent)]
    Run(#[from] Box<SimError>),
    /// A replica cannot work.
    #[error(transparent)]
    Limits(#[from] ReplicaLimitsError),
}

/// Runs `policy`, and replays the requests of the services that have a server. Requests are drawn from the rates of the
/// scenario and from its seed.
///
/// # Errors
/// [`TokenReplayError`] where the run or a replica fails.
pub fn replay(
    scenario: &Arc<Scenario>,
    services: &[Option<Arc<TokenService>>],
    policy: &mut dyn Policy,
) -> Result<Vec<ReplayedService>, TokenReplayError> {
    let mut courses = vec![Vec::new(); scenario.workload.services.len()];
    let (records, end) = run(scenario, policy, &mut courses)?;
    let mut replayed = Vec::new();
    for (at, service) in scenario.workload.services.iter().enumerate() {
        let Some(TokenService { server, objectives }) = services.get(at).and_then(Option::as_deref) else { continue };
        let requests = requests(service, server, end, scenario.seed, at as u64);
        let outcomes = server.replay(&requests, &courses[at])?;
        replayed.push(ReplayedService {
            name: service.name.clone(),
            requests: requests.len() as u64,
            counted: counted(&records[at]),
            replayed: kept(&outcomes, objectives),
        });
    }
    Ok(replayed)
}

/// Runs `policy` to the end, and writes down when the number of ready replicas of each service changes.
fn run(
    scenario: &Arc<Scenario>,
    policy: &mut dyn Policy,
    courses: &mut [Vec<ReadyFrom>],
) -> Result<(Vec<ServiceRecord>, SimTime), Box<SimError>> {
    let mut simulator = Simulator::new(scenario.clone());
    while simulator.run_until_decision()? == Status::Decision {
        // A replica that is ready is a reason to decide, and one that goes is part of a plan.
        note(&simulator, courses);
        let plan = policy.decide(&simulator.view());
        simulator.apply(&plan)?;
        simulator.wake_at(policy.wake_at());
        note(&simulator, courses);
    }
    let outcome = simulator.outcome();
    Ok((outcome.services, outcome.end))
}

fn note(simulator: &Simulator, courses: &mut [Vec<ReadyFrom>]) {
    for (service, course) in simulator.view().services().zip(courses) {
        let replicas = service.state.ready();
        if course.last().map_or(0, |last| last.replicas) != replicas {
            course.push(ReadyFrom { at_ps: picoseconds(simulator.now()), replicas });
        }
    }
}

fn picoseconds(at: SimTime) -> u64 {
    at.as_millis().max(0) as u64 * (SECOND_PS / 1000)
}

/// Requests of a service until `end`.
fn requests(service: &Service, server: &TokenServer, end: SimTime, seed: u64, key: u64) -> Vec<LlmRequest> {
    let mut random = keyed(seed, Stream::Requests, key);
    let mut requests = Vec::new();
    let step = picoseconds(service.rates.step());
    for (at, &milli) in (0_u64..).zip(service.rates.values()) {
        let (from_ps, until_ps) = (at * step, ((at + 1) * step).min(picoseconds(end)));
        if milli > 0 && from_ps < until_ps {
            server.load.extend(&mut requests, f64::from(milli) / 1e3, (from_ps, until_ps), &mut random);
        }
    }
    requests
}

fn counted(record: &ServiceRecord) -> TokensKept {
    let late = record.late.unwrap_or_default();
    let share = |missed: u64| 1.0 - missed as f64 / record.requests.max(1) as f64;
    TokensKept { ttft: share(late.ttft), tpot: share(late.tpot), both: share(record.violated) }
}

fn kept(outcomes: &[LlmOutcome], objectives: &TokenObjectives) -> TokensKept {
    let served = |outcome: &LlmOutcome| match outcome {
        LlmOutcome::Served(served) => Some(*served),
        LlmOutcome::TimedOut | LlmOutcome::TooLong => None,
    };
    let ttft = |one: &ServedTokens| one.ttft_secs() <= objectives.ttft_secs;
    let tpot = |one: &ServedTokens| one.tpot_secs().is_none_or(|secs| secs <= objectives.tpot_secs);
    let share = |is: &dyn Fn(&ServedTokens) -> bool| {
        let count = outcomes.iter().filter_map(served).filter(|one| is(one)).count();
        count as f64 / outcomes.len().max(1) as f64
    };
    TokensKept { ttft: share(&ttft), tpot: share(&tpot), both: share(&|one| ttft(one) && tpot(one)) }
}
