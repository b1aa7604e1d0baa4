//! `goodput init`: configuration files and sample jobs that ship.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use goodput_configs::names::did_you_mean;
use goodput_configs::shipped::{SHIPPED, ShippedConfig};
use goodput_console::{CommandError, Listing, say};
use goodput_datasets::samples;

use crate::args::Init;

/// Name of the jobs that ship as a sample, which are no configuration.
const JOBS: &str = "advise";

/// Runs `goodput init` and gives its exit code.
pub fn run(args: &Init) -> Result<ExitCode, CommandError> {
    let Some(name) = &args.name else {
        let mut rows = Listing::new(&["name", "about"]);
        for config in SHIPPED {
            rows.push(vec![config.name.into(), config.about().as_str().into()]);
        }
        rows.push(vec![JOBS.into(), "A week of jobs that `goodput advise` gives advice on".into()]);
        rows.print(args.output)?;
        return Ok(ExitCode::SUCCESS);
    };
    if name == JOBS {
        let path = args.to.clone().unwrap_or_else(|| PathBuf::from("jobs.csv"));
        write_new(&path, samples::JOBS)?;
        say(&format!("wrote {}: goodput advise {} --cluster 4x8", path.display(), path.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let config = ShippedConfig::by_name(name).ok_or_else(|| {
        let known = SHIPPED.iter().flat_map(|config| [config.name, config.stem()]).chain([JOBS]);
        CommandError::input(format!("no file that ships is called {name:?}{}", did_you_mean(name, known)))
            .with_help("`goodput init` lists all")
    })?;
    let path = args.to.clone().unwrap_or_else(|| PathBuf::from(format!("{}.toml", config.stem())));
    write_new(&path, config.elsewhere().as_bytes())?;
    say(&format!("wrote {}: {}", path.display(), next(config, &path)));
    Ok(ExitCode::SUCCESS)
}

/// Writes a file that must not be there, so that nothing of the user is lost.
fn write_new(path: &Path, text: &[u8]) -> Result<(), CommandError> {
    let written = OpenOptions::new().write(true).create_new(true).open(path);
    written.and_then(|mut file| file.write_all(text)).map_err(|error| {
        let remedy = match error.kind() {
            ErrorKind::AlreadyExists => "choose another name with --to",
            _ => "choose a folder that exists and may be written to",
        };
        CommandError::input(format!("cannot write {}: {error}", path.display())).with_help(remedy)
    })
}

/// Command that a user runs next.
fn next(config: &ShippedConfig, path: &Path) -> String {
    let file = path.display();
    match config.name {
        "live/node" => format!("goodput live agent --config {file}"),
        "forecast/serve" => format!("goodput config check {file}, then goodput forecast serve {file}"),
        "forecast/global" | "forecast/nhits" => format!("goodput train {file}"),
        "scenario/cross-cluster" => format!("goodput federate {file}"),
        _ => match config.folder() {
            "experiment" => format!("goodput train {file}, or goodput eval {file}"),
            "live" => format!("goodput config check {file}, then goodput live run {file}"),
            "forecast" => format!("goodput forecast compare {file}"),
            _ => format!("goodput eval {file}"),
        },
    }
}
