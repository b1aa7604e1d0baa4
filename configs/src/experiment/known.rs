//! Check of the policies that learners imitate.

use goodput_agents::compose;

use crate::policies;
use crate::scenario::SetupError;

/// Checks the name of a policy that a learner imitates or is measured against.
///
/// # Errors
/// [`SetupError::Value`] for a name that no published policy has, and for the replica of an artifact,
/// which is for reproduction alone.
pub(super) fn teacher(key: &'static str, name: &str) -> Result<(), SetupError> {
    let wrong = |expected: String| Err(SetupError::Value { key, value: format!("{name:?}"), expected });
    if let Some(plain) = name.strip_suffix(compose::REPLICA) {
        return wrong(format!(
            "a policy by the paper's rule, such as {plain:?}: replicas have the defects of artifacts"
        ));
    }
    match policies::problem(name) {
        Some(_) => wrong(format!("a policy that `goodput list policies` names{}", policies::near(name))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_teacher_is_a_policy_by_the_paper() {
        assert!(teacher("agent", "deepboot+forecast").is_ok());
        assert!(teacher("agent", "srtf@replica").is_err_and(|error| error.to_string().contains("\"srtf\"")));
        assert!(teacher("agent", "polux").is_err_and(|error| error.to_string().contains("\"pollux\"")));
    }
}
