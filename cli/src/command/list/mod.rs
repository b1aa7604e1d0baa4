//! `goodput list`: policies, metrics, formats and other lists of the program.

mod evaluation;
mod formats;
mod models;
mod policies;
mod presets;

use std::process::ExitCode;

pub use self::evaluation::{metrics, reproductions};
pub use self::formats::{formats, job_table};
pub use self::models::{accelerators, applications, llm_replicas, switch_costs};
pub use self::policies::{parameters, placements, policies, zoo};
pub use self::presets::presets;
use crate::args::{List, What};
use goodput_console::CommandError;

/// Runs `goodput list` and gives its exit code.
pub fn run(args: &List) -> Result<ExitCode, CommandError> {
    if args.parameters && args.what != What::Policies {
        return Err(CommandError::input("--parameters: only policies have them")
            .with_help("goodput list policies --parameters"));
    }
    let rows = match args.what {
        What::Policies if args.parameters => parameters(),
        What::Policies => policies(),
        What::Zoo => zoo()?,
        What::Metrics => metrics(),
        What::Reproductions => reproductions(),
        What::Accelerators => accelerators(),
        What::Applications => applications()?,
        What::LlmReplicas => llm_replicas(),
        What::Placements => placements(),
        What::Presets => presets(),
        What::SwitchCosts => switch_costs(),
        What::Formats => formats(),
    };
    rows.print(args.output)?;
    Ok(ExitCode::SUCCESS)
}
