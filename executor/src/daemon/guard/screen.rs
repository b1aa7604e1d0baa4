//! Comparison of an observation with those that a bundle was trained on.

use goodput_agents::bundle::{Model, PolicyBundle, WrongTypes};
use goodput_agents::policies::deployed::Deployed;
use goodput_agents::policies::explain::UtilityReasons;
use goodput_agents::policies::utility::Observer;
use goodput_env::cluster::Cluster;
use goodput_env::gym::{Action, Encoder, Round, Slot, Verb};
use goodput_env::job::JobId;
use goodput_env::state::ClusterState;
use goodput_env::view::ClusterView;
use serde::{Deserialize, Serialize};

/// Deviations from the mean in training beyond which a feature is unlike anything met there.
const FAR: f32 = 10.0;
/// Share of the features of the cluster that may be far before the observation is out of
/// distribution.
const FAR_SHARE: f32 = 0.25;
/// Factor by which the size of a cluster may leave the range that training met. The features of a net are
/// shares and logarithms, and so half or twice the size is nothing new to a net.
const WIDENED: f64 = 2.0;

/// Reason why a policy was not relied on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unreliable {
    /// The policy panicked.
    Panic(String),
    /// The policy did not answer in time, or still works on an earlier question.
    Timeout,
    /// An observation, a weight or a score is not a number.
    NotANumber,
    /// The observation is unlike those of training.
    OutOfDistribution(String),
    /// The policy weighs accelerator types by a figure that none of the cluster's has.
    Unsuited(String),
    /// The guard refused its plan.
    Invalid(String),
    /// The external program lost its turn: its process ended, was late, gave a forbidden action, or rests after that.
    Failed(String),
    /// The process of the external program has not started to the end.
    Starting,
}

impl Unreliable {
    /// Name of the reason, as in metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Panic(_) => "panic",
            Self::Timeout => "timeout",
            Self::NotANumber => "not-a-number",
            Self::OutOfDistribution(_) => "out-of-distribution",
            Self::Unsuited(_) => "unsuited",
            Self::Invalid(_) => "invalid",
            Self::Failed(_) => "failed",
            Self::Starting => "starting",
        }
    }
}

/// Screens observations of one bundle.
#[derive(Debug)]
pub struct Screen {
    bundle: PolicyBundle,
    round: Round,
    encoder: Encoder,
    sound: bool,
    /// Scores the observation that is screened, where the bundle is an ONNX graph.
    graph: Option<Deployed>,
    /// Sees what a utility sees, to say why it decides.
    observer: Option<Observer>,
}

impl Screen {
    /// Screen for observations of `bundle`.
    pub fn new(bundle: &PolicyBundle) -> Self {
        let sound = match &bundle.model {
            Model::Net(weights) => weights.data().iter().all(|value| value.is_finite()),
            // What it makes of an observation is looked at.
            Model::Onnx(_) => true,
            Model::Linear(linear) => linear.weights().iter().all(|value| value.is_finite()),
            // They are made of finite numbers.
            Model::Utility(_) | Model::Queue(_) | Model::Hold(_) => true,
        };
        let observer = match &bundle.model {
            Model::Utility(utility) => Some(Observer::new(utility)),
            Model::Net(_) | Model::Onnx(_) | Model::Linear(_) | Model::Queue(_) | Model::Hold(_) => None,
        };
        let graph = matches!(bundle.model, Model::Onnx(_)).then(|| bundle.deploy());
        let encoder = Encoder::new(*bundle.layout());
        Self { bundle: bundle.clone(), round: Round::default(), encoder, sound, graph, observer }
    }

    /// The screen without reasons: beside services a utility is shown another view than the screen.
    #[must_use]
    pub fn without_reasons(self) -> Self {
        Self { observer: None, ..self }
    }

    /// Whether the bundle divides the accelerators of `cluster`.
    ///
    /// # Errors
    /// Why not.
    pub fn fits(&self, cluster: &Cluster) -> Result<(), WrongTypes> {
        self.bundle.check_types(cluster)
    }

    /// Whether the bundle may be asked about a cluster. The size of the cluster is that of all its
    /// nodes, because a node that is drained for an hour does not make another cluster.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&mut self, cluster: &ClusterState) -> Result<(), Unreliable> {
        if !self.sound {
            return Err(Unreliable::NotANumber);
        }
        self.fits(cluster.installed()).map_err(|error| Unreliable::OutOfDistribution(error.to_string()))?;
        if let Some(observer) = &mut self.observer {
            observer.observe(&cluster.view());
        }
        // A utility weighs one job at a time. It has no observation to screen, and the size of the
        // cluster is not among its features.
        if !self.bundle.plays_rounds() {
            return Ok(());
        }
        let installed = f64::from(cluster.installed().total_gpus());
        if let Some(&[low, high]) = self.bundle.card.bounds.get("cluster_gpus")
            && !(low / WIDENED..=high * WIDENED).contains(&installed)
        {
            return Err(Unreliable::OutOfDistribution(format!(
                "cluster_gpus is {installed}, and was {low} to {high} in training; a net decides from half to twice that"
            )));
        }
        self.encode(&cluster.view());
        let observation = self.encoder.observation();
        if !observation.iter().all(|value| value.is_finite()) {
            return Err(Unreliable::NotANumber);
        }
        if let Some(graph) = &mut self.graph
            && !graph.scores(observation).iter().all(|score| score.is_finite())
        {
            return Err(Unreliable::NotANumber);
        }
        let Some(normaliser) = &self.bundle.normaliser else { return Ok(()) };
        let (mean, deviation, _) = normaliser.parts();
        let layout = self.bundle.layout();
        let globals = &observation[layout.slots * layout.slot_features..];
        // A normaliser begins with the features of one slot, which serve for all slots.
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

    /// Reasons of a utility at the decision that was checked last, which `view` shows.
    pub fn reasons(&self, view: &ClusterView<'_>) -> Option<UtilityReasons> {
        Some(UtilityReasons::of(self.observer.as_ref()?, view))
    }

    fn encode(&mut self, view: &ClusterView<'_>) {
        let layout = *self.encoder.layout();
        // Views need not follow one another here, so nothing of the last one is reused.
        self.encoder.reset();
        self.round.reset();
        self.round.begin(view, &layout);
        self.encoder.begin(view, &self.round);
    }

    /// Wish of the bundle to give each job on show more, before anything is changed
    /// ([`Slot::openings`](goodput_env::gym::Slot::openings)); greater is sooner. Empty for a
    /// policy that plays no rounds.
    pub fn scores(&mut self, view: &ClusterView<'_>) -> Vec<(JobId, f32)> {
        if !self.bundle.plays_rounds() {
            return Vec::new();
        }
        self.encode(view);
        let layout = *self.encoder.layout();
        let mut deployed = self.bundle.deploy();
        let scores = deployed.scores(self.encoder.observation());
        let slots = self.round.slots().iter().enumerate();
        let of = |slot: usize, verb: Verb| scores.get(Action::Change { slot, verb }.encode(&layout)).copied();
        let most = |(at, slot): (usize, &Slot)| {
            let score = slot.openings(&layout).filter_map(|verb| of(at, verb)).reduce(f32::max)?;
            Some((slot.job, score))
        };
        slots.filter_map(most).collect()
    }
}
