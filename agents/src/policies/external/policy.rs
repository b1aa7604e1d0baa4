//! The policy of one run, decided by a process.

use goodput_env::gym::{ExpectedPeak, Layout};
use goodput_env::plan::Plan;
use goodput_env::policy::{Policy, Scope};
use goodput_env::view::ClusterView;

use super::process::{Introduction, PolicyProcess, ProcessError};
use super::program::ExternalProgram;
use crate::policies::rounds::RoundPlayer;

/// Most decisions that go by before a program that fails every time is started again.
const LONGEST_REST: u32 = 1024;

/// Policy of one run, decided by a process of its own.
pub struct ExternalPolicy {
    program: ExternalProgram,
    greeting: Introduction,
    process: Option<PolicyProcess>,
    /// Decisions to go by before the next start.
    rest: u32,
    /// Number of decisions that went by before the last start; doubles from fault to fault.
    rested: u32,
    player: RoundPlayer,
}

impl ExternalPolicy {
    /// Policy of `program` on observations of `layout` in the run of `seed`. `types` names the distinguished
    /// accelerator types. The process starts with the first decision.
    pub fn new(program: ExternalProgram, layout: &Layout, types: &[String], seed: u64) -> Self {
        let greeting = Introduction::new(layout, types, seed);
        Self { program, greeting, process: None, rest: 0, rested: 0, player: RoundPlayer::new(layout) }
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
        let Self { program, greeting, process, rest, rested, player } = self;
        let mut lost = *rest > 0;
        *rest = rest.saturating_sub(1);
        player.play(view, |observation, mask| {
            if !lost {
                match ask(program, greeting, process, observation, mask) {
                    Ok(action) => {
                        *rested = 0;
                        return action;
                    }
                    Err(error) => {
                        program.note(&error);
                        if let Some(process) = process.take() {
                            process.kill();
                        }
                        lost = true;
                        (*rest, *rested) = (*rested, (2 * *rested).clamp(1, LONGEST_REST));
                    }
                }
            }
            // A lost turn ends the round, or does the least that lets it end.
            let wait = mask.len() - 1;
            if mask[wait] == 1 { wait } else { mask.iter().position(|&allowed| allowed == 1).unwrap_or(wait) }
        })
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
    process.ask(observation, mask, program.answer())
}
