//! Names of all numbers of an observation and of all actions, and the units of features.

use crate::gym::action::{Action, LoanVerb, ScaleVerb, Verb};
use crate::gym::features::{
    GLOBAL_FEATURES, POOL_FEATURES, SERVICE_FEATURES, SLOT_FEATURES, TENANT_FEATURES, TYPE_FEATURES, TYPE_GLOBALS,
};
use crate::gym::layout::Layout;

/// One number of an observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Name with its place, for example `job.3.log_age_secs` or `cluster.free_share`.
    pub name: String,
    /// Unit of the number, for example `0.1 ln(1 + s)`.
    pub unit: &'static str,
}

impl Layout {
    /// Every number of an observation, in order: [`Layout::obs_dim`] of them. `types` has the names
    /// of the distinguished accelerator types; a type without a name is called by its number.
    pub fn features(&self, types: &[String]) -> Vec<Feature> {
        let kind = |at: usize| types.get(at).map_or_else(|| format!("type{at}"), Clone::clone);
        let mut all = Vec::with_capacity(self.obs_dim());
        let mut add = |place: &str, names: &[&'static str]| {
            all.extend(names.iter().map(|name| Feature { name: format!("{place}.{name}"), unit: unit(name) }));
        };
        let tenants = self.slot_features > SLOT_FEATURES.len() + self.types * TYPE_FEATURES.len();
        for slot in 0..self.slots {
            let place = format!("job.{slot}");
            add(&place, &SLOT_FEATURES);
            add(&place, if tenants { &TENANT_FEATURES } else { &[] });
            (0..self.types).for_each(|at| add(&format!("{place}.{}", kind(at)), &TYPE_FEATURES));
        }
        add("cluster", &GLOBAL_FEATURES);
        (0..self.services).for_each(|service| add(&format!("service.{service}"), &SERVICE_FEATURES));
        add("pool", if self.pools { &POOL_FEATURES } else { &[] });
        (0..self.types).for_each(|at| add(&format!("cluster.{}", kind(at)), &TYPE_GLOBALS));
        all
    }

    /// Name of every action, in order: [`Layout::actions`] of them, for example `job.3.grow`; the
    /// last one is `wait`. `types` is as in [`Layout::features`].
    pub fn action_names(&self, types: &[String]) -> Vec<String> {
        let name = |action| match Action::decode(action, self) {
            Some(Action::Change { slot, verb: Verb::Place(kind) }) => match types.get(kind.index()) {
                Some(kind) => format!("job.{slot}.place.{kind}"),
                None => format!("job.{slot}.place.type{}", kind.index()),
            },
            Some(Action::Change { slot, verb }) => format!("job.{slot}.{verb}"),
            Some(Action::Scale { service, verb: ScaleVerb::Out }) => format!("service.{service}.add_replica"),
            Some(Action::Scale { service, verb: ScaleVerb::In }) => format!("service.{service}.remove_replica"),
            Some(Action::Loan(LoanVerb::Lend)) => "pool.lend".into(),
            Some(Action::Loan(LoanVerb::Reclaim)) => "pool.reclaim".into(),
            Some(Action::Wait) | None => "wait".into(),
        };
        (0..self.actions()).map(name).collect()
    }
}

/// Unit of a feature, empty for a name that is no feature. The factors are those of the encoder.
fn unit(name: &str) -> &'static str {
    match name {
        "log_age_secs"
        | "log_secs_since_change"
        | "log_remaining_secs_at_min"
        | "log_remaining_secs_at_working"
        | "log_saved_secs_per_gpu_up" => "0.1 ln(1 + s)",
        "log_attained_gpu_secs" => "0.1 ln(1 + accelerator s)",
        "log_secs_until_started" | "log_cold_start_secs" => "0.2 ln(1 + s)",
        "log_slo_latency_secs" => "ln(1 + s)",
        "log_restarts" => "0.5 ln(1 + restarts)",
        "held" | "min_gpus" | "max_gpus" | "requested_gpus" | "working" | "log_gpus_per_node" => {
            "0.25 ln(1 + accelerators)"
        }
        "log_total_gpus" => "0.1 ln(1 + accelerators)",
        "log_gpus_per_replica" => "0.5 ln(1 + accelerators)",
        "log_pending" | "log_hidden" => "0.2 ln(1 + jobs)",
        "log_rate" | "log_replica_throughput" => "0.2 ln(1 + requests/s)",
        "log_backlog" => "0.2 ln(1 + requests)",
        "log_ready" | "log_starting" => "0.25 ln(1 + replicas)",
        "change" => "0.25 replicas",
        "log_relative_speed" => "0.5 ln(speed ratio)",
        "log_speed" => "0.25 ln(speed ratio)",
        "priority" => "0.01 priority, -4 to 4",
        "demand_of_shorter" | "demand_share" => "shares of the cluster, at most 4",
        "working_share" | "tenant_share" | "tenant_quota_left" | "free_share" | "free_type_0" | "free_type_1"
        | "free_type_2" | "free_type_3" | "inference_share" | "lendable_share" | "lent_share" | "returning_share"
        | "share_of_cluster" => "share of the cluster",
        "free_share_of_type" => "share of the type",
        "active_per_slot" => "share of the slots",
        "pending_share" | "rank_by_remaining" => "share of the occupied slots",
        "actions_share" => "actions per 2 slots",
        "parallel_efficiency" => "ratio",
        "gain_up_per_gpu" | "loss_down_per_gpu" => "speeds at the smallest size, per accelerator",
        "utilization" | "expected_utilization" => "ratio, at most 4",
        "occupied" | "remaining_known" | "pending" | "changed" | "fits_up" | "runs" | "here" | "fits"
        | "on_arrival" | "on_completion" | "on_round" | "on_load" => "0 or 1",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::gym::layout;

    #[test]
    fn every_number_has_a_name_and_a_unit_and_every_action_a_name() {
        let plain = layout(3);
        let full = layout(3).with_services(2).with_pools().by_type(2).with_tenants();
        let types = ["t4".to_owned()];
        for layout in [plain, full] {
            let (features, actions) = (layout.features(&types), layout.action_names(&types));
            assert_eq!(features.len(), layout.obs_dim());
            assert_eq!(actions.len(), layout.actions());
            assert_eq!(actions.last().map(String::as_str), Some("wait"));
            let nameless: Vec<_> = features.iter().filter(|feature| feature.unit.is_empty()).collect();
            assert!(nameless.is_empty(), "no unit: {nameless:?}");
            let names: BTreeSet<_> = features.iter().map(|feature| &feature.name).collect();
            assert_eq!(names.len(), features.len(), "names are unique");
            assert_eq!(actions.iter().collect::<BTreeSet<_>>().len(), actions.len());
        }
        assert_eq!(plain.features(&[])[25].name, "job.1.log_age_secs");
        assert_eq!(full.action_names(&types)[3..5], ["job.0.place.t4", "job.0.place.type1"]);
    }
}
