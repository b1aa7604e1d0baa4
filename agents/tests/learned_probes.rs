//! Environments so small that a failure points at one part of the learner.
#![cfg(feature = "learn")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use std::num::NonZeroUsize;

use crate::learned_support::{Env, Loop, Recipe};
use goodput_agents::learning::ppo::PpoConfig;
use goodput_agents::nets::weights::{MlpConfig, NetConfig, SetConfig};
use goodput_env::gym::Layout;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

fn recipe(net: NetConfig, updates: usize) -> Recipe {
    let ppo = PpoConfig { epochs: 4, minibatch: 64, target_kl: 0.0, ..PpoConfig::default() };
    Recipe { net, envs: 8, steps: 32, updates, gamma: 0.5, lambda: 0.95, learning_rate: 5e-3, entropy: 0.01, ppo }
}

fn mlp() -> NetConfig {
    NetConfig::Mlp(MlpConfig { hidden: vec![NonZeroUsize::new(16).unwrap()] })
}

fn near(what: &str, got: f32, want: f32) {
    assert!((got - want).abs() < 0.05, "{what}: {got}, not {want}");
}

/// Two actions on a flat observation of one number.
const TINY: Layout = Layout { slots: 1, slot_features: 0, globals: 1, verbs: 1, services: 0, pools: false, types: 0 };

/// Reward 1 whatever happens: tests that the critic is fitted at all.
struct Constant;
impl Env for Constant {
    const LAYOUT: Layout = TINY;
    fn reset(_: &mut ChaCha8Rng) -> Self {
        Self
    }
    fn observe(&self, _: &mut [f32], mask: &mut [u8]) {
        mask.fill(1);
    }
    fn step(&mut self, _: usize) -> (f32, bool, bool) {
        (1.0, true, false)
    }
}

#[test]
fn constant_reward_is_the_value() {
    let agent = Loop::<Constant>::new(&recipe(mlp(), 60), 1).train();
    near("value", agent.ask(&Constant).1, 1.0);
}

/// Reward equal to the observation: tests that observations reach the critic.
struct Seen(f32);
impl Env for Seen {
    const LAYOUT: Layout = TINY;
    fn reset(random: &mut ChaCha8Rng) -> Self {
        Self(if random.random() { 1.0 } else { -1.0 })
    }
    fn observe(&self, observation: &mut [f32], mask: &mut [u8]) {
        observation[0] = self.0;
        mask.fill(1);
    }
    fn step(&mut self, _: usize) -> (f32, bool, bool) {
        (self.0, true, false)
    }
}

#[test]
fn value_depends_on_what_is_seen() {
    let agent = Loop::<Seen>::new(&recipe(mlp(), 40), 2).train();
    near("good", agent.ask(&Seen(1.0)).1, 1.0);
    near("bad", agent.ask(&Seen(-1.0)).1, -1.0);
}

/// Reward 1 at the second step: tests that the future is discounted once. `CUT` ends by truncation,
/// so that the future goes on.
struct Delayed<const CUT: bool>(u8);
impl<const CUT: bool> Env for Delayed<CUT> {
    const LAYOUT: Layout = TINY;
    fn reset(_: &mut ChaCha8Rng) -> Self {
        Self(0)
    }
    fn observe(&self, observation: &mut [f32], mask: &mut [u8]) {
        observation[0] = f32::from(self.0.min(1));
        mask.fill(1);
    }
    fn step(&mut self, _: usize) -> (f32, bool, bool) {
        self.0 += 1;
        let last = self.0 == 2;
        (f32::from(u8::from(last)), last && !CUT, last && CUT)
    }
}

#[test]
fn the_future_is_discounted() {
    let agent = Loop::<Delayed<false>>::new(&recipe(mlp(), 60), 3).train();
    near("first", agent.ask(&Delayed(0)).1, 0.5);
    near("second", agent.ask(&Delayed(1)).1, 1.0);
}

#[test]
fn a_cut_episode_is_worth_what_would_have_followed() {
    // The state after the cut looks like the second: v2 = 1 + v2 / 2 = 2 and v1 = v2 / 2 = 1.
    let agent = Loop::<Delayed<true>>::new(&recipe(mlp(), 150), 4).train();
    near("first", agent.ask(&Delayed(0)).1, 1.0);
    near("second", agent.ask(&Delayed(1)).1, 2.0);
}

/// Reward for matching the observed sign: tests that the advantage reaches the actor.
struct Match(f32);
impl Env for Match {
    const LAYOUT: Layout = TINY;
    fn reset(random: &mut ChaCha8Rng) -> Self {
        Self(if random.random() { 1.0 } else { -1.0 })
    }
    fn observe(&self, observation: &mut [f32], mask: &mut [u8]) {
        observation[0] = self.0;
        mask.fill(1);
    }
    fn step(&mut self, action: usize) -> (f32, bool, bool) {
        (if (action == 1) == (self.0 > 0.0) { 1.0 } else { -1.0 }, true, false)
    }
}

#[test]
fn actions_follow_what_is_seen() {
    let agent = Loop::<Match>::new(&recipe(mlp(), 60), 5).train();
    assert_eq!([agent.ask(&Match(1.0)).0, agent.ask(&Match(-1.0)).0], [1, 0]);
    near("value", agent.ask(&Match(1.0)).1, 1.0);
}

/// Bandit with a known best arm under every mask: the value of an arm is its second feature, that
/// of waiting 1/2.
#[derive(Clone)]
struct Bandit {
    worth: [f32; 4],
    present: [bool; 4],
    allowed: [bool; 4],
}
impl Env for Bandit {
    const LAYOUT: Layout =
        Layout { slots: 4, slot_features: 2, globals: 0, verbs: 1, services: 0, pools: false, types: 0 };
    fn reset(random: &mut ChaCha8Rng) -> Self {
        let worth = std::array::from_fn(|_| random.random());
        let present: [bool; 4] = std::array::from_fn(|_| random.random_bool(0.8));
        Self { worth, present, allowed: present.map(|p| p && random.random_bool(0.6)) }
    }
    fn observe(&self, observation: &mut [f32], mask: &mut [u8]) {
        for slot in 0..4 {
            if self.present[slot] {
                observation[2 * slot..2 * slot + 2].copy_from_slice(&[1.0, self.worth[slot]]);
                mask[slot] = u8::from(self.allowed[slot]);
            }
        }
        mask[4] = 1;
    }
    fn step(&mut self, action: usize) -> (f32, bool, bool) {
        (if action == 4 { 0.5 } else { self.worth[action] }, true, false)
    }
}

#[test]
fn the_best_allowed_arm_is_taken_under_every_mask() {
    for heads in [0, 2] {
        the_best_allowed_arm_is_taken_by(NetConfig::Set(SetConfig { width: NonZeroUsize::new(16).unwrap(), heads }));
    }
}

fn the_best_allowed_arm_is_taken_by(net: NetConfig) {
    let agent = Loop::<Bandit>::new(&recipe(net, 150), 6).train();
    let levels = [0.1, 0.35, 0.65, 0.9];
    for shift in 0..4 {
        let worth = std::array::from_fn(|slot| levels[(slot * 3 + shift) % 4]);
        for bits in 0..16u8 {
            let allowed = std::array::from_fn(|slot| bits >> slot & 1 == 1);
            let bandit = Bandit { worth, present: [true; 4], allowed };
            let best = (0..4)
                .filter(|&s| allowed[s] && worth[s] > 0.5)
                .max_by(|&a, &b| worth[a].total_cmp(&worth[b]))
                .unwrap_or(4);
            assert_eq!(agent.ask(&bandit).0, best, "{worth:?} {allowed:?}");
        }
    }
}
