//! `goodput export`: a trained policy with its model card, to be given away; or a run in the files of MLflow or
//! to a collector of OpenTelemetry.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use goodput_agents::bundle::PolicyBundle;
use goodput_console::{CommandError, say};
use goodput_eval::run::summary::Summary;
use goodput_train::model_card::{ModelCard, command};
use goodput_train::run_dir::RunDir;

use crate::args::Export;
use crate::command::mlflow;
use crate::command::opentelemetry;
use crate::command::run::essential;
use crate::config;

/// Runs `goodput export` and gives its exit code.
pub fn run(args: &Export) -> Result<ExitCode, CommandError> {
    match (&args.to, &args.mlflow, &args.otlp) {
        (Some(to), ..) => policy(&args.run_dir, to),
        (None, Some(store), _) => mlflow::export(&args.run_dir, store),
        (None, None, Some(url)) => opentelemetry::export(&args.run_dir, url),
        (None, None, None) => Err(CommandError::input("name what to export: --to DIR, --mlflow DIR or --otlp URL")),
    }
}

fn policy(run_dir: &Path, to: &Path) -> Result<ExitCode, CommandError> {
    let run = RunDir::open(run_dir).map_err(CommandError::input)?;
    let mut bundle = PolicyBundle::load(&run.path("policy.bundle")).map_err(|error| {
        CommandError::input(error)
            .with_help("`goodput train` leaves a policy.bundle in its directory where the policy passes the gate")
    })?;
    bundle.card.provenance.argv = essential(&bundle.card.provenance.argv);
    let text = |name: &str| -> Result<String, CommandError> {
        String::from_utf8(run.read(name).map_err(CommandError::input)?)
            .map_err(|_| CommandError::input(format!("{}: not text", run.path(name).display())))
    };
    let results: Summary = serde_json::from_str(&text("summary.json")?).map_err(|error| {
        CommandError::input(format!("{}: {error}", run.path("summary.json").display()))
            .with_help("it is written at the end of a training, after the comparison on held-out seeds")
    })?;
    let card = to.join("card.md");
    let name = to.file_name().map_or_else(|| "policy".into(), |name| name.to_string_lossy().into_owned());
    let experiment = config::read(&run.path("config.toml"), &[])?;
    let trained = format!("runs/{}/{}", experiment.name, experiment.seed);
    let again = ["goodput", "export", &trained, "--to", &to.display().to_string()].map(str::to_owned);
    let card_text = ModelCard {
        name: &name,
        bundle: &bundle,
        config: &text("config.toml")?,
        results: &results,
        export: &command(&again),
        before: &fs::read_to_string(&card).unwrap_or_default(),
    }
    .render();
    let write = |path: PathBuf, bytes: &[u8]| {
        fs::write(&path, bytes)
            .map_err(|error| CommandError::input(format!("cannot write {}: {error}", path.display())))
    };
    fs::create_dir_all(to).map_err(|error| CommandError::input(format!("cannot make {}: {error}", to.display())))?;
    write(card, card_text.as_bytes())?;
    bundle.save(&to.join("policy.bundle")).map_err(CommandError::input)?;
    say(&format!("{}: policy.bundle, card.md", to.display()));
    Ok(ExitCode::SUCCESS)
}
