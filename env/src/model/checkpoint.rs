//! Checkpoints: what one holds, what writing it costs, and how often it pays.
//!
//! A checkpoint is the model's parameters, the state of its optimiser and how far the data were
//! read; without the last, a job that is restored sees samples twice or never. Its cost is bytes
//! over bandwidth. The best interval between two writes balances them against work that a fault
//! undoes (Young, CACM 1974; Daly, FGCS 2006).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of one parameter with its optimiser state: four of the weight and eight of two moments
/// (Adam in single precision).
pub const BYTES_PER_PARAMETER: f64 = 12.0;

/// Bytes of one replica's progress through the data: epoch, position and the sampler's seed.
pub const BYTES_PER_SAMPLER: f64 = 24.0;

/// Millions of parameters of the applications that published traces train: BERT base (Devlin et al.
/// 2019), ResNet-50 (He et al. 2016), YOLOv3 (Redmon and Farhadi 2018), ResNet-18 for CIFAR-10,
/// Deep Speech 2 (Amodei et al. 2016), NeuMF on MovieLens-1M (derived from He et al. 2017).
const MILLIONS: &[(&str, f64)] =
    &[("bert", 110.0), ("imagenet", 25.6), ("yolov3", 61.9), ("cifar10", 11.2), ("deepspeech2", 38.0), ("ncf", 1.6)];

/// Store of checkpoints. The bandwidths are assumptions of the order of present hardware, and the
/// configuration can set others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Store {
    /// Main memory of the node, over PCIe: 12 GB/s; gone with the node.
    Memory,
    /// A drive of the node: 2 GB/s; gone with the node.
    Nvme,
    /// A shared file system: 0.5 GB/s a job.
    #[default]
    Shared,
}

impl Store {
    /// Gigabytes per second that one job can write.
    pub fn gb_per_sec(self) -> f64 {
        match self {
            Self::Memory => 12.0,
            Self::Nvme => 2.0,
            Self::Shared => 0.5,
        }
    }

    /// Whether what was written is still there when one of the job's nodes has failed.
    pub fn survives_node(self) -> bool {
        self == Self::Shared
    }
}

/// Interval between two checkpoints of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Interval {
    /// One interval for all jobs.
    Fixed {
        /// Seconds of work.
        secs: f64,
    },
    /// [`young`] by the true rate of faults of what the job holds.
    #[default]
    Young,
    /// [`daly`] by the true rate of faults of what the job holds.
    Daly,
    /// [`young`] by the rate of faults seen so far in this run, chosen anew at each start of the
    /// job. Before any, what is published ([`super::fault::PUBLISHED_MTBF_HOURS`]) counts as one
    /// fault seen.
    Adaptive,
}

/// Checkpoints that the jobs of a run write.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Checkpointing {
    /// Time that a job works between two checkpoints.
    pub interval: Interval,
    /// Store that the checkpoints are written to.
    pub store: Store,
    /// Bandwidth in gigabytes per second; absent: the usual one of the store.
    pub gb_per_sec: Option<f64>,
    /// Millions of parameters of a job with an unknown application.
    pub other_millions: f64,
}

impl Default for Checkpointing {
    fn default() -> Self {
        Self { interval: Interval::Young, store: Store::Shared, gb_per_sec: None, other_millions: 110.0 }
    }
}

impl Checkpointing {
    /// Bytes of one checkpoint of a job that trains `application` with `replicas`: parameters,
    /// optimiser and progress through the data.
    pub fn bytes(&self, application: &str, replicas: u32) -> f64 {
        let millions =
            MILLIONS.iter().find(|(name, _)| *name == application).map_or(self.other_millions, |known| known.1);
        millions * 1e6 * BYTES_PER_PARAMETER + f64::from(replicas) * BYTES_PER_SAMPLER
    }

    /// Seconds one checkpoint takes, during which the job stands still.
    pub fn write_secs(&self, application: &str, replicas: u32) -> f64 {
        self.bytes(application, replicas) / (1e9 * self.gb_per_sec.unwrap_or(self.store.gb_per_sec()))
    }
}

/// Young's interval between checkpoints: seconds of work, for checkpoints of `write_secs` and
/// `mtbf_secs` between faults.
pub fn young(write_secs: f64, mtbf_secs: f64) -> f64 {
    (2.0 * write_secs * mtbf_secs).sqrt()
}

/// Daly's higher-order interval (his equation 37): [`young`] where faults are rare, and no longer
/// than the time between faults.
pub fn daly(write_secs: f64, mtbf_secs: f64) -> f64 {
    if write_secs >= 2.0 * mtbf_secs {
        return mtbf_secs;
    }
    let ratio = write_secs / (2.0 * mtbf_secs);
    young(write_secs, mtbf_secs) * (1.0 + ratio.sqrt() / 3.0 + ratio / 9.0) - write_secs
}

/// Share of time lost to first order at `interval_secs`: writes, work done again, and
/// `recovery_secs` a fault.
pub fn waste(interval_secs: f64, write_secs: f64, mtbf_secs: f64, recovery_secs: f64) -> f64 {
    write_secs / interval_secs + interval_secs / (2.0 * mtbf_secs) + recovery_secs / mtbf_secs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_parameters_optimiser_and_progress() {
        let checkpointing = Checkpointing::default();
        assert_eq!(checkpointing.bytes("bert", 8), 110e6 * 12.0 + 8.0 * 24.0);
        assert!((checkpointing.write_secs("bert", 8) - 2.64).abs() < 1e-6);
        assert_eq!(checkpointing.bytes("unheard of", 1), 110e6 * 12.0 + 24.0);
        let fast = Checkpointing { store: Store::Memory, ..checkpointing };
        assert!(fast.write_secs("bert", 8) < 0.12 && !fast.store.survives_node());
        assert_eq!(
            Checkpointing { gb_per_sec: Some(12.0), ..checkpointing }.write_secs("bert", 8),
            fast.write_secs("bert", 8)
        );
    }

    #[test]
    fn the_best_interval_is_where_waste_is_least() {
        for (write, mtbf) in [(5.0, 10_800.0), (30.0, 86_400.0), (60.0, 28_800.0)] {
            let best = waste(young(write, mtbf), write, mtbf, 30.0);
            for factor in [0.5, 0.8, 1.25, 2.0] {
                assert!(waste(young(write, mtbf) * factor, write, mtbf, 30.0) > best);
            }
        }
        assert_eq!(daly(100.0, 40.0), 40.0);
    }
}
