//! Accelerator types of replicas by expense: a service runs on the type that keeps its latency objective with the least
//! power, or at the least price.

use goodput_env::cluster::{Pool, TypeId};
use goodput_env::model::serving::Fleet;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, ServiceView};

use super::{Expected, Scaling, needed_for};
use crate::allocation::expense::Expense;

/// Chooser of a type for each service, of those with room for all replicas that the service needs there.
///
/// The latency objective comes first: a type that does not keep it is not chosen, however little it takes. A service
/// leaves its type for another one that takes less by more than the tolerance of scaling, and not before the calm of
/// scaling is over. Where the most replicas that it may have leave no room for those on a new type beside the present
/// ones, it leaves only a type that does not keep the objective.
#[derive(Clone, Debug)]
pub struct FrugalTypes {
    expense: Expense,
    /// By service: its type, and since when.
    chosen: Vec<Option<(TypeId, SimTime)>>,
    /// Accelerators by type that no service holds or is about to take.
    room: Vec<u32>,
}

/// A type that keeps the objective and has room.
#[derive(Clone, Copy)]
struct TypeOffer {
    kind: TypeId,
    /// Accelerators that the service takes beyond those it holds of the type.
    more: u32,
    /// Expense of all its replicas.
    expense: f64,
    /// Whether the service may have all these replicas beside those on other types.
    fits: bool,
}

impl FrugalTypes {
    /// Chooser by `expense`.
    pub fn new(expense: Expense) -> Self {
        Self { expense, chosen: Vec::new(), room: Vec::new() }
    }

    /// Takes the room that there is at this decision.
    pub fn begin(&mut self, view: &ClusterView<'_>) {
        self.chosen.resize(view.services().len(), None);
        self.room.clear();
        self.room.resize(view.cluster().types.len(), 0);
        for node in view.cluster().node_ids() {
            self.room[view.cluster().type_of(node).index()] += view.free_for_service(node);
        }
    }

    /// Type for the replicas of `service` at the expected rates; `None` where no type keeps the objective and has room.
    pub fn choose(
        &mut self,
        view: &ClusterView<'_>,
        service: &ServiceView<'_>,
        expected: Expected,
        scaling: &Scaling,
    ) -> Option<TypeId> {
        let expenses = self.expense.of(&view.cluster().types);
        let kinds = view.cluster().type_ids();
        let offers: Vec<TypeOffer> = kinds
            .filter_map(|kind| self.offer(view, service, kind, expected, scaling, expenses[kind.index()]))
            .collect();
        // Without room for both fleets, replicas on the present type would go before those on the new one answer.
        let some_fit = offers.iter().any(|offer| offer.fits);
        let open = offers.iter().copied().filter(|offer| offer.fits || !some_fit);
        let best = open.min_by(|one, other| one.expense.total_cmp(&other.expense))?;
        let kept = self.chosen[service.id().index()].and_then(|(kind, since)| {
            let present = offers.iter().copied().find(|offer| offer.kind == kind)?;
            let better = best.expense < present.expense * (1.0 - scaling.tolerance);
            (!better || since + scaling.calm > view.now).then_some((present, since))
        });
        let (offer, since) = kept.unwrap_or((best, view.now));
        self.chosen[service.id().index()] = Some((offer.kind, since));
        self.room[offer.kind.index()] -= offer.more;
        Some(offer.kind)
    }

    fn offer(
        &self,
        view: &ClusterView<'_>,
        service: &ServiceView<'_>,
        kind: TypeId,
        expected: Expected,
        scaling: &Scaling,
        expense: f64,
    ) -> Option<TypeOffer> {
        let serves = |node: &goodput_env::cluster::Node| node.accelerator == kind && node.pool != Pool::Training;
        let profile = service.profile(kind).filter(|_| view.cluster().nodes.iter().any(serves))?;
        // A request that finds an idle replica is the fastest there is.
        if profile.idle_secs() > service.slo().latency.as_secs_f64() {
            return None;
        }
        let count = needed_for(service, kind, expected, scaling.utilisation);
        let demand = service.demand(expected.usual.max(expected.high));
        if demand.rate > 0.0 && Fleet::of(profile, count).late_share(&demand) > 1.0 - service.slo().target {
            return None;
        }
        let gpus = count * service.gpus_per_replica();
        let lasting = service.state.lasting().count() as u32;
        let here =
            service.state.lasting().filter(|replica| view.cluster().type_of(replica.node) == kind).count() as u32;
        let (_, most) = service.replica_limits();
        let fits = lasting - here + count <= most;
        let more = gpus.saturating_sub(here * service.gpus_per_replica());
        (more <= self.room[kind.index()]).then_some(TypeOffer { kind, more, expense: f64::from(gpus) * expense, fits })
    }
}
