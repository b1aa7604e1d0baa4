//! The published ways to share a cluster, by the names users type behind a training policy's: `srtf+forecast`.

use goodput_env::policy::{Policy, Scope};
use goodput_env::sim::Scenario;

use super::{Composite, Orchestrator, Terms};
use crate::serving::{Ahead, Autoscaler, Now, Outlook, Scaling, Told};

/// Of the forecast, where nobody says otherwise: one window in ten may see more.
const LEVEL: f64 = 0.9;

/// How services are scaled and servers lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Reactive scaling, nothing is lent.
    None,
    /// By the load as it is.
    Reactive,
    /// By the load as forecast from its past.
    Forecast,
    /// By the load as it will be.
    Oracle,
}

impl Variant {
    /// All, with their names.
    pub const ALL: [(&'static str, Self); 4] =
        [("none", Self::None), ("reactive", Self::Reactive), ("forecast", Self::Forecast), ("oracle", Self::Oracle)];

    /// The variant called `name`.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, variant)| variant)
    }

    /// How `training` shares where nobody says: as forecast if it was published with loaning, without loans otherwise.
    pub fn usual(training: &dyn Policy) -> Self {
        match training.scope() {
            Scope::Borrowing => Self::Forecast,
            Scope::Training | Scope::Everything => Self::None,
        }
    }

    /// `training` with services and loans.
    pub fn around(self, training: Box<dyn Policy>) -> Composite {
        let outlook = || -> Box<dyn Outlook> {
            match self {
                Self::None | Self::Reactive => Box::new(Now),
                Self::Forecast => Box::new(Ahead::seasonal_naive(LEVEL)),
                Self::Oracle => Box::new(Told),
            }
        };
        let orchestrator = (self != Self::None).then(|| Orchestrator::new(outlook(), Terms::default()));
        Composite::new(Autoscaler::new(outlook(), Scaling::default()), orchestrator, training)
    }
}

/// `policy` as it has to be to run `scenario`: where there are services or pools, somebody has to scale and lend. A training policy that was
/// published with loaning gets that, any other one reactive scaling and no loans. Where single requests are served, that is up to the policy.
pub fn complete(policy: Box<dyn Policy>, scenario: &Scenario) -> Box<dyn Policy> {
    let shared = !scenario.workload.services.is_empty() || scenario.cluster.has_pools();
    if !shared || !scenario.workload.requests.is_empty() {
        return policy;
    }
    match policy.scope() {
        Scope::Everything => policy,
        Scope::Borrowing | Scope::Training => Box::new(Variant::usual(&*policy).around(policy)),
    }
}
