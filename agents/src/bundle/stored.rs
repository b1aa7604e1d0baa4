//! A bundle's bytes: a safetensors file with the manifest as JSON in its metadata.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use goodput_env::gym::Layout;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::card::Card;
use super::error::BundleError;
use super::model::{FORMAT, Model, PolicyBundle};
use crate::compose::NamedPolicy;
use crate::nets::archive::{Archive, ArchiveError, Blob, Entry, write_with};
use crate::nets::normaliser::Normaliser;
use crate::nets::onnx::OnnxNet;
use crate::nets::weights::{Layer, MlpConfig, NetConfig, SetConfig, Weights};
use crate::policies::hold::{self, LearnedHold};
use crate::policies::linear::Linear;
use crate::policies::queue::{self, LearnedQueue, QueueRule, QueueScore};
use crate::policies::utility::{Experience, Group, Theta, Utility};

/// Largest number of slots, features or verbs believed: buffers of their products are allocated.
const LARGEST: usize = 4096;
/// Name of an ONNX graph among the tensors.
const GRAPH: &str = "graph.onnx";
/// Key of the manifest in the file's metadata.
const MANIFEST: &str = "goodput.bundle";

/// The manifest as stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    format: u32,
    kind: Kind,
    layout: Layout,
    normaliser_limit: Option<f32>,
    card: Card,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Set(SetConfig),
    Mlp(MlpConfig),
    Onnx,
    Linear,
    Utility(StoredUtility),
    Queue(StoredQueue),
    Hold(StoredHold),
}

/// Manifest of an order of a queue.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredQueue {
    rule: QueueRule,
    /// Set encoder over the queue; absent: a weighted sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    net: Option<SetConfig>,
}

/// Manifest of a choice around a published policy.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredHold {
    teacher: String,
    net: SetConfig,
    /// Absent: nothing is held back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    threshold: Option<f32>,
}

/// Name of the weights of a linear score.
const SCORE: &str = "score.weight";
/// Slots of a stored set encoder over a queue or over changes. Its weights do not depend on their number.
const STORED_SLOTS: usize = 1;

/// Manifest of a utility, which gives meaning to its tensors.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredUtility {
    /// Models that there is experience of, with the number of quantiles.
    experience: BTreeMap<String, usize>,
    /// Whether a job is believed to be as fast as others of its model.
    #[serde(default)]
    siblings: bool,
    /// Whether the utility judges sizes by throughput alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    throughput_only: bool,
    /// Groups of parameters that it has beside those of all utilities.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    groups: BTreeSet<Group>,
}

impl StoredUtility {
    fn of(utility: &Utility) -> Self {
        let models = utility.experience.models();
        Self {
            experience: models.map(|(model, works)| (model.to_owned(), works.len())).collect(),
            siblings: utility.siblings,
            throughput_only: !utility.efficiency,
            groups: utility.theta.groups().clone(),
        }
    }
}

/// The part of the manifest that every version has.
#[derive(Deserialize)]
struct Version {
    format: u32,
}

impl PolicyBundle {
    /// Parses the bytes of a bundle; `path` is only for messages.
    ///
    /// # Errors
    /// When they are not those of a sound bundle of this format.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self, BundleError> {
        let explain = |source: ArchiveError| {
            let path = path.to_owned();
            match source {
                ArchiveError::NotAnArchive { .. } | ArchiveError::NoHeader { .. } => {
                    BundleError::NotABundle { path, source }
                }
                _ => BundleError::Damaged { path, source },
            }
        };
        let archive = Archive::read(bytes).map_err(explain)?;
        // Only the version is read first, because the rest may have changed between versions.
        let Version { format } = archive.header(MANIFEST).map_err(explain)?;
        if format != FORMAT {
            return Err(BundleError::Format { path: path.to_owned(), found: format });
        }
        let manifest: Manifest = archive.header(MANIFEST).map_err(explain)?;
        Self::assemble(&archive, manifest).map_err(explain)
    }

    fn assemble(archive: &Archive<'_>, manifest: Manifest) -> Result<Self, ArchiveError> {
        let layout = manifest.layout;
        let sizes = [layout.slots, layout.slot_features, layout.globals, layout.verbs, layout.services, layout.types];
        if sizes.iter().any(|&size| size > LARGEST) {
            let reason = format!("a layout of {sizes:?} is not one of ours");
            return Err(ArchiveError::BadHeader { reason });
        }
        let net = |config: NetConfig| {
            let weights = Weights::from_data(&config, layout, numbers(archive, &config.layers(&layout))?);
            weights.map(Model::Net).map_err(|error| ArchiveError::BadHeader { reason: error.to_string() })
        };
        let model = match manifest.kind {
            Kind::Set(config) => net(NetConfig::Set(config))?,
            Kind::Mlp(config) => net(NetConfig::Mlp(config))?,
            Kind::Onnx => {
                let net = OnnxNet::new(archive.bytes(GRAPH)?, layout);
                Model::Onnx(net.map_err(|error| ArchiveError::BadHeader { reason: error.to_string() })?)
            }
            Kind::Utility(stored) => Model::Utility(utility(archive, stored)?),
            Kind::Queue(stored) => Model::Queue(queue(archive, stored)?),
            Kind::Hold(stored) => Model::Hold(held(archive, stored)?),
            Kind::Linear => {
                let mut weights = archive.tensor("verbs.weight", &[layout.verbs, layout.slot_features])?;
                weights.extend(archive.tensor("wait.bias", &[layout.others()])?);
                Model::Linear(
                    Linear::new(layout, weights).ok_or_else(|| ArchiveError::BadHeader { reason: "layout".into() })?,
                )
            }
        };
        let normaliser = manifest.normaliser_limit.map(|limit| {
            let read = |name: &str| archive.tensor(name, &[Normaliser::len(&layout)]);
            let (mean, deviation) = (read("normaliser.mean")?, read("normaliser.deviation")?);
            let reason = "a normaliser needs a positive limit and positive deviations".to_owned();
            Normaliser::new(layout, mean, deviation, limit).ok_or(ArchiveError::BadHeader { reason })
        });
        Ok(Self { model, normaliser: normaliser.transpose()?, card: manifest.card })
    }

    /// The bytes of the bundle; the same bundle gives the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let layout = *self.layout();
        let mut tensors: Vec<Entry<'_>> = Vec::new();
        let mut blobs: Vec<Blob<'_>> = Vec::new();
        let theta: Vec<f32> =
            self.utility().iter().flat_map(|utility| utility.theta.values()).map(|value| value as f32).collect();
        if let Some(utility) = self.utility() {
            tensors.push(("theta".into(), vec![theta.len()], &theta));
            let models = utility.experience.models();
            tensors.extend(models.map(|(model, works)| (format!("experience.{model}"), vec![works.len()], works)));
        }
        let kind = match &self.model {
            Model::Net(weights) => {
                tensors.extend(entries(weights.layers(), weights.data()));
                match weights.config() {
                    NetConfig::Set(config) => Kind::Set(config.clone()),
                    NetConfig::Mlp(config) => Kind::Mlp(config.clone()),
                }
            }
            Model::Onnx(net) => {
                blobs.push((GRAPH, net.bytes()));
                Kind::Onnx
            }
            Model::Linear(linear) => {
                let (verbs, wait) = linear.weights().split_at(layout.verbs * layout.slot_features);
                tensors.push(("verbs.weight".into(), vec![layout.verbs, layout.slot_features], verbs));
                tensors.push(("wait.bias".into(), vec![wait.len()], wait));
                Kind::Linear
            }
            Model::Utility(utility) => Kind::Utility(StoredUtility::of(utility)),
            Model::Queue(queue) => {
                let net = match &queue.score {
                    QueueScore::Linear(weights) => {
                        tensors.push((SCORE.into(), vec![weights.len()], weights));
                        None
                    }
                    QueueScore::Net(weights) => {
                        tensors.extend(entries(weights.layers(), weights.data()));
                        weights.set_config().cloned()
                    }
                };
                Kind::Queue(StoredQueue { rule: queue.rule, net })
            }
            Model::Hold(LearnedHold { teacher, weights, threshold }) => {
                tensors.extend(entries(weights.layers(), weights.data()));
                let net = weights.set_config().cloned().unwrap_or_default();
                let threshold = Some(threshold.max(f32::MIN)).filter(|threshold| threshold.is_finite());
                Kind::Hold(StoredHold { teacher: teacher.clone(), net, threshold })
            }
        };
        let parts = self.normaliser.as_ref().map(Normaliser::parts);
        if let Some((mean, deviation, _)) = parts {
            tensors.push(("normaliser.mean".into(), vec![mean.len()], mean));
            tensors.push(("normaliser.deviation".into(), vec![deviation.len()], deviation));
        }
        let normaliser_limit = parts.map(|(_, _, limit)| limit);
        let manifest = Manifest { format: FORMAT, kind, layout, normaliser_limit, card: self.card.clone() };
        write_with(MANIFEST, &manifest, &tensors, &blobs)
    }

    /// SHA-256, in hexadecimal, of [`Self::to_bytes`].
    pub fn sha256(&self) -> String {
        Sha256::digest(self.to_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn utility(&self) -> Option<&Utility> {
        match &self.model {
            Model::Net(_) | Model::Onnx(_) | Model::Linear(_) | Model::Queue(_) | Model::Hold(_) => None,
            Model::Utility(utility) => Some(utility),
        }
    }
}

/// Tensors of a net's layers, as they lie in its flat vector.
fn entries<'a>(layers: &[Layer], data: &'a [f32]) -> Vec<Entry<'a>> {
    let of = |layer: &Layer| {
        let (matrix, bias) = layer.split(data);
        let weight: Entry<'a> = (format!("{}.weight", layer.name), vec![layer.inputs, layer.outputs], matrix);
        [weight, (format!("{}.bias", layer.name), vec![layer.outputs], bias)]
    };
    layers.iter().flat_map(of).collect()
}

/// The flat vector of a net with these layers.
fn numbers(archive: &Archive<'_>, layers: &[Layer]) -> Result<Vec<f32>, ArchiveError> {
    let mut data = Vec::new();
    for layer in layers {
        data.extend(archive.tensor(&format!("{}.weight", layer.name), &[layer.inputs, layer.outputs])?);
        data.extend(archive.tensor(&format!("{}.bias", layer.name), &[layer.outputs])?);
    }
    Ok(data)
}

fn utility(archive: &Archive<'_>, stored: StoredUtility) -> Result<Utility, ArchiveError> {
    let blank = Theta::sia().with(stored.groups);
    let theta = archive.tensor("theta", &[blank.names().count()])?;
    let theta: Vec<f64> = theta.into_iter().map(f64::from).collect();
    let reason = "a parameter is not finite".to_owned();
    let theta = blank.of_values(&theta).ok_or(ArchiveError::BadHeader { reason })?;
    let quantiles = |(model, count): (String, usize)| {
        let works = archive.tensor(&format!("experience.{model}"), &[count])?;
        Ok((model, works))
    };
    let models = stored.experience.into_iter().map(quantiles).collect::<Result<Vec<_>, ArchiveError>>()?;
    let experience = Experience::stored(models);
    Ok(Utility { theta, experience, siblings: stored.siblings, efficiency: !stored.throughput_only })
}

fn held(archive: &Archive<'_>, stored: StoredHold) -> Result<LearnedHold, ArchiveError> {
    let broken = |reason: String| ArchiveError::BadHeader { reason };
    let StoredHold { teacher, net, threshold } = stored;
    let (config, layout) = (NetConfig::Set(net), hold::layout(STORED_SLOTS));
    let data = numbers(archive, &config.layers(&layout))?;
    let weights = Weights::from_data(&config, layout, data).map_err(|error| broken(error.to_string()))?;
    match teacher.parse::<NamedPolicy>() {
        Ok(named) if named.is_of_training() => {
            Ok(LearnedHold { teacher, weights, threshold: threshold.unwrap_or(f32::INFINITY) })
        }
        Ok(_) => Err(broken(format!("{teacher} decides more than training"))),
        Err(error) => Err(broken(error.to_string())),
    }
}

fn queue(archive: &Archive<'_>, stored: StoredQueue) -> Result<LearnedQueue, ArchiveError> {
    let broken = |reason: String| ArchiveError::BadHeader { reason };
    let score = match stored.net {
        None => {
            let weights = archive.tensor(SCORE, &[queue::JOB_FEATURES.len()])?;
            let finite = weights.iter().all(|weight| weight.is_finite());
            let weights = weights.try_into().ok().filter(|_| finite);
            QueueScore::Linear(weights.ok_or_else(|| broken("a weight is not finite".into()))?)
        }
        Some(config) => {
            let (config, layout) = (NetConfig::Set(config), queue::layout(STORED_SLOTS));
            let data = numbers(archive, &config.layers(&layout))?;
            let weights = Weights::from_data(&config, layout, data);
            QueueScore::Net(weights.map_err(|error| broken(error.to_string()))?)
        }
    };
    Ok(LearnedQueue { score, rule: stored.rule })
}
