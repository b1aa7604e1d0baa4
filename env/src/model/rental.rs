//! Rented nodes: how many, at what price, and when a provider takes them back.
//!
//! A node is paid from its order until it is given back, by the millisecond. Amazon EC2 bills an instance from the
//! moment it runs, and not while it is `pending` (EC2 user guide, instance life cycle). The seconds in which the
//! provider looks for a machine are therefore paid here and not there; the boot, the driver and the images, which are
//! most of a start-up, are paid in both.
//!
//! A *spot* node is cheaper, and the provider takes it back at a time of its own choice. EC2 gives notice two minutes
//! before (EC2 user guide, Spot Instance interruption notices). Times between reclaims are exponential, which is an
//! assumption. A draw is keyed by the seed, the slot of the node and the number of the rental, and by no policy.

use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::autoscale::{AutoscaleConfig, Measure};
use crate::seed::{Stream, keyed};
use crate::time::SimTime;

/// Rule that chooses the number of rented nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SizeRule {
    /// Speed-ups count useful samples: the cluster grows as gradients get noisier (Pollux, OSDI'21, section 4.2.2).
    #[default]
    Goodput,
    /// Speed-ups count samples: the cluster is large from the first minutes (after Or et al., MLSys'20).
    Throughput,
    /// All nodes, all the time.
    Fixed,
}

impl SizeRule {
    /// Measure of speed-up that the rule goes by; `None` where it looks at none.
    pub fn measure(self) -> Option<Measure> {
        match self {
            Self::Goodput => Some(Measure::Goodput),
            Self::Throughput => Some(Measure::Throughput),
            Self::Fixed => None,
        }
    }
}

/// Nodes that the provider may take back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spot {
    /// Mean hours from the moment a spot node comes into service to the notice that it is taken back.
    pub mean_hours: f64,
    /// Price of a spot node by the hour, US dollars.
    pub price_per_hour: f64,
    /// Seconds from the notice to the end of the node. At the notice every job leaves the node, and saves its work if
    /// the notice is long enough for its checkpoint. With 0 the node vanishes like a node that fails.
    #[serde(default = "two_minutes")]
    pub notice_secs: f64,
}

fn two_minutes() -> f64 {
    120.0
}

impl Spot {
    /// Time in service of rental `number` of slot `slot` until the notice.
    pub fn lifetime(&self, seed: u64, slot: u32, number: u32) -> SimTime {
        let draw: f64 = keyed(seed, Stream::Spot, u64::from(slot) << 32 | u64::from(number)).random();
        // One less the draw is above 0, so its logarithm is finite.
        SimTime::from_secs_f64(-3600.0 * self.mean_hours * (1.0 - draw).ln())
    }
}

/// Rented nodes: `[environment.rental]`. The nodes of `[[cluster.groups]]` are the most that are rented at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rental {
    /// Fewest nodes. The run begins with as many in service. They are never spot nodes.
    pub min_nodes: u32,
    /// Rule that chooses the number of nodes.
    pub rule: SizeRule,
    /// Mean utility below which nodes are given back. The utility is the sum of the jobs' speed-ups over the number
    /// of accelerators in service.
    pub low: f64,
    /// Mean utility above which nodes are ordered.
    pub high: f64,
    /// Number of samples in the mean.
    pub window: usize,
    /// Seconds between two samples of the utility.
    pub interval_secs: f64,
    /// Seconds from the order of a node until it is in service.
    pub start_up_secs: f64,
    /// Price of a node by the hour, US dollars.
    pub price_per_hour: f64,
    /// Nodes beyond `min_nodes` are spot nodes; absent: no node is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spot: Option<Spot>,
}

impl Default for Rental {
    /// Thresholds of AdaptDL, window and interval of the simulator of Pollux' artifact. A start-up of two minutes and
    /// the price of 1 are assumptions.
    fn default() -> Self {
        Self {
            min_nodes: 1,
            rule: SizeRule::Goodput,
            low: 0.35,
            high: 0.65,
            window: 15,
            interval_secs: 60.0,
            start_up_secs: 120.0,
            price_per_hour: 1.0,
            spot: None,
        }
    }
}

impl Rental {
    /// Time between two samples of the utility.
    pub fn interval(&self) -> SimTime {
        SimTime::from_secs_f64(self.interval_secs)
    }

    /// Time from the order of a node until it is in service.
    pub fn start_up(&self) -> SimTime {
        SimTime::from_secs_f64(self.start_up_secs)
    }

    /// Terms of the node in slot `slot`; `None` where it is on demand.
    pub fn spot_of(&self, slot: u32) -> Option<Spot> {
        self.spot.filter(|_| slot >= self.min_nodes)
    }

    /// Bounds of the controller of a cluster of at most `nodes` nodes.
    pub fn bounds(&self, nodes: u32) -> AutoscaleConfig {
        let Self { min_nodes, low, high, window, .. } = *self;
        AutoscaleConfig { min_nodes, max_nodes: nodes, low, high, window }
    }

    /// Price of that much time of nodes, milliseconds on demand and as spot nodes.
    pub fn cost(&self, on_demand_millis: i64, spot_millis: i64) -> f64 {
        let spot_price = self.spot.map_or(0.0, |spot| spot.price_per_hour);
        (on_demand_millis as f64 * self.price_per_hour + spot_millis as f64 * spot_price) / 3.6e6
    }
}
