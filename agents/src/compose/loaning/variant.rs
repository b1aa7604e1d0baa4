//! The published ways to share a cluster, by the names users type behind a training policy's:
//! `srtf+forecast`.

use goodput_env::policy::{Policy, Scope};
use goodput_env::scenario::Scenario;
use goodput_forecast::Model;

use super::{Composite, Orchestrator, RecallPricing, Terms};
use crate::allocation::expense::Expense;
use crate::compose::serving::{
    Ahead, Autoscaler, Decided, ForecastingOptions, Now, OracleOutlook, Outlook, Scaling, Sizing,
};

/// Settings of the three schedulers of a shared cluster, common to all variants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sharing {
    /// Scaling of services.
    pub scaling: Scaling,
    /// Terms of loans.
    pub terms: Terms,
    /// The forecaster of those that look ahead.
    pub forecasting: ForecastingOptions,
}

/// Scaling of services and lending of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Reactive scaling, nothing is lent.
    None,
    /// By the load as it is.
    Reactive,
    /// By the load as forecast from its past.
    Forecast,
    /// By the load as one model alone forecasts it.
    ForecastBy(Model),
    /// By the load that the objectives of services ask for ([`Decided`]), without room for utilisation.
    Objective,
    /// By the load as it will be, with room for utilisation.
    Oracle,
    /// By the load as it will be, without room for utilisation: the bound of [`Self::Objective`].
    ObjectiveOracle,
    /// Reactive scaling on the accelerator types that take the least while objectives are kept; nothing is lent.
    Frugal(Expense),
}

impl Variant {
    /// All, with their names.
    pub const ALL: [(&'static str, Self); 8] = [
        ("none", Self::None),
        ("reactive", Self::Reactive),
        ("forecast", Self::Forecast),
        ("objective", Self::Objective),
        ("oracle", Self::Oracle),
        ("objective-oracle", Self::ObjectiveOracle),
        ("per-watt", Self::Frugal(Expense::Power)),
        ("per-dollar", Self::Frugal(Expense::Price)),
    ];

    /// The variant called `name`; `forecast:MODEL` for a model alone, as in `forecast:day`.
    pub fn by_name(name: &str) -> Option<Self> {
        if let Some(model) = name.strip_prefix("forecast:") {
            return Model::ALL.into_iter().find(|known| known.name() == model).map(Self::ForecastBy);
        }
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, variant)| variant)
    }

    /// Expense by which replicas choose accelerator types; `None` where they take the first that has room.
    pub fn expense(self) -> Option<Expense> {
        match self {
            Self::Frugal(expense) => Some(expense),
            Self::None | Self::Reactive | Self::Forecast | Self::ForecastBy(_) => None,
            Self::Objective | Self::Oracle | Self::ObjectiveOracle => None,
        }
    }

    /// Whether servers of services are lent to training, which takes them back from running jobs.
    pub fn lends(self) -> bool {
        !matches!(self, Self::None | Self::Frugal(_))
    }

    /// Variant under which `training` shares where its name has none: by forecast if it was
    /// published with loaning, without loans otherwise.
    pub fn usual(training: &dyn Policy) -> Self {
        match training.scope() {
            Scope::Borrowing => Self::Forecast,
            Scope::Training | Scope::Everything => Self::None,
        }
    }

    /// `training` with services and loans.
    pub fn around(self, training: Box<dyn Policy>, sharing: &Sharing) -> Composite {
        self.judged(training, sharing, RecallPricing::default())
    }

    /// `training` with services and loans, at the prices of `judge`.
    pub fn judged(self, training: Box<dyn Policy>, sharing: &Sharing, judge: RecallPricing) -> Composite {
        let forecasting = &sharing.forecasting;
        let [of_services, of_loans]: [Box<dyn Outlook>; 2] = match self {
            Self::None | Self::Reactive | Self::Frugal(_) => [Box::new(Now), Box::new(Now)],
            Self::Forecast => Ahead::new(forecasting.clone()).pair(),
            Self::ForecastBy(model) => Ahead::new(ForecastingOptions::by(model).at(forecasting.level)).pair(),
            Self::Objective => Decided::new(forecasting.clone()).pair(),
            Self::Oracle => [Sizing::Utilisation; 2].map(|sizing| Box::new(OracleOutlook(sizing)) as _),
            Self::ObjectiveOracle => [Sizing::Objective; 2].map(|sizing| Box::new(OracleOutlook(sizing)) as _),
        };
        let orchestrator = self.lends().then(|| Orchestrator::new(of_loans, sharing.terms).judging(judge));
        let autoscaler = Autoscaler::new(of_services, sharing.scaling).on_types_by(self.expense());
        Composite::new(autoscaler, orchestrator, training)
    }
}

/// `policy` as it has to be to run `scenario`: where there are services or pools, a scheduler has
/// to scale and lend. A training policy that was published with loaning gets that, any other one
/// reactive scaling and no loans. Where single requests are served, that is up to the policy.
pub fn complete(policy: Box<dyn Policy>, scenario: &Scenario, sharing: &Sharing) -> Box<dyn Policy> {
    let shared = !scenario.workload.services.is_empty() || scenario.cluster.has_pools();
    if !shared || !scenario.workload.requests.is_empty() {
        return policy;
    }
    beside_services(policy, sharing)
}

/// `policy`, or around it the schedulers of services and loans where it decides about training only.
pub fn beside_services(policy: Box<dyn Policy>, sharing: &Sharing) -> Box<dyn Policy> {
    match policy.scope() {
        Scope::Everything => policy,
        Scope::Borrowing | Scope::Training => Box::new(Variant::usual(&*policy).around(policy, sharing)),
    }
}
