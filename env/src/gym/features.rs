//! Names of all features of an observation, in order. The names and their order are part of the
//! schema of observations: a change to either changes its hash, and old bundles are refused.

/// Features of a slot, in order. They are part of the schema: a changed name, order or formula
/// changes the hash.
pub const SLOT_FEATURES: [&str; 24] = [
    "occupied",
    "log_age_secs",
    "log_attained_gpu_secs",
    "log_secs_since_change",
    "log_restarts",
    "log_secs_until_started",
    "held",
    "min_gpus",
    "max_gpus",
    "requested_gpus",
    "remaining_known",
    "rank_by_remaining",
    "demand_of_shorter",
    "log_remaining_secs_at_min",
    "working",
    "working_share",
    "pending",
    "changed",
    "log_remaining_secs_at_working",
    "parallel_efficiency",
    "gain_up_per_gpu",
    "loss_down_per_gpu",
    "log_saved_secs_per_gpu_up",
    "fits_up",
];

/// Features of the cluster, in order.
pub const GLOBAL_FEATURES: [&str; 16] = [
    "free_share",
    "log_total_gpus",
    "log_gpus_per_node",
    "active_per_slot",
    "pending_share",
    "log_pending",
    "log_hidden",
    "demand_share",
    "actions_share",
    "on_arrival",
    "on_completion",
    "on_round",
    "free_type_0",
    "free_type_1",
    "free_type_2",
    "free_type_3",
];

/// Features of a service slot, in order; part of the schema.
pub const SERVICE_FEATURES: [&str; 12] = [
    "occupied",
    "log_rate",
    "utilization",
    "expected_utilization",
    "log_backlog",
    "log_ready",
    "log_starting",
    "change",
    "log_slo_latency_secs",
    "log_gpus_per_replica",
    "log_cold_start_secs",
    "log_replica_throughput",
];

/// Features of the pools, in order; part of the schema.
pub const POOL_FEATURES: [&str; 5] = ["inference_share", "lendable_share", "lent_share", "returning_share", "on_load"];

/// Features of a job slot that describe the tenant of the job, after the features that all slots
/// have; part of the schema.
pub const TENANT_FEATURES: [&str; 3] = ["priority", "tenant_share", "tenant_quota_left"];

/// Features of a slot for each type, after all other features of the slot.
pub const TYPE_FEATURES: [&str; 5] = ["runs", "here", "log_relative_speed", "log_speed", "fits"];

/// Features of the cluster for each type, after all other features of the cluster.
pub const TYPE_GLOBALS: [&str; 2] = ["free_share_of_type", "share_of_cluster"];
