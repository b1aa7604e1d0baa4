//! Registry of the policies by the names that users type. Each paper's file declares its own
//! entries ([`ListedPolicy`]).

use goodput_env::policy::Policy;

use super::loaning::{Sharing, Variant};
use crate::heuristic::deepboot::requests::{ReclaimLoss, RequestScheduler};
use crate::heuristic::deepboot::{self, WithAtsI};
use crate::heuristic::{ListedPolicy, PAPERS};

pub use crate::heuristic::deepboot::SUFFIX as BESIDE_REQUESTS;

/// Ends the name of a policy that behaves as its public artifact does.
pub const REPLICA: &str = "@replica";

/// Between a policy and the way it shares a cluster with services.
pub const VARIANT: char = '+';

/// All policies, paper by paper.
pub fn policies() -> impl Iterator<Item = &'static ListedPolicy> {
    PAPERS.iter().copied().flatten()
}

/// Names of all policies, in order of [`policies`].
pub fn names() -> Vec<&'static str> {
    policies().map(|entry| entry.name).collect()
}

/// The policy that users call `name`: by the paper's rule, or with `@replica` as its artifact
/// behaves. `None` where there is no such policy, or no artifact that differs. `NAME+VARIANT`
/// shares the cluster with services in that way ([`Variant`], with its usual settings);
/// `NAME+ats-i` runs beside DeepBoot's scheduler of inference requests.
pub fn by_name(name: &str, seed: u64) -> Option<Box<dyn Policy>> {
    if let Some(training) = name.strip_suffix(deepboot::SUFFIX) {
        let plain = training.split([VARIANT, '@']).next().unwrap_or_default();
        let elastic = policies().find(|entry| entry.name == plain)?.traits.elastic;
        let loss = if elastic { ReclaimLoss::OneAccelerator } else { ReclaimLoss::WholeJob };
        let requests = RequestScheduler::default().with_loss(loss);
        // What precedes the suffix is a name of its own, with a variant or without.
        return Some(Box::new(WithAtsI::new(by_name(training, seed)?, requests)));
    }
    if let Some((training, variant)) = name.split_once(VARIANT) {
        return Some(Box::new(Variant::by_name(variant)?.around(by_name(training, seed)?, &Sharing::default())));
    }
    let (name, replica) = match name.strip_suffix(REPLICA) {
        Some(name) => (name, true),
        None => (name, false),
    };
    let entry = policies().find(|entry| entry.name == name)?;
    if replica { entry.replica.map(|build| build(seed)) } else { Some(entry.build(seed)) }
}
