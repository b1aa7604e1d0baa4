//! The policies that come with the product: current, small, with cards that say how to make them
//! again; and what was trained on 16 accelerators runs on more.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

use goodput_agents::bundle::PolicyBundle;
use goodput_agents::zoo::open_forecaster;
use goodput_configs::experiment::Experiment;
use goodput_configs::forecast::ForecasterExperiment;
use goodput_configs::seeds::VALIDATION;
use goodput_datasets::import::panel::is_named;
use goodput_env::gym::ExpectedPeak;
use goodput_eval::entries;
use goodput_eval::entries::{learned_entry, seeds};
use goodput_eval::run::Comparison;
use goodput_train::model_card::{ModelCard, NOTES, stale};
use sha2::{Digest, Sha256};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Largest bundle that is shipped, bytes.
const LARGEST: usize = 200 * 1024;

/// Names of the shipped policies.
fn shipped() -> Vec<String> {
    let folders = std::fs::read_dir(root().join("agents/zoo")).unwrap().map(|entry| entry.unwrap());
    let policies = folders.filter(|folder| folder.path().join("policy.bundle").exists());
    let mut names: Vec<String> = policies.map(|folder| folder.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Bundle and card.
fn files(name: &str) -> (Vec<u8>, String) {
    let folder = root().join("agents/zoo").join(name);
    (std::fs::read(folder.join("policy.bundle")).unwrap(), std::fs::read_to_string(folder.join("card.md")).unwrap())
}

fn load(name: &str) -> PolicyBundle {
    PolicyBundle::from_bytes(&files(name).0, Path::new(name)).unwrap().checked(Path::new(name)).unwrap()
}

#[test]
fn every_shipped_policy_is_current_and_says_how_it_was_made() {
    let names = shipped();
    assert!(names.contains(&"elastic".to_owned()), "{names:?}");
    for name in names {
        let (bytes, card) = files(&name);
        if let Some(problem) = stale(&name, &bytes, &card) {
            panic!("{problem}");
        }
        assert!(bytes.len() <= LARGEST, "{name} has {} bytes", bytes.len());
        let bundle = load(&name);
        bundle.policy(ExpectedPeak::default()).unwrap();
        assert_eq!(bundle.to_bytes(), bytes, "{name}");
        let config = card.split_whitespace().find(|word| word.starts_with("configs/")).unwrap();
        assert!(root().join(config).is_file(), "{name}: its card names {config}");
        for heading in ["\n## Command\n", "\n## Results\n", "\n## Limits\n", "\n## Data\n"] {
            assert!(card.contains(heading), "{name}: no {heading}");
        }
        assert!(!card.contains("/tmp/") && !card.contains("/work/"), "{name}: paths of one machine");
        let program = std::fs::read_to_string(root().join("agents/src/zoo.rs")).unwrap();
        // However long its line is.
        let entries = program.split("entry!(").any(|entry| entry.trim_start().starts_with(&format!("\"{name}\",")));
        assert!(entries, "{name}: not in agents/src/zoo.rs");
    }
}

#[test]
fn a_change_of_schema_says_how_to_train_again() {
    let (bytes, card) = files("elastic");
    let read = || PolicyBundle::from_bytes(&bytes, Path::new("x")).unwrap();
    let mut bundle = read();
    bundle.card.schema_hash = "that of last year".into();
    let message = stale("elastic", &bundle.to_bytes(), &card).unwrap();
    let again = "  goodput export runs/elastic/1 --to agents/zoo/elastic";
    for part in ["that of last year", "  goodput train configs/experiment/elastic.toml", again] {
        assert!(message.contains(part), "{part} is not in {message}");
    }
    let mut other = read();
    other.card.provenance.argv.push("--set".into());
    let message = stale("elastic", &other.to_bytes(), &card).unwrap();
    assert!(message.contains("does not name the command"), "{message}");
    let message = stale("elastic", b"nothing", &card).unwrap();
    assert!(message.contains("policy bundle") && message.contains("export it again"), "{message}");
}

fn elastic_16(nodes: u32, jobs: u32) -> Experiment {
    let text = include_str!("../../configs/experiment/elastic-16.toml")
        .replace("jobs = 40", &format!("jobs = {jobs}\nhours = 2"));
    let mut experiment: Experiment = toml::from_str(&text).unwrap();
    experiment.cluster.groups[0].nodes = nodes;
    experiment
}

#[test]
fn what_was_trained_on_16_accelerators_runs_on_more() {
    let bundle = load("elastic-16");
    // As many jobs an accelerator and hour as in training, for two of its eight hours.
    for (nodes, jobs) in [(4, 10), (16, 40), (32, 80)] {
        let experiment = elastic_16(nodes, jobs);
        let setup = experiment.setup().unwrap();
        let learned = learned_entry("learned", &bundle, ExpectedPeak::default(), setup.sharing()).unwrap();
        let mut policies = vec![learned];
        policies.extend(["pollux-fast", "fifo"].map(|name| entries::heuristic(&experiment, name, &setup).unwrap()));
        // Not among the seeds of any table.
        let evaluation = Comparison::new(policies, seeds(&setup, VALIDATION + 500, 3)).run(&|_, _| {}).unwrap();
        let mean = |name: &str| evaluation.summary.policy(name).unwrap().metrics["jct_mean_secs"].value;
        let (learned, pollux, fifo) = (mean("learned"), mean("pollux-fast"), mean("fifo"));
        assert!(learned < 1.05 * pollux && learned < fifo, "{nodes} nodes: {learned} s, {pollux} s, {fifo} s");
    }
}

#[test]
fn a_card_says_where_its_policy_ends_and_keeps_notes() {
    let bundle = load("elastic-16");
    let experiment = elastic_16(4, 8);
    let setup = experiment.setup().unwrap();
    let policies = vec![
        learned_entry("learned", &bundle, ExpectedPeak::default(), setup.sharing()).unwrap(),
        entries::heuristic(&experiment, "fifo", &setup).unwrap(),
    ];
    let results = Comparison::new(policies, seeds(&setup, VALIDATION + 500, 2)).run(&|_, _| {}).unwrap().summary;
    let before = format!("# old{NOTES}\nAsk before use.\n");
    let card = ModelCard {
        name: "small",
        bundle: &bundle,
        config: "name = \"small\"",
        results: &results,
        export: "goodput export a --to b",
        before: &before,
    };
    let text = card.render();
    assert!(text.starts_with("# small\n") && text.ends_with("\n## Notes\n\nAsk before use.\n"), "{text}");
    assert!(text.contains("cluster gpus = 16; outside it extrapolates"), "{text}");
    assert!(text.contains("| workload | fifo |") && text.contains("name = \"small\""), "{text}");
    assert_eq!(card.render(), text);
}

/// Series of the benchmark of forecasters, parts of them and series like them, as `keep_out` names series.
const BENCHMARK: [&str; 8] = [
    "servegen_rate_10min:m-small",
    "servegen_rate_10min:m-large",
    "servegen_top_clients_rate_10min:m-small__client5",
    "servegen_language_clients_rate_10min:m-small__5",
    "servegen_language_clients_rate_10min:m-large__1",
    "twitter2021_rps_10min:rps",
    "nab_nyc_taxi:value",
    "alibaba_dlrm2025_active_10min:HN_gpu_request",
];

#[test]
fn the_shipped_forecaster_is_small_and_has_seen_no_series_of_the_benchmark() {
    let bytes = std::fs::read(root().join("agents/zoo/load/forecaster.bundle")).unwrap();
    assert!(bytes.len() < 1 << 20, "{} bytes", bytes.len());
    let bundle = open_forecaster(Path::new("zoo:load")).unwrap();
    assert_eq!(bundle.to_bytes(), bytes);
    assert!(bundle.net.spec().is_global());
    let card = std::fs::read_to_string(root().join("agents/zoo/load/card.md")).unwrap();
    assert!(card.contains(&bundle.card.provenance.config_sha256), "the card is of another training");
    let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(card.contains(&digest), "the card is of another bundle: {digest}");
    let text = std::fs::read_to_string(root().join("configs/forecast/global.toml")).unwrap();
    let experiment: ForecasterExperiment = toml::from_str(&text).unwrap();
    let is_kept_out = |name: &str| experiment.keep_out.iter().any(|pattern| is_named(pattern, name));
    for name in BENCHMARK {
        assert!(is_kept_out(name), "{name} is of the benchmark");
    }
    let names: Vec<&str> = bundle.card.series.split(", ").collect();
    assert!(names.len() > 50 && !names.iter().any(|name| is_kept_out(name)), "{names:?}");
    for source in &experiment.sources {
        let file = source.path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(bundle.card.series.contains(&format!("{file}:")), "{file} is in the file and not in the bundle");
    }
    // Any step: a week of history in, a day out.
    for day in [24, 48, 144, 288, 1440] {
        let net = bundle.clone().suited((86_400_000 / day, day as usize)).unwrap().net;
        let window: Vec<f64> =
            (0..7 * day).map(|step| (step as f64 * std::f64::consts::TAU / day as f64).sin()).collect();
        let median = net.median(&window);
        assert_eq!(median.len(), day as usize);
        let wrong: f64 = median.iter().zip(&window).map(|(a, b)| (a - b).abs()).sum::<f64>() / day as f64;
        assert!(wrong < 0.05, "a pure wave continues: mean error {wrong} of {day} steps a day");
    }
}
