//! `goodput env`: the environment, checked.

use std::process::ExitCode;
use std::sync::Arc;

use goodput_env::gym::{ClusterEnv, check};

use crate::args::{Env, Format};
use crate::config;
use crate::fault::Fault;
use crate::output::Rows;

/// Runs it.
pub fn run(verb: &Env) -> Result<ExitCode, Fault> {
    let Env::Check { experiment, episodes, steps, seed } = verb;
    let experiment = config::read(experiment, &[])?;
    let setup = experiment.setup().map_err(Fault::input)?;
    let options = experiment.environment.gym();
    let expected = experiment.expected_peak(&setup);
    let env = ClusterEnv::new(Arc::new(move |seed| setup.scenario(seed)), options).with_expected_peak(expected);
    let findings = check(&env, *seed, *episodes, *steps).map_err(Fault::failed)?;
    let mut rows = Rows::new(&["result", "check", "problem"]);
    let mut failed = 0;
    for finding in findings {
        failed += u32::from(finding.problem.is_some());
        let result = if finding.problem.is_some() { "failed" } else { "ok" };
        rows.push(vec![result.into(), finding.check.into(), finding.problem.unwrap_or_default().into()]);
    }
    rows.print(Format::Table)?;
    if failed > 0 { Err(Fault::failed(format!("{failed} checks failed"))) } else { Ok(ExitCode::SUCCESS) }
}
