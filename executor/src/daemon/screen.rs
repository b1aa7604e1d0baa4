//! What a bundle was trained on, compared with what it is asked about.

use goodput_agents::bundle::{Model, PolicyBundle};
use goodput_env::gym::{Encoder, Round, Verb};
use goodput_env::job::JobId;
use goodput_env::view::ClusterView;

use super::chooser::Unreliable;

/// Deviations from the mean in training beyond which a feature is unlike anything met there.
const FAR: f32 = 10.0;
/// Share of the features of the cluster that may be far before the observation is out of distribution.
const FAR_SHARE: f32 = 0.25;

/// Screens observations of one bundle.
#[derive(Debug)]
pub struct Screen {
    bundle: PolicyBundle,
    round: Round,
    encoder: Encoder,
    sound: bool,
}

impl Screen {
    /// For `bundle`.
    pub fn new(bundle: &PolicyBundle) -> Self {
        let sound = match &bundle.model {
            Model::Net(weights) => weights.data().iter().all(|value| value.is_finite()),
            Model::Linear(linear) => linear.weights().iter().all(|value| value.is_finite()),
            Model::Utility(_) | Model::Ranking(_) => true, // made of finite numbers
        };
        Self { bundle: bundle.clone(), round: Round::default(), encoder: Encoder::new(*bundle.layout()), sound }
    }

    /// Whether the bundle may be asked about `view`.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&mut self, view: &ClusterView<'_>) -> Result<(), Unreliable> {
        if !self.sound {
            return Err(Unreliable::NotANumber);
        }
        self.bundle.check_types(view.cluster()).map_err(|error| Unreliable::OutOfDistribution(error.to_string()))?;
        let measured =
            [("cluster_gpus", f64::from(view.cluster().total_gpus())), ("active_jobs", view.active() as f64)];
        for (name, value) in measured {
            if let Some(&[low, high]) = self.bundle.card.bounds.get(name)
                && !(low..=high).contains(&value)
            {
                let text = format!("{name} is {value}, and was {low} to {high} in training");
                return Err(Unreliable::OutOfDistribution(text));
            }
        }
        if !self.plays_rounds() {
            return Ok(());
        }
        self.encode(view);
        let observation = self.encoder.observation();
        if !observation.iter().all(|value| value.is_finite()) {
            return Err(Unreliable::NotANumber);
        }
        let Some(normaliser) = &self.bundle.normaliser else { return Ok(()) };
        let (mean, deviation, _) = normaliser.parts();
        let layout = self.bundle.layout();
        let globals = &observation[layout.slots * layout.slot_features..];
        let scales = mean.iter().zip(deviation).skip(layout.slot_features);
        let far =
            globals.iter().zip(scales).filter(|(value, (mean, deviation))| ((*value - *mean) / *deviation).abs() > FAR);
        let share = far.count() as f32 / layout.globals.max(1) as f32;
        match share > FAR_SHARE {
            true => Err(Unreliable::OutOfDistribution(format!(
                "{:.0} % of the cluster's features are far out",
                100.0 * share
            ))),
            false => Ok(()),
        }
    }

    /// A utility looks at the view itself: there is no observation to screen, and no score of a verb.
    fn plays_rounds(&self) -> bool {
        !matches!(self.bundle.model, Model::Utility(_))
    }

    fn encode(&mut self, view: &ClusterView<'_>) {
        let layout = *self.encoder.layout();
        self.encoder.reset();
        self.round.reset();
        self.round.begin(view, &layout);
        self.encoder.begin(view, &self.round);
    }

    /// How much the bundle would like to let each job on show grow, before anything is changed, or where it tells accelerator types apart the most that it would like
    /// to start it on one of them; greater is sooner. Of a utility nothing.
    pub fn scores(&mut self, view: &ClusterView<'_>) -> Vec<(JobId, f32)> {
        if !self.plays_rounds() {
            return Vec::new();
        }
        self.encode(view);
        let layout = *self.encoder.layout();
        let mut deployed = self.bundle.deploy();
        let scores = deployed.scores(self.encoder.observation());
        let slots = self.round.slots().iter().enumerate();
        let of_job = |at: usize| {
            let verbs = scores.get(at * layout.verbs..(at + 1) * layout.verbs)?;
            let placing = verbs[Verb::ALWAYS.len()..].iter().copied().reduce(f32::max);
            Some(placing.unwrap_or(verbs[Verb::Grow.number()]))
        };
        slots.filter_map(|(at, slot)| Some((slot.job, of_job(at)?))).collect()
    }
}
