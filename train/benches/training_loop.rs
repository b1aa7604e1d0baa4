//! Time that PPO spends on one thread in the environment, in the forward pass and in the update.
//! The cluster and the batch are those of set-encoder.toml; the nets are its set encoder and a flat net
//! of Stable-Baselines3's default size. Seconds are seconds of CPU. Run with `cargo xtask bench
//! training_loop`; `train/benches/maskable_ppo.py` runs the other side on the same environment.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[path = "support/mod.rs"]
mod support;

use std::sync::Arc;

use goodput_agents::learning::adam::AdamConfig;
use goodput_agents::learning::gae::{GaeConfig, TraceDecay};
use goodput_agents::learning::learner::Learner;
use goodput_agents::learning::ppo::{PpoConfig, PpoRates};
use goodput_agents::nets::fused::Fused;
use goodput_agents::nets::weights::{MlpConfig, NetConfig};
use goodput_configs::experiment::{AgentConfig, Experiment, PpoAgent};
use goodput_configs::seeds::training_seed;
use goodput_env::gym::{ClusterEnv, Environment, ResetOptions, VecBuffers, VecEnv};
use goodput_env::seed::{Stream, rng};
use goodput_train::rollout::{Collect, Rollout};
use goodput_train::scaling::ReturnScale;
use support::{on_one_thread, timed};

/// Environments: one shard, so that experience is ordered by step, then environment.
const ENVS: usize = 4;
const ROUNDS: u64 = 4;

fn main() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/experiment/set-encoder.toml"))
        .expect("the file is in the repository");
    let experiment: Experiment = toml::from_str(&text).expect("it is checked by a test");
    let Some(AgentConfig::Ppo(agent)) = &experiment.agent else { unreachable!("set-encoder.toml trains by PPO") };
    let setup = experiment.setup().expect("it is checked by a test");
    let source = Arc::new(move |seed| setup.scenario(seed));
    let env = ClusterEnv::new(source, experiment.gym());
    for net in [agent.net.clone(), NetConfig::Mlp(MlpConfig::default())] {
        on_one_thread(|| row(&env, agent, &net, experiment.seed));
    }
}

/// Trains a net of this kind for a few updates.
fn row(env: &ClusterEnv, agent: &PpoAgent, net: &NetConfig, seed: u64) {
    let layout = env.layout();
    let steps = agent.envs * agent.steps_per_env / ENVS;
    let mut rollout = Rollout::new(env, ENVS, steps, seed).expect("a workload that runs");
    let mut experience = rollout.experience();
    let mut learner = Learner::new(net, layout, AdamConfig::default(), seed);
    let mut scale = ReturnScale::new(ENVS);
    let gae = GaeConfig { beta: 1e-4, lambda: 0.95, trace: TraceDecay::Decision };
    let seeds = (0..ENVS as u64).map(|env| training_seed(seed, env)).collect();
    let mut replay = VecEnv::new(vec![env.clone(); ENVS], seeds, ResetOptions::default()).expect("as many seeds");
    let mut buffers = VecBuffers::new(ENVS, &layout);
    replay.reset(&mut buffers).expect("a workload that runs");

    let (mut collect, mut update, mut forward, mut environment) = (0.0, 0.0, 0.0, 0.0);
    let mut rows = 0;
    for iteration in 0..ROUNDS {
        let how = Collect { iteration, seed, gae, teacher_share: 0.0 };
        collect += timed(|| {
            rollout.collect(learner.weights(), how, None, &mut scale, &mut experience).expect("a workload that runs");
        })
        .0;
        // Each part alone, on one fixed set of observations and actions.
        let fused = Fused::new(learner.weights());
        let mut scratch = fused.scratch();
        forward += timed(|| {
            let observations = experience.observations.chunks_exact(layout.obs_dim());
            for (observation, mask) in observations.zip(experience.masks.chunks_exact(layout.actions())) {
                std::hint::black_box(fused.sample(observation, mask, 0.5, &mut scratch));
            }
        })
        .0;
        environment += timed(|| {
            for actions in experience.actions.chunks_exact(ENVS) {
                let actions: [usize; ENVS] = std::array::from_fn(|env| actions[env] as usize);
                replay.step(&actions, &mut buffers).expect("the same actions are allowed");
            }
        })
        .0;
        let config =
            PpoConfig { epochs: agent.epochs, minibatch: agent.minibatch, target_kl: 0.0, ..PpoConfig::default() };
        let rates = PpoRates { learning_rate: 3e-4, entropy: 0.003, reference_kl: 0.0 };
        let batch = experience.batch();
        let mut shuffle = rng(iteration, Stream::Exploration);
        update += timed(|| {
            learner.ppo(&config, rates, &batch, None, &mut shuffle).expect("finite gradients");
        })
        .0;
        rows += rollout.rows();
    }
    let micros = |secs: f64| secs * 1e6 / rows as f64;
    let whole = collect + update;
    let kind = match net {
        NetConfig::Set(config) => format!("set encoder of width {}", config.width),
        NetConfig::Mlp(config) => format!("flat net of layers {:?}", config.hidden),
    };
    println!(
        "{kind}: {rows} decisions, {:.0} a second of CPU; minibatch {}, {} epochs",
        rows as f64 / whole,
        agent.minibatch,
        agent.epochs
    );
    println!("{:<24} {:>12} {:>8}", "part", "us/decision", "share");
    let rest = (collect - forward - environment).max(0.0);
    for (part, secs) in
        [("environment", environment), ("forward", forward), ("copies, GAE, sampling", rest), ("update", update)]
    {
        println!("{part:<24} {:>12.2} {:>7.1} %", micros(secs), secs / whole * 100.0);
    }
}
