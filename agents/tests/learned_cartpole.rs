//! CartPole-v1 within 150,000 steps.
#![cfg(feature = "learn")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use crate::learned_support::{Env, Loop, Recipe};
use goodput_agents::learning::ppo::PpoConfig;
use goodput_agents::nets::weights::{MlpConfig, NetConfig};
use goodput_env::gym::Layout;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// The physics of Gymnasium's `CartPole-v1` (Barto, Sutton and Anderson 1983; explicit Euler).
struct CartPole {
    state: [f64; 4],
    steps: usize,
}

impl Env for CartPole {
    const LAYOUT: Layout =
        Layout { slots: 1, slot_features: 0, globals: 4, verbs: 1, services: 0, pools: false, types: 0 };

    fn reset(random: &mut ChaCha8Rng) -> Self {
        Self { state: std::array::from_fn(|_| random.random_range(-0.05..0.05)), steps: 0 }
    }

    fn observe(&self, observation: &mut [f32], mask: &mut [u8]) {
        observation.iter_mut().zip(self.state).for_each(|(o, s)| *o = s as f32);
        mask.fill(1);
    }

    fn step(&mut self, action: usize) -> (f32, bool, bool) {
        const GRAVITY: f64 = 9.8;
        const POLE_MASS: f64 = 0.1;
        const TOTAL_MASS: f64 = 1.1;
        const HALF_LENGTH: f64 = 0.5;
        const FORCE: f64 = 10.0;
        const TAU: f64 = 0.02;
        let [x, speed, angle, spin] = self.state;
        let force = if action == 1 { FORCE } else { -FORCE };
        let (sin, cos) = angle.sin_cos();
        let push = (force + POLE_MASS * HALF_LENGTH * spin * spin * sin) / TOTAL_MASS;
        let spin_up = (GRAVITY * sin - cos * push) / (HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * cos * cos / TOTAL_MASS));
        let speed_up = push - POLE_MASS * HALF_LENGTH * spin_up * cos / TOTAL_MASS;
        self.state = [x + TAU * speed, speed + TAU * speed_up, angle + TAU * spin, spin + TAU * spin_up];
        self.steps += 1;
        let fallen = self.state[0].abs() > 2.4 || self.state[2].abs() > 12.0f64.to_radians();
        (1.0, fallen, self.steps >= 500)
    }
}

/// The state that Gymnasium 1.4's `CartPole-v1` reaches from this one under the actions 1, 0, 1, 1.
#[test]
fn physics_are_those_of_gymnasium() {
    let mut env = CartPole { state: [0.01, -0.02, 0.03, 0.04], steps: 0 };
    for action in [1, 0, 1, 1] {
        assert_eq!(env.step(action), (1.0, false, false));
    }
    let want = [0.016153642433456895, 0.36859581150093934, 0.022617594188394704, -0.509225318312219];
    for (got, want) in env.state.iter().zip(want) {
        assert!((got - want).abs() < 1e-12, "{:?}", env.state);
    }
    let steps_to_fall = (1..).find(|_| env.step(1).1);
    assert_eq!(steps_to_fall, Some(8));
}

fn solve(seed: u64) {
    let ppo = PpoConfig { epochs: 10, minibatch: 256, target_kl: 0.0, ..PpoConfig::default() };
    let net = NetConfig::Mlp(MlpConfig::default());
    let recipe = Recipe {
        net,
        envs: 8,
        steps: 32,
        updates: 390,
        gamma: 0.98,
        lambda: 0.8,
        learning_rate: 1e-3,
        entropy: 0.0,
        ppo,
    };
    assert!(recipe.envs * recipe.steps * recipe.updates < 150_000);
    let agent = Loop::<CartPole>::new(&recipe, seed).train();
    let mean = agent.evaluate(100, seed + 1000);
    println!("seed {seed}: mean return of 100 greedy episodes {mean}");
    assert!(mean >= 475.0, "seed {seed}: {mean}");
}

#[test]
fn seed_1_reaches_475() {
    solve(1);
}

#[test]
fn seed_2_reaches_475() {
    solve(2);
}

#[test]
fn seed_3_reaches_475() {
    solve(3);
}
