//! Offline learners against known results: two states with values that can be worked out, and cloning
//! as a special case.
#![cfg(feature = "learn")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(clippy::needless_range_loop, reason = "states and actions of a table")]

use std::num::NonZeroUsize;

use goodput_agents::learning::adam::AdamConfig;
use goodput_agents::learning::imitation::{ImitationBatch, ImitationConfig};
use goodput_agents::learning::iql::{Iql, IqlConfig};
use goodput_agents::learning::learner::Learner;
use goodput_agents::learning::offline::OfflineBatch;
use goodput_agents::nets::fused::Fused;
use goodput_agents::nets::weights::{MlpConfig, NetConfig, Weights};
use goodput_env::gym::Layout;
use goodput_env::seed::{Stream, rng};

/// Two actions on a flat observation of one number: the state, -1 or 1.
const TINY: Layout = Layout { slots: 1, slot_features: 0, globals: 1, verbs: 1, services: 0, pools: false, types: 0 };
/// Discount per second.
const GAMMA: f32 = 0.5;

/// State, action, reward, seconds, and the state after; `None`: the episode is over.
type Transition = (usize, u32, f32, f32, Option<usize>);

/// Resting in the second state is worth most; ending at once and going back are not. Times differ,
/// so a discount per decision would be wrong.
const ALL: [Transition; 4] =
    [(0, 0, 1.0, 2.0, None), (0, 1, 0.0, 1.0, Some(1)), (1, 0, 0.0, 2.0, Some(0)), (1, 1, 3.0, 1.0, Some(1))];

/// Each transition 16 times, as a minibatch.
struct Logged {
    observations: Vec<f32>,
    next_observations: Vec<f32>,
    masks: Vec<u8>,
    actions: Vec<u32>,
    rewards: Vec<f32>,
    discounts: Vec<f32>,
}

fn seen(state: usize) -> f32 {
    2.0 * state as f32 - 1.0
}

impl Logged {
    fn of(transitions: &[Transition]) -> Self {
        let rows: Vec<Transition> = (0..16).flat_map(|_| transitions.iter().copied()).collect();
        Self {
            observations: rows.iter().map(|row| seen(row.0)).collect(),
            next_observations: rows.iter().map(|row| seen(row.4.unwrap_or(0))).collect(),
            masks: vec![1; 2 * rows.len()],
            actions: rows.iter().map(|row| row.1).collect(),
            rewards: rows.iter().map(|row| row.2).collect(),
            discounts: rows.iter().map(|row| if row.4.is_some() { GAMMA.powf(row.3) } else { 0.0 }).collect(),
        }
    }

    fn batch(&self) -> OfflineBatch<'_> {
        OfflineBatch {
            observations: &self.observations,
            masks: &self.masks,
            actions: &self.actions,
            rewards: &self.rewards,
            discounts: &self.discounts,
            next_observations: &self.next_observations,
            next_masks: &self.masks,
            returns: None,
        }
    }
}

fn learner() -> Learner {
    let net = NetConfig::Mlp(MlpConfig { hidden: vec![NonZeroUsize::new(16).unwrap()] });
    Learner::new(&net, TINY, AdamConfig::default(), 3)
}

fn q(weights: &Weights, state: usize, action: usize) -> f32 {
    let net = Fused::new(weights);
    let mut scratch = net.scratch();
    let (scores, value) = net.forward(&[seen(state)], &mut scratch);
    value + scores[action]
}

fn greedy(weights: &Weights) -> [usize; 2] {
    let net = Fused::new(weights);
    [0, 1].map(|state| net.greedy(&[seen(state)], &[1, 1], &mut net.scratch()))
}

/// `Q` by state and action where the value of a state is the expectile `tau` of its two actions,
/// both done equally often: the weighted mean of the better and the worse. `tau` = 1 gives the
/// optimal `Q`.
fn fixed_point(tau: f32) -> [[f32; 2]; 2] {
    let mut q = [[0.0f32; 2]; 2];
    for _ in 0..100 {
        let value = q.map(|of: [f32; 2]| tau * of[0].max(of[1]) + (1.0 - tau) * of[0].min(of[1]));
        for (state, action, reward, secs, next) in ALL {
            q[state][action as usize] = reward + next.map_or(0.0, |next| GAMMA.powf(secs) * value[next]);
        }
    }
    q
}

fn near(what: &str, got: f32, want: f32) {
    assert!((got - want).abs() < 0.06, "{what}: {got}, not {want}");
}

#[test]
fn implicit_q_learning_finds_its_fixed_point_and_the_optimum_beyond() {
    let logged = Logged::of(&ALL);
    for tau in [0.7, 0.99] {
        let mut iql = Iql::new(learner(), 3);
        let config = IqlConfig { expectile: tau, target_rate: 0.05, ..IqlConfig::default() };
        for step in 0..3000 {
            let rate = 3e-3 * (1.0 - step as f32 / 3000.0);
            iql.update(&config, rate, &logged.batch()).unwrap();
        }
        let want = fixed_point(tau);
        for state in 0..2 {
            for action in 0..2 {
                for critic in &iql.critics {
                    near(
                        &format!("tau {tau}, Q({state}, {action})"),
                        q(critic.weights(), state, action),
                        want[state][action],
                    );
                }
            }
        }
        assert_eq!(greedy(iql.policy.weights()), [1, 1], "tau {tau}");
    }
    near("the optimum in closed form", fixed_point(1.0)[0][1], 3.0);
}

#[test]
fn without_temperature_the_policy_clones() {
    let logged = Logged::of(&ALL[..3]);
    let limit = 1e9;
    let mut iql = Iql::new(learner(), 3);
    let config = IqlConfig { temperature: 0.0, max_grad_norm: limit, ..IqlConfig::default() };
    iql.update(&config, 1e-3, &logged.batch()).unwrap();
    let mut clone = learner();
    let batch = ImitationBatch {
        observations: &logged.observations,
        masks: &logged.masks,
        actions: &logged.actions,
        weights: None,
        returns: None,
    };
    let config = ImitationConfig { max_grad_norm: limit, ..ImitationConfig::default() };
    clone.imitate(&config, 1e-3, &batch, &mut rng(1, Stream::Exploration)).unwrap();
    // Actor and critic share no layer here: the first two layers are the actor.
    for layer in 0..2 {
        let (own, cloned) = (iql.policy.weights().layer(layer), clone.weights().layer(layer));
        for (a, b) in own.0.iter().zip(cloned.0).chain(own.1.iter().zip(cloned.1)) {
            assert!((a - b).abs() < 1e-5, "layer {layer}: {a} and {b}");
        }
    }
}

const SLOTS: Layout = Layout { slots: 2, slot_features: 1, globals: 2, verbs: 2, services: 0, pools: false, types: 0 };
const ROWS: usize = 4;

/// The gradient that a loss with these derivatives by score and by value has at the biases of the
/// last layers of actor and critic; the layers before are burn's, held against PyTorch elsewhere.
fn at_the_outputs(learner: &Learner, gradient: &[f32], by_score: &[f64], by_value: f64) {
    let layers = learner.weights().layers();
    let biases = |layer: usize| layers[layer].split(gradient).1;
    for (action, (&got, &want)) in biases(1).iter().zip(by_score).enumerate() {
        assert!((f64::from(got) - want).abs() < 1e-5, "score of {action}: {got}, not {want}");
    }
    assert!((f64::from(biases(3)[0]) - by_value).abs() < 1e-5, "value: {}, not {by_value}", biases(3)[0]);
}

#[test]
fn gradients_are_those_of_the_formulas() {
    let hidden = vec![NonZeroUsize::new(8).unwrap()];
    let learner = Learner::new(&NetConfig::Mlp(MlpConfig { hidden }), SLOTS, AdamConfig::default(), 5);
    let observations: Vec<f32> = (0..ROWS * 4).map(|at| ((at * 37 % 19) as f32 - 9.0) / 6.0).collect();
    let masks: Vec<u8> = [[1, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 0, 1, 0, 1], [1, 1, 0, 0, 1]].concat();
    let actions = [0u32, 3, 4, 1];
    let (targets, weights, tau) = ([0.5f32, -2.0, 1.0, 3.0], [2.0f32, 0.5, 1.0, 4.0], 0.7f64);
    let net = Fused::new(learner.weights());
    let mut scratch = net.scratch();
    let (mut regression, mut extraction) = (([0.0; 5], 0.0), ([0.0; 5], 0.0));
    for row in 0..ROWS {
        let (observation, mask) = (&observations[row * 4..row * 4 + 4], &masks[row * 5..row * 5 + 5]);
        let action = actions[row] as usize;
        let mut chance = [0.0f32; 5];
        net.probabilities(observation, mask, &mut scratch, &mut chance);
        let value = f64::from(net.value(observation, &mut scratch));
        let score = net.logits(observation, &mut scratch)[action];
        let error = value + f64::from(score) - f64::from(targets[row]);
        let above = f64::from(targets[row]) - value;
        regression.1 += 2.0 * error / ROWS as f64;
        extraction.1 -= 2.0 * if above > 0.0 { tau } else { 1.0 - tau } * above / ROWS as f64;
        for at in 0..5 {
            let own = f64::from(u8::from(at == action));
            let gap = f64::from(chance[at]) - own;
            regression.0[at] += 2.0 * error * own / ROWS as f64;
            extraction.0[at] += f64::from(weights[row]) * gap / ROWS as f64;
        }
    }
    let nothing = [0.0; ROWS];
    let batch = OfflineBatch {
        observations: &observations,
        masks: &masks,
        actions: &actions,
        rewards: &nothing,
        discounts: &nothing,
        next_observations: &observations,
        next_masks: &masks,
        returns: None,
    };
    let (error, gradient) = learner.critic_gradient(&batch, &targets);
    assert!(error > 0.0, "{error}");
    at_the_outputs(&learner, &gradient, &regression.0, regression.1);
    let (_, gradient) = learner.extraction_gradient(&batch, &targets, &weights, tau as f32);
    at_the_outputs(&learner, &gradient, &extraction.0, extraction.1);
}
