//! Number of replicas that a service should have.
//!
//! The rule is that of the Kubernetes horizontal autoscaler, with its defaults: replicas in
//! proportion to utilisation over its target, no change within 10 % of the target, and down only to
//! the most that was wanted in the last five minutes. On top of it comes the objective: as many
//! replicas as the queueing model asks for to keep it.

use std::collections::VecDeque;

use goodput_env::cluster::TypeId;
use goodput_env::model::serving::Fleet;
use goodput_env::policy::ExpectedLoad;
use goodput_env::scenario::Information;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, ServiceView};

use super::{Claim, Expected, FrugalTypes, Now, Outlook, Sizing};
use crate::allocation::expense::Expense;

/// Settings of the autoscaler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// Share of a replica's throughput that is to be used, in (0, 1].
    pub utilisation: f64,
    /// No change while utilisation is within this of its target, relative.
    pub tolerance: f64,
    /// Down only to the most that was wanted within this time.
    pub calm: SimTime,
}

impl Default for Scaling {
    fn default() -> Self {
        Self { utilisation: 0.7, tolerance: 0.1, calm: SimTime::from_secs(300) }
    }
}

/// Replicas on accelerators of type `kind` that `rate` requests per second need: to stay at
/// `utilisation` and to keep the objective.
pub fn needed(service: &ServiceView<'_>, kind: TypeId, rate: f64, utilisation: f64) -> u32 {
    let (min, max) = service.replica_limits();
    let Some(profile) = service.profile(kind) else { return min };
    let throughput = profile.throughput() * utilisation;
    if rate <= 0.0 || throughput <= 0.0 {
        return min;
    }
    let mut count = ((rate / throughput).ceil() as u32).clamp(min.max(1), max.max(1));
    // Utilisation alone says nothing of latency, so replicas are added until the model keeps it.
    let demand = service.demand(rate);
    // One minute at that rate; requests are counted in millionths.
    let requests = (rate * 60.0 * 1e6) as u64;
    let allowed = (requests as f64 * (1.0 - service.slo().target)) as u64;
    while count < max {
        let fleet = Fleet(std::iter::once((profile, count)).collect());
        if fleet.interval(&demand, 0, requests, 60.0).violated <= allowed {
            break;
        }
        count += 1;
    }
    count.clamp(min, max)
}

/// Replicas for what is expected: the usual rate at `utilisation`, and the high one within the
/// objective. The share that utilisation leaves free is there for what is not foreseen; keeping it
/// free at the high rate as well would pay for that twice. A [decided](Sizing::Objective) rate is
/// all that is provided for.
pub fn needed_for(service: &ServiceView<'_>, kind: TypeId, expected: Expected, utilisation: f64) -> u32 {
    for_tail(service, kind, expected, needed_usually(service, kind, expected, utilisation))
}

/// Replicas for the usual rate.
fn needed_usually(service: &ServiceView<'_>, kind: TypeId, expected: Expected, utilisation: f64) -> u32 {
    match expected.sizing {
        Sizing::Utilisation => needed(service, kind, expected.usual, utilisation),
        Sizing::Objective => within_objective(service, kind, expected.usual),
    }
}

/// Replicas for the high rate, given the replicas for the usual rate.
fn for_tail(service: &ServiceView<'_>, kind: TypeId, expected: Expected, usual: u32) -> u32 {
    if expected.high <= expected.usual {
        return usual;
    }
    usual.max(within_objective(service, kind, expected.high))
}

fn within_objective(service: &ServiceView<'_>, kind: TypeId, rate: f64) -> u32 {
    service.replicas_for(kind, rate).unwrap_or(service.replica_limits().0)
}

/// Shortest time in which waiting requests are to be answered, seconds.
const SHORTEST_DRAIN_SECS: f64 = 60.0;

/// Expected rates, with the requests that wait where no room is left for utilisation: a queue would never shrink. The
/// requests are to be answered in the time that one more replica takes to start.
pub(crate) fn beside_waiting(service: &ServiceView<'_>, expected: Expected) -> Expected {
    match expected.sizing {
        Sizing::Utilisation => expected,
        Sizing::Objective => {
            expected.with_waiting(service.backlog() / service.cold_start().as_secs_f64().max(SHORTEST_DRAIN_SECS))
        }
    }
}

/// Replicas of each service over time.
pub struct Autoscaler {
    outlook: Box<dyn Outlook>,
    scaling: Scaling,
    /// Chooser of accelerator types; `None`: replicas take the first server that has room.
    types: Option<FrugalTypes>,
    /// By service: what was wanted when, ascending in time and descending in number.
    wanted: Vec<VecDeque<(SimTime, u32)>>,
    /// Forecasts that the last claims were made by.
    expected: Vec<ExpectedLoad>,
}

impl Default for Autoscaler {
    fn default() -> Self {
        Self::new(Box::new(Now), Scaling::default())
    }
}

impl Autoscaler {
    /// Scales to the highest rate that `outlook` expects until a replica started now would be warm.
    pub fn new(outlook: Box<dyn Outlook>, scaling: Scaling) -> Self {
        Self { outlook, scaling, types: None, wanted: Vec::new(), expected: Vec::new() }
    }

    /// The autoscaler with replicas on the types that take the least of `expense`, where there is one.
    #[must_use]
    pub fn on_types_by(self, expense: Option<Expense>) -> Self {
        Self { types: expense.map(FrugalTypes::new), ..self }
    }

    /// The least that has to be known.
    pub fn needs(&self) -> Information {
        self.outlook.needs()
    }

    /// Utilisation that it aims for.
    pub fn utilisation(&self) -> f64 {
        self.scaling.utilisation
    }

    /// Forecasts that the last claims were made by; none of a service that nothing is forecast of.
    pub fn expected_loads(&self) -> &[ExpectedLoad] {
        &self.expected
    }

    /// Replicas that each service should have now, by id.
    pub fn claims(&mut self, view: &ClusterView<'_>) -> Vec<Claim> {
        if let Some(types) = &mut self.types {
            types.begin(view);
        }
        self.expected.clear();
        view.services().map(|service| self.desired(view, &service)).collect()
    }

    fn desired(&mut self, view: &ClusterView<'_>, service: &ServiceView<'_>) -> Claim {
        let (gpus, has) = (service.gpus_per_replica(), service.state.lasting().count() as u32);
        let Some(first) = kind_for(view, service) else {
            let (least, _) = service.replica_limits();
            return Claim { kind: None, gpus, has, usual: least, most: least };
        };
        let warm = view.now + service.cold_start() + service.history_step();
        let forecast = self.outlook.forecast(service, warm);
        let of_service = |Expected { usual, high, .. }| ExpectedLoad {
            service: service.id(),
            from: view.now,
            until: warm,
            usual,
            high,
        };
        self.expected.extend(forecast.map(of_service));
        let expected = beside_waiting(service, Expected::beside(forecast, service.rate()));
        let chosen = self.types.as_mut().and_then(|types| types.choose(view, service, expected, &self.scaling));
        let (kind, has) = match chosen {
            Some(kind) => {
                (kind, service.state.lasting().filter(|on| view.cluster().type_of(on.node) == kind).count() as u32)
            }
            None => (first, has),
        };
        let usual = needed_usually(service, kind, expected, self.scaling.utilisation);
        let target = for_tail(service, kind, expected, usual);
        let capacity = service.profile(kind).map_or(0.0, |profile| profile.throughput()) * f64::from(has);
        let off = expected.usual / (capacity * self.scaling.utilisation) - 1.0;
        // A little too much is left alone; too little for the objective never is.
        let near = expected.sizing == Sizing::Utilisation && off.abs() <= self.scaling.tolerance;
        let target = if target < has && near { has } else { target };
        // A decided number covers the time until the next one serves. With the delay, services took 1 to 3 % more
        // accelerators on real loads, and were late as often.
        let most = match expected.sizing {
            Sizing::Utilisation => self.delay_scale_in(service.id().index(), view.now, target),
            Sizing::Objective => target,
        };
        Claim { kind: chosen, gpus, has, usual, most }
    }

    fn delay_scale_in(&mut self, service: usize, now: SimTime, target: u32) -> u32 {
        if self.wanted.len() <= service {
            self.wanted.resize_with(service + 1, VecDeque::new);
        }
        let wanted = &mut self.wanted[service];
        // An earlier and smaller number can never be the largest again.
        while wanted.back().is_some_and(|(_, count)| *count <= target) {
            wanted.pop_back();
        }
        wanted.push_back((now, target));
        while wanted.front().is_some_and(|(at, _)| *at + self.scaling.calm < now) {
            wanted.pop_front();
        }
        wanted.front().map_or(target, |(_, count)| *count)
    }
}

/// The accelerator type to count with: of those it can run on the one of the first server that
/// serves.
pub(crate) fn kind_for(view: &ClusterView<'_>, service: &ServiceView<'_>) -> Option<TypeId> {
    use goodput_env::cluster::Pool;
    let nodes = view.cluster().nodes.iter().filter(|node| node.pool != Pool::Training && node.gpus > 0);
    nodes.map(|node| node.accelerator).find(|&kind| service.profile(kind).is_some())
}
