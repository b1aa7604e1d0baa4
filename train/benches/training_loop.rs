//! Where the time of PPO goes, on one thread: environment, forward pass, update; quickstart's cluster, network and batch.
//! Run with `cargo xtask bench training_loop`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::sync::Arc;
use std::time::Instant;

use goodput_agents::learned::adam::AdamConfig;
use goodput_agents::learned::fused::Fused;
use goodput_agents::learned::gae::{GaeConfig, Trace};
use goodput_agents::learned::learner::Learner;
use goodput_agents::learned::ppo::{PpoConfig, PpoRates};
use goodput_env::gym::{ClusterEnv, Environment, ResetOptions, VecBuffers, VecEnv};
use goodput_env::seed::{Stream, rng};
use goodput_train::config::{AgentConfig, Experiment, training_seed};
use goodput_train::rollout::{Collect, Rollout};
use goodput_train::scaling::ReturnScale;

/// Environments: one shard, so that experience is ordered by step, then environment.
const ENVS: usize = 4;
const ROUNDS: u64 = 4;

fn main() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/experiment/quickstart.toml"))
        .expect("the file is in the repository");
    let experiment: Experiment = toml::from_str(&text).expect("it is checked by a test");
    let Some(AgentConfig::Ppo(agent)) = &experiment.agent else { unreachable!("quickstart trains by PPO") };
    let setup = experiment.setup().expect("it is checked by a test");
    let source = Arc::new(move |seed| setup.scenario(seed));
    let options = experiment.environment.gym();
    let env = ClusterEnv::new(source, options);
    let layout = env.layout();
    let steps = agent.envs * agent.steps_per_env / ENVS;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");

    let mut rollout = Rollout::new(&env, ENVS, steps, experiment.seed).expect("a workload that runs");
    let mut experience = rollout.experience();
    let mut learner = Learner::new(&agent.net, layout, AdamConfig::default(), experiment.seed);
    let mut scale = ReturnScale::new(ENVS);
    let gae = GaeConfig { beta: 1e-4, lambda: 0.95, trace: Trace::Decision };
    let seeds = (0..ENVS as u64).map(|env| training_seed(experiment.seed, env)).collect();
    let mut replay = VecEnv::new(vec![env; ENVS], seeds, ResetOptions::default()).expect("as many seeds");
    let mut buffers = VecBuffers::new(ENVS, &layout);
    replay.reset(&mut buffers).expect("a workload that runs");

    let (mut collect, mut update, mut forward, mut environment) = (0.0, 0.0, 0.0, 0.0);
    let mut rows = 0;
    for iteration in 0..ROUNDS {
        let how = Collect { iteration, seed: experiment.seed, gae, teacher_share: 0.0 };
        collect += timed(|| {
            pool.install(|| rollout.collect(learner.weights(), how, None, &mut scale, &mut experience))
                .expect("a workload that runs");
        });
        // The same observations and the same actions again, each part alone.
        let net = Fused::new(learner.weights());
        let mut scratch = net.scratch();
        forward += timed(|| {
            let observations = experience.observations.chunks_exact(layout.obs_dim());
            for (observation, mask) in observations.zip(experience.masks.chunks_exact(layout.actions())) {
                std::hint::black_box(net.sample(observation, mask, 0.5, &mut scratch));
            }
        });
        environment += timed(|| {
            for actions in experience.actions.chunks_exact(ENVS) {
                let actions: [usize; ENVS] = std::array::from_fn(|env| actions[env] as usize);
                replay.step(&actions, &mut buffers).expect("the same actions are allowed");
            }
        });
        let config =
            PpoConfig { epochs: agent.epochs, minibatch: agent.minibatch, target_kl: 0.0, ..PpoConfig::default() };
        let rates = PpoRates { learning_rate: 3e-4, entropy: 0.003, reference_kl: 0.0 };
        let batch = experience.batch();
        let mut shuffle = rng(iteration, Stream::Exploration);
        update += timed(|| {
            pool.install(|| learner.ppo(&config, rates, &batch, None, &mut shuffle)).expect("finite gradients");
        });
        rows += rollout.rows();
    }
    let micros = |secs: f64| secs * 1e6 / rows as f64;
    let whole = collect + update;
    println!(
        "{rows} decisions, {:.0} a second on one thread; minibatch {}, {} epochs",
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

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}
