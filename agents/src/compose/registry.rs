//! Registry of the policies by the names that users type. Each paper's file declares its own
//! entries ([`ListedPolicy`]).

use goodput_env::policy::Policy;

use super::loaning::Sharing;
use super::naming::NamedPolicy;
use crate::heuristic::{ListedPolicy, PAPERS};

/// All policies, paper by paper.
pub fn policies() -> impl Iterator<Item = &'static ListedPolicy> {
    PAPERS.iter().copied().flatten()
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
