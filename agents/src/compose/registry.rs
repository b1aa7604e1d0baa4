//! The list of all policies by the names that users type: published ones, and those of the program that runs.

use std::sync::OnceLock;

use goodput_env::policy::Policy;
use thiserror::Error;

use super::loaning::Sharing;
use super::naming::NamedPolicy;
use crate::heuristic::{ListedPolicy, PAPERS};

/// Policies of a program outside this repository.
static OWN: OnceLock<&'static [ListedPolicy]> = OnceLock::new();

/// Policies that cannot be added to the list.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RegisterError {
    /// The name is no word.
    #[error("{name:?} is no name for a policy: expected lower-case letters, digits and hyphens")]
    Malformed {
        /// Name that was given.
        name: String,
    },
    /// Another policy has the name.
    #[error("there is a policy {name:?} already: give the policy another name")]
    Taken {
        /// Name that was given.
        name: String,
    },
    /// A program adds its policies once, before it asks for any.
    #[error("the program has added its policies already")]
    Again,
}

/// All policies: paper by paper, and then those that the program has [registered](register).
pub fn policies() -> impl Iterator<Item = &'static ListedPolicy> {
    PAPERS.iter().copied().chain(OWN.get().copied()).flatten()
}

/// Adds the policies of a program to the list. From then on their names mean the policies wherever a name of a policy
/// may stand: on the command line, in files, and in a live deployment. A program does so once, at its beginning.
///
/// # Errors
/// [`RegisterError`] where a name is malformed or taken, and on a second call.
pub fn register(own: &'static [ListedPolicy]) -> Result<(), RegisterError> {
    let is_word = |name: &str| {
        name.starts_with(|letter: char| letter.is_ascii_lowercase())
            && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-')
    };
    for (at, entry) in own.iter().enumerate() {
        let name = entry.name.to_owned();
        if !is_word(&name) {
            return Err(RegisterError::Malformed { name });
        }
        if policies().chain(&own[..at]).any(|other| other.name == name) {
            return Err(RegisterError::Taken { name });
        }
    }
    OWN.set(own).map_err(|_| RegisterError::Again)
}

/// Names of all policies, in order of [`policies`].
pub fn names() -> Vec<&'static str> {
    policies().map(|entry| entry.name).collect()
}

/// The policy that users call `name`, with the usual settings of sharing; `None` where [`NamedPolicy`] refuses the
/// name.
pub fn by_name(name: &str, seed: u64) -> Option<Box<dyn Policy>> {
    let named: NamedPolicy = name.parse().ok()?;
    Some(named.build(seed, &Sharing::default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heuristic::Traits;
    use crate::heuristic::fifo::Fifo;
    use crate::heuristic::parameters::Fixed;

    const fn own(name: &'static str) -> ListedPolicy {
        ListedPolicy {
            name,
            about: "a test",
            source: "this test",
            traits: Traits { preemptive: false, elastic: false, heterogeneous: false },
            constructor: &Fixed(|_| Box::new(Fifo::strict())),
            replica: None,
        }
    }

    #[test]
    fn a_name_that_means_something_else_is_refused() {
        static MALFORMED: [ListedPolicy; 1] = [own("proc:mine")];
        static TAKEN: [ListedPolicy; 1] = [own("fifo")];
        static TWICE: [ListedPolicy; 2] = [own("mine-twice"), own("mine-twice")];
        assert!(matches!(register(&MALFORMED), Err(RegisterError::Malformed { .. })));
        assert!(matches!(register(&TAKEN), Err(RegisterError::Taken { .. })));
        assert!(matches!(register(&TWICE), Err(RegisterError::Taken { .. })));
        assert!(by_name("mine-twice", 0).is_none(), "nothing is added where something is refused");
    }
}
