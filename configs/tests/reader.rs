//! One reader for all kinds of files: overrides reach into arrays, and errors name their place.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;

use goodput_configs::error::ReadError;
use goodput_configs::experiment::Experiment;
use goodput_configs::forecast::ForecastConfig;
use goodput_configs::kind::Kind;
use goodput_configs::reader::{self, Document};

const SERVICES: &str = include_str!("../scenario/burst.toml");

fn with(set: &str) -> Result<Experiment, ReadError> {
    reader::of_document(&Document::new("x.toml", SERVICES, &[set.to_owned()])?)
}

#[test]
fn overrides_reach_into_arrays() {
    let before = with("seed=1").unwrap();
    let after = with("services.1.slo.latency_ms=777").unwrap();
    assert_eq!(after.services[1].slo.latency_ms, 777);
    assert_eq!(after.services[0], before.services[0]);
    let policies = with("evaluate.policies.0=srtf").unwrap().evaluate.policies;
    assert_eq!(policies[0], "srtf");
    let more = with(&format!("evaluate.policies.{}=afs", policies.len())).unwrap().evaluate.policies;
    assert_eq!((more.len(), more.last().unwrap().as_str()), (policies.len() + 1, "afs"));
}

#[test]
fn overrides_that_lead_nowhere_say_where() {
    for (set, part) in [
        ("services.9.name=x", "`services` has no entry 9"),
        ("services.name=x", "name an entry by its number, as in `services.0`"),
        ("services.0=x", "`services.0` is a table"),
        ("name.x=1", "`name` is a string"),
        ("nothing", "expected KEY=VALUE"),
    ] {
        let error = with(set).unwrap_err();
        assert!(error.message.contains(part) && error.message.starts_with("--set"), "{set}: {error}");
    }
}

#[test]
fn errors_name_the_place_and_the_closest_key() {
    let error = with("services.1.slo.latency_m=5").unwrap_err();
    assert!(error.message.starts_with("x.toml:") && error.message.contains("unknown field `latency_m`"), "{error}");
    assert_eq!(error.help.unwrap(), "did you mean `latency_ms`?");
    let error = with("services.1.slo.target=2.0").unwrap_err();
    let place = error.source_text.unwrap();
    assert_eq!(&place.text[place.span.clone()], "2.0", "the second service, not the first");
    assert!(place.text[..place.span.start].matches("[[services]]").count() == 2);
    let study = reader::parse::<ForecastConfig>("x.toml", SERVICES).unwrap_err();
    assert!(study.help.unwrap().contains("goodput eval FILE"), "the file is an experiment");
}

#[test]
fn shipped_files_have_the_kind_of_their_folder() {
    let configs = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (folder, kinds) in [
        ("experiment", &[Kind::Experiment][..]),
        ("leaderboard", &[Kind::Experiment]),
        ("scenario", &[Kind::Experiment, Kind::Federation]),
        ("forecast", &[Kind::ForecastStudy, Kind::ForecasterTraining]),
        ("live", &[Kind::Deployment, Kind::NodeAgent]),
    ] {
        for entry in fs::read_dir(configs.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let kind = Document::read(&path, &[]).unwrap().kind();
            assert!(kinds.contains(&kind), "{} is read as {kind:?}", path.display());
        }
    }
}
