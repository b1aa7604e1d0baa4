//! The policy of a bundle, with reasons for its decisions.

use goodput_env::gym::ExpectedPeak;
use serde::Deserialize;

use super::model::{Model, PolicyBundle};
use crate::policies::explain::{Explained, Scored, ScoredModel};
use crate::policies::rounds::Decoder;

impl PolicyBundle {
    /// Policy that gives reasons; `expected` is its forecast of the load of services.
    ///
    /// # Errors
    /// When the bundle's decoder options are wrong.
    pub fn explained(&self, expected: ExpectedPeak) -> Result<Explained, serde_json::Error> {
        let model = match &self.model {
            Model::Net(weights) => ScoredModel::Net(weights.clone()),
            Model::Onnx(net) => ScoredModel::Onnx(net.clone()),
            Model::Linear(linear) => ScoredModel::Linear(linear.clone()),
            Model::Utility(utility) => {
                return Ok(Explained::dividing(utility, Decoder::deserialize(&self.card.decoder)?));
            }
            Model::Queue(_) | Model::Hold(_) => return Ok(Explained::published(self.policy(expected)?)),
        };
        let scored = Scored { model, normaliser: self.normaliser.clone(), types: self.card.types.clone() };
        Ok(Explained::playing(self.playing()?.with_expected_peak(expected), scored))
    }
}
