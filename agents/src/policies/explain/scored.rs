//! Scores of a policy that plays rounds, with what a reader needs to understand them.

use goodput_env::gym::Layout;

use crate::nets::normaliser::Normaliser;
use crate::nets::onnx::OnnxNet;
use crate::nets::weights::Weights;
use crate::policies::deployed::Deployed;
use crate::policies::linear::Linear;

/// Numbers that score actions.
#[derive(Clone, Debug)]
pub enum ScoredModel {
    /// A set encoder or a perceptron.
    Net(Weights),
    /// An ONNX graph.
    Onnx(OnnxNet),
    /// A linear priority function.
    Linear(Linear),
}

/// Scores of a policy that plays rounds.
#[derive(Clone, Debug)]
pub struct Scored {
    /// The numbers that score actions.
    pub model: ScoredModel,
    /// Scaling applied to observations before the model sees them.
    pub normaliser: Option<Normaliser>,
    /// Accelerator types that the policy tells apart, in the order of its verbs.
    pub types: Vec<String>,
}

impl Scored {
    /// Shapes of observations and actions.
    pub(super) const fn layout(&self) -> &Layout {
        match &self.model {
            ScoredModel::Net(weights) => weights.layout(),
            ScoredModel::Onnx(net) => net.layout(),
            ScoredModel::Linear(linear) => linear.layout(),
        }
    }

    /// Model ready to score single observations.
    pub(super) fn deploy(&self) -> Deployed {
        let normaliser = self.normaliser.clone();
        match &self.model {
            ScoredModel::Net(weights) => Deployed::net(weights, normaliser),
            ScoredModel::Onnx(net) => Deployed::onnx(net, normaliser),
            ScoredModel::Linear(linear) => Deployed::linear(linear.clone(), normaliser),
        }
    }
}
