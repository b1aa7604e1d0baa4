//! Published constants by application, and the split of the total of a cold start.

use super::components::Components;

/// Seconds by application name, and the seconds of any other application.
pub(super) type Table = (&'static [(&'static str, i64)], i64);

pub(super) const SIA_FULL: Table =
    (&[("imagenet", 250), ("bert", 120), ("yolov3", 80), ("cifar10", 50), ("deepspeech2", 25), ("ncf", 15)], 30);
pub(super) const SIA_POLICY: Table =
    (&[("imagenet", 250), ("bert", 120), ("yolov3", 80), ("deepspeech2", 25), ("cifar10", 20)], 30);
pub(super) const SIA_SIMULATED_POLICY: Table =
    (&[("imagenet", 250), ("bert", 120), ("yolov3", 45), ("cifar10", 30), ("deepspeech2", 25)], 30);
/// Seconds of cold starts. The publication has none for other applications, so they get the second
/// longest.
pub(super) const DEEPBOOT_FULL: Table =
    (&[("bert", 103), ("imagenet", 35), ("yolov3", 26), ("ncf", 25), ("cifar10", 24), ("deepspeech2", 18)], 35);
pub(super) const DEEPBOOT_UNIFORM: Table = (&[], 60);
/// Seconds of cold starts of serving replicas.
pub(super) const DEEPBOOT_INFER: Table =
    (&[("bert", 8), ("cifar10", 6), ("imagenet", 6), ("yolov3", 6), ("deepspeech2", 4), ("ncf", 4)], 6);
/// Seconds of a start when container and data are already present (`NEXT_DELAY`).
const DEEPBOOT_NEXT: Table =
    (&[("bert", 5), ("imagenet", 3), ("yolov3", 3), ("cifar10", 3), ("ncf", 2), ("deepspeech2", 1)], 3);

/// Milliseconds from training to serving on V100s, beyond the time of a loaded model (PipeSwitch
/// repository, `log-1019.txt`): ResNet-152, Inception v3, BERT base. Fractions are rounded up to
/// whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measured([i64; 3]);

pub(super) const PIPESWITCH: Measured = Measured([7, 1, 15]);
pub(super) const MPS: Measured = Measured([622, 424, 483]);
pub(super) const STOP_NEXT: Measured = Measured([188, 149, 182]);
pub(super) const KILL_RESTART: Measured = Measured([5641, 6236, 7204]);

impl Measured {
    /// Value of the closest measured model: BERT for BERT, Inception for Inception, ResNet for all
    /// others.
    pub(super) fn millis(self, application: &str) -> i64 {
        self.0[match application {
            "bert" | "bert_base" => 2,
            "inception_v3" => 1,
            _ => 0,
        }]
    }
}

/// Parameters of the applications' models, millions: BERT base (Devlin et al. 2019), ResNet-50 and
/// ResNet-18 (He et al. 2016), YOLOv3 (Redmon and Farhadi 2018), Deep Speech 2 (Amodei et al.
/// 2016), NeuMF on MovieLens-1M (He et al. 2017). Any other model counts as a ResNet-50.
const MILLION_PARAMETERS: Table =
    (&[("bert", 110), ("imagenet", 26), ("yolov3", 62), ("cifar10", 11), ("deepspeech2", 38), ("ncf", 2)], 26);
/// Bytes of a 32-bit weight and of two moments of an optimiser.
const BYTES_PER_PARAMETER: i64 = 4 + 8;

pub(super) fn look_up((known, other): Table, application: &str) -> i64 {
    known.iter().find(|(name, _)| *name == application).map_or(other, |(_, value)| *value)
}

/// Parts of a cold start. The totals are published and the split is derived here.
///
/// The container dominates for small networks and the data for BERT, following the text around
/// DeepBoot's figure 1. The time of a warm start is attributed to the model.
pub(super) fn cold_start(application: &str) -> Components {
    let warm = 1000 * look_up(DEEPBOOT_NEXT, application);
    rest(application, 1000 * look_up(DEEPBOOT_FULL, application) - warm, warm)
}

/// Warm part of a start, attributed to the model.
pub(super) fn warm_start(application: &str) -> Components {
    Components { model_init: 1000 * look_up(DEEPBOOT_NEXT, application), derived: true, ..Components::default() }
}

/// Growth with fast elasticity: new workers start cold in proportion to their share of the
/// accelerators, rounded down to whole seconds.
pub(super) fn growing(application: &str, from: u32, to: u32) -> Components {
    let (cold, warm) = (look_up(DEEPBOOT_FULL, application), look_up(DEEPBOOT_NEXT, application));
    let new = (cold - warm) * i64::from(to - from) / i64::from(to);
    rest(application, 1000 * new, 1000 * warm)
}

fn rest(application: &str, millis: i64, model_init: i64) -> Components {
    let container = millis * if application == "bert" { 25 } else { 70 } / 100;
    Components { container, data_load: millis - container, model_init, derived: true, ..Components::default() }
}

/// Milliseconds to transfer a checkpoint of `application` at the given MB/s.
pub(super) fn transfer_millis(application: &str, megabytes_per_sec: u32) -> i64 {
    // Millions of parameters times the bytes of one are megabytes.
    let megabytes = look_up(MILLION_PARAMETERS, application) * BYTES_PER_PARAMETER;
    (1000 * megabytes).div_euclid(i64::from(megabytes_per_sec.max(1)))
}
