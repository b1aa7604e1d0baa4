//! Check that the policies which a file names exist.

use std::path::Path;

use goodput_agents::{compose, zoo};

use crate::error::CheckError;
use crate::names::did_you_mean;

/// Checks that `name` is a published policy, which has no bundle.
pub(crate) fn check_heuristic(key: &'static str, name: &str) -> Result<(), CheckError> {
    heuristic_problem(name).map_or(Ok(()), |problem| Err(CheckError::at(key, problem)))
}

/// Checks that a bundle is a policy that ships, or a file, which need not be there yet.
pub(crate) fn check_bundle(key: &'static str, bundle: &Path) -> Result<(), CheckError> {
    let shipped = bundle.to_str().and_then(|text| text.strip_prefix(zoo::PREFIX));
    shipped.and_then(shipped_problem).map_or(Ok(()), |problem| Err(CheckError::at(key, problem)))
}

/// Checks that `name` is a published policy, a shipped one, or a file.
#[cfg(feature = "learning")]
pub(crate) fn check(key: &'static str, name: &str) -> Result<(), CheckError> {
    problem(name).map_or(Ok(()), |problem| Err(CheckError::at(key, problem)))
}

/// Sentence about a policy of a comparison that does not exist. `None` for a published policy, a
/// shipped one, and a file.
#[cfg(feature = "learning")]
pub(crate) fn problem(name: &str) -> Option<String> {
    match name.strip_prefix(zoo::PREFIX) {
        Some(shipped) => shipped_problem(base(shipped)),
        None if Path::new(name).exists() => None,
        None => heuristic_problem(name),
    }
}

fn shipped_problem(name: &str) -> Option<String> {
    let known = || zoo::ZOO.iter().map(|entry| entry.name);
    (!known().any(|known| known == name)).then(|| {
        let near = did_you_mean(name, known());
        format!("there is no shipped policy {name:?}{near}; `goodput list zoo` names all")
    })
}

fn heuristic_problem(name: &str) -> Option<String> {
    if compose::by_name(name, 0).is_some() {
        return None;
    }
    if compose::by_name(base(name), 0).is_some() {
        return Some(format!("{name:?} does not exist: {:?} has no such variant or replica", base(name)));
    }
    Some(format!("there is no policy {name:?}{}; `goodput list policies` names all", near(name)))
}

/// Name without the variant or the replica that it may end in.
fn base(name: &str) -> &str {
    name.split([compose::VARIANT, '@']).next().unwrap_or_default()
}

/// Question about the published policy with the nearest name.
pub(crate) fn near(name: &str) -> String {
    did_you_mean(base(name), compose::names())
}

#[cfg(all(test, feature = "learning"))]
mod tests {
    use super::*;

    #[test]
    fn policies_are_published_or_shipped() {
        for known in ["fifo", "srtf@replica", "fifo+forecast", "zoo:elastic", "zoo:mixed"] {
            assert_eq!(problem(known), None, "{known}");
        }
        assert!(problem("fifoo").is_some_and(|text| text.contains("did you mean \"fifo\"?")));
        assert!(problem("zoo:elastik").is_some_and(|text| text.contains("did you mean \"elastic\"?")));
        assert!(problem("fifo+forecst").is_some_and(|text| text.contains("no such variant")));
    }

    #[test]
    fn a_bundle_of_a_deployment_ships_or_is_a_file() {
        assert!(check_bundle("policy.bundle", Path::new("runs/1/policy.bundle")).is_ok());
        assert!(check_bundle("policy.bundle", Path::new("zoo:elastic")).is_ok());
        let error = check_bundle("policy.bundle", Path::new("zoo:elastik")).unwrap_err();
        assert!(error.message.contains("did you mean \"elastic\"?"), "{error}");
    }
}
