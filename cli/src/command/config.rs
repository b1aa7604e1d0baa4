//! `goodput config`: experiment files.

use std::fs;
use std::process::ExitCode;

use goodput_train::config::Experiment;

use crate::args::Config;
use crate::config;
use crate::fault::Fault;
use crate::output::{print, say};

/// Runs it.
pub fn run(verb: &Config) -> Result<ExitCode, Fault> {
    match verb {
        Config::Check { files } => {
            let mut failed = None;
            for file in files {
                match config::read(file, &[]) {
                    Ok(_) => say(&format!("{}: ok", file.display())),
                    Err(fault) => failed = Some(fault.report()),
                }
            }
            Ok(failed.unwrap_or(ExitCode::SUCCESS))
        }
        Config::Show { file, sets } => {
            let experiment = config::read(file, sets)?;
            print(&resolved(&experiment)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Config::Schema { write } => {
            let schema = schemars::schema_for!(Experiment);
            let text = serde_json::to_string_pretty(&schema).map_err(Fault::failed)? + "\n";
            match write {
                None => print(&text)?,
                Some(dir) => {
                    let path = dir.join("experiment.schema.json");
                    let written = fs::create_dir_all(dir).and_then(|()| fs::write(&path, text));
                    written.map_err(|error| Fault::input(format!("cannot write {}: {error}", path.display())))?;
                    say(&format!("wrote {}", path.display()));
                }
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The experiment as TOML with every default filled in.
pub fn resolved(experiment: &Experiment) -> Result<String, Fault> {
    toml::to_string_pretty(experiment).map_err(Fault::failed)
}
