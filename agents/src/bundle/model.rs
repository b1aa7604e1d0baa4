//! Content of a bundle: the model, its scaling and its card.

use goodput_env::gym::Layout;

use super::card::{Card, Provenance};
use crate::nets::normaliser::Normaliser;
use crate::nets::onnx::OnnxNet;
use crate::nets::weights::{NetConfig, Weights};
use crate::policies::hold::{self, LearnedHold};
use crate::policies::linear::Linear;
use crate::policies::queue::{self, LearnedQueue};
use crate::policies::rounds::Decoder;
use crate::policies::utility::Utility;

/// Version of the format this build writes and reads.
pub const FORMAT: u32 = 1;
/// Layout of policies that play no rounds: nothing to see, nothing to do but wait.
const NO_ROUNDS: Layout =
    Layout { slots: 0, slot_features: 0, globals: 0, verbs: 0, services: 0, pools: false, types: 0 };

/// Trained policy with its scaling and its model card, as a file holds them.
///
/// ```
/// use std::path::Path;
///
/// use goodput_agents::bundle::PolicyBundle;
/// use goodput_agents::zoo;
/// use goodput_env::gym::ExpectedPeak;
///
/// let bundle = zoo::load("elastic")?;
/// assert_eq!(bundle.kind(), "utility");
/// let copy = PolicyBundle::from_bytes(&bundle.to_bytes(), Path::new("copy.bundle"))?;
/// assert_eq!(copy.sha256(), bundle.sha256());
/// let policy = copy.policy(ExpectedPeak::default())?;
/// assert_eq!(policy.information().to_string(), copy.card.information);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyBundle {
    /// Numbers of the policy.
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
    /// An ONNX graph.
    Onnx(OnnxNet),
    /// A linear priority function.
    Linear(Linear),
    /// Utilities that a knapsack goes by. It plays no rounds of the gym.
    Utility(Utility),
    /// An order of a batch queue. It plays no rounds of the gym.
    Queue(LearnedQueue),
    /// A choice of what to hold back of a published policy's changes. It plays no rounds of the gym.
    Hold(LearnedHold),
}

impl PolicyBundle {
    /// Bundle of a model that was trained on clusters of `cluster_gpus` accelerators, least and largest, and is run by
    /// `decoder`. `types` names the accelerator types of the cluster, of which a model names those that it tells apart.
    pub fn trained(
        model: Model,
        decoder: Decoder,
        types: &[String],
        cluster_gpus: [u32; 2],
        provenance: Provenance,
    ) -> Self {
        let bundle = Self { model, normaliser: None, card: Card::default() };
        let card = Card {
            schema_hash: bundle.schema(),
            information: decoder.information.to_string(),
            decoder: serde_json::to_value(decoder).expect("a decoder is plain data"),
            provenance,
            types: types.iter().take(bundle.layout().types).cloned().collect(),
            bounds: [("cluster_gpus".to_string(), cluster_gpus.map(f64::from))].into(),
        };
        Self { card, ..bundle }
    }

    /// Shapes of observations and actions.
    pub const fn layout(&self) -> &Layout {
        match &self.model {
            Model::Net(weights) => weights.layout(),
            Model::Onnx(net) => net.layout(),
            Model::Linear(linear) => linear.layout(),
            Model::Utility(_) | Model::Queue(_) | Model::Hold(_) => &NO_ROUNDS,
        }
    }

    /// Whether the model plays rounds of the gym, from observations of its [layout](Self::layout).
    /// A utility, a queue and a choice around a published policy look at the cluster themselves.
    pub const fn plays_rounds(&self) -> bool {
        !matches!(self.model, Model::Utility(_) | Model::Queue(_) | Model::Hold(_))
    }

    /// Hash of the schema that this program's policies of this kind and shape are trained on.
    pub(super) fn schema(&self) -> String {
        match &self.model {
            Model::Net(_) | Model::Onnx(_) | Model::Linear(_) => self.layout().schema_hash(),
            Model::Utility(utility) => utility.theta.schema_hash(),
            Model::Queue(_) => queue::schema_hash(),
            Model::Hold(_) => hold::schema_hash(),
        }
    }

    /// Reason for which the shape does not fit this program; `None` where it fits.
    pub(super) fn misshapen(&self) -> Option<String> {
        let (layout, types) = (self.layout(), &self.card.types);
        match self.plays_rounds() {
            true if !layout.is_ours() => Some(format!("this program has no observations of {layout:?}")),
            true if types.len() != layout.types => {
                Some(format!("{} accelerator types are named, {} told apart", types.len(), layout.types))
            }
            _ => None,
        }
    }

    /// Name of the kind of policy: `set`, `mlp`, `onnx`, `linear`, `utility`, `queue` or `hold`.
    pub const fn kind(&self) -> &'static str {
        match &self.model {
            Model::Net(weights) => match weights.config() {
                NetConfig::Set(_) => "set",
                NetConfig::Mlp(_) => "mlp",
            },
            Model::Onnx(_) => "onnx",
            Model::Linear(_) => "linear",
            Model::Utility(_) => "utility",
            Model::Queue(_) => "queue",
            Model::Hold(_) => "hold",
        }
    }
}
