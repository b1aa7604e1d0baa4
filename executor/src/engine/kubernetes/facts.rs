//! Labels and annotations of a Job: by them it is given to the daemon, and what Kubernetes has no
//! field for is kept where a daemon that is started anew finds it.

use std::collections::BTreeMap;

use goodput_env::model::BatchLimits;

use super::per_gpu::PerGpu;
use crate::engine::{OnNode, batch_text};

/// Label of a Job that is given to the daemon; its value is `true`.
pub const MANAGED: &str = "goodput.dev/managed";
/// Label of the tenant, believed in the namespace of submissions only.
pub const TENANT: &str = "goodput.dev/tenant";
/// Scheduling gate of pods that wait until the daemon names their node.
pub const GATE: &str = "goodput.dev/placement";

/// Annotations of a Job and of its pod template.
pub(super) mod annotation {
    pub const NAME: &str = "goodput.dev/name";
    pub const GPUS: &str = "goodput.dev/gpus";
    pub const MIN: &str = "goodput.dev/min-gpus";
    pub const MAX: &str = "goodput.dev/max-gpus";
    pub const POD_GPUS: &str = "goodput.dev/gpus-per-pod";
    pub const CPUS: &str = "goodput.dev/cpus-per-gpu";
    pub const MEMORY: &str = "goodput.dev/memory-per-gpu-mib";
    pub const RESIZE: &str = "goodput.dev/resize";
    pub const PRIORITY: &str = "goodput.dev/priority";
    pub const DURATION_MS: &str = "goodput.dev/duration-ms";
    pub const SUBMIT_MS: &str = "goodput.dev/submit-ms";
    pub const APPLICATION: &str = "goodput.dev/application";
    pub const BATCH: &str = "goodput.dev/batch";
    pub const OWNER: &str = "goodput.dev/owner";
    pub const TOKEN: &str = "goodput.dev/token-hash";
    /// Hash of the key in the address of its AdaptDL supervisor.
    pub const SUPERVISOR: &str = "goodput.dev/supervisor-hash";
    pub const HANDS_OFF: &str = "goodput.dev/hands-off";
    /// Written by the daemon: starts so far, where the job belongs, and whether it is to run.
    pub const STARTS: &str = "goodput.dev/starts";
    pub const PLACEMENT: &str = "goodput.dev/placed-on";
    pub const WANTED: &str = "goodput.dev/wanted";
    /// Written by the daemon on the pod template, for the downward API.
    pub const KEY: &str = "goodput.dev/key";
    pub const ATTEMPT: &str = "goodput.dev/attempt";
    pub const WORLD: &str = "goodput.dev/world-size";
    pub const PODS: &str = "goodput.dev/pods";
    /// Written by the daemon on nodes that it cordons.
    pub const DRAINED: &str = "goodput.dev/drained";
}

/// Whether a job is to run, by the daemon's last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedState {
    /// The job is started, or runs.
    Running,
    /// The job is suspended.
    Held,
}

impl WantedState {
    /// Word of the annotation.
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Held => "held",
        }
    }
}

/// Facts in the annotations of a Job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the annotation of that name")]
pub struct JobNotes {
    pub name: Option<String>,
    pub gpus: Option<u32>,
    pub min: Option<u32>,
    pub max: Option<u32>,
    /// Accelerators of each pod, where the program needs a fixed number.
    pub pod_gpus: Option<u32>,
    /// Processors and memory for each accelerator.
    pub each: PerGpu,
    /// Whether running pods stay when the number of pods changes.
    pub in_place: bool,
    pub priority: Option<i32>,
    pub duration_ms: Option<i64>,
    pub submit_ms: Option<i64>,
    pub application: Option<String>,
    pub batch: Option<BatchLimits>,
    pub owner: Option<String>,
    pub token: Option<String>,
    /// Hash of the key in the address of its AdaptDL supervisor.
    pub supervisor: Option<String>,
    pub hands_off: bool,
    pub starts: u32,
    pub placement: Vec<OnNode>,
    pub wanted: Option<WantedState>,
}

impl JobNotes {
    /// Facts of annotations; what cannot be read is as if it were absent.
    pub fn read(annotations: &BTreeMap<String, String>) -> Self {
        let word = |name: &str| annotations.get(name).filter(|text| !text.is_empty());
        fn number<T: std::str::FromStr>(text: Option<&String>) -> Option<T> {
            text.and_then(|text| text.parse().ok())
        }
        Self {
            name: word(annotation::NAME).cloned(),
            gpus: number(word(annotation::GPUS)),
            min: number(word(annotation::MIN)),
            max: number(word(annotation::MAX)),
            pod_gpus: number(word(annotation::POD_GPUS)).filter(|&gpus: &u32| gpus > 0),
            each: PerGpu { cpus: number(word(annotation::CPUS)), memory_mib: number(word(annotation::MEMORY)) },
            in_place: word(annotation::RESIZE).is_some_and(|text| text == "in-place"),
            priority: number(word(annotation::PRIORITY)),
            duration_ms: number(word(annotation::DURATION_MS)),
            submit_ms: number(word(annotation::SUBMIT_MS)),
            application: word(annotation::APPLICATION).cloned(),
            batch: word(annotation::BATCH).and_then(|text| batch_text::read(text).ok()),
            owner: word(annotation::OWNER).cloned(),
            token: word(annotation::TOKEN).cloned(),
            supervisor: word(annotation::SUPERVISOR).cloned(),
            hands_off: word(annotation::HANDS_OFF).is_some_and(|text| text == "true"),
            starts: number(word(annotation::STARTS)).unwrap_or(0),
            placement: word(annotation::PLACEMENT).map(|text| placement(text)).unwrap_or_default(),
            wanted: word(annotation::WANTED).and_then(|text| {
                [WantedState::Running, WantedState::Held].into_iter().find(|wanted| wanted.word() == text.as_str())
            }),
        }
    }
}

/// Placement as an annotation: `n0=4,n1=4`.
pub fn placement_text(placement: &[OnNode]) -> String {
    placement.iter().map(|on| format!("{}={}", on.node, on.gpus)).collect::<Vec<_>>().join(",")
}

fn placement(text: &str) -> Vec<OnNode> {
    let on = |part: &str| {
        let (node, gpus) = part.split_once('=')?;
        Some(OnNode { node: node.into(), gpus: gpus.parse().ok()?, ..OnNode::default() })
    };
    text.split(',').filter_map(on).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nonsense_is_not() {
        let on = |node: &str, gpus| OnNode { node: node.into(), gpus, ..OnNode::default() };
        let here = vec![on("n0", 4), on("n1.example", 2), on("n0", 1)];
        let limits = BatchLimits::new(128, 4096, 32, 512).ok();
        let mut annotations = BTreeMap::from([
            (annotation::PLACEMENT.to_owned(), placement_text(&here)),
            (annotation::BATCH.to_owned(), limits.map(batch_text::write).unwrap_or_default()),
            (annotation::STARTS.to_owned(), "3".to_owned()),
            (annotation::WANTED.to_owned(), "held".to_owned()),
            (annotation::MIN.to_owned(), "many".to_owned()),
            (annotation::POD_GPUS.to_owned(), "0".to_owned()),
        ]);
        let facts = JobNotes::read(&annotations);
        assert_eq!((facts.placement, facts.batch), (here, limits));
        assert_eq!((facts.starts, facts.wanted), (3, Some(WantedState::Held)));
        assert_eq!((facts.min, facts.pod_gpus), (None, None), "what is no number is not there");
        annotations.insert(annotation::WANTED.into(), "perhaps".into());
        assert_eq!(JobNotes::read(&annotations).wanted, None);
    }
}
