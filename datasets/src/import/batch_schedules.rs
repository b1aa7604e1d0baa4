//! Batch sizes of the jobs of Shockwave's traces by epoch: Accordion and the gradient noise scale.
//!
//! Both methods raise the batch size while a job trains. Shockwave's evaluation does not measure gradients. It plays
//! what the two methods did once (`scheduler.py` and `utils.py` of its artifact), and the tables below are those.

use crate::csv_rows::excerpt;
use crate::error::RowProblem;

/// Way in which a job chooses its batch size while it trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchMode {
    /// The batch size never changes.
    Static,
    /// Accordion (Agarwal et al., MLSys 2021): the first batch size in critical regimes, the largest one elsewhere.
    Accordion,
    /// Gradient noise scale (McCandlish et al., 2018): the batch size doubles as the noise grows.
    NoiseScale,
}

impl BatchMode {
    /// The mode that the column `mode` of a trace names.
    pub(super) fn parse(word: &[u8]) -> Result<Self, RowProblem> {
        let known = [Self::Static, Self::Accordion, Self::NoiseScale];
        let mode = known.into_iter().find(|mode| mode.name().as_bytes() == word);
        let expected = "static, accordion or gns";
        mode.ok_or_else(|| RowProblem::Value { column: "mode", value: excerpt(word), expected })
    }

    /// Name of the schedule in a trace.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Accordion => "accordion",
            Self::NoiseScale => "gns",
        }
    }
}

/// Source of an Accordion job's critical regimes. The artifact has two that disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regimes {
    /// Regimes by which the simulator changes batch sizes (`scheduler.py`).
    Simulated,
    /// Regimes of the profile that the artifact takes the run time of a job from (`utils.py`). They also hold the first
    /// 30 % of the epochs, and two more stretches of a recommendation.
    Profiled,
}

/// Model of the traces, with its public data set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TracedModel {
    /// Name of the model.
    pub name: &'static str,
    /// Samples of the data set.
    pub samples: u32,
    /// Largest batch size that was measured.
    pub largest_batch: u32,
}

/// Models of the traces.
pub const MODELS: [TracedModel; 5] = [
    TracedModel { name: "ResNet-18", samples: 50_000, largest_batch: 256 },
    TracedModel { name: "ResNet-50", samples: 100_000, largest_batch: 128 },
    TracedModel { name: "Transformer", samples: 10_000, largest_batch: 128 },
    TracedModel { name: "LM", samples: 59_675, largest_batch: 80 },
    TracedModel { name: "Recommendation", samples: 117_907, largest_batch: 8192 },
];

/// Batch size of a job by epoch.
#[derive(Clone, Copy, Debug)]
pub struct BatchSchedule {
    /// Model that the job trains.
    pub model: TracedModel,
    /// First batch size.
    pub first: u32,
    /// Accelerators of the job.
    pub gpus: u32,
    /// Way in which the batch size is chosen.
    pub mode: BatchMode,
}

impl BatchSchedule {
    /// Batch size in epoch `epoch` of `epochs`, from 0.
    pub fn batch(&self, epoch: u32, epochs: u32, regimes: Regimes) -> u32 {
        let largest = self.model.largest_batch;
        match self.mode {
            BatchMode::Static => self.first,
            BatchMode::Accordion if self.model.name == "Transformer" => self.first,
            BatchMode::Accordion if self.is_critical(epoch, epochs, regimes) => self.first,
            BatchMode::Accordion => largest,
            BatchMode::NoiseScale => {
                let doublings = self.doublings().iter().filter(|&&from| epoch >= from).count();
                (self.first << doublings).min(largest.max(self.first))
            }
        }
    }

    /// Samples over the batch size, rounded up: steps of one epoch.
    pub fn steps_per_epoch(&self, batch: u32) -> u32 {
        self.model.samples.div_ceil(batch)
    }

    fn is_critical(&self, epoch: u32, epochs: u32, regimes: Regimes) -> bool {
        let profiled = regimes == Regimes::Profiled;
        // The artifact compares `epoch > 0.3 epochs`.
        if profiled && f64::from(epoch) <= 0.3 * f64::from(epochs) {
            return true;
        }
        match self.model.name {
            "LM" => epoch < 10,
            "ResNet-50" => epoch % 30 < 10,
            "ResNet-18" => {
                let head = if self.first == 256 { 20 } else { 10 };
                epoch < head || (150..160).contains(&epoch) || (250..260).contains(&epoch)
            }
            // Recommendation.
            _ => {
                let head = match self.first {
                    ..=1024 => 30,
                    2048 => 40,
                    _ => 10,
                };
                epoch < head || profiled && ((60..70).contains(&epoch) || (80..90).contains(&epoch))
            }
        }
    }

    /// Epochs in which the batch size doubles; none where the table of the artifact has none.
    fn doublings(&self) -> &'static [u32] {
        let of_job = |&&(model, first, gpus, _): &&Doublings| {
            model == self.model.name && first == self.first && gpus == self.gpus
        };
        DOUBLINGS.iter().find(of_job).map_or(&[], |&(_, _, _, epochs)| epochs)
    }
}

/// Model, first batch size, accelerators, and the epochs in which the batch size doubles.
type Doublings = (&'static str, u32, u32, &'static [u32]);

/// The table of the gradient noise scale (`get_gns_bs_pattern` in `utils.py` of the artifact).
const DOUBLINGS: &[Doublings] = &[
    ("ResNet-18", 16, 1, &[31, 41, 51, 71]),
    ("ResNet-18", 32, 1, &[21, 31, 51]),
    ("ResNet-18", 64, 1, &[11, 31]),
    ("ResNet-18", 128, 1, &[11]),
    ("ResNet-18", 16, 2, &[21, 31, 91, 111]),
    ("ResNet-18", 32, 2, &[11, 21, 41]),
    ("ResNet-18", 64, 2, &[21, 41]),
    ("ResNet-18", 128, 2, &[41]),
    ("ResNet-18", 16, 4, &[11, 21, 81, 91]),
    ("ResNet-18", 32, 4, &[21, 31, 61]),
    ("ResNet-18", 64, 4, &[11, 61]),
    ("ResNet-18", 128, 4, &[11]),
    ("ResNet-50", 64, 1, &[101]),
    ("ResNet-50", 32, 2, &[101, 111]),
    ("ResNet-50", 64, 2, &[81]),
    ("ResNet-50", 32, 4, &[131, 221]),
    ("ResNet-50", 64, 4, &[191]),
    ("LM", 5, 1, &[31, 41, 61, 71]),
    ("LM", 10, 1, &[11, 21, 41]),
    ("LM", 20, 1, &[11, 41]),
    ("LM", 40, 1, &[11]),
    ("LM", 5, 2, &[31, 51, 61, 71]),
    ("LM", 10, 2, &[11, 31, 41]),
    ("LM", 20, 2, &[31, 41]),
    ("LM", 40, 2, &[11]),
    ("LM", 5, 4, &[11, 31, 71, 91]),
    ("LM", 10, 4, &[11, 31, 61]),
    ("LM", 20, 4, &[11, 61]),
    ("LM", 40, 4, &[61]),
    ("Recommendation", 512, 1, &[21, 41, 71, 91]),
    ("Recommendation", 1024, 1, &[21, 51, 91]),
    ("Recommendation", 2048, 1, &[21, 41]),
    ("Recommendation", 4096, 1, &[41]),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(name: &str, first: u32, gpus: u32, mode: BatchMode, at: &[u32]) -> Vec<u32> {
        let model = MODELS.into_iter().find(|model| model.name == name).expect("a model of the traces");
        let schedule = BatchSchedule { model, first, gpus, mode };
        at.iter().map(|&epoch| schedule.batch(epoch, 100, Regimes::Simulated)).collect()
    }

    #[test]
    fn the_noise_scale_doubles_and_stops_at_the_largest_batch() {
        assert_eq!(
            batches("ResNet-18", 32, 4, BatchMode::NoiseScale, &[0, 20, 21, 31, 61, 900]),
            [32, 32, 64, 128, 256, 256]
        );
        assert_eq!(batches("LM", 80, 1, BatchMode::NoiseScale, &[0, 500]), [80, 80], "no room to double");
    }

    #[test]
    fn accordion_returns_to_the_first_batch_in_critical_regimes() {
        assert_eq!(
            batches("ResNet-50", 32, 1, BatchMode::Accordion, &[0, 9, 10, 29, 30, 40]),
            [32, 32, 128, 128, 32, 128]
        );
        assert_eq!(batches("Transformer", 16, 1, BatchMode::Accordion, &[0, 99]), [16, 16]);
    }

    #[test]
    fn a_profile_keeps_the_first_batch_for_longer() {
        let schedule = BatchSchedule { model: MODELS[3], first: 20, gpus: 1, mode: BatchMode::Accordion };
        let of = |regimes| [10, 30, 31].map(|epoch| schedule.batch(epoch, 100, regimes));
        assert_eq!(of(Regimes::Simulated), [80, 80, 80]);
        assert_eq!(of(Regimes::Profiled), [20, 20, 80]);
    }
}
