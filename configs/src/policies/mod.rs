//! Policies that a file names: their text or table, and the check that they exist.

mod entry;
mod suitable;

use std::borrow::Cow;
use std::path::Path;

use goodput_agents::compose::loaning::Variant;
use goodput_agents::compose::{self, NamedPolicy, PolicyNameError};
use goodput_agents::heuristic::parameters::ParameterError;
use goodput_agents::policies::external::ExternalProgram;
use goodput_agents::zoo;

use crate::error::CheckError;
use crate::names::did_you_mean;

pub use entry::PolicyText;
#[cfg(feature = "scenarios")]
pub(crate) use entry::names;
pub(crate) use entry::{name, optional_name};
pub use suitable::FIGURES;
#[cfg(feature = "scenarios")]
pub use suitable::check_allocation;
#[cfg(feature = "scenarios")]
pub(crate) use suitable::check_types;
pub(crate) use suitable::{check_limits, check_quotas};

/// Advice on the parameters of policies.
pub const PARAMETERS: &str = "`goodput list policies --parameters` names every parameter with its default and range";

/// Advice on the names of external programs.
pub const EXTERNAL: &str = "write proc:COMMAND, for example proc:./policy, or python:MODULE:CLASS";

/// Checks that `name` is a published policy, which has no bundle and is no external program.
pub(crate) fn check_heuristic(key: impl Into<Cow<'static, str>>, name: &str) -> Result<(), CheckError> {
    if ExternalProgram::is_meant_by(name) {
        let key = key.into();
        let message = format!("{key} is {name:?}, an external program, and only a published policy can stand here");
        let remedy = Some("name a policy of `goodput list policies`");
        return Err(CheckError { remedy, ..CheckError::at(key, message) });
    }
    name.parse::<NamedPolicy>().map(drop).map_err(|error| refused(key.into(), &error))
}

/// Checks that a policy beside which an agent is trained is a published one.
#[cfg(feature = "scenarios")]
pub(crate) fn check_published(key: impl Into<Cow<'static, str>>, name: &str) -> Result<(), CheckError> {
    if name.parse::<NamedPolicy>().is_ok() {
        return Ok(());
    }
    let problem = format!("{name:?} is no published policy, and `goodput train` compares [agent] with these alone");
    let remedy = Some("leave it out, and name it to `goodput eval FILE --policies` after the training");
    Err(CheckError { remedy, ..CheckError::at(key, problem) })
}

/// Checks that `name` is a published policy, or names an external program that is there.
pub(crate) fn check_named(key: impl Into<Cow<'static, str>>, name: &str) -> Result<(), CheckError> {
    if !ExternalProgram::is_meant_by(name) {
        return check_heuristic(key, name);
    }
    let key = key.into();
    let Some(program) = ExternalProgram::by_name(name) else {
        return Err(CheckError::at(key, format!("{name:?} names no program; {EXTERNAL}")));
    };
    program.find().map_err(|missing| CheckError::at(key, format!("{name}: {missing}")))
}

/// Checks that a bundle is a policy that ships, or a file, which need not be there yet.
pub(crate) fn check_bundle(key: &'static str, bundle: &Path) -> Result<(), CheckError> {
    let shipped = bundle.to_str().and_then(|text| text.strip_prefix(zoo::PREFIX));
    shipped.and_then(shipped_problem).map_or(Ok(()), |problem| Err(CheckError::at(key, problem)))
}

/// Checks that `name` is a published policy, a shipped one, a file, or names an external program that is there.
#[cfg(feature = "scenarios")]
pub(crate) fn check(key: impl Into<Cow<'static, str>>, name: &str) -> Result<(), CheckError> {
    let trained = |name: &str| name.starts_with(zoo::PREFIX) || Path::new(name).exists();
    match name.strip_prefix(zoo::PREFIX) {
        Some(shipped) => shipped_problem(shipped).map_or(Ok(()), |problem| Err(CheckError::at(key, problem))),
        None if Path::new(name).exists() => Ok(()),
        None => match compose::lookahead_base(name).filter(|(base, _)| trained(base)) {
            // The parameters of a lookahead are those of a lookahead around any policy.
            Some((base, parameters)) => {
                let key = key.into();
                check(key.clone(), base)?;
                if parameters.contains(['+', '@']) {
                    let problem = "nothing follows the parameters of a lookahead around a trained policy";
                    return Err(CheckError::at(key, problem));
                }
                check_heuristic(key, &format!("lookahead(fifo){parameters}"))
            }
            None => check_named(key, name),
        },
    }
}

/// Error about the policy at `key`, or about its parameter where that is what is wrong.
fn refused(key: Cow<'static, str>, error: &PolicyNameError) -> CheckError {
    match error {
        PolicyNameError::Parameter {
            problem: ParameterError::Unknown { name, .. } | ParameterError::Value { name, .. },
            ..
        } => CheckError { remedy: Some(PARAMETERS), ..CheckError::at(format!("{key}.{name}"), explain(error)) },
        _ => CheckError::at(key, explain(error)),
    }
}

/// Name as results write it, without parameters at their defaults; a name that names no published policy as it is.
pub fn written(name: &str) -> String {
    name.parse::<NamedPolicy>().map_or_else(|_| name.to_owned(), |named| named.to_string())
}

/// Whether `name` is meant to name an external program.
pub fn is_program(name: &str) -> bool {
    ExternalProgram::is_meant_by(name)
}

/// Sentence about a name that names no policy, with the nearest name that does.
pub fn explain(error: &PolicyNameError) -> String {
    match error {
        PolicyNameError::Unknown { name } => {
            format!("{error}{}; `goodput list policies` names all", did_you_mean(name, compose::names()))
        }
        PolicyNameError::UnknownVariant { variant, .. } => {
            let known = Variant::ALL.map(|(name, _)| name);
            let near = did_you_mean(variant, known);
            format!("{error}{near}; there are {}, and forecast:MODEL", known.join(", "))
        }
        PolicyNameError::Parameter { policy, problem: ParameterError::Unknown { name, known } } => {
            match known.as_slice() {
                [] => format!("policy {policy} has no parameters, and {name:?} is given"),
                known => {
                    let near = did_you_mean(name, known.iter().map(String::as_str));
                    format!("{error}{near}; there are: {}", known.join(", "))
                }
            }
        }
        PolicyNameError::Parameter { .. } | PolicyNameError::Syntax { .. } | PolicyNameError::NoReplica { .. } => {
            error.to_string()
        }
    }
}

fn shipped_problem(name: &str) -> Option<String> {
    let known = || zoo::ZOO.iter().map(|entry| entry.name);
    let name = name.split(['+', '@']).next().unwrap_or_default();
    (!known().any(|known| known == name)).then(|| {
        let near = did_you_mean(name, known());
        format!("there is no shipped policy {name:?}{near}; `goodput list zoo` names all")
    })
}

#[cfg(all(test, feature = "scenarios"))]
mod tests {
    use super::*;

    fn problem(name: &str) -> Option<String> {
        check("key", name).err().map(|error| error.message)
    }

    #[test]
    fn policies_are_published_or_shipped() {
        for known in
            ["fifo", "srtf@replica", "fifo+forecast", "gandiva(quantum_secs=60)+none", "zoo:elastic", "proc:sh -c exit"]
        {
            assert_eq!(problem(known), None, "{known}");
        }
        for (name, words) in [
            ("fifoo", "did you mean \"fifo\"?"),
            ("zoo:elastik", "did you mean \"elastic\"?"),
            ("fifo+forecst", "did you mean \"forecast\"?"),
            ("fifo@replica", "has no replica"),
            ("gandiva(quantm_secs=60)", "did you mean \"quantum_secs\"?"),
            ("fifo(quantum_secs=60)", "policy fifo has no parameters"),
            ("gandiva(quantum_secs=60", "the parenthesis is not closed"),
            ("gandiva(quantum_secs=0)", "quantum_secs is 0, expected a number from 1 to 10000000"),
            ("gandiva(quantum_secs=long)", "expected a number"),
            ("gandiva(60)", "PARAMETER=VALUE"),
            ("tiresias(limits=[7200, 3250])", "limits ascend"),
            ("kueue(within_cohort=all)", "one of never, lower-priority, any"),
            ("srtf(x=1)@replica", "takes no parameters"),
            ("proc:", "write proc:COMMAND"),
            ("python:module", "python:MODULE:CLASS"),
            ("proc:./there-is-none --greedy", "there is no program \"./there-is-none\""),
            ("proc:there-is-none", "in the folders of PATH"),
            ("proc:/etc/passwd", "not executable"),
        ] {
            let found = problem(name).unwrap_or_default();
            assert!(found.contains(words), "{name}: {found}");
        }
    }

    #[test]
    fn an_error_of_a_parameter_has_its_key_and_a_remedy() {
        let error = check("evaluate.policies.2", "gandiva(quantum_secs=0)").unwrap_err();
        assert_eq!(error.key.as_deref(), Some("evaluate.policies.2.quantum_secs"));
        assert!(error.remedy.is_some_and(|remedy| remedy.contains("list policies --parameters")));
    }

    #[test]
    fn a_bundle_of_a_deployment_ships_or_is_a_file() {
        assert!(check_bundle("policy.bundle", Path::new("runs/1/policy.bundle")).is_ok());
        assert!(check_bundle("policy.bundle", Path::new("zoo:elastic")).is_ok());
        let error = check_bundle("policy.bundle", Path::new("zoo:elastik")).unwrap_err();
        assert!(error.message.contains("did you mean \"elastic\"?"), "{error}");
    }
}
