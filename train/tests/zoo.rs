//! The policies that come with the product: current, small, with cards that say how to make them
//! again; and what was trained on 16 accelerators runs on more.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

use goodput_agents::bundle::PolicyBundle;
use goodput_configs::experiment::Experiment;
use goodput_configs::seeds::VALIDATION;
use goodput_env::gym::ExpectedPeak;
use goodput_eval::entries;
use goodput_eval::entries::{learned_entry, seeds};
use goodput_eval::run::Comparison;
use goodput_train::model_card::{ModelCard, NOTES, stale};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Largest bundle that is shipped, bytes.
const LARGEST: usize = 200 * 1024;

/// Names of the shipped policies.
fn shipped() -> Vec<String> {
    let folders = std::fs::read_dir(root().join("agents/zoo")).unwrap();
    let mut names: Vec<String> = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
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
