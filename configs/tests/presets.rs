//! Presets of `[environment]`: the conventions they fill in, and the keys that replace them.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_agents::compose::NamedPolicy;
use goodput_agents::compose::loaning::Sharing;
use goodput_configs::experiment::Experiment;
use goodput_configs::reader::{parse, resolved};
use goodput_env::scenario::{Batching, EpochEnd, Information, Preset, Release, Rounds};
use goodput_env::time::SimTime;

fn experiment(environment: &str) -> Experiment {
    let text = format!(
        "name = \"x\"\n[[cluster.groups]]\nnodes = 4\ngpus_per_node = 4\n[workload.synthetic.pollux]\njobs = 4\n\
         [environment]\n{environment}\n"
    );
    parse("x.toml", &text).unwrap()
}

#[test]
fn every_preset_gives_the_options_of_its_simulator() {
    for preset in Preset::ALL {
        let environment = experiment(&format!("preset = {:?}", preset.name())).environment;
        let expected = preset.options(environment.batching, environment.information);
        assert_eq!(environment.options().unwrap(), expected, "{}", preset.name());
        assert!(environment.overrides().is_empty(), "{}", preset.name());
        assert_eq!(environment.as_published.batching, preset.batching().is_none());
        assert_eq!(environment.as_published.information, preset.information().is_none());
    }
}

#[test]
fn keys_beside_a_preset_replace_its_conventions() {
    let environment = experiment("switch_cost = \"zero\"\npreset = \"pollux-osdi21\"\nround_secs = 60.0").environment;
    let [only] = &environment.overrides()[..] else { panic!("{:?}", environment.overrides()) };
    assert_eq!((only.key, &*only.given, &*only.preset), ("environment.switch_cost", "\"zero\"", "\"pollux_const\""));
    assert_eq!((environment.release, environment.epoch_end), (Release::NextRound, EpochEnd::WholeSecond));
}

#[test]
fn a_written_batching_or_information_holds_for_every_policy() {
    let environment = experiment("preset = \"sia-sosp23\"\nbatching = \"requested\"").environment;
    assert_eq!(environment.batching_of(Batching::Agent), None);
    assert_eq!(environment.information_of(Information::Oracle), Some(Information::Oracle));
    let environment = experiment("preset = \"sia-sosp23\"\ninformation = \"oracle\"").environment;
    assert_eq!(environment.batching_of(Batching::Agent), Some(Batching::Agent));
    assert_eq!(environment.information_of(Information::Profiled), None);
}

#[test]
fn a_resolved_file_means_the_same() {
    for preset in Preset::ALL {
        let given = experiment(&format!("preset = {:?}\nfree_moves = true", preset.name()));
        let again: Experiment = parse("y.toml", &resolved(&given).unwrap()).unwrap();
        assert_eq!(again, given, "{}", preset.name());
    }
}

/// Sia's simulator asks policies of Gavel every 360 s, unless the file sets the rounds.
#[test]
fn policies_of_gavel_have_rounds_of_their_own_in_sias_simulator() {
    let rounds = |environment: &str, policy: &str| {
        let made = policy.parse::<NamedPolicy>().unwrap().build(0, &Sharing::default());
        experiment(environment).environment.rounds_of(&*made)
    };
    let every = |secs| Some(Rounds { period: Some(SimTime::from_secs(secs)), on_churn: false });
    assert_eq!(rounds("preset = \"sia-sosp23\"", "gavel-max-min"), every(360));
    assert_eq!(rounds("preset = \"sia-sosp23\"", "gavel-fifo-perf+reactive"), every(360));
    assert_eq!(rounds("preset = \"sia-sosp23\"", "gavel-max-min(round_secs=120)"), every(120));
    assert_eq!(rounds("preset = \"sia-sosp23\"", "sia"), None);
    assert_eq!(rounds("preset = \"sia-sosp23\"\nround_secs = 120.0", "gavel-max-min"), None);
    assert_eq!(rounds("preset = \"gavel-osdi20\"", "gavel-max-min"), None);
}

#[test]
fn a_misspelt_preset_is_an_error_that_names_the_others() {
    let text = "name = \"x\"\n[[cluster.groups]]\nnodes = 4\ngpus_per_node = 4\n[workload.synthetic.pollux]\njobs = 4\n\
                [environment]\npreset = \"gavel-osdi21\"\n";
    let error = parse::<Experiment>("x.toml", text).unwrap_err();
    assert!(error.message.contains("gavel-osdi20") || error.help.unwrap_or_default().contains("gavel-osdi20"));
}
