//! `goodput config`: configuration files of every kind.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use goodput_configs::experiment::{Experiment, points};
use goodput_configs::federation::FederationConfig;
use goodput_configs::forecast::{ForecastConfig, ForecasterExperiment, WorthConfig};
use goodput_configs::kind::Kind;
use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::node_agent::NodeAgentConfig;
use goodput_configs::reader::Document;
use goodput_configs::schema;
use goodput_console::{CommandError, print, say};
use goodputd::config_file::{self, command_error};
use schemars::Schema;

use crate::args::Config;

/// Runs `goodput config` and gives its exit code.
pub fn run(verb: &Config) -> Result<ExitCode, CommandError> {
    match verb {
        Config::Check { files, sets } => Ok(config_file::check(files, |file| read_any(file, sets))),
        Config::Show { file, sets } => {
            print(&read_any(file, sets)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Config::Schema { kind, write } => {
            match write {
                None => print(&text(&schema::of(kind.unwrap_or(Kind::Experiment)))?)?,
                Some(dir) => {
                    let kinds = kind.map_or(Kind::ALL.to_vec(), |kind| vec![kind]);
                    kinds.into_iter().try_for_each(|kind| save(dir, kind))?;
                }
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Reads and checks a file of any kind: the text with every default filled in.
fn read_any(path: &Path, sets: &[String]) -> Result<String, CommandError> {
    let document = Document::read(path, sets).map_err(command_error)?;
    let text = match document.kind() {
        // Every combination of its settings is checked, not the file alone.
        Kind::Experiment => points(&document).and_then(|_| config_file::resolved::<Experiment>(&document)),
        Kind::Federation => config_file::resolved::<FederationConfig>(&document),
        Kind::ForecastStudy => config_file::resolved::<ForecastConfig>(&document),
        Kind::WorthStudy => config_file::resolved::<WorthConfig>(&document),
        Kind::ForecasterTraining => config_file::resolved::<ForecasterExperiment>(&document),
        Kind::Deployment => config_file::resolved::<Deployment>(&document),
        Kind::NodeAgent => config_file::resolved::<NodeAgentConfig>(&document),
    };
    text.map_err(command_error)
}

fn text(schema: &Schema) -> Result<String, CommandError> {
    Ok(serde_json::to_string_pretty(schema).map_err(CommandError::failed)? + "\n")
}

fn save(dir: &Path, kind: Kind) -> Result<(), CommandError> {
    let (path, text) = (dir.join(kind.schema_file()), text(&schema::of(kind))?);
    let written = fs::create_dir_all(dir).and_then(|()| fs::write(&path, text));
    written.map_err(|error| CommandError::input(format!("cannot write {}: {error}", path.display())))?;
    say(&format!("wrote {}", path.display()));
    Ok(())
}

/// The file as TOML with every default filled in.
pub fn resolved(config: &impl serde::Serialize) -> Result<String, CommandError> {
    toml::to_string_pretty(config).map_err(CommandError::failed)
}
