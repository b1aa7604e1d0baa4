//! What `train` writes and `eval` and the executor read: one file that holds a policy and everything needed to use it rightly.
//!
//! A safetensors file whose metadata carries the manifest as JSON, so that other tools can open it and nothing can be separated
//! from the weights it belongs to. Loading refuses a policy trained on another observation schema: a net would answer anyway,
//! and wrongly.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use goodput_env::cluster::Cluster;
use goodput_env::gym::{ExpectedPeak, Layout};
use goodput_env::policy::Policy;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::learned::archive::{Archive, ArchiveError, Entry, write};
use crate::learned::fused::{Fused, Scratch};
use crate::learned::linear::Linear;
use crate::learned::normaliser::Normaliser;
use crate::learned::policy::{Decoder, LearnedPolicy};
use crate::learned::ranking::{self, Decoding, Ranked, Ranking, RankingNet};
use crate::learned::utility::{Experience, Group, Theta, Utility, UtilityPolicy};
use crate::learned::weights::{Layer, MlpConfig, NetConfig, SetConfig, Weights};
use crate::loaning::{Judge, Sharing, Variant, Worths};

/// Version of the format this build writes and reads.
pub const FORMAT: u32 = 1;
/// Largest number of slots, features or verbs believed: buffers of their products are allocated.
const LARGEST: usize = 4096;
/// Layout of policies that play no rounds: nothing to see, nothing to do but wait.
const NO_ROUNDS: Layout =
    Layout { slots: 0, slot_features: 0, globals: 0, verbs: 0, services: 0, pools: false, types: 0 };
/// Key of the manifest in the file's metadata.
const MANIFEST: &str = "goodput.bundle";

/// A trained policy with what it was trained on.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyBundle {
    /// The policy.
    pub model: Model,
    /// Scaling applied to observations before the policy sees them.
    pub normaliser: Option<Normaliser>,
    /// The rest of the manifest.
    pub card: Card,
}

/// The numbers of a policy.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// A set encoder or a perceptron.
    Net(Weights),
    /// A linear priority function.
    Linear(Linear),
    /// Utilities that a knapsack goes by. It plays no rounds of the gym.
    Utility(Utility),
    /// A net on top of them. It plays no rounds of the gym either.
    Ranking(Box<Ranking>),
}

/// What a policy was trained on and how it is to be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// SHA-256, in hexadecimal, of the observation schema.
    pub schema_hash: String,
    /// What the policy may know, by the name of its information level.
    pub information: String,
    /// How actions become plans: options of the decoder, as the environment wrote them.
    pub decoder: serde_json::Value,
    /// Where the policy comes from.
    pub provenance: Provenance,
    /// Smallest and greatest value met in training, by name; outside them the policy extrapolates.
    pub bounds: BTreeMap<String, [f64; 2]>,
    /// Accelerator types that it tells apart, in the order of its verbs; empty where it tells none apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
}

/// Where a policy comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// The command line that trained it.
    pub argv: Vec<String>,
    /// Master seed.
    pub seed: u64,
    /// Decisions it learned from.
    pub steps: u64,
    /// SHA-256, in hexadecimal, of the resolved configuration.
    pub config_sha256: String,
}

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
    Linear,
    Utility(StoredUtility),
    Ranking { utility: StoredUtility, net: SetConfig, decoding: Decoding },
}

/// What gives meaning to the tensors of a utility.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredUtility {
    /// Models that there is experience of, with the number of quantiles.
    experience: BTreeMap<String, usize>,
    /// Whether a job is believed to be as fast as others of its model.
    #[serde(default)]
    siblings: bool,
    /// Whether it judges sizes by throughput alone.
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

/// A bundle that cannot be read, used or written.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The file system refused.
    #[error("{path}: cannot {action}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// No policy of this name comes with the product.
    #[error("there is no shipped policy {name:?}; there are: {known}")]
    NotShipped {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Another kind of file.
    #[error("{path}: not a policy bundle: {source}")]
    NotABundle {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ArchiveError,
    },
    /// A bundle that is damaged.
    #[error("{path}: damaged policy bundle: {source}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ArchiveError,
    },
    /// A bundle of another version of this program.
    #[error(
        "{path}: bundle format {found}, this program reads format {FORMAT}; export the policy again with this version"
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// The format it has.
        found: u32,
    },
    /// A policy trained on other observations.
    #[error(
        "{path}: trained on another observation schema\n  bundle:  {found}\n  program: {expected}\n\
         train the policy again with this version, or run it with the version that trained it"
    )]
    Schema {
        /// The file.
        path: PathBuf,
        /// Hash the policy was trained on.
        found: String,
        /// Hash of this program.
        expected: String,
    },
}

/// A policy and a cluster whose accelerators it cannot divide.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WrongTypes {
    /// It was made for accelerators of one type.
    #[error("it divides accelerators of one type; this cluster has {}", .cluster.join(", "))]
    Several {
        /// Types of the cluster.
        cluster: Vec<String>,
    },
    /// It tells others apart.
    #[error("it was trained on {}, in this order; this cluster has {}", .trained.join(", "), .cluster.join(", "))]
    Others {
        /// Types of the cluster it was trained on.
        trained: Vec<String>,
        /// Types of this one.
        cluster: Vec<String>,
    },
}

impl PolicyBundle {
    /// Whether the policy can divide the accelerators of `cluster`.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn check_types(&self, cluster: &Cluster) -> Result<(), WrongTypes> {
        let types = || cluster.types.iter().map(|of| of.name.clone()).collect();
        let trained = &self.card.types;
        match &self.model {
            Model::Ranking(_) if cluster.types.len() > 1 => Err(WrongTypes::Several { cluster: types() }),
            _ if !trained.is_empty() && !trained.iter().eq(cluster.types.iter().map(|of| &of.name)) => {
                Err(WrongTypes::Others { trained: trained.clone(), cluster: types() })
            }
            _ => Ok(()),
        }
    }

    /// Shapes of observations and actions.
    pub const fn layout(&self) -> &Layout {
        match &self.model {
            Model::Net(weights) => weights.layout(),
            Model::Linear(linear) => linear.layout(),
            Model::Utility(_) | Model::Ranking(_) => &NO_ROUNDS,
        }
    }

    /// Whether it plays rounds of the gym, from observations of its [layout](Self::layout). A utility and a ranking look at the cluster themselves.
    pub const fn plays_rounds(&self) -> bool {
        matches!(self.model, Model::Net(_) | Model::Linear(_))
    }

    /// Hash of the schema that this program's policies of this kind and shape are trained on.
    fn schema(&self) -> String {
        match &self.model {
            Model::Net(_) | Model::Linear(_) => self.layout().schema_hash(),
            Model::Utility(utility) => utility.theta.schema_hash(),
            Model::Ranking(_) => ranking::schema_hash(),
        }
    }

    /// What is wrong with its shape for this program, if anything is.
    fn misshapen(&self) -> Option<String> {
        let (layout, types) = (self.layout(), &self.card.types);
        match self.plays_rounds() {
            true if !layout.is_ours() => Some(format!("this program has no observations of {layout:?}")),
            true if types.len() != layout.types => {
                Some(format!("{} accelerator types are named, {} told apart", types.len(), layout.types))
            }
            _ => None,
        }
    }

    /// Name of the kind of policy: `set`, `mlp`, `linear`, `utility` or `ranking`.
    pub const fn kind(&self) -> &'static str {
        match &self.model {
            Model::Net(weights) => match weights.config() {
                NetConfig::Set(_) => "set",
                NetConfig::Mlp(_) => "mlp",
            },
            Model::Linear(_) => "linear",
            Model::Utility(_) => "utility",
            Model::Ranking(_) => "ranking",
        }
    }

    /// Reads a bundle and checks that this program can run it.
    ///
    /// # Errors
    /// When the file is not a sound bundle of this format, or of another schema.
    pub fn load(path: &Path) -> Result<Self, BundleError> {
        Self::inspect(path)?.checked(path)
    }

    /// The bundle, if it was trained on this program's observations or features; `path` is only for messages.
    ///
    /// # Errors
    /// [`BundleError::Schema`] where it was not, [`BundleError::Damaged`] where it says so and has another shape.
    pub fn checked(self, path: &Path) -> Result<Self, BundleError> {
        let (path, expected) = (path.to_owned(), self.schema());
        if self.card.schema_hash != expected {
            return Err(BundleError::Schema { path, found: self.card.schema_hash, expected });
        }
        match self.misshapen() {
            Some(reason) => Err(BundleError::Damaged { path, source: ArchiveError::BadHeader { reason } }),
            None => Ok(self),
        }
    }

    /// Reads a bundle whatever its schema, to look at it.
    ///
    /// # Errors
    /// When the file is not a sound bundle of this format.
    pub fn inspect(path: &Path) -> Result<Self, BundleError> {
        let bytes =
            fs::read(path).map_err(|source| BundleError::Io { path: path.to_owned(), action: "read", source })?;
        Self::from_bytes(&bytes, path)
    }

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
            Kind::Utility(stored) => Model::Utility(utility(archive, stored)?),
            Kind::Ranking { utility: stored, net, decoding } => {
                let weights = RankingNet::from_data(&net, numbers(archive, &RankingNet::layers_of(&net))?);
                let net = weights.map_err(|error| ArchiveError::BadHeader { reason: error.to_string() })?;
                Model::Ranking(Box::new(Ranking { utility: utility(archive, stored)?, net, decoding }))
            }
            Kind::Linear => {
                let mut weights = archive.tensor("verbs.weight", &[layout.verbs, layout.slot_features])?;
                weights.extend(archive.tensor("wait.bias", &[1])?);
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
            Model::Linear(linear) => {
                let (verbs, wait) = linear.weights().split_at(layout.verbs * layout.slot_features);
                tensors.push(("verbs.weight".into(), vec![layout.verbs, layout.slot_features], verbs));
                tensors.push(("wait.bias".into(), vec![1], wait));
                Kind::Linear
            }
            Model::Utility(utility) => Kind::Utility(StoredUtility::of(utility)),
            Model::Ranking(ranking) => {
                tensors.extend(entries(ranking.net.layers(), ranking.net.data()));
                let (net, decoding) = (ranking.net.config().clone(), ranking.decoding);
                Kind::Ranking { utility: StoredUtility::of(&ranking.utility), net, decoding }
            }
        };
        let parts = self.normaliser.as_ref().map(Normaliser::parts);
        if let Some((mean, deviation, _)) = parts {
            tensors.push(("normaliser.mean".into(), vec![mean.len()], mean));
            tensors.push(("normaliser.deviation".into(), vec![deviation.len()], deviation));
        }
        let normaliser_limit = parts.map(|(_, _, limit)| limit);
        write(MANIFEST, &Manifest { format: FORMAT, kind, layout, normaliser_limit, card: self.card.clone() }, &tensors)
    }

    fn utility(&self) -> Option<&Utility> {
        match &self.model {
            Model::Net(_) | Model::Linear(_) => None,
            Model::Utility(utility) => Some(utility),
            Model::Ranking(ranking) => Some(&ranking.utility),
        }
    }

    /// SHA-256, in hexadecimal, of [`Self::to_bytes`].
    pub fn sha256(&self) -> String {
        Sha256::digest(self.to_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Writes the bundle beside its place and moves it there: a reader sees the old file or the whole new one.
    ///
    /// # Errors
    /// When the file system refuses; nothing is left behind.
    pub fn save(&self, path: &Path) -> Result<(), BundleError> {
        let failed = |action| move |source| BundleError::Io { path: path.to_owned(), action, source };
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".tmp-{}", std::process::id()));
        let temporary = path.with_file_name(name);
        let written = fs::File::create(&temporary).and_then(|mut file| {
            file.write_all(&self.to_bytes())?;
            file.sync_all()
        });
        let moved =
            written.map_err(failed("write")).and_then(|()| fs::rename(&temporary, path).map_err(failed("replace")));
        if moved.is_err() {
            // The first error is the one to report.
            let _ = fs::remove_file(&temporary);
        }
        moved
    }

    /// The policy behind the interface that all schedulers have; it is told of the load of services what `expected` says.
    ///
    /// # Errors
    /// What is wrong with the bundle's decoder options.
    pub fn policy(&self, expected: ExpectedPeak) -> Result<Box<dyn Policy>, serde_json::Error> {
        Ok(match &self.model {
            Model::Net(_) | Model::Linear(_) => Box::new(LearnedPolicy::new(self)?.with_expected_peak(expected)),
            Model::Utility(utility) => {
                let decoder = Decoder::deserialize(&self.card.decoder)?;
                Box::new(UtilityPolicy::new(utility, decoder.batching, decoder.information))
            }
            Model::Ranking(ranking) => {
                let Decoder { batching, information, .. } = Decoder::deserialize(&self.card.decoder)?;
                Box::new(UtilityPolicy::dividing(&ranking.utility, batching, information, Ranked::new(ranking)))
            }
        })
    }

    /// The same where services share the cluster by `sharing`: a policy that has learned of loans decides about them as well.
    ///
    /// # Errors
    /// What is wrong with the bundle's decoder options.
    pub fn policy_sharing(
        &self,
        expected: ExpectedPeak,
        sharing: &Sharing,
    ) -> Result<Box<dyn Policy>, serde_json::Error> {
        match &self.model {
            Model::Utility(utility) if utility.theta.groups().contains(&Group::Loans) => {
                let decoder = Decoder::deserialize(&self.card.decoder)?;
                let judge = Judge { lending: utility.theta.lending(), worths: Worths::default() };
                let training = UtilityPolicy::new(utility, decoder.batching, decoder.information);
                let training = Box::new(training.telling(judge.worths.clone()));
                Ok(Box::new(Variant::Forecast.judged(training, sharing, judge)))
            }
            _ => self.policy(expected),
        }
    }

    /// The net or linear policy ready to play rounds of the gym; a utility or a ranking has no say in them and always waits.
    pub fn deploy(&self) -> Deployed {
        let layout = self.layout();
        let decider = match &self.model {
            Model::Net(weights) => {
                let net = Fused::new(weights);
                let scratch = net.scratch();
                Decider::Net(Box::new((net, scratch)))
            }
            Model::Linear(linear) => Decider::Linear(linear.clone(), vec![0.0; layout.actions()]),
            Model::Utility(_) | Model::Ranking(_) => Decider::Waits,
        };
        Deployed { decider, normaliser: self.normaliser.clone(), observation: Vec::with_capacity(layout.obs_dim()) }
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

/// A policy and its buffers; deciding allocates nothing.
#[derive(Clone, Debug)]
pub struct Deployed {
    decider: Decider,
    normaliser: Option<Normaliser>,
    observation: Vec<f32>,
}

#[derive(Clone, Debug)]
enum Decider {
    Net(Box<(Fused, Scratch)>),
    Linear(Linear, Vec<f32>),
    Waits,
}

impl Deployed {
    /// The allowed action of the greatest score for one flat observation `[obs_dim]` and its mask `[actions]`.
    pub fn decide(&mut self, observation: &[f32], mask: &[u8]) -> usize {
        let Self { decider, normaliser, observation: buffer } = self;
        let observation = normalised(normaliser.as_ref(), observation, buffer);
        match decider {
            Decider::Net(net) => net.0.greedy(observation, mask, &mut net.1),
            Decider::Linear(linear, logits) => linear.greedy(observation, mask, logits),
            Decider::Waits => mask.len().saturating_sub(1),
        }
    }

    /// An allowed action of a net drawn at `uniform` in [0, 1), as [`Fused::draw`] does; of what is no net what [`Self::decide`] says.
    pub fn draw(&mut self, observation: &[f32], mask: &[u8], temperature: f32, uniform: f32) -> usize {
        let Decider::Net(net) = &mut self.decider else { return self.decide(observation, mask) };
        let observation = normalised(self.normaliser.as_ref(), observation, &mut self.observation);
        net.0.draw(observation, mask, temperature, uniform, &mut net.1)
    }

    /// The scores of all actions for one flat observation `[obs_dim]`, allowed or not; none from a utility, which scores sizes of jobs instead.
    pub fn scores(&mut self, observation: &[f32]) -> &[f32] {
        let Self { decider, normaliser, observation: buffer } = self;
        let observation = normalised(normaliser.as_ref(), observation, buffer);
        match decider {
            Decider::Net(net) => net.0.logits(observation, &mut net.1),
            Decider::Linear(linear, logits) => {
                linear.logits(observation, logits);
                logits
            }
            Decider::Waits => &[],
        }
    }
}

fn normalised<'a>(normaliser: Option<&Normaliser>, observation: &'a [f32], buffer: &'a mut Vec<f32>) -> &'a [f32] {
    let Some(normaliser) = normaliser else { return observation };
    buffer.clear();
    buffer.extend_from_slice(observation);
    normaliser.apply(buffer);
    buffer
}
