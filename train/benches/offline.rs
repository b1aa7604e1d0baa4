//! Cloning and implicit Q-learning from one log of heuristics, and PPO in the same
//! environment, on held-out workloads: the table of docs/src/results/offline-learning.md. `cargo
//! xtask bench offline`; more decisions with `cargo bench --workspace --bench offline -- 1000000`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use goodput_agents::bundle::PolicyBundle;
use goodput_configs::experiment::{AgentConfig, Algorithm, Experiment};
use goodput_datasets::store::DataProvenance;
use goodput_datasets::store::decisions::Behaviour;
use goodput_eval::entries;
use goodput_eval::entries::learned_entry;
use goodput_eval::report::leaderboard::leaderboard;
use goodput_eval::run::{Comparison, Evaluation, PolicyEntry};
use goodput_train::run_dir::RunDir;
use goodput_train::validate::jct_mean_secs;
use goodput_train::{Hooks, Trained, log, train};

/// Decisions to log without another number on the command line.
const DECISIONS: u64 = 200_000;
const NOISE: [f32; 3] = [0.0, 0.05, 0.2];

fn main() {
    let decisions = std::env::args().find_map(|arg| arg.parse().ok()).unwrap_or(DECISIONS);
    let experiment = read("offline");
    let dir = tempfile::tempdir().expect("a directory for temporary files");
    let data = dir.path().join("decisions.parquet");
    record(&experiment, decisions, &data);

    let setup = experiment.setup().expect("it is checked by a test");
    let mut learned = Vec::new();
    let algorithms = [("bc", Algorithm::Bc), ("filtered-bc", Algorithm::FilteredBc), ("iql", Algorithm::Iql)];
    for (name, algorithm) in algorithms {
        let mut experiment = experiment.clone();
        let Some(AgentConfig::Offline(agent)) = &mut experiment.agent else { unreachable!("the file says so") };
        (agent.algorithm, agent.data) = (algorithm, data.clone());
        learned.push((name, learn(name, &experiment, &dir.path().join(name))));
    }
    let online = read("offline-ppo");
    learned.push(("ppo", learn("ppo", &online, &dir.path().join("ppo"))));

    let heuristic =
        |name: &String| entries::heuristic(&experiment, name, &setup).expect("the file names policies that there are");
    let heuristics = || experiment.evaluate.policies.iter().map(heuristic).collect::<Vec<PolicyEntry>>();
    let best = best(&compare(&experiment, heuristics(), None));
    let mut entries = heuristics();
    for (name, bundle) in &learned {
        entries.push(
            learned_entry(name, bundle, experiment.expected_peak(&setup), setup.sharing())
                .expect("it was made just now"),
        );
    }
    println!("{}", leaderboard(&compare(&experiment, entries, Some(best)).summary));
}

fn read(name: &str) -> Experiment {
    let path = format!("{}/../configs/experiment/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    toml::from_str(&std::fs::read_to_string(path).expect("the file is in the repository"))
        .expect("it is checked by a test")
}

fn record(experiment: &Experiment, decisions: u64, data: &Path) {
    let noisy = |name: &String| {
        let name = name.clone();
        NOISE.map(|noise| Behaviour { name: name.clone(), noise })
    };
    let behaviours: Vec<Behaviour> = experiment.evaluate.policies.iter().flat_map(noisy).collect();
    let start = Instant::now();
    let log = log::log(experiment, &behaviours, decisions, &|_| ()).expect("heuristics that run");
    let played = start.elapsed().as_secs_f64();
    log.write(data, &DataProvenance::generated("bench offline", "", 0)).expect("a directory that can be written");
    let size = std::fs::metadata(data).map_or(0, |file| file.len());
    println!(
        "{} decisions of {} episodes in {played:.1} s, {:.0} bytes each in the file",
        log.decisions(),
        log.episodes().len(),
        size as f64 / log.rows() as f64
    );
    for behaviour in &behaviours {
        let own: Vec<f64> =
            log.episodes().iter().filter(|e| e.behaviour == *behaviour).map(|episode| episode.total).collect();
        let mean = own.iter().sum::<f64>() / own.len() as f64;
        println!("{:<14} noise {:<5} mean return {mean:9.3}", behaviour.name, behaviour.noise);
    }
}

fn learn(name: &str, experiment: &Experiment, path: &Path) -> PolicyBundle {
    let dir = RunDir::create(path).expect("a new directory");
    dir.write("config.toml", name.as_bytes()).expect("a directory that can be written");
    let (start, stop) = (Instant::now(), AtomicBool::new(false));
    let hooks = Hooks { stop: &stop, progress: &|_| (), argv: Vec::new() };
    match train(experiment, &dir, &hooks).expect("finite gradients") {
        Trained::Complete(bundle) => {
            println!("{name}: {:.0} s", start.elapsed().as_secs_f64());
            *bundle
        }
        Trained::Stopped => unreachable!("nobody asked it to stop"),
    }
}

fn compare(experiment: &Experiment, entries: Vec<PolicyEntry>, reference: Option<String>) -> Evaluation {
    let scenarios = entries::held_out(experiment, experiment.evaluate.seeds).expect("it is checked by a test");
    let mut comparison = Comparison::new(entries, scenarios);
    comparison.reference = reference;
    comparison.run(&|_, _| ()).expect("policies that run")
}

/// The policy of the least mean completion time.
fn best(evaluation: &Evaluation) -> String {
    let mean = |policy: usize| evaluation.runs_of(policy).iter().map(|run| jct_mean_secs(&run.outcome)).sum::<f64>();
    let ranked = (0..evaluation.layout.policies.len()).min_by(|&a, &b| mean(a).total_cmp(&mean(b)));
    ranked.map_or_else(String::new, |policy| evaluation.layout.policies[policy].clone())
}
