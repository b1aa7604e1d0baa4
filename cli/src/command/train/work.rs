//! `goodput train work` and `goodput train submit`: workers of a distributed training.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use goodput_console::{CommandError, say};
use goodput_train::run_dir::RunDir;
use goodput_train::spool::{CoordinatorWatch, work};

use super::fault;
use crate::args::{SlurmArray, TrainCommand};
use crate::command::run::threads;
use crate::command::slurm::{SlurmScripts, sbatch};
use crate::command::study;
use crate::config;

/// Runs a verb of `goodput train` and gives its exit code.
pub fn run(verb: &TrainCommand) -> Result<ExitCode, CommandError> {
    match verb {
        TrainCommand::Work { dir, jobs, wait } => {
            threads(*jobs)?;
            help(dir, Duration::from_secs(*wait))
        }
        TrainCommand::Submit { dir, array } => submit(dir, array),
    }
    .map(|()| ExitCode::SUCCESS)
}

fn help(dir: &Path, patience: Duration) -> Result<(), CommandError> {
    let watch = CoordinatorWatch::begin(dir, patience).map_err(|error| fault(error.into()))?;
    let run = RunDir::open(dir).map_err(CommandError::input)?;
    let experiment = config::read(&run.path("config.toml"), &[])?;
    let played = work(&experiment, &run, &study::build()?, watch).map_err(fault)?;
    say(&format!("the training in {} has ended; this worker has played {played} runs", dir.display()));
    Ok(())
}

/// Writes the script of the array to the folder `slurm` of the run, and submits it.
fn submit(dir: &Path, array: &SlurmArray) -> Result<(), CommandError> {
    let scripts = SlurmScripts::new(dir, array)?;
    let run = format!("{} train work {} --jobs {}", scripts.program(), scripts.dir(), array.cpus);
    let script = scripts.write("tasks.sh", &scripts.tasks("goodput-worker", array.tasks, &run))?;
    if array.dry_run {
        say(&format!("wrote {}", script.display()));
        return Ok(());
    }
    let job = sbatch(&script, &array.options, &[])?;
    say(&format!("submitted {} workers as job {job}; they end with the training in {}", array.tasks, dir.display()));
    Ok(())
}
