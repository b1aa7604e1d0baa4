//! `goodput env`: the environment, checked, and served to other languages.

mod serve;

use std::io::{stdin, stdout};
use std::path::Path;
use std::process::ExitCode;

use goodput_console::{CommandError, Listing, OutputFormat};
use goodput_env::gym::{ClusterEnv, ResetOptions, VecEnv, check};

use crate::args::Env;
use crate::config;

/// Runs `goodput env` and gives its exit code.
pub fn run(verb: &Env) -> Result<ExitCode, CommandError> {
    match verb {
        Env::Check { experiment, episodes, steps, seed } => check_conventions(experiment, *episodes, *steps, *seed),
        Env::Serve { experiment, envs, seed, split, sets } => {
            let env = environment(experiment, sets)?;
            let seeds = (0..*envs as u64).map(|index| split.first_seed(*seed, index));
            let vector = VecEnv::new(vec![env; *envs], seeds.collect(), ResetOptions::default())
                .ok_or_else(|| CommandError::input("--envs 0: at least one environment is served"))?;
            serve::serve(vector, stdin().lock(), stdout().lock()).map_err(CommandError::failed)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The environment in which the learned policies of this experiment are trained.
fn environment(experiment: &Path, sets: &[String]) -> Result<ClusterEnv, CommandError> {
    let experiment = config::read(experiment, sets)?;
    let setup = experiment.setup().map_err(CommandError::input)?;
    Ok(experiment.cluster_env(setup))
}

fn check_conventions(experiment: &Path, episodes: u64, steps: usize, seed: u64) -> Result<ExitCode, CommandError> {
    let env = environment(experiment, &[])?;
    let findings = check(&env, seed, episodes, steps).map_err(CommandError::failed)?;
    let mut rows = Listing::new(&["result", "check", "problem"]);
    let mut failed = 0;
    for finding in findings {
        failed += u32::from(finding.problem.is_some());
        let result = if finding.problem.is_some() { "failed" } else { "ok" };
        rows.push(vec![result.into(), finding.check.into(), finding.problem.unwrap_or_default().into()]);
    }
    rows.print(OutputFormat::Table)?;
    if failed > 0 { Err(CommandError::failed(format!("{failed} checks failed"))) } else { Ok(ExitCode::SUCCESS) }
}
