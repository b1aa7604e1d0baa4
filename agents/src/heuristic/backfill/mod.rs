//! Batch scheduling: queues in an order, where jobs that have to wait may get a reservation and others may pass them.
//!
//! - `order`: the number by which a job is queued.
//! - `batch`: the rule.
//! - `artifact`: the rule as RLScheduler's simulator has it, for `goodput reproduce rlscheduler`.
//!
//! EASY backfill keeps a reservation for the first job alone (Lifka, JSSPP 1995). Conservative backfill keeps one for
//! every job, so that no job is ever put off by one behind it (Mu'alem and Feitelson, TPDS 2001). Both plan by the run
//! time that users ask for, and by the estimates of the run for jobs without one.

mod artifact;
mod batch;
mod order;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::heuristic::parameters::Parameterised;
use crate::heuristic::{ListedPolicy, Traits};

pub use artifact::{ArtifactQueue, QueueClock};
pub use batch::{Backfill, BatchQueue};
pub use order::{JobOrder, OrderedJob, QueueMoment, QueueOrder};

const TRAITS: Traits = Traits { preemptive: false, elastic: false, heterogeneous: false };

/// Entries of batch scheduling in the list of policies.
pub const LISTED: &[ListedPolicy] = &[
    ListedPolicy {
        name: "strict-order",
        about: "a batch queue in an order of choice; no job passes one that does not fit",
        source: "common practice; orders as their parameter says",
        traits: TRAITS,
        constructor: &Parameterised {
            defaults: BatchParameters::default,
            build: |parameters, _| Box::new(BatchQueue::new(parameters.order, Backfill::None)),
        },
        replica: None,
    },
    ListedPolicy {
        name: "easy",
        about: "a batch queue in an order of choice; jobs pass the first one where that does not put it off",
        source: "Lifka, JSSPP 1995",
        traits: TRAITS,
        constructor: &Parameterised {
            defaults: BatchParameters::default,
            build: |parameters, _| Box::new(BatchQueue::new(parameters.order, Backfill::First)),
        },
        replica: None,
    },
    ListedPolicy {
        name: "conservative",
        about: "a batch queue in an order of choice; jobs pass others where that puts none of them off",
        source: "Mu'alem and Feitelson, TPDS 2001",
        traits: TRAITS,
        constructor: &Parameterised {
            defaults: BatchParameters::default,
            build: |parameters, _| Box::new(BatchQueue::new(parameters.order, Backfill::Every)),
        },
        replica: None,
    },
];

/// Parameters of a [`BatchQueue`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchParameters {
    /// Order of the queue.
    #[schemars(extend("x-unit" = "", "x-source" = "first come, first served is common practice"))]
    pub order: JobOrder,
}
