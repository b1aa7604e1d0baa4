//! The policies that a bundle holds, ready to decide.

use goodput_env::gym::ExpectedPeak;
use goodput_env::policy::Policy;
use serde::Deserialize;

use super::model::{Model, PolicyBundle};
use crate::compose::loaning::{RecallPricing, SharedJobValues, Sharing, Variant};
use crate::nets::onnx::OnnxFaults;
use crate::policies::deployed::Deployed;
use crate::policies::hold::HoldPolicy;
use crate::policies::rounds::{Decoder, LearnedPolicy};
use crate::policies::utility::{Group, UtilityPolicy};

impl PolicyBundle {
    /// The policy behind the interface that all schedulers have; it is told of the load of services
    /// what `expected` says.
    ///
    /// # Errors
    /// What is wrong with the bundle's decoder options.
    pub fn policy(&self, expected: ExpectedPeak) -> Result<Box<dyn Policy>, serde_json::Error> {
        Ok(match &self.model {
            Model::Net(_) | Model::Onnx(_) | Model::Linear(_) => Box::new(self.playing()?.with_expected_peak(expected)),
            Model::Utility(utility) => {
                let decoder = Decoder::deserialize(&self.card.decoder)?;
                Box::new(UtilityPolicy::new(utility, decoder.batching, decoder.information))
            }
            Model::Queue(queue) => queue.policy(),
            Model::Hold(learned) => {
                let (decoder, seed) = (Decoder::deserialize(&self.card.decoder)?, self.card.provenance.seed);
                let held = HoldPolicy::new(learned, decoder.batching, decoder.information, seed);
                Box::new(held.map_err(serde::de::Error::custom)?)
            }
        })
    }

    /// Policy for a cluster that services share by `sharing`. A policy that has learned loans
    /// decides about loans as well.
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
                // Both schedulers share these values: training tells them and the orchestrator
                // prices by them.
                let judge = RecallPricing { lending: utility.theta.lending(), worths: SharedJobValues::default() };
                let training = UtilityPolicy::new(utility, decoder.batching, decoder.information);
                let training = Box::new(training.publishing(judge.worths.clone()));
                Ok(Box::new(Variant::Forecast.judged(training, sharing, judge)))
            }
            _ => self.policy(expected),
        }
    }

    /// The net or linear policy at work in rounds of the gym; a policy of another kind has no say in
    /// them and always waits.
    ///
    /// # Errors
    /// What is wrong with the bundle's decoder options.
    pub fn playing(&self) -> Result<LearnedPolicy, serde_json::Error> {
        let decoder = Decoder::deserialize(&self.card.decoder)?;
        Ok(LearnedPolicy::new(self.deploy(), self.layout(), decoder, self.card.provenance.seed))
    }

    /// Sentence about decisions that the bundle could not take so far, over all its policies; `None` where there are
    /// none. An ONNX graph alone may fail at an observation.
    pub fn fault(&self) -> Option<String> {
        let Model::Onnx(net) = &self.model else { return None };
        let OnnxFaults { actions, last } = net.faults();
        (actions > 0).then(|| format!("its ONNX graph could not score actions (faults: {actions}, the last: {last})"))
    }

    /// Net or linear policy without rounds, to score single observations.
    pub fn deploy(&self) -> Deployed {
        let normaliser = self.normaliser.clone();
        match &self.model {
            Model::Net(weights) => Deployed::net(weights, normaliser),
            Model::Onnx(net) => Deployed::onnx(net, normaliser),
            Model::Linear(linear) => Deployed::linear(linear.clone(), normaliser),
            Model::Utility(_) | Model::Queue(_) | Model::Hold(_) => Deployed::waits(),
        }
    }
}
