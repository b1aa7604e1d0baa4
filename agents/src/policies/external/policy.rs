//! The policy of one run, decided by a process.

use std::time::Instant;

use goodput_env::gym::{Action, ExpectedPeak, Layout, Verb};
use goodput_env::job::JobId;
use goodput_env::plan::Plan;
use goodput_env::policy::{Policy, Scope};
use goodput_env::view::ClusterView;
use serde::Serialize;

use super::patience::{Patience, Turn};
use super::process::PolicyProcess;
use super::program::{ExternalProgram, START};
use super::protocol::{Introduction, ProcessError, ProgramAnswer};
use crate::policies::rounds::RoundPlayer;

/// Policy of one run, decided by a process of its own.
pub struct ExternalPolicy {
    asked: Asked,
    patience: Patience,
    layout: Layout,
    types: Vec<String>,
    player: RoundPlayer,
}

/// Action of a round as a program chose it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChosenAction {
    /// Job that the action is about; `None` for services, loans and the end of the round.
    #[serde(skip)]
    pub id: Option<JobId>,
    /// Name of the job.
    pub job: Option<String>,
    /// Action in words, such as `grow` or `wait`.
    pub action: String,
    /// Reason in the program's words; empty where the program gave none.
    pub reason: String,
}

impl ExternalPolicy {
    /// Policy of `program` on observations of `layout` in the run of `seed`. `types` names the distinguished
    /// accelerator types. The process of a live program begins to start now, and that of others with the first
    /// decision.
    pub fn new(program: ExternalProgram, layout: &Layout, types: &[String], seed: u64) -> Self {
        let live = program.turn().is_some();
        let patience = if live { Patience::of_cluster() } else { Patience::of_run() };
        let greeting = Introduction::new(layout, types, seed);
        // A program that cannot be started says so at the first decision.
        let process = live.then(|| program.start(&greeting).ok()).flatten();
        let asked = Asked { program, greeting, process };
        Self { asked, patience, layout: *layout, types: types.to_vec(), player: RoundPlayer::new(layout) }
    }

    /// Policy with another expectation of the load of services than yesterday's load.
    #[must_use]
    pub fn with_expected_peak(mut self, expected: ExpectedPeak) -> Self {
        self.player = self.player.with_expected_peak(expected);
        self
    }

    /// Decides as [`Policy::decide`] does, and says which actions the program chose, with its reasons.
    pub fn explain(&mut self, view: &ClusterView<'_>) -> (Plan, Vec<ChosenAction>) {
        let (slots, _) = self.player.look(view);
        let mut answers = Vec::new();
        let plan = self.decide_watched(view, |answer| answers.push(answer));
        let chosen = |ProgramAnswer { action, reason }: ProgramAnswer| {
            let (job, verb) = match Action::decode(action, &self.layout) {
                Some(Action::Change { slot, verb: Verb::Place(kind) }) => {
                    let kind = self.types.get(kind.index()).map_or("this type", String::as_str);
                    (slots.get(slot), format!("place on {kind}"))
                }
                Some(Action::Change { slot, verb }) => (slots.get(slot), verb.to_string()),
                _ => (None, self.asked.greeting.action_names.get(action).cloned().unwrap_or_default()),
            };
            let id = job.map(|slot| slot.job);
            let name = id.and_then(|id| view.job(id)).map(|job| job.request().name.clone());
            ChosenAction { id, job: name, action: verb, reason }
        };
        (plan, answers.into_iter().map(chosen).collect())
    }

    /// Decides, and shows `watch` each answer of the program.
    fn decide_watched(&mut self, view: &ClusterView<'_>, mut watch: impl FnMut(ProgramAnswer)) -> Plan {
        let Self { asked, patience, player, .. } = self;
        let until = asked.program.turn().map(|turn| Instant::now() + turn);
        let mut turn = None;
        let mut lost = None;
        let plan = player.play(view, |observation, mask| {
            if *turn.get_or_insert_with(|| patience.turn()) == Turn::Skipped {
                lost = Some(LostRound::Failed);
            }
            if lost.is_none() {
                match asked.ask(observation, mask, until) {
                    Ok(answer) => {
                        let action = answer.action;
                        watch(answer);
                        return action;
                    }
                    Err(error) => lost = Some(asked.lost(&error, patience)),
                }
            }
            // A lost turn ends the round, or does the least that lets it end.
            let wait = mask.len() - 1;
            if mask[wait] == 1 { wait } else { mask.iter().position(|&allowed| allowed == 1).unwrap_or(wait) }
        });
        match lost {
            Some(LostRound::Starting) => asked.program.note(|faults| faults.starting += 1),
            Some(LostRound::Failed) => asked.program.note(|faults| faults.turns += 1),
            None if turn.is_some() => patience.record_success(),
            None => {}
        }
        plan
    }
}

impl Policy for ExternalPolicy {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.decide_watched(view, |_| {})
    }

    fn scope(&self) -> Scope {
        self.player.scope()
    }
}

/// Reason for which a round ended without the program.
#[derive(Clone, Copy)]
enum LostRound {
    /// The process still starts.
    Starting,
    /// The program has failed, or rests after a failure.
    Failed,
}

/// The program that is asked, and its process where one runs.
struct Asked {
    program: ExternalProgram,
    greeting: Introduction,
    process: Option<PolicyProcess>,
}

impl Asked {
    /// Asks the process, started where there is none, for an action. The answer comes before `until`.
    fn ask(&mut self, observation: &[f32], mask: &[u8], until: Option<Instant>) -> Result<ProgramAnswer, ProcessError> {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let process = match &mut self.process {
            Some(process) => process,
            None => self.process.insert(self.program.start(&self.greeting)?),
        };
        // A process that greets late in a turn has the other half of it to answer.
        process.greet(START, left.map_or(START, |left| left / 2))?;
        let limit = until.map_or(self.program.answer(), |until| until.saturating_duration_since(Instant::now()));
        let answer = process.ask(observation, mask, limit.min(self.program.answer())).map_err(|error| {
            match (error, self.program.turn()) {
                (ProcessError::Late(_), Some(turn)) => ProcessError::Slow(turn),
                (error, _) => error,
            }
        })?;
        match mask.get(answer.action) {
            Some(&1) => Ok(answer),
            _ => Err(ProcessError::Forbidden(answer.action)),
        }
    }

    /// Draws the consequences of a fault.
    fn lost(&mut self, error: &ProcessError, patience: &mut Patience) -> LostRound {
        if matches!(error, ProcessError::Starting) {
            return LostRound::Starting;
        }
        // A process that has given a forbidden action speaks the protocol, and goes on.
        if !matches!(error, ProcessError::Forbidden(_)) {
            self.process = None;
        }
        patience.record_fault();
        self.program.note(|faults| {
            faults.abandoned += u64::from(patience.given_up());
            faults.last = Some(error.to_string());
        });
        LostRound::Failed
    }
}
