//! Wrappers that a file puts around any policy of training jobs.

use std::convert::Infallible;

use goodput_env::policy::Policy;

use super::adaptation::Adaptation;
use super::resilience::Resilience;

/// Adaptation of priorities and quotas, and guarantees around it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wrappers {
    /// Priorities and quotas that adapt: `[adaptation]`.
    pub adaptation: Adaptation,
    /// Guarantees of key jobs, nodes and tenants: `[resilience]`.
    pub resilience: Resilience,
}

impl Wrappers {
    /// Whether nothing is put around the policy.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.adaptation.is_empty() && self.resilience.is_empty()
    }

    /// The policy that `make` makes, within these wrappers; it may be made more than once.
    pub fn around(&self, make: impl Fn() -> Box<dyn Policy>) -> Box<dyn Policy> {
        let Ok(policy) = self.try_around(|| Ok::<_, Infallible>(make()));
        policy
    }

    /// As [`Self::around`] with a policy that cannot always be made.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn try_around<E>(&self, make: impl Fn() -> Result<Box<dyn Policy>, E>) -> Result<Box<dyn Policy>, E> {
        self.resilience.try_around(|| Ok(self.adaptation.around(make()?)))
    }
}
