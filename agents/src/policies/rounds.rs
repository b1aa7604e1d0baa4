//! A learned policy at work: the same rounds, observations and masks as in training, behind the one
//! interface that heuristics have.

use goodput_env::gym::{Action, Encoder, ExpectedPeak, Layout, Round, Slot};
use goodput_env::plan::Plan;
use goodput_env::policy::{Policy, Scope};
use goodput_env::scenario::{Batching, Information};
use goodput_env::seed::{Stream, rng};
use goodput_env::view::ClusterView;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policies::deployed::Deployed;

/// Options under which a policy was trained, and is to be run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decoder {
    /// Choice of the batch sizes of jobs.
    pub batching: Batching,
    /// Information level about jobs.
    pub information: Information,
    /// Choice of a net among the actions that the net scores.
    #[serde(default, skip_serializing_if = "Choice::is_best")]
    pub choice: Choice,
}

/// Choice of one action among those that a net scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Choice {
    /// The greatest score.
    #[default]
    Best,
    /// By chance. There are many changes to choose from and one end, so that the end may be the
    /// most probable single action of a round in which nearly every policy would go on.
    Drawn {
        /// Temperature of the draw among changes: probabilities count to the power of its inverse;
        /// 0 takes the most probable change. Whether the round ends is drawn from the probabilities
        /// as they are.
        temperature: f32,
    },
}

impl Choice {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    const fn is_best(&self) -> bool {
        matches!(self, Self::Best)
    }
}

impl Decoder {
    /// The best action decides.
    pub const fn new(batching: Batching, information: Information) -> Self {
        Self { batching, information, choice: Choice::Best }
    }
}

/// Player of rounds: the rounds, observations and masks of training, for any choice of actions.
#[derive(Clone, Debug)]
pub struct RoundPlayer {
    round: Round,
    encoder: Encoder,
    mask: Vec<u8>,
}

impl RoundPlayer {
    /// Player of rounds with observations and actions of `layout`.
    pub fn new(layout: &Layout) -> Self {
        Self { round: Round::default(), encoder: Encoder::new(*layout), mask: vec![0; layout.actions()] }
    }

    /// With another expectation of the load of services than yesterday's load.
    #[must_use]
    pub fn with_expected_peak(mut self, expected: ExpectedPeak) -> Self {
        self.encoder = self.encoder.with_expected_peak(expected);
        self
    }

    /// Scope of a policy on these observations.
    pub fn scope(&self) -> Scope {
        let layout = self.encoder.layout();
        if layout.services > 0 || layout.pools { Scope::Everything } else { Scope::Training }
    }

    /// The slots of the round that begins now, and its first observation.
    pub fn look(&mut self, view: &ClusterView<'_>) -> (Vec<Slot>, Vec<f32>) {
        self.round.begin(view, self.encoder.layout());
        self.encoder.begin(view, &self.round);
        (self.round.slots().to_vec(), self.encoder.observation().to_vec())
    }

    /// Plays one round. `choose` takes an observation and its mask and gives an action; an action that is not allowed
    /// ends the round.
    pub fn play(&mut self, view: &ClusterView<'_>, mut choose: impl FnMut(&[f32], &[u8]) -> usize) -> Plan {
        let layout = *self.encoder.layout();
        self.round.begin(view, &layout);
        if self.round.has_choice() {
            self.encoder.begin(view, &self.round);
            loop {
                self.round.mask(&layout, &mut self.mask);
                let action = choose(self.encoder.observation(), &self.mask);
                // A round is finite: no job, service or pool is moved both ways.
                match Action::decode(action, &layout) {
                    Some(Action::Change { slot, verb }) if self.round.change(slot, verb) => {
                        self.encoder.update(view, &self.round, slot);
                    }
                    Some(Action::Scale { service, verb }) if self.round.scale(view, service, verb) => {
                        self.encoder.update_shared(view, &self.round);
                    }
                    Some(Action::Loan(verb)) if self.round.loan(view, verb) => {
                        self.encoder.update_shared(view, &self.round);
                    }
                    _ => break,
                }
            }
        }
        let mut plan = Plan::keep();
        self.round.plan(view, &mut plan);
        plan
    }
}

/// A net or linear policy that decides rounds.
#[derive(Clone, Debug)]
pub struct LearnedPolicy {
    deployed: Deployed,
    decoder: Decoder,
    /// Random stream of the draws.
    random: ChaCha8Rng,
    player: RoundPlayer,
}

impl LearnedPolicy {
    /// Policy trained on observations of this layout, run as it was trained; draws follow from
    /// `seed`.
    pub fn new(deployed: Deployed, layout: &Layout, decoder: Decoder, seed: u64) -> Self {
        Self { deployed, decoder, random: rng(seed, Stream::Policy), player: RoundPlayer::new(layout) }
    }

    /// With another expectation of the load of services than yesterday's load.
    #[must_use]
    pub fn with_expected_peak(mut self, expected: ExpectedPeak) -> Self {
        self.player = self.player.with_expected_peak(expected);
        self
    }

    /// The slots of the round that begins now, and its first observation.
    pub fn look(&mut self, view: &ClusterView<'_>) -> (Vec<Slot>, Vec<f32>) {
        self.player.look(view)
    }

    /// Decides as [`Policy::decide`] does, and shows `watch` what the policy saw before each action
    /// and which it chose.
    pub fn decide_watched(&mut self, view: &ClusterView<'_>, mut watch: impl FnMut(&[f32], usize)) -> Plan {
        let Self { deployed, decoder, random, player } = self;
        player.play(view, |observation, mask| {
            let action = match decoder.choice {
                Choice::Best => deployed.decide(observation, mask),
                Choice::Drawn { temperature } => deployed.draw(observation, mask, temperature, random.random()),
            };
            watch(observation, action);
            action
        })
    }
}

impl Policy for LearnedPolicy {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.decide_watched(view, |_, _| {})
    }

    fn scope(&self) -> Scope {
        self.player.scope()
    }

    fn batching(&self) -> Batching {
        self.decoder.batching
    }

    fn information(&self) -> Information {
        self.decoder.information
    }
}
