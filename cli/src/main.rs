//! The one binary: `goodput`.

use std::process::ExitCode;

fn main() -> ExitCode {
    goodput_cli::main_with(&[])
}
