//! External programs as policies of a command.

use goodput_agents::policies::external::{ExternalProgram, Faults};
use goodput_configs::policies::EXTERNAL;
use goodput_console::{CommandError, say};
use goodput_env::gym::Layout;

/// The program that `name` names, where it names one; `None` for a policy of another kind.
///
/// # Errors
/// A name of a program that is malformed, and a program or module that is not there.
pub fn named(name: &str) -> Result<Option<ExternalProgram>, CommandError> {
    if !ExternalProgram::is_meant_by(name) {
        return Ok(None);
    }
    let program = ExternalProgram::by_name(name)
        .ok_or_else(|| CommandError::input(format!("{name:?} names no program")).with_help(EXTERNAL))?;
    program.find().map_err(|missing| CommandError::input(format!("{name}: {missing}")))?;
    Ok(Some(program))
}

/// Shows that the program starts and speaks the protocol.
///
/// # Errors
/// The program cannot be started, or does not greet.
pub fn check(program: &ExternalProgram, layout: &Layout, types: &[String]) -> Result<(), CommandError> {
    program.check(layout, types).map_err(|error| {
        CommandError::input(format!("{}: {error}", program.name())).with_help(started_as(&program.command().join(" ")))
    })
}

/// Remedy for a program that does not decide: its name is right, so that only the program itself says more.
pub fn started_as(command: &str) -> String {
    format!("it was started as `{command}`; what it wrote to standard error is above")
}

/// Says how many turns the program lost, and why.
pub fn warn_of_faults(program: &ExternalProgram) {
    let Faults { turns, abandoned, last, .. } = program.faults();
    let Some(last) = last else { return };
    let gave_up = if abandoned == 0 { String::new() } else { format!(", and was given up in {abandoned} runs") };
    say(&format!(
        "warning: {} lost {turns} turns, each of which ended the round{gave_up}; the last fault: {last}",
        program.name()
    ));
}
