//! The policy of one run, decided by a process.

use goodput_env::gym::{ExpectedPeak, Layout};
use goodput_env::plan::Plan;
use goodput_env::policy::{Policy, Scope};
use goodput_env::view::ClusterView;

use super::patience::{Patience, Turn};
use super::process::{Introduction, PolicyProcess, ProcessError};
use super::program::ExternalProgram;
use crate::policies::rounds::RoundPlayer;

/// Policy of one run, decided by a process of its own.
pub struct ExternalPolicy {
    program: ExternalProgram,
    greeting: Introduction,
    process: Option<PolicyProcess>,
    patience: Patience,
    player: RoundPlayer,
}

impl ExternalPolicy {
    /// Policy of `program` on observations of `layout` in the run of `seed`. `types` names the distinguished
    /// accelerator types. The process starts with the first decision.
    pub fn new(program: ExternalProgram, layout: &Layout, types: &[String], seed: u64) -> Self {
        let greeting = Introduction::new(layout, types, seed);
        Self { program, greeting, process: None, patience: Patience::default(), player: RoundPlayer::new(layout) }
    }

    /// Policy with another expectation of the load of services than yesterday's load.
    #[must_use]
    pub fn with_expected_peak(mut self, expected: ExpectedPeak) -> Self {
        self.player = self.player.with_expected_peak(expected);
        self
    }
}

impl Policy for ExternalPolicy {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let Self { program, greeting, process, patience, player } = self;
        let mut turn = None;
        let mut lost = false;
        let plan = player.play(view, |observation, mask| {
            lost |= *turn.get_or_insert_with(|| patience.turn()) == Turn::Rested;
            if !lost {
                match ask(program, greeting, process, observation, mask) {
                    Ok(action) => return action,
                    Err(error) => {
                        lost = true;
                        // A process that has given a forbidden action speaks the protocol, and goes on.
                        if !matches!(error, ProcessError::Forbidden(_)) {
                            *process = None;
                        }
                        patience.strain();
                        program.note(|faults| {
                            faults.abandoned += u64::from(patience.given_up());
                            faults.last = Some(error.to_string());
                        });
                    }
                }
            }
            // A lost turn ends the round, or does the least that lets it end.
            let wait = mask.len() - 1;
            if mask[wait] == 1 { wait } else { mask.iter().position(|&allowed| allowed == 1).unwrap_or(wait) }
        });
        if lost {
            program.note(|faults| faults.turns += 1);
        } else if turn.is_some() {
            patience.reward();
        }
        plan
    }

    fn scope(&self) -> Scope {
        self.player.scope()
    }
}

/// Asks the process, started where there is none, for an action.
fn ask(
    program: &ExternalProgram,
    greeting: &Introduction,
    process: &mut Option<PolicyProcess>,
    observation: &[f32],
    mask: &[u8],
) -> Result<usize, ProcessError> {
    let process = match process {
        Some(process) => process,
        None => process.insert(program.start(greeting)?),
    };
    let action = process.ask(observation, mask, program.answer())?;
    if mask.get(action) == Some(&1) { Ok(action) } else { Err(ProcessError::Forbidden(action)) }
}
