//! Check of the policies that learners imitate.

use goodput_agents::compose::NamedPolicy;

use crate::policies;
use crate::scenario::SetupError;

/// Checks the name of a policy that a learner imitates or is measured against.
///
/// # Errors
/// [`SetupError`] for a name that no published policy has, and for the replica of an artifact, which is for
/// reproduction alone.
pub(super) fn teacher(key: &'static str, name: &str) -> Result<(), SetupError> {
    if let Some(replica) = name.parse::<NamedPolicy>().ok().filter(NamedPolicy::is_replica) {
        let plain = replica.entry().name;
        let expected =
            format!("a policy by the paper's rule, such as {plain:?}: replicas have the defects of artifacts");
        return Err(SetupError::Value { key, value: format!("{name:?}"), expected });
    }
    Ok(policies::check(key, name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_teacher_is_a_policy_by_the_paper() {
        assert!(teacher("agent", "deepboot+forecast").is_ok());
        assert!(teacher("agent", "pollux-fast(power=-2)").is_ok());
        assert!(teacher("agent", "srtf@replica").is_err_and(|error| error.to_string().contains("\"srtf\"")));
        assert!(teacher("agent", "polux").is_err_and(|error| error.to_string().contains("\"pollux\"")));
    }
}
