//! One reader for all kinds of files: overrides reach into arrays, and errors name their place.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;

use goodput_configs::error::ReadError;
use goodput_configs::experiment::Experiment;
use goodput_configs::forecast::ForecastConfig;
use goodput_configs::kind::Kind;
use goodput_configs::reader::{self, Document};
use goodput_env::scenario::Information;

const SERVICES: &str = include_str!("../scenario/burst.toml");

fn with(set: &str) -> Result<Experiment, ReadError> {
    reader::of_document(&Document::new("x.toml", SERVICES, &[set.to_owned()])?)
}

#[test]
fn overrides_reach_into_arrays() {
    let before = with("seed=1").unwrap();
    let after = with("services.1.slo.latency_ms=777").unwrap();
    assert_eq!(after.services[1].slo.latency_ms, Some(777));
    assert_eq!(after.services[0], before.services[0]);
    let policies = with("evaluate.policies.0=srtf").unwrap().evaluate.policies;
    assert_eq!(policies[0], "srtf");
    let more = with(&format!("evaluate.policies.{}=tiresias", policies.len())).unwrap().evaluate.policies;
    assert_eq!((more.len(), more.last().unwrap().as_str()), (policies.len() + 1, "tiresias"));
}

/// A choice by name becomes a choice with values of its own, as a sweep over both needs it.
#[test]
fn a_named_choice_gives_way_to_one_with_values() {
    let found = |set: &str| with(set).unwrap().environment.information;
    assert_eq!(found("environment.information.estimate.sigma=0.25"), Information::Estimate { sigma: 0.25 });
    assert_ne!(found("seed=1"), found("environment.information.estimate.sigma=0.25"));
    let error = with("name.x=1").unwrap_err();
    assert!(error.message.ends_with("expected a text, found a table"), "{error}");
}

#[test]
fn overrides_that_lead_nowhere_say_where() {
    for (set, part) in [
        ("services.9.name=x", "`services` has no entry 9"),
        ("services.name=x", "name an entry by its number, as in `services.0`"),
        ("services.0=x", "`services.0` is a table"),
        ("environment.round_secs.x=1", "`round_secs` is a float"),
        ("nothing", "expected KEY=VALUE"),
    ] {
        let error = with(set).unwrap_err();
        assert!(error.message.contains(part) && error.message.starts_with("--set"), "{set}: {error}");
    }
}

#[test]
fn errors_name_the_place_and_the_closest_key() {
    let error = with("services.1.slo.latency_m=5").unwrap_err();
    assert!(error.message.starts_with("x.toml:") && error.message.contains("unknown key `latency_m`"), "{error}");
    assert_eq!(error.help.unwrap(), "did you mean `latency_ms`?");
    let error = with("services.1.slo.target=2.0").unwrap_err();
    let place = error.source_text.unwrap();
    assert_eq!(&place.text[place.span.clone()], "2.0", "the second service, not the first");
    assert!(place.text[..place.span.start].matches("[[services]]").count() == 2);
    let study = reader::parse::<ForecastConfig>("x.toml", SERVICES).unwrap_err();
    assert!(study.help.unwrap().contains("goodput eval FILE"), "the file is an experiment");
}

/// Error of the training of a set encoder with a part of its text replaced.
fn changed(from: &str, to: &str) -> ReadError {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiment/set-encoder.toml");
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{from}");
    reader::parse::<Experiment>("x.toml", &text.replacen(from, to, 1)).unwrap_err()
}

#[test]
fn names_that_do_not_exist_are_found_before_a_run() {
    for (from, to, says) in [
        ("teacher = \"pollux-fast\"", "teacher = \"polux-fast\"", "(did you mean \"pollux-fast\"?)"),
        ("accelerator = \"t4\"", "accelerator = \"T44\"", "(did you mean \"t4\"?)"),
        ("accelerator = \"t4\"", "accelerator = \"abacus\"", "a100, h100, h200, l40s, rtx-2080-ti, rtx-6000, t4"),
        // A type of the catalog on which some of the applications have no speed.
        ("accelerator = \"t4\"", "accelerator = \"H100\"", "at least one type on which cifar10 has a speed: a100,"),
        ("\"fifo\"", "\"fifoo\"", "(did you mean \"fifo\"?)"),
    ] {
        let error = changed(from, to);
        assert!(error.message.starts_with("x.toml:") && error.message.contains(says), "{to}: {error}");
        let place = error.source_text.unwrap();
        assert!(place.text[place.span].contains(to.split('"').rev().nth(1).unwrap()), "{to}");
    }
}

#[test]
fn a_misspelt_table_beside_the_right_one_is_named() {
    let error = changed("[agent.ppo]", "[agent.pppo]");
    assert!(error.message.contains("`agent` takes one table"), "{error}");
    assert!(error.help.unwrap().contains("`pppo` and `ppo` are close"), "the misspelt table");
}

#[test]
fn a_file_of_no_kind_is_told_what_makes_a_kind() {
    let error = reader::parse::<Experiment>("k.toml", "[foo]\n").unwrap_err();
    let help = error.help.unwrap();
    let told = ["[workload]", "[[clusters]]", "[series]", "[forecaster]", "[engine]", "state_dir"];
    assert!(told.iter().all(|sign| help.contains(sign)), "{help}");
    let error = reader::parse::<Experiment>("k.toml", "[workload.zebra]\n").unwrap_err();
    assert!(!error.help.unwrap().contains("[engine]"), "the file is an experiment for certain");
}

#[test]
fn a_workload_that_is_not_there_is_a_mistake_of_its_path() {
    let text = "name = \"x\"\n[[cluster.groups]]\nnodes = 1\ngpus_per_node = 1\n[workload.file]\npath = \"no.csv\"\n";
    let error = reader::parse::<Experiment>("x.toml", text).unwrap_err();
    assert!(error.message.starts_with("x.toml:6:"), "{error}");
    assert!(error.help.unwrap().contains("relative to the folder"), "the remedy of data errors");
}

#[test]
fn shipped_files_have_the_kind_of_their_folder() {
    let configs = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (folder, kinds) in [
        ("experiment", &[Kind::Experiment][..]),
        ("leaderboard", &[Kind::Experiment]),
        ("scenario", &[Kind::Experiment, Kind::Federation]),
        ("forecast", &[Kind::ForecastStudy, Kind::WorthStudy, Kind::ForecasterTraining]),
        ("live", &[Kind::Deployment, Kind::NodeAgent]),
    ] {
        for entry in fs::read_dir(configs.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let kind = Document::read(&path, &[]).unwrap().kind();
            assert!(kinds.contains(&kind), "{} is read as {kind:?}", path.display());
            let schema = format!("#:schema ../schema/{}\n", kind.schema_file());
            assert!(fs::read_to_string(&path).unwrap().starts_with(&schema), "{} names no schema", path.display());
        }
    }
}
